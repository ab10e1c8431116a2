//! Landlock: rules over files and scopes that a process puts on itself.

use crate::{Errno, SysError};
use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};
use rustix::fd::{AsFd, OwnedFd};

/// What is allowed below a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// Read, list and execute.
    Read,
    /// Read, write into what exists, and the controls of devices.
    WriteExisting,
    /// Everything.
    Full,
}

/// Whether abstract Unix sockets and signals are scoped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scopes {
    /// To the processes under the same rules.
    Enforced,
    /// Not at all.
    Off,
}

fn error(step: &'static str, cause: impl std::fmt::Display) -> SysError {
    let errno = std::io::Error::last_os_error().raw_os_error().map_or(Errno::NOTSUP, Errno::from_raw_os_error);
    SysError::new(step, cause.to_string(), errno)
}

/// Restricts this process to the grants. Everything that the version `abi` knows is handled, and a kernel that does not
/// know it is an error: nothing is left out silently.
///
/// # Errors
/// The kernel's version is older, or a call fails.
pub fn restrict(abi: u32, grants: &[(OwnedFd, Grant)], scopes: Scopes) -> Result<(), SysError> {
    let abi = ABI::from(i32::try_from(abi).unwrap_or(0));
    let all = AccessFs::from_all(abi);
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)
        .map_err(|e| error("landlock_create_ruleset", e))?;
    if scopes == Scopes::Enforced {
        ruleset = ruleset.scope(Scope::from_all(abi)).map_err(|e| error("landlock_create_ruleset", e))?;
    }
    let mut created = ruleset.create().map_err(|e| error("landlock_create_ruleset", e))?;
    for (fd, grant) in grants {
        let mut access = rights(*grant, abi);
        if crate::file::kind(fd)? != crate::file::FileKind::Dir {
            // Rights of folders on a file are refused with EINVAL (landlock_add_rule(2)).
            access &= AccessFs::from_file(abi);
        }
        created = created.add_rule(PathBeneath::new(fd.as_fd(), access)).map_err(|e| error("landlock_add_rule", e))?;
    }
    let status = created.restrict_self().map_err(|e| error("landlock_restrict_self", e))?;
    if status.ruleset == RulesetStatus::FullyEnforced {
        Ok(())
    } else {
        Err(SysError::new("landlock_restrict_self", "not fully enforced", Errno::NOTSUP))
    }
}

fn rights(grant: Grant, abi: ABI) -> BitFlags<AccessFs> {
    let all = AccessFs::from_all(abi);
    match grant {
        Grant::Read => AccessFs::from_read(abi),
        Grant::WriteExisting => {
            (AccessFs::from_read(abi) | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev) & all
        }
        Grant::Full => all,
    }
}
