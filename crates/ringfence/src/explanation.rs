//! What a run would be, as a value: for `explain`, `why` and `--dry-run`.

use crate::layers::SourceUse;
use crate::place::Place;
use ringfence_dialect::Diagnostic;
use ringfence_plan::Plan;
use ringfence_policy::host::HostError;
use ringfence_policy::{Access, Destination, Finding, HostDecision, HostPath, PathDecision, Policy, Protocol};
use serde::Serialize;
use std::path::Path;

/// Policy, origins, plan and status of a run that has not begun.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// Where it takes place.
    pub place: Place,
    /// The files that were read.
    pub sources: Vec<SourceUse>,
    /// Everything that is allowed, with origins.
    pub policy: Policy,
    /// What sources said that does not take effect, or is weaker than it looks.
    pub findings: Vec<Finding>,
    /// What is allowed but dangerous.
    pub lints: Vec<Finding>,
    /// What is to be said about sources although they are sound.
    pub warnings: Vec<Diagnostic>,
    /// What was found on the host: used or not, and where the sets of hosts come from.
    pub notes: Vec<String>,
    /// The folder that stands in the place of a private home.
    pub private_home: HostPath,
    /// What would be done; `None` when the policy cannot be enforced here.
    pub plan: Option<Plan>,
    /// Why not.
    pub problems: Vec<Diagnostic>,
}

/// The answer to a question about a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathAnswer {
    /// The path, absolute and with every symlink followed as far as it exists: what the kernel would look at.
    pub path: HostPath,
    /// As it was asked, absolute, where a symlink leads elsewhere.
    pub link: Option<HostPath>,
    /// The decision.
    #[serde(flatten)]
    pub decision: PathDecision,
}

/// The answer to a question about a host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostAnswer {
    /// Canonical.
    pub destination: String,
    /// The decision.
    #[serde(flatten)]
    pub decision: HostDecision,
}

impl Explanation {
    /// May this path be read, may it be written?
    ///
    /// # Errors
    /// The path is empty or too long.
    pub fn why_path(&self, typed: &Path, access: Access) -> Result<PathAnswer, crate::Error> {
        let asked = self.place.absolute(typed)?;
        let path = followed(&asked);
        let decision = self.policy.may_path(&path, access);
        let link = (path != asked).then_some(asked);
        Ok(PathAnswer { path, link, decision })
    }

    /// May this host be reached? Port 443, unless one is named.
    ///
    /// # Errors
    /// It is no host.
    pub fn why_host(&self, typed: &str) -> Result<HostAnswer, HostError> {
        let destination = Destination::parse_authority(typed, Some(443), Protocol::Tcp)?;
        let decision = self.policy.may_connect(&destination);
        Ok(HostAnswer { destination: destination.to_string(), decision })
    }
}

/// A path with the symlinks of its longest existing part followed.
fn followed(path: &HostPath) -> HostPath {
    let mut rest = Vec::new();
    let mut existing = path.clone();
    loop {
        if let Some(real) = std::fs::canonicalize(existing.as_path()).ok().and_then(|p| HostPath::new(p).ok()) {
            return rest.iter().rev().fold(real, |at, name| at.join(name));
        }
        let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else { return path.clone() };
        rest.push(name);
        existing = parent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_as_far_as_the_path_exists() {
        let dir = tempfile::tempdir().unwrap();
        let top = HostPath::new(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir(top.join("real").as_path()).unwrap();
        std::os::unix::fs::symlink("real", top.join("link").as_path()).unwrap();
        assert_eq!(followed(&top.join("link").join("a").join("b")), top.join("real").join("a").join("b"));
        assert_eq!(followed(&top.join("nothing")), top.join("nothing"));
    }
}
