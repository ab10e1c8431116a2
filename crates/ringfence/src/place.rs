//! Where a run takes place: the working directory, the workspace, the home folder and the folders of ours.

use crate::error::PlaceError;
use ringfence_policy::HostPath;
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The longest path that a system call takes, its closing NUL included (path_resolution(7), `PATH_MAX`).
const PATH_MAX: usize = 4096;

/// Whether a workspace that holds the whole home folder is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WideWorkspace {
    /// It is refused.
    #[default]
    Refuse,
    /// It is accepted, because it was named and a second flag says so.
    Accept,
}

/// Where a run takes place. All paths are absolute; `workspace` and `cwd` have no symlink in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Where the launcher was started, which paths on the command line are relative to.
    pub typed_from: HostPath,
    /// Where the command starts: there, or in the workspace where that lies elsewhere.
    pub cwd: HostPath,
    /// The folder in which it works.
    pub workspace: HostPath,
    /// The home folder, as `HOME` or else the password database names it.
    pub home: HostPath,
}

/// The working directory and the workspace, before it is known whether the workspace is too wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) cwd: HostPath,
    pub(crate) workspace: HostPath,
    named: bool,
}

impl Spot {
    /// Finds out where the launcher stands and which folder was named.
    ///
    /// # Errors
    /// The working directory is gone, or the workspace does not exist or is no folder.
    pub(crate) fn find(workspace: Option<&Path>) -> Result<Self, PlaceError> {
        let cwd = working_dir()?;
        let named = match workspace {
            Some(named) => absolute(&cwd, named)?,
            None => cwd.clone(),
        };
        Ok(Self { cwd, workspace: folder(&named)?, named: workspace.is_some() })
    }

    /// The place, once the home folder is known.
    ///
    /// # Errors
    /// The workspace is `/`, the home folder, or one that holds it, and that was not accepted.
    pub(crate) fn in_home(self, home: HostPath, wide: WideWorkspace) -> Result<Place, PlaceError> {
        let Self { cwd, workspace, named } = self;
        let home_dir = std::fs::canonicalize(home.as_path()).ok().and_then(|h| HostPath::new(h).ok());
        let holds_home = [Some(&home), home_dir.as_ref()].into_iter().flatten().any(|h| h.is_within(&workspace));
        // `/` holds every home folder, also one that does not exist.
        let too_wide = holds_home || workspace.depth() == 0;
        if too_wide && !(named && wide == WideWorkspace::Accept) {
            return Err(PlaceError::TooWide { path: workspace, home });
        }
        Ok(Self { cwd, workspace, named }.anywhere(home))
    }

    /// The place, for a verb that makes nothing writable.
    pub(crate) fn anywhere(self, home: HostPath) -> Place {
        let Self { cwd, workspace, .. } = self;
        let start = if cwd.is_within(&workspace) { cwd.clone() } else { workspace.clone() };
        Place { typed_from: cwd, cwd: start, workspace, home }
    }
}

impl Place {
    /// A path as it was typed, made absolute: relative to where the launcher was started.
    ///
    /// # Errors
    /// It is too long, empty, or holds a NUL byte.
    pub fn absolute(&self, typed: &Path) -> Result<HostPath, PlaceError> {
        absolute(&self.typed_from, typed)
    }

    /// The repository's policy file: the nearest `ringfence.toml` from the working directory upwards, at most up to the
    /// folder that holds `.git`, and never in the home folder or above it. Without a repository only the working
    /// directory and the workspace are looked at, because folders further up may be anybody's.
    pub fn project_file(&self) -> Option<PathBuf> {
        let outermost = self
            .upwards()
            .find(|dir| dir.as_path().join(".git").symlink_metadata().is_ok())
            .unwrap_or_else(|| self.workspace.clone());
        self.upwards()
            .take_while(|dir| dir.is_within(&outermost))
            .map(|dir| dir.as_path().join(PROJECT_FILE))
            .find(|file| file.symlink_metadata().is_ok())
    }

    /// The working directory and the folders above it, below the home folder.
    fn upwards(&self) -> impl Iterator<Item = HostPath> {
        std::iter::successors(Some(self.cwd.clone()), HostPath::parent)
            .take_while(|dir| dir.depth() > 0 && !self.home.is_within(dir))
    }
}

/// Name of the policy file in a repository.
pub(crate) const PROJECT_FILE: &str = "ringfence.toml";

fn working_dir() -> Result<HostPath, PlaceError> {
    let dir = std::env::current_dir().map_err(|error| match error.raw_os_error() {
        // getcwd(3): the directory has been unlinked.
        Some(2) => PlaceError::CwdGone,
        _ => PlaceError::Cwd { error },
    })?;
    // The kernel lets a process sit in a folder whose path is longer than any system call takes.
    check_length(&dir)?;
    Ok(HostPath::new(dir)?)
}

fn absolute(cwd: &HostPath, typed: &Path) -> Result<HostPath, PlaceError> {
    if typed.as_os_str().is_empty() {
        return Err(PlaceError::Empty);
    }
    let joined = cwd.as_path().join(typed);
    check_length(&joined)?;
    Ok(HostPath::new(joined)?)
}

fn check_length(path: &Path) -> Result<(), PlaceError> {
    if path.as_os_str().len() >= PATH_MAX {
        return Err(PlaceError::TooLong { bytes: path.as_os_str().len(), start: shorten(path) });
    }
    Ok(())
}

/// The beginning of a path that is too long to be shown.
fn shorten(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.chars().take(40).collect()
}

/// The folder at `path`, without symlinks.
fn folder(path: &HostPath) -> Result<HostPath, PlaceError> {
    let real =
        std::fs::canonicalize(path.as_path()).map_err(|error| PlaceError::Workspace { path: path.clone(), error })?;
    if !real.is_dir() {
        return Err(PlaceError::NotAFolder { path: path.clone() });
    }
    let real = HostPath::new(real)?;
    let parent = path.as_path().parent().and_then(|parent| std::fs::canonicalize(parent).ok());
    let leaves = !parent.is_some_and(|parent| real.as_path().starts_with(parent));
    if leaves && path.as_path().is_symlink() {
        return Err(PlaceError::Link { path: path.clone(), target: real });
    }
    Ok(real)
}

/// The user's policy folder. The XDG base directory specification says that a relative value is to be ignored.
pub(crate) fn config_dir(env: &[(OsString, OsString)], home: &HostPath) -> HostPath {
    let named = env.iter().rev().find(|(name, _)| name == "XDG_CONFIG_HOME").map(|(_, value)| value);
    let base = named.and_then(|value| HostPath::new(value).ok()).unwrap_or_else(|| home.join(".config"));
    base.join("ringfence")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(cwd: &Path, workspace: &Path, home: &Path) -> Place {
        let path = |p: &Path| HostPath::new(p).unwrap();
        Place { typed_from: path(cwd), cwd: path(cwd), workspace: path(workspace), home: path(home) }
    }

    #[test]
    fn the_project_file_is_searched_up_to_the_repository_and_not_above() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let repository = top.join("repo");
        let inner = repository.join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(repository.join(".git")).unwrap();
        std::fs::write(top.join(PROJECT_FILE), "").unwrap();
        let home = Path::new("/nonexistent");
        assert_eq!(place(&inner, &inner, home).project_file(), None, "above the repository");
        std::fs::write(repository.join(PROJECT_FILE), "").unwrap();
        assert_eq!(place(&inner, &inner, home).project_file(), Some(repository.join(PROJECT_FILE)));
        std::fs::write(inner.join(PROJECT_FILE), "").unwrap();
        assert_eq!(place(&inner, &inner, home).project_file(), Some(inner.join(PROJECT_FILE)), "the nearest");
    }

    #[test]
    fn a_link_out_of_its_folder_names_no_workspace() {
        let top = tempfile::tempdir().unwrap();
        let top = HostPath::new(top.path().canonicalize().unwrap()).unwrap();
        for dir in ["project/real", "other"] {
            std::fs::create_dir_all(top.as_path().join(dir)).unwrap();
        }
        for (link, target) in [("project/out", "../other"), ("project/within", "real"), ("project/far", "/")] {
            std::os::unix::fs::symlink(target, top.as_path().join(link)).unwrap();
        }
        let of = |name: &str| folder(&HostPath::new(top.as_path().join(name)).unwrap());
        assert!(matches!(of("project/out"), Err(PlaceError::Link { .. })));
        assert!(matches!(of("project/far"), Err(PlaceError::Link { .. })));
        assert_eq!(of("project/within").unwrap(), top.join("project").join("real"));
        assert_eq!(of("other").unwrap(), top.join("other"));
    }

    #[test]
    fn the_project_file_is_never_that_of_the_home_folder() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let inner = home.join("project");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(home.join(".git")).unwrap();
        std::fs::write(home.join(PROJECT_FILE), "").unwrap();
        assert_eq!(place(&inner, &inner, &home).project_file(), None);
    }

    #[test]
    fn without_a_repository_folders_above_the_workspace_are_not_looked_at() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let inner = top.join("a");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(top.join(PROJECT_FILE), "").unwrap();
        assert_eq!(place(&inner, &inner, Path::new("/nonexistent")).project_file(), None);
    }

    #[test]
    fn a_workspace_that_holds_the_home_is_refused_unless_named_and_accepted() {
        let home = tempfile::tempdir().unwrap();
        let home_path = HostPath::new(home.path().canonicalize().unwrap()).unwrap();
        let above = home_path.parent().unwrap();
        for wide in [&home_path, &above, &HostPath::root()] {
            let find = |accepted| Spot::find(Some(wide.as_path())).unwrap().in_home(home_path.clone(), accepted);
            let refused = find(WideWorkspace::Refuse);
            assert!(matches!(refused, Err(PlaceError::TooWide { .. })), "{wide}: {refused:?}");
            assert_eq!(find(WideWorkspace::Accept).unwrap().workspace, *wide);
        }
        let inner = home_path.join("project");
        std::fs::create_dir(inner.as_path()).unwrap();
        let found = Spot::find(Some(inner.as_path())).unwrap().in_home(home_path, WideWorkspace::Refuse).unwrap();
        assert_eq!(found.workspace, inner);
    }

    #[test]
    fn a_path_as_long_as_the_kernel_takes_is_the_limit() {
        let cwd = HostPath::root();
        let longest = format!("/{}", "a/".repeat(2047));
        assert_eq!(longest.len(), 4095);
        assert!(absolute(&cwd, Path::new(&longest)).is_ok());
        let refused = absolute(&cwd, Path::new(&format!("{longest}b")));
        assert!(matches!(refused, Err(PlaceError::TooLong { bytes: 4096, .. })), "{refused:?}");
    }

    #[test]
    fn a_relative_xdg_folder_is_ignored() {
        let home = HostPath::new("/home/u").unwrap();
        let of = |value: &str| config_dir(&[("XDG_CONFIG_HOME".into(), value.into())], &home);
        assert_eq!(of("rel"), HostPath::new("/home/u/.config/ringfence").unwrap());
        assert_eq!(of("/c"), HostPath::new("/c/ringfence").unwrap());
    }
}
