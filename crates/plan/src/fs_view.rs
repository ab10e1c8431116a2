//! The only seam to the file system.

use ringfence_policy::HostPath;
use std::ffi::OsString;

/// What a path is. Symlinks are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A socket.
    Socket,
    /// A device, FIFO or anything else.
    Other,
}

/// A view of a file system; the error is the text of the operating system's.
pub trait FsView {
    /// What is there; `None` when nothing is, or when it cannot be seen.
    fn kind(&self, path: &HostPath) -> Option<Kind>;
    /// The path after following every symlink; `None` when it does not exist.
    fn canonical(&self, path: &HostPath) -> Option<HostPath>;
    /// The entries of a folder, in any order.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn children(&self, path: &HostPath) -> Result<Vec<(OsString, Kind)>, String>;
}
