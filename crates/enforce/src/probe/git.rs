//! Git directories that belong to the workspace and lie outside of it.
//!
//! They become writable, so a `.git` file is never believed alone: a repository that was unpacked from an archive could
//! carry one that points at any folder. What it points to must point back (gitrepository-layout(5): `gitdir` of a linked
//! worktree, `core.worktree` of a submodule), must look like a repository, and must have the workspace's owner.

use super::Note;
use ringfence_policy::HostPath;
use ringfence_sys::files::{EntryKind, entry_kind, open_read};
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Longer than any path that the kernel takes.
const MAX_POINTER: u64 = 8192;
/// A repository's own configuration is small; a larger one is not searched.
const MAX_CONFIG: u64 = 256 * 1024;

/// Finds them. What was found and refused goes to `notes`.
pub(super) fn git_dirs(workspace: &HostPath, home: &HostPath, uid: u32, notes: &mut Vec<Note>) -> Vec<HostPath> {
    let mut folder = Some(workspace.clone());
    while let Some(here) = folder {
        // A repository over the whole home or the whole machine holds other things than this workspace's history.
        if here == HostPath::root() || (here == *home && here != *workspace) {
            return Vec::new();
        }
        let dot_git = here.join(".git");
        let found = match entry_kind(dot_git.as_path()) {
            Ok(EntryKind::Dir) if here == *workspace => return Vec::new(),
            Ok(EntryKind::Dir) => enclosing(&dot_git, workspace, uid),
            Ok(EntryKind::File) => counterpart(&here, &dot_git, workspace, home, uid),
            Ok(EntryKind::Symlink) => Err("it is a symbolic link".to_owned()),
            Ok(EntryKind::Socket | EntryKind::Other) => Err("it is neither a folder nor a file".to_owned()),
            Err(_) => {
                folder = here.parent();
                continue;
            }
        };
        return match found {
            Ok(dirs) => dirs,
            Err(why) => {
                notes.push(Note {
                    text: format!("the git directory that `{dot_git}` names stays read-only: {why}"),
                    hint: Some("allow it by name: --write DIR".to_owned()),
                });
                Vec::new()
            }
        };
    }
    Vec::new()
}

/// The repository in whose work tree the workspace is a subfolder.
fn enclosing(dot_git: &HostPath, workspace: &HostPath, uid: u32) -> Result<Vec<HostPath>, String> {
    repository(dot_git.as_path(), workspace, uid)?;
    Ok(vec![dot_git.clone()])
}

/// What a `.git` file names, when it names it back.
fn counterpart(
    folder: &HostPath,
    dot_git: &HostPath,
    workspace: &HostPath,
    home: &HostPath,
    uid: u32,
) -> Result<Vec<HostPath>, String> {
    let text = read(dot_git.as_path(), MAX_POINTER).ok_or("it cannot be read")?;
    let target = text.strip_prefix(b"gitdir:").ok_or("it does not start with `gitdir:`")?;
    let git_dir = real(folder.as_path(), target).ok_or("what it names does not exist")?;
    if git_dir.starts_with(workspace.as_path()) {
        return Ok(Vec::new());
    }
    let writable = if let Some(common) = read(&git_dir.join("commondir"), MAX_POINTER) {
        let back = read(&git_dir.join("gitdir"), MAX_POINTER).ok_or("the worktree's `gitdir` cannot be read")?;
        if real(&git_dir, &back).as_deref() != Some(dot_git.as_path()) {
            return Err("that worktree belongs to another folder".to_owned());
        }
        let common = real(&git_dir, &common).ok_or("its common directory does not exist")?;
        // Git itself makes no other layout, and with another one `commondir` could name any folder.
        if git_dir.parent() != Some(&common.join("worktrees")) {
            return Err("it does not lie in the `worktrees` of its common directory".to_owned());
        }
        common
    } else {
        let config = read(&git_dir.join("config"), MAX_CONFIG).ok_or("it has no config that can be read")?;
        let tree = work_tree(&config).ok_or("its config names no work tree")?;
        if real(&git_dir, &tree).as_deref() != Some(folder.as_path()) {
            return Err("its config names another work tree".to_owned());
        }
        git_dir
    };
    repository(&writable, workspace, uid)?;
    if workspace.as_path().starts_with(&writable) || home.as_path().starts_with(&writable) {
        return Err("it holds the workspace or the home folder".to_owned());
    }
    HostPath::new(writable).map(|dir| vec![dir]).map_err(|error| error.to_string())
}

/// Whether a folder looks like a repository of the workspace's owner or of this user.
fn repository(dir: &Path, workspace: &HostPath, uid: u32) -> Result<(), String> {
    let is = |name: &str, kinds: &[EntryKind]| entry_kind(&dir.join(name)).is_ok_and(|k| kinds.contains(&k));
    // HEAD was a symbolic link before Git 1.5 and still may be.
    if !is("HEAD", &[EntryKind::File, EntryKind::Symlink])
        || !is("objects", &[EntryKind::Dir])
        || !is("refs", &[EntryKind::Dir])
    {
        return Err("it is no repository: HEAD, objects or refs is missing".to_owned());
    }
    let owner = |path: &Path| std::fs::symlink_metadata(path).map(|m| m.uid()).map_err(|e| e.to_string());
    let theirs = owner(dir)?;
    if theirs == uid || theirs == owner(workspace.as_path())? {
        Ok(())
    } else {
        Err(format!("it belongs to user {theirs}"))
    }
}

fn read(path: &Path, at_most: u64) -> Option<Vec<u8>> {
    let file = open_read(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(at_most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The path that `bytes` name relative to `base`, after following symlinks.
fn real(base: &Path, bytes: &[u8]) -> Option<PathBuf> {
    let trimmed = bytes.trim_ascii();
    if trimmed.is_empty() {
        return None;
    }
    ringfence_sys::files::real_path(&base.join(OsStr::from_bytes(trimmed))).ok()
}

/// `core.worktree` of a git configuration; the last one counts, as for git.
fn work_tree(config: &[u8]) -> Option<Vec<u8>> {
    let mut in_core = false;
    let mut found = None;
    for line in config.split(|b| *b == b'\n') {
        let line = line.trim_ascii();
        if line.starts_with(b"[") {
            in_core = line.to_ascii_lowercase().starts_with(b"[core]");
        } else if in_core
            && let Some(at) = line.iter().position(|b| *b == b'=')
            && let Some((key, value)) = line.split_at_checked(at)
            && key.trim_ascii().eq_ignore_ascii_case(b"worktree")
        {
            found = value.get(1..).map(unquote);
        }
    }
    found
}

fn unquote(value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut escaped = false;
    for byte in value.trim_ascii() {
        match byte {
            b'\\' if !escaped => escaped = true,
            b'"' if !escaped => {}
            other => {
                out.push(*other);
                escaped = false;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct World {
        _dir: tempfile::TempDir,
        home: HostPath,
    }

    impl World {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let home = HostPath::new(fs::canonicalize(dir.path()).unwrap()).unwrap();
            Self { _dir: dir, home }
        }

        fn at(&self, path: &str) -> HostPath {
            HostPath::new(self.home.as_path().join(path)).unwrap()
        }

        fn put(&self, path: &str, text: &str) {
            let path = self.at(path);
            fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
            fs::write(path.as_path(), text).unwrap();
        }

        fn repo(&self, path: &str) {
            self.put(&format!("{path}/HEAD"), "ref: refs/heads/main\n");
            fs::create_dir_all(self.at(path).join("objects").as_path()).unwrap();
            fs::create_dir_all(self.at(path).join("refs").as_path()).unwrap();
        }

        fn ask(&self, workspace: &str) -> (Vec<HostPath>, Vec<Note>) {
            let mut notes = Vec::new();
            let uid = ringfence_sys::host::effective_ids().0;
            let dirs = git_dirs(&self.at(workspace), &self.home, uid, &mut notes);
            (dirs, notes)
        }

        /// A repository `main` with a linked worktree `wt`.
        fn worktree(&self) {
            self.repo("main/.git");
            self.put("main/.git/worktrees/wt/commondir", "../..\n");
            self.put("main/.git/worktrees/wt/gitdir", &format!("{}\n", self.at("wt/.git")));
            self.put("wt/.git", &format!("gitdir: {}\n", self.at("main/.git/worktrees/wt")));
        }
    }

    #[test]
    fn a_linked_worktree_gets_its_common_directory() {
        let world = World::new();
        world.worktree();
        assert_eq!(world.ask("wt").0, [world.at("main/.git")]);
        fs::create_dir_all(world.at("wt/src/deep").as_path()).unwrap();
        assert_eq!(world.ask("wt/src/deep").0, [world.at("main/.git")]);
    }

    #[test]
    fn relative_pointers_are_relative_to_their_file() {
        let world = World::new();
        world.worktree();
        world.put("wt/.git", "gitdir: ../main/.git/worktrees/wt\n");
        world.put("main/.git/worktrees/wt/gitdir", "../../../../wt/.git\n");
        assert_eq!(world.ask("wt").0, [world.at("main/.git")]);
    }

    #[test]
    fn a_planted_pointer_opens_nothing() {
        let world = World::new();
        world.worktree();
        world.repo("other/.git");
        // Another repository, the worktree of another folder, and no repository at all.
        for target in ["other/.git", "main/.git/worktrees/wt", ".ssh"] {
            fs::create_dir_all(world.at(".ssh").as_path()).unwrap();
            world.put("evil/.git", &format!("gitdir: {}\n", world.at(target)));
            let (dirs, notes) = world.ask("evil");
            assert!(dirs.is_empty(), "{target}");
            assert_eq!(notes.len(), 1, "{target}");
        }
        world.put("evil/.git", "not a pointer");
        assert!(world.ask("evil").0.is_empty());
    }

    #[test]
    fn a_planted_worktree_cannot_name_a_common_directory_elsewhere() {
        let world = World::new();
        world.repo("other/.git");
        world.put("evil/.git", "gitdir: ../bait/worktrees/w\n");
        world.put("bait/worktrees/w/gitdir", &world.at("evil/.git").to_string());
        world.put("bait/worktrees/w/commondir", "../../../other/.git");
        let (dirs, notes) = world.ask("evil");
        assert!(dirs.is_empty());
        assert!(notes[0].text.contains("worktrees"), "{notes:?}");
    }

    #[test]
    fn a_submodule_gets_its_own_git_directory() {
        let world = World::new();
        world.repo("super/.git");
        world.repo("super/.git/modules/lib");
        world.put("super/.git/modules/lib/config", "[core]\n\tbare = false\n\tworktree = ../../../lib\n");
        world.put("super/lib/.git", "gitdir: ../.git/modules/lib\n");
        assert_eq!(world.ask("super/lib").0, [world.at("super/.git/modules/lib")]);
        world.put(
            "super/.git/modules/lib/config",
            "[core]\n\tworktree = ../../../other\n[x]\nworktree = ../../../lib\n",
        );
        assert!(world.ask("super/lib").0.is_empty());
    }

    #[test]
    fn a_subfolder_gets_the_repository_around_it_but_not_that_of_the_home() {
        let world = World::new();
        world.repo("work/.git");
        fs::create_dir_all(world.at("work/a/b").as_path()).unwrap();
        assert_eq!(world.ask("work/a/b").0, [world.at("work/.git")]);
        assert!(world.ask("work").0.is_empty());
        world.repo(".git");
        fs::create_dir_all(world.at("plain").as_path()).unwrap();
        assert!(world.ask("plain").0.is_empty());
    }

    #[test]
    fn a_link_in_the_place_of_the_git_directory_opens_nothing() {
        let world = World::new();
        world.repo("other/.git");
        fs::create_dir(world.at("evil").as_path()).unwrap();
        std::os::unix::fs::symlink(world.at("other/.git").as_path(), world.at("evil/.git").as_path()).unwrap();
        let (dirs, notes) = world.ask("evil");
        assert!(dirs.is_empty());
        assert_eq!(notes.len(), 1);
    }

    #[test]
    fn what_git_makes_is_recognised() {
        let world = World::new();
        let git = |args: &[&str], at: &HostPath| {
            std::process::Command::new("git")
                .args(["-c", "user.name=a", "-c", "user.email=a@b"])
                .args(args)
                .current_dir(at.as_path())
                .env("HOME", world.home.as_path())
                .output()
                .is_ok_and(|o| o.status.success())
        };
        fs::create_dir(world.at("repo").as_path()).unwrap();
        if !git(&["init", "-q"], &world.at("repo")) {
            println!("skipped: git is not installed");
            return;
        }
        assert!(git(&["commit", "-q", "--allow-empty", "-m", "i"], &world.at("repo")));
        assert!(git(&["worktree", "add", "-q", "../tree"], &world.at("repo")));
        assert_eq!(world.ask("tree").0, [world.at("repo/.git")]);
    }
}
