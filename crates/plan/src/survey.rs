//! From rules to a [`Layout`]: asks the policy about every path that a rule names.

use crate::facts::HostFacts;
use crate::fs_view::{FsView, Kind};
use crate::layout::{Layout, Place, Want, bytes, split};
use crate::{PlanError, Request};
use ringfence_policy::{
    Access, HomeMode, HostPath, Layer, Origin, PathPattern, PathRule, PathVerb, Policy, Source, Verdict,
};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

/// Everything that is looked at, and what was found.
pub(crate) struct Survey<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) facts: &'a HostFacts,
    pub(crate) request: &'a Request,
    pub(crate) view: &'a dyn FsView,
    pub(crate) layout: Layout,
    pub(crate) notes: Notes,
    pub(crate) errors: Vec<PlanError>,
    /// Files of the sockets that are allowed.
    pub(crate) sockets: BTreeSet<HostPath>,
    /// Folders that were resolved before; many rules share one.
    resolved: RefCell<HashMap<Vec<u8>, Option<HostPath>>>,
    /// Folders in which many rules name something, with what is there: there are hundreds of credential stores, and most
    /// do not exist.
    crowded: HashMap<Vec<u8>, HashMap<Vec<u8>, Kind>>,
}

/// How many names of one folder make it worth to list it once instead of asking for each.
const CROWD: usize = 8;

/// What is less than a reader of the policy may expect; goes into the status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Write-denied paths that do not exist, in writable folders, and that nobody asked for explicitly.
    pub(crate) names_absent: BTreeSet<HostPath>,
    /// Write-denied names that are symlinks: what they lead to is covered, the link itself can be replaced.
    pub(crate) names_linked: BTreeSet<HostPath>,
    /// Protected names that are covered.
    pub(crate) names_held: usize,
    /// Explicit denials that are accepted as weaker.
    pub(crate) accepted: BTreeSet<String>,
    /// Paths that a preset shares and that do not exist, and what becomes of them.
    pub(crate) shares_absent: BTreeSet<HostPath>,
    /// Sockets that were allowed and are not there.
    pub(crate) sockets_absent: BTreeSet<HostPath>,
    /// Sockets of the host that are covered.
    pub(crate) sockets_covered: usize,
    /// Folders that could not be read while patterns were expanded.
    pub(crate) unreadable: BTreeSet<HostPath>,
}

/// The policy's word on a path.
pub(crate) struct Word {
    pub(crate) want: Want,
    pub(crate) why: String,
    /// The pattern of the rule that decided, where it was one with wildcards.
    pub(crate) pattern: Option<(String, Origin)>,
    /// Whether a rule denies reading what the host has there, although the sandbox has its own.
    pub(crate) denied: bool,
}

impl<'a> Survey<'a> {
    pub(crate) fn new(policy: &'a Policy, facts: &'a HostFacts, request: &'a Request, view: &'a dyn FsView) -> Self {
        Self {
            policy,
            facts,
            request,
            view,
            layout: Layout::default(),
            notes: Notes::default(),
            errors: Vec::new(),
            sockets: BTreeSet::new(),
            resolved: RefCell::default(),
            crowded: HashMap::new(),
        }
    }

    /// Lists the folders in which many rules name something.
    fn list_crowded(&mut self) {
        let mut named: HashMap<&[u8], (usize, &HostPath)> = HashMap::new();
        for rule in &self.policy.files.rules {
            if let PathPattern::Subtree(path) = &rule.pattern
                && let Some((folder, _)) = split(bytes(path))
            {
                named.entry(folder).or_insert((0, path)).0 += 1;
            }
        }
        let crowded = named.into_values().filter(|(count, _)| *count >= CROWD);
        let mut crowded: Vec<HostPath> = crowded.filter_map(|(_, path)| path.parent()).collect();
        // A folder comes before what lies in it, so what is not there is never asked for.
        crowded.sort();
        for folder in crowded {
            let listing = match self.kind(&folder) {
                Some(Kind::Dir) => match self.view.children(&folder) {
                    Ok(names) => names.into_iter().map(|(name, kind)| (name.into_encoded_bytes(), kind)).collect(),
                    Err(_) if self.view.can_enter(&folder) => continue,
                    Err(_) => HashMap::new(),
                },
                Some(_) => continue,
                None => HashMap::new(),
            };
            self.crowded.insert(bytes(&folder).to_vec(), listing);
        }
    }

    /// What is there; symlinks are not followed.
    fn kind(&self, path: &HostPath) -> Option<Kind> {
        if let Some((folder, name)) = split(bytes(path)) {
            if let Some(listing) = self.crowded.get(folder) {
                return listing.get(name).copied();
            }
            // `~/.config/x/y` cannot be there when `~/.config/x` is not.
            let mut below = folder;
            while let Some((above, name)) = split(below) {
                match self.crowded.get(above) {
                    Some(listing) if listing.contains_key(name) => break,
                    Some(_) => return None,
                    None => below = above,
                }
            }
        }
        self.view.kind(path)
    }

    /// Puts a node for every rule that names one path, and for places of ours. What patterns show or hide comes after it,
    /// see [`crate::walk`].
    pub(crate) fn rules(&mut self) {
        self.list_crowded();
        self.workspace();
        self.top();
        self.places();
        // Grants come first: whether a denial matters depends on what is seen there.
        for (path, rule) in self.literal(false) {
            if path.is_within(&kernel("/proc")) {
                self.grant_below_proc(path, rule);
            } else {
                self.grant(path, rule);
            }
        }
        self.tools();
        self.denials();
    }

    /// Puts a node for every denial of one path, as far as something of the host is seen there now.
    pub(crate) fn denials(&mut self) {
        for (path, rule) in self.literal(true) {
            if !path.is_within(&kernel("/proc")) {
                self.deny(path, rule);
            }
        }
        self.own_files();
    }

    /// The rules that name one path: denials, or grants.
    fn literal(&self, denials: bool) -> impl Iterator<Item = (&'a HostPath, &'a PathRule)> + use<'a> {
        let rules = self.policy.files.rules.iter().filter(move |rule| rule.verb.is_deny() == denials);
        rules.filter_map(|rule| match &rule.pattern {
            PathPattern::Subtree(path) => Some((path, rule)),
            PathPattern::Glob(_) => None,
        })
    }

    /// Asks the policy.
    pub(crate) fn word(&self, path: &HostPath) -> Word {
        let read = self.policy.may_path(path, Access::Read);
        let write = match read.verdict {
            Verdict::Allowed => Some(self.policy.may_path(path, Access::Write)),
            Verdict::Denied | Verdict::Private => None,
        };
        let place = if *path == self.policy.files.home.path { Place::Home } else { Place::Temporary };
        let want = match (read.verdict, write.as_ref().map(|write| write.verdict)) {
            (Verdict::Denied, _) => Want::Hidden,
            (Verdict::Private, _) => Want::Private(place),
            (Verdict::Allowed, Some(Verdict::Allowed)) => Want::Writable,
            (Verdict::Allowed, _) => Want::ReadOnly,
        };
        let decision = match (want, write) {
            // That nothing makes a path writable is no reason; that something protects it is.
            (Want::ReadOnly | Want::Writable, Some(write)) if write.origin != Origin::builtin("default deny") => write,
            _ => read,
        };
        let denied = decision.rule.as_ref().is_some_and(|rule| rule.verb == PathVerb::DenyRead);
        let pattern = match &decision.rule {
            Some(PathRule { pattern: PathPattern::Glob(glob), origin, .. }) => Some((glob.to_string(), origin.clone())),
            _ => None,
        };
        Word { want, why: decision.reason, pattern, denied }
    }

    /// The path after following every symlink; `None` when it does not exist.
    pub(crate) fn resolve(&self, path: &HostPath) -> Option<(HostPath, Kind)> {
        let kind = self.kind(path)?;
        if kind == Kind::Symlink {
            let target = self.view.canonical(path)?;
            let kind = self.view.kind(&target)?;
            return Some((target, kind));
        }
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Some((self.folder(&parent)?.join(name), kind)),
            _ => Some((path.clone(), kind)),
        }
    }

    fn folder(&self, path: &HostPath) -> Option<HostPath> {
        if let Some(known) = self.resolved.borrow().get(bytes(path)) {
            return known.clone();
        }
        let found = self.view.canonical(path);
        self.resolved.borrow_mut().insert(bytes(path).to_vec(), found.clone());
        found
    }

    /// Where a path that does not exist would come to be.
    pub(crate) fn would_be(&self, path: &HostPath) -> HostPath {
        let mut missing = Vec::new();
        let mut at = path.clone();
        loop {
            if let Some(found) = self.folder(&at) {
                return missing.iter().rev().fold(found, |path, name| path.join(name));
            }
            let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else { return path.clone() };
            missing.push(name);
            at = parent;
        }
    }

    fn workspace(&mut self) {
        let workspace = &self.policy.workspace;
        let origin = "the workspace".to_owned();
        let Some((real, _)) = self.resolve(workspace) else {
            self.errors.push(PlanError::Missing { path: workspace.clone(), origin });
            return;
        };
        let home = self.resolve(&self.policy.files.home.path).map(|(home, _)| home);
        let insisted = self.policy.files.rules.iter().any(|rule| {
            rule.verb == PathVerb::AllowWrite
                && rule.origin.layer == Layer::CommandLine
                && matches!(&rule.pattern, PathPattern::Subtree(path) if path == workspace)
        });
        if (real == HostPath::root() || Some(&real) == home.as_ref()) && !insisted {
            self.errors.push(PlanError::WorkspaceTooWide { path: real });
        }
    }

    /// Where reading everything is denied, what stands in the root folder is hidden one by one: a mount over `/` itself
    /// would not change what paths mean.
    fn top(&mut self) {
        let root = HostPath::root();
        let word = self.word(&root);
        if word.want != Want::Hidden {
            return;
        }
        match self.view.children(&root) {
            Ok(children) => {
                for (name, kind) in children {
                    let path = root.join(name);
                    let kept = ["/proc", "/dev"].iter().any(|kept| path == kernel(kept)) || kind == Kind::Symlink;
                    if !kept && self.word(&path).want == Want::Hidden {
                        self.layout.put(path, Want::Hidden, kind, word.why.clone());
                    }
                }
            }
            Err(why) => self.errors.push(PlanError::View { path: root, why }),
        }
    }

    /// The home folder, and the folders that are private to the run.
    fn places(&mut self) {
        let policy = self.policy;
        let home = &policy.files.home;
        if home.path == HostPath::root() && home.mode != HomeMode::Visible {
            self.errors.push(PlanError::Unenforceable {
                what: "the home folder is `/`, which nothing can stand in for".to_owned(),
                hint: "set HOME to a folder of its own, or choose the home that is visible".to_owned(),
                origin: home.origin.to_string(),
            });
            return;
        }
        for path in policy.files.private.iter().chain([&home.path]) {
            // A private `/dev` is always made.
            if path.is_within(&kernel("/dev")) {
                continue;
            }
            if let Some((real, kind)) = self.resolve(path)
                && kind == Kind::Dir
            {
                let word = self.word(path);
                self.layout.put(real, word.want, kind, word.why);
            }
        }
    }

    fn grant(&mut self, path: &HostPath, rule: &PathRule) {
        let found = self.resolve(path);
        // There is nothing to show.
        if found.is_none() && rule.verb == PathVerb::AllowRead {
            return;
        }
        let word = self.word(path);
        if !word.want.is_host() {
            return;
        }
        let Some((real, kind)) = found else {
            self.absent_grant(path, rule);
            return;
        };
        if word.want == Want::Writable && !self.is_sound_root(path, &real, rule) {
            return;
        }
        if real.is_within(&kernel("/dev")) && !real.is_within(&kernel("/dev/shm")) {
            self.grant_below_dev(path, kind, rule);
            return;
        }
        self.show(path, real, word.want, kind, rule.why.clone().unwrap_or(word.why));
    }

    /// Single devices become nodes of the sandbox's own `/dev`, see [`crate::system::nodes`].
    fn grant_below_dev(&mut self, path: &HostPath, kind: Kind, rule: &PathRule) {
        let node = kind == Kind::Other && path.depth() == 2;
        if !node && is_explicit(&rule.origin) {
            self.errors.push(PlanError::Unenforceable {
                what: format!("`{path}` cannot be shown: only single devices of /dev can"),
                hint: "name the device".to_owned(),
                origin: rule.origin.to_string(),
            });
        }
    }

    /// Puts a node for something of the host, and the link by which the policy names it.
    pub(crate) fn show(&mut self, path: &HostPath, real: HostPath, want: Want, kind: Kind, why: String) {
        if *path != real && !self.layout.want(path).is_host() {
            self.layout.link(path.clone(), real.clone());
        }
        self.layout.put(real, want, kind, why);
    }

    fn absent_grant(&mut self, path: &HostPath, rule: &PathRule) {
        // Nothing can be made on the host without leaving litter.
        if is_explicit(&rule.origin) && *path != self.policy.workspace {
            self.errors.push(PlanError::Missing { path: path.clone(), origin: rule.origin.to_string() });
        } else {
            self.notes.shares_absent.insert(path.clone());
        }
    }

    fn grant_below_proc(&mut self, path: &HostPath, rule: &PathRule) {
        if rule.verb == PathVerb::AllowWrite && is_explicit(&rule.origin) {
            self.errors.push(PlanError::Unenforceable {
                what: format!("`{path}` cannot be made writable: it belongs to the whole machine"),
                hint: "take the rule away".to_owned(),
                origin: rule.origin.to_string(),
            });
        }
    }

    /// A link that leads out of its folder would carry the grant wherever an earlier run pointed it.
    fn is_sound_root(&mut self, path: &HostPath, real: &HostPath, rule: &PathRule) -> bool {
        let is_link = self.kind(path) == Some(Kind::Symlink);
        let parent = path.parent().and_then(|parent| self.folder(&parent));
        let leaves_folder = is_link && !parent.is_some_and(|parent| real.is_within(&parent));
        let leaves_root = path != real
            && self.policy.files.rules.iter().any(|outer| match &outer.pattern {
                PathPattern::Subtree(root)
                    if outer.verb == PathVerb::AllowWrite && root != path && path.is_within(root) =>
                {
                    !self.folder(root).is_some_and(|root| real.is_within(&root))
                }
                _ => false,
            });
        if leaves_folder || leaves_root {
            self.errors.push(PlanError::RootIsLink {
                path: path.clone(),
                target: real.clone(),
                origin: rule.origin.to_string(),
            });
            return false;
        }
        true
    }

    /// Tools: of the home, and what `PATH` names in folders that are private to the run.
    fn tools(&mut self) {
        let facts = self.facts;
        for tool in &facts.toolchains {
            self.tool(&tool.path, &tool.why);
        }
        let path = self.request.env.iter().find(|(name, _)| name == "PATH");
        for folder in path.iter().flat_map(|(_, value)| std::env::split_paths(value)) {
            let Ok(folder) = HostPath::new(&folder) else { continue };
            if !self.layout.want(&folder).is_host() && !folder.is_within(&self.policy.files.home.path) {
                self.tool(&folder, "PATH entry");
            }
        }
    }

    fn tool(&mut self, path: &HostPath, why: &str) {
        let word = self.word(path);
        if word.want == Want::Hidden {
            return;
        }
        if let Some((real, kind)) = self.resolve(path) {
            let want = if word.want == Want::Writable { Want::Writable } else { Want::ReadOnly };
            self.show(path, real, want, kind, why.to_owned());
        }
    }

    fn deny(&mut self, path: &HostPath, rule: &PathRule) {
        // See `top`.
        if path.depth() == 0 {
            return;
        }
        let Some((real, kind)) = self.resolve(path) else {
            self.absent_denial(path, rule);
            return;
        };
        // Most credential stores lie where the host's home is not seen at all.
        if *path == real && !self.layout.want(&real).is_host() {
            return;
        }
        let word = self.word(path);
        let want = match word.want {
            Want::Private(_) if rule.verb == PathVerb::DenyWrite => Want::ReadOnly,
            Want::Private(_) => Want::Hidden,
            // A stronger rule may re-open what this one closes.
            want => want,
        };
        let why = rule.why.clone().unwrap_or(word.why);
        if want == Want::ReadOnly && self.layout.want(&real) == Want::Writable {
            self.pin_above(&real, &why);
        }
        self.close(path, real, kind, want, why, is_explicit(&rule.origin).then_some(rule));
    }

    /// Puts a node where something of the host is seen and must not be.
    pub(crate) fn close(
        &mut self,
        path: &HostPath,
        real: HostPath,
        kind: Kind,
        want: Want,
        why: String,
        explicit: Option<&PathRule>,
    ) {
        let before = self.layout.want(&real);
        if want == Want::ReadOnly && *path != real && self.is_replaceable_link(path, &real) {
            match explicit {
                Some(rule) => self.cannot_hold(
                    format!("`{path}` is a link, which could be replaced although writing to it is denied"),
                    rule,
                ),
                None => {
                    self.notes.names_linked.insert(path.clone());
                }
            }
        }
        if !before.is_host() || want >= before {
            return;
        }
        if self.policy.workspace.is_within(&real) && want == Want::Hidden && *path != real {
            // A link that leads to a folder around the workspace: covering that would take everything away.
            self.errors.push(PlanError::Unenforceable {
                what: format!("`{path}` is denied and leads to `{real}`, which holds the workspace"),
                hint: "remove the link".to_owned(),
                origin: explicit.map_or_else(|| why.clone(), |rule| rule.origin.to_string()),
            });
            return;
        }
        self.layout.put(real, want, kind, why);
    }

    /// Whether a path is a link in a writable folder.
    fn is_replaceable_link(&self, path: &HostPath, real: &HostPath) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let at = self.would_be(&parent).join(name);
        at != *real && self.layout.want(&at) == Want::Writable
    }

    /// Keeps the folders between a path and its writable root where they are.
    fn pin_above(&mut self, real: &HostPath, why: &str) {
        let mut at = real.parent();
        while let Some(folder) = at {
            // The root of the window is a mount already.
            if self.layout.want(&folder) != Want::Writable || self.is_window(&folder) {
                return;
            }
            at = folder.parent();
            self.layout.pin(folder, why);
        }
    }

    /// Keeps every writable folder above a path of ours where it is. What is hidden stays hidden under another name, but the
    /// next run would find, at the old one, whatever the command put there.
    fn keep_way(&mut self, real: &HostPath) {
        let mut at = real.parent();
        while let Some(folder) = at {
            at = folder.parent();
            if self.layout.want(&folder) == Want::Writable && !self.is_window(&folder) {
                self.layout.pin(folder, "leads to ringfence's own folder");
            }
        }
    }

    /// Whether a folder is where the host's becomes writable.
    pub(crate) fn is_window(&self, path: &HostPath) -> bool {
        self.layout.node(path).is_some_and(|node| node.want == Want::Writable)
            && path.parent().is_none_or(|parent| self.layout.want(&parent) != Want::Writable)
    }

    fn absent_denial(&mut self, path: &HostPath, rule: &PathRule) {
        // What does not exist cannot be read; that it appears in mid-run is for the guardian to see.
        if rule.verb == PathVerb::DenyRead || self.layout.want(&self.would_be(path)) != Want::Writable {
            return;
        }
        if self.word(path).want == Want::Writable {
            return;
        }
        if is_explicit(&rule.origin) {
            self.cannot_hold(format!("`{path}` does not exist, and nothing would stop it from being made"), rule);
        } else {
            self.notes.names_absent.insert(path.clone());
        }
    }

    fn cannot_hold(&mut self, what: String, rule: &PathRule) {
        if self.policy.walls.allow_weaker.is_some() {
            self.notes.accepted.insert(what);
            return;
        }
        self.errors.push(PlanError::Unenforceable {
            what,
            hint: "make it before the run, write a narrower writable folder, or accept it with --allow-weaker"
                .to_owned(),
            origin: rule.origin.to_string(),
        });
    }

    /// State of ours is never seen: decoys, and the private homes of other workspaces.
    fn own_files(&mut self) {
        let homes = self.request.private_home.parent();
        for path in homes.iter().chain([&self.request.state_dir]) {
            // Made before the first mount if it does not exist yet, see `PrepareOp`.
            let real = self.would_be(path);
            self.keep_way(&real);
            if self.layout.want(&real).is_host() && !self.policy.workspace.is_within(&real) {
                self.layout.put(real, Want::Hidden, Kind::Dir, "ringfence's own");
            }
        }
    }
}

/// Whether somebody asked for exactly this, as opposed to a table or a preset.
pub(crate) fn is_explicit(origin: &Origin) -> bool {
    !matches!(origin.layer, Layer::Builtin | Layer::Preset) && !matches!(origin.source, Source::Machine(_))
}

/// A path of the kernel's, from a constant.
pub(crate) fn kernel(path: &str) -> HostPath {
    HostPath::new(path).unwrap_or_else(|_| HostPath::root())
}
