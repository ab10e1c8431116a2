//! Unix sockets that are bound on the host, `/proc/net/unix` (unix(7)).

use ringfence_policy::HostPath;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

pub(super) fn bound() -> Vec<HostPath> {
    parse(&ringfence_sys::files::read_generated("/proc/net/unix").unwrap_or_default())
}

/// The eighth field is the path and may hold spaces. Abstract names start with `@`; a relative path cannot be placed.
fn parse(bytes: &[u8]) -> Vec<HostPath> {
    let mut paths: Vec<HostPath> = bytes
        .split(|b| *b == b'\n')
        .skip(1)
        .filter_map(|line| {
            let at = path_start(line)?;
            let path = line.get(at..)?;
            path.starts_with(b"/").then(|| HostPath::new(OsStr::from_bytes(path)).ok()).flatten()
        })
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

fn path_start(line: &[u8]) -> Option<usize> {
    let mut fields = 0;
    let mut in_field = false;
    for (at, byte) in line.iter().enumerate() {
        let blank = *byte == b' ';
        if !blank && !in_field {
            if fields == 7 {
                return Some(at);
            }
            fields += 1;
        }
        in_field = !blank;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_count() {
        let text = b"Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 11 /run/a b.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 12 @/tmp/.X11-unix/X0\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 13\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 14 rel.sock\n\
            0000000000000000: 00000002 00000000 00010000 0001 01    15 /run/a b.sock\n";
        assert_eq!(parse(text), [HostPath::new("/run/a b.sock").unwrap()]);
    }

    #[test]
    fn a_socket_of_this_process_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(bound().contains(&HostPath::new(&path).unwrap()));
    }
}
