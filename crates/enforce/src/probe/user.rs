//! Who runs ringfence, and whose homes there are.

use super::{Env, ProbeError};
use ringfence_policy::HostPath;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A line of the password database, passwd(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// User number.
    pub uid: u32,
    /// Home folder, where it is an absolute path.
    pub home: Option<HostPath>,
    /// Shell.
    pub shell: String,
}

/// The accounts of `/etc/passwd`. Those of other sources (LDAP, systemd) are not asked for: that would load their
/// libraries into the launcher, and `HOME` is set for them anyway.
pub(super) fn accounts() -> Vec<Account> {
    parse(&std::fs::read("/etc/passwd").unwrap_or_default())
}

fn parse(bytes: &[u8]) -> Vec<Account> {
    bytes.split(|b| *b == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Account> {
    let fields: Vec<&[u8]> = line.split(|b| *b == b':').collect();
    let text = |i: usize| fields.get(i).map(|f| String::from_utf8_lossy(f).into_owned());
    Some(Account {
        name: text(0).filter(|n| !n.is_empty() && !n.starts_with(['#', '+', '-']))?,
        uid: text(2)?.parse().ok()?,
        home: HostPath::new(OsStr::from_bytes(fields.get(5)?)).ok(),
        shell: text(6).unwrap_or_default(),
    })
}

/// The home folder after following symlinks: `HOME`, else the account's.
pub(super) fn home(env: Env<'_>, accounts: &[Account], uid: u32) -> Result<HostPath, ProbeError> {
    let named = match env.get("HOME") {
        Some(value) => HostPath::new(value).map_err(|_| ProbeError::HomeNotAbsolute { value: value.to_owned() })?,
        None => {
            let account = accounts.iter().find(|a| a.uid == uid);
            account.and_then(|a| a.home.clone()).ok_or(ProbeError::NoHome { uid })?
        }
    };
    let unusable = |source| ProbeError::HomeUnusable { home: named.clone(), source };
    let real = ringfence_sys::files::real_path(named.as_path()).map_err(unusable)?;
    if !real.is_dir() {
        return Err(unusable(std::io::ErrorKind::NotADirectory.into()));
    }
    HostPath::new(real).map_err(|_| ProbeError::NoHome { uid })
}

/// Homes of people and of root other than `home`. Service accounts (`/usr/sbin/nologin`, numbers below 1000) hold no
/// person's keys.
pub(super) fn other_homes(accounts: &[Account], home: &HostPath, uid: u32) -> Vec<HostPath> {
    let person = |a: &&Account| a.uid == uid || a.uid == 0 || (a.uid >= 1000 && a.uid != 65534);
    let mut homes: Vec<HostPath> = accounts
        .iter()
        .filter(person)
        .filter(|a| !a.shell.ends_with("/nologin") && !a.shell.ends_with("/false"))
        .filter_map(|a| a.home.clone())
        .filter(|h| *h != HostPath::root() && h != home && !home.is_within(h) && is_dir(h.as_path()))
        .collect();
    homes.sort();
    homes.dedup();
    homes
}

fn is_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| m.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn passwd(home: &Path) -> Vec<Account> {
        let text = format!(
            "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/usr/sbin/nologin\n\
             ann:x:1000:1000:Ann,,,:{0}/ann:/bin/bash\nbob:x:1001:1001::{0}/bob:/bin/zsh\nbroken\n+nis:x:7:7::/x:/bin/sh\n",
            home.display()
        );
        parse(text.as_bytes())
    }

    #[test]
    fn home_comes_from_the_variable_or_the_account() {
        let dir = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(dir.path()).unwrap();
        let accounts = passwd(&base);
        assert_eq!(accounts.len(), 4);
        std::fs::create_dir(base.join("ann")).unwrap();
        std::os::unix::fs::symlink(base.join("ann"), base.join("link")).unwrap();
        let vars = |v: &str| vec![(OsString::from("HOME"), OsString::from(v))];

        assert_eq!(home(Env(&[]), &accounts, 1000).unwrap().as_path(), base.join("ann"));
        let link = vars(base.join("link").to_str().unwrap());
        assert_eq!(home(Env(&link), &accounts, 1001).unwrap().as_path(), base.join("ann"));
        assert!(matches!(home(Env(&vars("rel")), &accounts, 1000), Err(ProbeError::HomeNotAbsolute { .. })));
        assert!(matches!(home(Env(&[]), &accounts, 4711), Err(ProbeError::NoHome { uid: 4711 })));
        assert!(matches!(home(Env(&[]), &accounts, 1001), Err(ProbeError::HomeUnusable { .. })));
        assert!(matches!(home(Env(&vars("/etc/passwd")), &accounts, 0), Err(ProbeError::HomeUnusable { .. })));
    }

    #[test]
    fn other_homes_are_those_of_people() {
        let dir = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(dir.path()).unwrap();
        for name in ["ann", "bob"] {
            std::fs::create_dir(base.join(name)).unwrap();
        }
        let ann = HostPath::new(base.join("ann")).unwrap();
        let others = other_homes(&passwd(&base), &ann, 1000);
        assert!(others.contains(&HostPath::new(base.join("bob")).unwrap()));
        assert!(!others.contains(&ann));
        assert!(!others.contains(&HostPath::new("/usr/sbin").unwrap()));
    }
}
