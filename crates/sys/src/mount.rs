//! Mounts, with the descriptor-based calls only: a path is resolved once, without symlinks, and what was resolved is used.

use crate::{Context, SysError, failed};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::CWD;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};
use std::ops::BitOr;
use std::path::Path;

/// Attributes of a mount (mount_setattr(2)). They can only be set here, never cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attributes(u64);

impl Attributes {
    /// Nothing is written through it.
    pub const READ_ONLY: Self = Self(0x1);
    /// Set-user-id bits and file capabilities have no effect.
    pub const NO_SUID: Self = Self(0x2);
    /// Device nodes do not open.
    pub const NO_DEV: Self = Self(0x4);
    /// Nothing is executed.
    pub const NO_EXEC: Self = Self(0x8);
}

impl BitOr for Attributes {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How far a change reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One mount.
    This,
    /// The mount and all below it.
    Tree,
}

/// `struct mount_attr` of mount_setattr(2).
#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

/// Sets attributes on the mount that `fd` is the root of, and makes its propagation private, so that nothing that is
/// mounted on the host later appears and nothing of ours leaves.
///
/// # Errors
/// mount_setattr(2) fails; `EINVAL`: `fd` is not the root of a mount.
pub fn set_attributes(fd: impl AsFd, attributes: Attributes, reach: Reach) -> Result<(), SysError> {
    let attr = MountAttr { attr_set: attributes.0, attr_clr: 0, propagation: libc::MS_PRIVATE, userns_fd: 0 };
    let mut flags = libc::AT_EMPTY_PATH;
    if reach == Reach::Tree {
        flags |= libc::AT_RECURSIVE;
    }
    // SAFETY: mount_setattr(2) reads a NUL-terminated path and a structure of the given size; both outlive the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<MountAttr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(failed("mount_setattr", format!("{:#x}, {reach:?}", attributes.0))) }
}

/// A copy of what is mounted at a path, attached nowhere yet.
///
/// # Errors
/// open_tree(2) fails.
pub fn copy_tree(from: impl AsFd, reach: Reach) -> Result<OwnedFd, SysError> {
    let mut flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    if reach == Reach::Tree {
        flags |= OpenTreeFlags::AT_RECURSIVE;
    }
    rustix::mount::open_tree(from, c"", flags).at("open_tree", || format!("OPEN_TREE_CLONE, {reach:?}"))
}

/// A new file system, attached nowhere yet.
///
/// # Errors
/// The kernel does not know it, forbids it here, or refuses an option.
pub fn new_filesystem(
    kind: &'static str,
    options: &[(&str, &str)],
    attributes: Attributes,
) -> Result<OwnedFd, SysError> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).at("fsopen", || format!("{kind:?}"))?;
    for (key, value) in options {
        let set = if value.is_empty() {
            rustix::mount::fsconfig_set_flag(&context, *key)
        } else {
            rustix::mount::fsconfig_set_string(&context, *key, *value)
        };
        set.at("fsconfig", || format!("{kind:?}, {key}={value}"))?;
    }
    rustix::mount::fsconfig_create(&context).at("fsconfig", || format!("{kind:?}, FSCONFIG_CMD_CREATE"))?;
    let flags = MountAttrFlags::from_bits_retain(u32::try_from(attributes.0).unwrap_or(0));
    rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags).at("fsmount", || format!("{kind:?}"))
}

/// Attaches a tree at the place that `target` was opened at.
///
/// # Errors
/// move_mount(2) fails; `ENOTDIR`: one is a folder and the other is not.
pub fn attach(tree: impl AsFd, target: impl AsFd) -> Result<(), SysError> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    rustix::mount::move_mount(tree, c"", target, c"", flags).at("move_mount", String::new)
}

/// Attaches a tree at a name below a folder; a symlink there is not followed.
///
/// # Errors
/// move_mount(2) fails.
pub fn attach_at(tree: impl AsFd, dir: impl AsFd, name: &std::ffi::OsStr) -> Result<(), SysError> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(tree, c"", dir, name, flags).at("move_mount", || format!("{name:?}"))
}

/// Takes the topmost mount at a path away, also when it is in use.
///
/// # Errors
/// umount2(2) fails.
pub fn detach(path: &Path) -> Result<(), SysError> {
    rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
        .at("umount2", || format!("{path:?}, MNT_DETACH"))
}

/// The root folder of this process, as a descriptor.
///
/// # Errors
/// openat2(2) fails.
pub fn root() -> Result<OwnedFd, SysError> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::openat(CWD, "/", flags, rustix::fs::Mode::empty()).at("openat", || "\"/\"".to_owned())
}
