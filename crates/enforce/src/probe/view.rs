//! The real file system behind the seam of the plan.

use ringfence_plan::{FsView, Kind};
use ringfence_policy::HostPath;
use ringfence_sys::files::{EntryKind, entry_kind, list_dir};
use std::ffi::OsString;

/// Looks at the host's files. Follows no symlink but in [`FsView::canonical`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RealView;

fn kind_of(entry: EntryKind) -> Kind {
    match entry {
        EntryKind::File => Kind::File,
        EntryKind::Dir => Kind::Dir,
        EntryKind::Symlink => Kind::Symlink,
        EntryKind::Socket => Kind::Socket,
        EntryKind::Other => Kind::Other,
    }
}

impl FsView for RealView {
    fn kind(&self, path: &HostPath) -> Option<Kind> {
        entry_kind(path.as_path()).ok().map(kind_of)
    }

    fn canonical(&self, path: &HostPath) -> Option<HostPath> {
        HostPath::new(ringfence_sys::files::real_path(path.as_path()).ok()?).ok()
    }

    fn children(&self, path: &HostPath) -> Result<Vec<(OsString, Kind)>, String> {
        let entries = list_dir(path.as_path()).map_err(|error| error.to_string())?;
        Ok(entries.into_iter().map(|(name, kind)| (name, kind_of(kind))).collect())
    }

    fn can_enter(&self, folder: &HostPath) -> bool {
        !ringfence_sys::files::is_closed(folder.as_path())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_seen_as_links() {
        let dir = tempfile::tempdir().unwrap();
        let base = HostPath::new(std::fs::canonicalize(dir.path()).unwrap()).unwrap();
        std::fs::create_dir(base.join("d").as_path()).unwrap();
        std::fs::write(base.join("d").join("f").as_path(), "").unwrap();
        std::os::unix::fs::symlink("d", base.join("l").as_path()).unwrap();
        let view = RealView;
        assert_eq!(view.kind(&base.join("l")), Some(Kind::Symlink));
        assert_eq!(view.kind(&base.join("d")), Some(Kind::Dir));
        assert_eq!(view.kind(&base.join("x")), None);
        assert_eq!(view.canonical(&base.join("l")), Some(base.join("d")));
        assert_eq!(view.children(&base.join("d")).unwrap(), [(OsString::from("f"), Kind::File)]);
        assert!(view.children(&base.join("l")).is_err());
    }
}
