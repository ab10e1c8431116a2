//! Other names of what is hidden. A file system can be mounted more than once (a bind mount, `/sysroot`, the top of a
//! btrfs volume), and a cover on one mount covers nothing on another.

use crate::facts::MountFact;
use crate::layout::Want;
use crate::survey::Survey;
use ringfence_policy::HostPath;
use std::collections::BTreeMap;

/// Hides, at every other mount of its file system, what is hidden or replaced by something of ours. What a rule grants by
/// its other name stays granted.
pub(crate) fn hide(survey: &mut Survey<'_>) {
    let mounts = Mounts::new(&survey.facts.mounts);
    if mounts.is_simple() {
        return;
    }
    let hidden: Vec<HostPath> =
        survey.layout.nodes().filter(|(_, node)| !node.want.is_host()).map(|(path, _)| path.clone()).collect();
    let resolver = &survey.facts.resolver;
    let generated = [&resolver.resolv_conf, &resolver.hosts, &resolver.nsswitch].map(Clone::clone);
    for path in hidden {
        for alias in mounts.other_names(&path) {
            // A file of ours stands there instead, which must be read.
            if generated.iter().flatten().any(|file| *file == alias) {
                continue;
            }
            // A node of its own is a rule's word on this very name.
            let granted = survey.layout.node(&alias).is_some_and(|node| node.want.is_host());
            if !granted
                && survey.layout.want(&alias) == Want::ReadOnly
                && let Some((real, kind)) = survey.resolve(&alias)
                && real == alias
            {
                survey.layout.put(alias, Want::Hidden, kind, format!("the same as {path}"));
            }
        }
    }
}

struct Mounts<'a> {
    all: &'a [MountFact],
    by_device: BTreeMap<&'a str, Vec<&'a MountFact>>,
}

impl<'a> Mounts<'a> {
    fn new(all: &'a [MountFact]) -> Self {
        let mut by_device: BTreeMap<&str, Vec<&MountFact>> = BTreeMap::new();
        for mount in all {
            by_device.entry(&mount.device).or_default().push(mount);
        }
        Self { all, by_device }
    }

    /// Whether no file system is mounted twice.
    fn is_simple(&self) -> bool {
        self.by_device.values().all(|mounts| mounts.len() < 2)
    }

    /// The mount in which a path lies: the deepest, and of those at one place the last.
    fn of(&self, path: &HostPath) -> Option<&'a MountFact> {
        let around = self.all.iter().filter(|mount| path.is_within(&mount.point));
        around.max_by_key(|mount| mount.point.depth())
    }

    /// The same folder, or what of it is mounted, under other names.
    fn other_names(&self, path: &HostPath) -> Vec<HostPath> {
        let Some(own) = self.of(path) else { return Vec::new() };
        let Some(inside) = moved(path, &own.point, &own.root) else { return Vec::new() };
        let same = self.by_device.get(own.device.as_str()).into_iter().flatten();
        let mut out = Vec::new();
        for other in same.filter(|other| other.point != own.point) {
            let name = if other.root.is_within(&inside) {
                Some(other.point.clone())
            } else {
                moved(&inside, &other.root, &other.point)
            };
            // Something else may be mounted over that place.
            out.extend(name.filter(|name| self.of(name).is_some_and(|mount| std::ptr::eq(mount, *other))));
        }
        out
    }
}

/// The path with one base in the place of another.
fn moved(path: &HostPath, from: &HostPath, to: &HostPath) -> Option<HostPath> {
    let below = path.as_path().strip_prefix(from.as_path()).ok()?;
    HostPath::new(to.as_path().join(below)).ok()
}
