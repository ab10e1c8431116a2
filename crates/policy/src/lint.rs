//! Judgements on a finished policy: what is allowed but dangerous, or said but without effect.

use crate::address::{AddressClass, classify, is_metadata_name};
use crate::decide::Verdict;
use crate::defaults::{Power, control_sockets};
use crate::host_rule::{HostPattern, HostRule, HostVerb, PortSet};
use crate::layer::Finding;
use crate::origin::{Layer, Origin};
use crate::path_rule::{Access, HostPath, PathRule, PathVerb};
use crate::{HomeMode, Policy, public_suffix};

/// Every code of a [`Finding`], and what it means. A code is never used again for something else.
pub const CODES: &[(&str, &str)] = &[
    ("RF0301", "a grant of a project's policy is left out, because the project is not trusted"),
    ("RF0302", "a ceiling outside of a managed policy is ignored"),
    ("RF0303", "`unprotect` of a project or a preset is ignored"),
    ("RF0304", "`unprotect` names nothing that is protected"),
    ("RF0305", "the home folder is narrowed to a ceiling"),
    ("RF0306", "a limit is lowered to a ceiling"),
    ("RF0307", "a weaker wall is not accepted, because of a ceiling"),
    ("RF0308", "a port is left out, because of a ceiling"),
    ("RF0309", "a socket is left out, because of a ceiling"),
    ("RF0310", "the home folder is `/` and cannot be private"),
    ("RF0311", "two sources of one layer set a variable to different values"),
    ("RF0312", "a built-in name is no longer protected"),
    ("RF0320", "a control socket of the host is allowed"),
    ("RF0321", "a credential store is readable"),
    ("RF0322", "the home folder lies in a writable folder"),
    ("RF0323", "every host is allowed"),
    ("RF0324", "a wildcard covers hosts of strangers"),
    ("RF0325", "the home folder is visible"),
    ("RF0326", "an allowed host keeps data of anybody"),
    ("RF0327", "a policy file lies in a writable folder"),
    ("RF0328", "every port of a host is allowed"),
    ("RF0329", "addresses of this host or its networks are allowed"),
    ("RF0330", "weaker walls are accepted"),
    ("RF0331", "the walls are not proved"),
    ("RF0332", "a pattern passes variables that may hold secrets"),
    ("RF0333", "a rule allows a metadata service, without effect"),
    ("RF0334", "a rule allows `localhost`, which is the sandbox's own inside"),
    ("RF0335", "a folder of the system is writable"),
    ("RF0336", "a writable folder holds what programs of the host run"),
];

/// Judges a policy. The findings are sorted, each there once.
pub fn lint(policy: &Policy) -> Vec<Finding> {
    let mut judge = Judge { policy, findings: Vec::new() };
    judge.files();
    for rule in policy.network.rules.iter().filter(|rule| rule.verb == HostVerb::Allow) {
        judge.host(rule);
    }
    judge.sockets();
    judge.walls();
    judge.env();
    let mut findings = judge.findings;
    findings.sort();
    findings.dedup();
    findings
}

/// Services that store what one sends them where others can fetch it: an allowed one is a way out for data.
const DROPS: &[&str] = &[
    "github.com",
    "api.github.com",
    "gist.github.com",
    "uploads.github.com",
    "gitlab.com",
    "bitbucket.org",
    "api.bitbucket.org",
    "codeberg.org",
    "pastebin.com",
    "paste.rs",
    "dpaste.org",
    "transfer.sh",
    "file.io",
    "0x0.st",
    "api.telegram.org",
    "discord.com",
    "slack.com",
    "hooks.slack.com",
    "drive.google.com",
    "docs.google.com",
    "www.googleapis.com",
    "storage.googleapis.com",
    "s3.amazonaws.com",
    "api.dropboxapi.com",
    "content.dropboxapi.com",
    "graph.microsoft.com",
];

/// Folders whose files decide what the host does.
const SYSTEM: &[&str] = &[
    "/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/proc", "/root", "/run",
    "/sbin", "/srv", "/sys", "/usr", "/var", "/home", "/nix", "/gnu",
];

/// Folders of a home from which shells and sessions run programs, beyond the protected names.
const PROGRAM_FOLDERS: &[&str] = &[
    "bin",
    ".bin",
    ".local/bin",
    ".local/lib",
    ".cargo/bin",
    "go/bin",
    ".npm-global",
    ".local/share/applications",
    ".nvm",
    ".pyenv",
    ".asdf",
    ".rustup",
];

struct Judge<'a> {
    policy: &'a Policy,
    findings: Vec<Finding>,
}

impl Judge<'_> {
    fn say(&mut self, code: &'static str, message: String, origin: &Origin, hint: Option<&str>) {
        self.findings.push(Finding { code, message, origin: origin.clone(), hint: hint.map(str::to_owned) });
    }

    fn short(&self, path: &HostPath) -> String {
        path.shortened(&self.policy.files.home.path)
    }

    fn files(&mut self) {
        let home = &self.policy.files.home;
        if home.mode == HomeMode::Visible {
            let message =
                "the home folder is visible: everything in it but the credential stores can be read".to_owned();
            self.say("RF0325", message, &home.origin, Some("home = \"private\" and `allow_read` for what is needed"));
        }
        for rule in &self.policy.files.rules {
            let explicit = rule.origin.layer != Layer::Builtin;
            match rule.verb {
                PathVerb::AllowRead | PathVerb::AllowWrite if explicit => self.grant(rule),
                PathVerb::DenyWrite if rule.origin == Origin::builtin("policy files") => self.policy_file(rule),
                PathVerb::AllowRead | PathVerb::AllowWrite | PathVerb::DenyRead | PathVerb::DenyWrite => {}
            }
        }
    }

    /// A grant that somebody wrote. What a preset re-opens for its own program is its purpose.
    fn grant(&mut self, rule: &PathRule) {
        let base = rule.pattern.base();
        let home = &self.policy.files.home.path;
        let preset = rule.origin.layer == Layer::Preset;
        let stores =
            self.policy.files.rules.iter().filter(|r| r.origin.layer == Layer::Builtin && r.verb == PathVerb::DenyRead);
        let opened =
            stores.filter(|store| store.pattern.match_depth(base).is_some()).find_map(|store| store.why.clone());
        if let Some(why) = opened.filter(|_| !preset)
            && self.policy.may_path(base, Access::Read).verdict == Verdict::Allowed
        {
            let message = format!("`{}` is readable: {why}", self.short(base));
            self.say(
                "RF0321",
                message,
                &rule.origin,
                Some("an allowed host could receive it; name the one file that is needed"),
            );
        }
        if rule.verb != PathVerb::AllowWrite {
            return;
        }
        if home.is_within(base) {
            let message = format!("`{}` is writable, and the home folder lies in it", self.short(base));
            self.say("RF0322", message, &rule.origin, Some("name the folders that the command works in"));
        }
        if SYSTEM.iter().any(|folder| base.as_path() == std::path::Path::new(folder)) {
            let message = format!("`{base}`, a folder of the system, is writable");
            self.say("RF0335", message, &rule.origin, Some("name the folders that the command works in"));
        }
        let programs = PROGRAM_FOLDERS.iter().any(|folder| base.is_within(&home.join(folder)));
        let named = self.policy.files.protected.iter().find(|n| n.protects(base, base.depth().saturating_sub(1)));
        if !preset
            && let Some(why) =
                named.map(|n| n.why.clone()).or(programs.then(|| "programs of the host are run from there".to_owned()))
        {
            let message = format!("`{}` is writable: {why}", self.short(base));
            self.say("RF0336", message, &rule.origin, Some("what the command writes there acts outside of the walls"));
        }
    }

    fn policy_file(&mut self, protection: &PathRule) {
        let file = protection.pattern.base();
        let roots = self.policy.files.rules.iter().filter(|r| r.verb == PathVerb::AllowWrite);
        if roots.into_iter().any(|root| root.pattern.match_depth(file).is_some()) {
            let message =
                format!("policy file `{}` lies in a writable folder; it is write-protected", self.short(file));
            self.say(
                "RF0327",
                message,
                &protection.origin,
                Some("keep policies outside of what the command may write"),
            );
        }
    }

    fn host(&mut self, rule: &HostRule) {
        let at = &rule.origin;
        if rule.ports == PortSet::All {
            self.say("RF0328", format!("`{rule}` allows every port"), at, Some("name the ports"));
        }
        match &rule.host {
            HostPattern::Any => {
                let message = format!("`{rule}` allows every host: it can receive anything the program can read");
                self.say("RF0323", message, at, Some("name the hosts"));
            }
            HostPattern::Below(apex) if public_suffix::is_public_suffix(apex.as_text()) => {
                let message = format!("`{rule}` covers hosts that belong to anybody");
                self.say("RF0324", message, at, Some("name the hosts"));
            }
            HostPattern::Exact(name) if is_metadata_name(name.as_text()) => self.metadata(rule),
            HostPattern::Exact(name) if name.as_text() == "localhost" || name.as_text().ends_with(".localhost") => {
                let message = format!("`{rule}` has no effect: inside, it is the sandbox's own loopback");
                self.say(
                    "RF0334",
                    message,
                    at,
                    Some("ports = { host = [PORT] } opens a server on the host's loopback"),
                );
            }
            HostPattern::Exact(name) | HostPattern::Below(name) => {
                let covered = |drop: &&&str| {
                    **drop == name.as_text()
                        || (matches!(rule.host, HostPattern::Below(_)) && drop.ends_with(&format!(".{name}")))
                };
                if let Some(drop) = DROPS.iter().find(covered) {
                    let message = format!("`{rule}`: {drop} keeps what anybody sends it, so data can leave that way");
                    self.say("RF0326", message, at, Some("request rules narrow a host to what is needed"));
                }
            }
            HostPattern::Network(network) => {
                let classes = [classify(network.network()), classify(network.broadcast())];
                if classes.iter().all(|class| *class == AddressClass::Metadata) {
                    self.metadata(rule);
                } else if classes.iter().any(|class| *class != AddressClass::Public) {
                    let message = format!("`{rule}` opens addresses of this host or of its networks");
                    self.say("RF0329", message, at, Some("name one address and its port"));
                }
            }
        }
        for network in &rule.addresses {
            let message = format!("`{rule}` may resolve to {network}, which belongs to this host or to its networks");
            self.say("RF0329", message, at, None);
        }
    }

    fn metadata(&mut self, rule: &HostRule) {
        let message = format!("`{rule}` has no effect: a metadata service is never opened by a host rule");
        self.say("RF0333", message, &rule.origin, None);
    }

    fn sockets(&mut self) {
        let known = control_sockets(&self.policy.files.home.path);
        for rule in &self.policy.unix {
            let Some(socket) = known.iter().find(|socket| socket.pattern.match_depth(&rule.path).is_some()) else {
                continue;
            };
            let message = match socket.power {
                Power::Run => format!("`{}` is open, which ends every wall: {}", self.short(&rule.path), socket.why),
                Power::Act | Power::Data => format!("`{}` is open: {}", self.short(&rule.path), socket.why),
            };
            self.say("RF0320", message, &rule.origin, None);
        }
    }

    fn walls(&mut self) {
        if let Some(origin) = &self.policy.walls.allow_weaker {
            self.say(
                "RF0330",
                "layers that are weaker than designed are accepted".to_owned(),
                origin,
                Some("ringfence doctor"),
            );
        }
        if let Some(origin) = &self.policy.walls.skip_proof {
            self.say("RF0331", "the walls are not proved before the command starts".to_owned(), origin, None);
        }
    }

    fn env(&mut self) {
        for rule in self.policy.env.pass.iter().filter(|r| r.pattern.contains('*') && r.origin.layer != Layer::Builtin)
        {
            let message = format!("`{}` passes every variable of that pattern, those with secrets too", rule.pattern);
            self.say("RF0332", message, &rule.origin, Some("name the variables"));
        }
    }
}
