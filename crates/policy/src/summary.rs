//! A policy in a few words: its ports, and the risk that remains.

use crate::host_rule::{DEFAULT_PORTS, HostPattern, HostVerb, PortSet};
use crate::{HomeMode, HostRule, Policy};
use std::collections::BTreeSet;

/// The ports of a rule that allows all of them: a listener is made for each, so there must be an end.
const PORTS_OF_ALL: [u16; 3] = [22, 80, 443];

impl Policy {
    /// Ports on which connections that know of no proxy are taken: those of the allow rules, sorted, each once.
    pub fn transparent_ports(&self) -> Vec<u16> {
        let mut ports = BTreeSet::new();
        if self.network_is_off() {
            return Vec::new();
        }
        for rule in self.allows() {
            match &rule.ports {
                PortSet::Default => ports.extend(DEFAULT_PORTS),
                PortSet::All => ports.extend(PORTS_OF_ALL),
                PortSet::List(list) => ports.extend(list),
            }
        }
        ports.into_iter().collect()
    }

    /// What [`Policy::transparent_ports`] leaves out, as a sentence.
    pub fn transparent_note(&self) -> Option<String> {
        let rule = self.allows().find(|rule| rule.ports == PortSet::All)?;
        Some(format!(
            "`{rule}` covers every port; programs that know of no proxy reach it on 22, 80 and 443, the others need the proxy"
        ))
    }

    /// What a program in these walls can still do, in one line.
    pub fn residual_risk(&self) -> String {
        let mut risks = Vec::new();
        if self.network_is_off() {
            risks.push("no host is reachable; what it may write it can destroy".to_owned());
        } else if self.allows().any(|rule| rule.host == HostPattern::Any) {
            risks.push("any host can receive anything the program can read".to_owned());
        } else {
            risks.push("an allowed host can receive anything the program can read".to_owned());
        }
        if self.files.home.mode == HomeMode::Visible {
            risks.push("the home folder is readable".to_owned());
        }
        match self.unix.len() {
            0 => {}
            1 => risks.push("a socket of the host is open".to_owned()),
            n => risks.push(format!("{n} sockets of the host are open")),
        }
        if !self.network.host_ports.is_empty() {
            risks.push("servers on the host's loopback are open".to_owned());
        }
        if self.walls.allow_weaker.is_some() {
            risks.push("weaker walls are accepted".to_owned());
        }
        if self.walls.skip_proof.is_some() {
            risks.push("the walls are not proved".to_owned());
        }
        format!("{} (ringfence explain)", risks.join("; "))
    }

    fn allows(&self) -> impl Iterator<Item = &HostRule> {
        self.network.rules.iter().filter(|rule| rule.verb == HostVerb::Allow)
    }
}
