//! `/proc/self/mountinfo`, proc_pid_mountinfo(5).

use super::ProbeError;
use ringfence_plan::facts::MountFact;
use ringfence_policy::HostPath;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Which folder of the file system is mounted.
    pub root: HostPath,
    /// Where.
    pub point: HostPath,
    /// Whether this mount is read-only (the file system may be, too).
    pub read_only: bool,
    /// Major and minor number of the file system's device: `98:0`.
    pub device: String,
    /// Type of the file system.
    pub fs_type: String,
}

impl Mount {
    /// What a plan wants to know of it.
    pub(super) fn into_fact(self) -> MountFact {
        MountFact { point: self.point, root: self.root, device: self.device, fs_type: self.fs_type }
    }
}

/// Reads the mounts of this process's namespace.
pub(super) fn read() -> Result<Vec<Mount>, ProbeError> {
    match ringfence_sys::files::read_generated("/proc/self/mountinfo") {
        Ok(bytes) => Ok(parse(&bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(ProbeError::NoProc),
        Err(source) => Err(ProbeError::Proc { file: "/proc/self/mountinfo", source }),
    }
}

/// Parses the file. Lines that cannot be read are left out, as are mounts whose folder is deleted: no path leads there.
pub fn parse(bytes: &[u8]) -> Vec<Mount> {
    bytes.split(|b| *b == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|b| *b == b' ');
    let device = fields.nth(2)?;
    let root = fields.next()?;
    let point = fields.next()?;
    let options = fields.next()?;
    if point.ends_with(b"//deleted") {
        return None;
    }
    // Any number of optional fields stand before the separator.
    let fs_type = fields.by_ref().skip_while(|f| *f != b"-").nth(1)?;
    Some(Mount {
        root: HostPath::new(OsStr::from_bytes(&unescape(root))).ok()?,
        point: HostPath::new(OsStr::from_bytes(&unescape(point))).ok()?,
        read_only: options.split(|b| *b == b',').any(|o| o == b"ro"),
        device: String::from_utf8_lossy(device).into_owned(),
        fs_type: String::from_utf8_lossy(fs_type).into_owned(),
    })
}

/// Space, tab, newline and backslash are written as a backslash and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'\\'
            && let Some((digits, after)) = tail.split_at_checked(3)
            && let Some(byte) = octal(digits)
        {
            out.push(byte);
            rest = after;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

fn octal(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(text, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] =
        b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 propagate_from:2 - ext3 /dev/root rw,errors=continue\n\
        37 35 0:5 / /with\\040space\\011tab\\134back ro,nosuid - tmpfs tmp\\040fs rw\n\
        38 35 0:6 / /gone//deleted rw - tmpfs tmpfs rw\n\
        39 35 0:7 / /raw\xff rw - fuse.sshfs a: rw\n\
        broken line\n";

    #[test]
    fn optional_fields_and_octal_escapes() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 3);
        assert_eq!(mounts[0].point, HostPath::new("/mnt2").unwrap());
        assert_eq!(mounts[0].root, HostPath::new("/mnt1").unwrap());
        assert_eq!((mounts[0].device.as_str(), mounts[0].fs_type.as_str()), ("98:0", "ext3"));
        assert!(!mounts[0].read_only);
        assert_eq!(mounts[1].point, HostPath::new("/with space\ttab\\back").unwrap());
        assert!(mounts[1].read_only);
        assert_eq!(mounts[2].point.as_path().as_os_str().as_bytes(), b"/raw\xff");
    }

    #[test]
    fn a_backslash_without_digits_stays() {
        assert_eq!(unescape(b"a\\9x"), b"a\\9x");
        assert_eq!(unescape(b"a\\04"), b"a\\04");
        assert_eq!(unescape(b"\\040"), b" ");
    }
}
