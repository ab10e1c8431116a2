//! May this path be read, may it be written?

use super::{PathDecision, Verdict};
use crate::index::Key;
use crate::origin::{Layer, Origin};
use crate::path_rule::{Access, HostPath, PathRule, PathVerb};
use crate::{HomeMode, Policy, ProtectedName};
use std::cmp::Reverse;

/// A rule that covers the path.
#[derive(Clone, Copy)]
struct Match<'a> {
    rule: &'a PathRule,
    /// Its place in the list, which tells equals apart.
    index: usize,
    depth: usize,
    exact: bool,
}

/// How strong a match is; the greatest decides. The depth of the node at which the rule matched; a path beats a pattern;
/// what somebody wrote beats what is built in; a denial beats a grant; and between equals, the stronger layer is the one
/// that is named.
type Strength = (usize, bool, bool, u8, Reverse<Layer>);

impl Match<'_> {
    fn strength(&self) -> Strength {
        strength(self.rule.verb, self.rule.origin.layer, self.depth, self.exact)
    }
}

fn strength(verb: PathVerb, layer: Layer, depth: usize, exact: bool) -> Strength {
    let rank = match verb {
        PathVerb::DenyRead | PathVerb::DenyWrite => 2,
        PathVerb::AllowWrite => 1,
        PathVerb::AllowRead => 0,
    };
    (depth, exact, layer != Layer::Builtin, rank, Reverse(layer))
}

impl PathVerb {
    /// Whether the rule takes something away.
    pub fn is_deny(self) -> bool {
        match self {
            Self::DenyRead | Self::DenyWrite => true,
            Self::AllowRead | Self::AllowWrite => false,
        }
    }

    /// Whether the rule says anything of this access.
    fn concerns(self, access: Access) -> bool {
        match (self, access) {
            (Self::AllowWrite | Self::DenyRead, _) => true,
            (Self::AllowRead, Access::Read) | (Self::DenyWrite, Access::Write) => true,
            (Self::AllowRead, Access::Write) | (Self::DenyWrite, Access::Read) => false,
        }
    }
}

/// All of the rules that cover the path.
fn covering<'a>(rules: impl Iterator<Item = (usize, &'a PathRule)>, path: &HostPath) -> Vec<Match<'a>> {
    let cover = |(index, rule): (usize, &'a PathRule)| {
        let depth = rule.pattern.match_depth(path)?;
        Some(Match { rule, index, depth, exact: rule.pattern.is_exact() })
    };
    rules.filter_map(cover).collect()
}

/// Whether a ceiling lets the path be written.
fn under(ceiling: &[PathRule], path: &HostPath) -> bool {
    let top = winner(&covering(ceiling.iter().enumerate(), path), Access::Write, usize::MAX);
    top.is_some_and(|m| !m.rule.verb.is_deny())
}

/// The match that decides on `access`, of those at a node above `bound`. A managed denial yields only to a managed grant.
fn winner<'a>(matches: &[Match<'a>], access: Access, bound: usize) -> Option<Match<'a>> {
    let concerned = || matches.iter().filter(|m| m.rule.verb.concerns(access) && m.depth < bound);
    let managed = strongest(concerned().filter(|m| m.rule.origin.layer == Layer::Managed));
    match managed {
        Some(m) if m.rule.verb.is_deny() => managed,
        _ => strongest(concerned()),
    }
}

/// The strongest; of equals, the first in the list.
fn strongest<'m, 'a: 'm>(matches: impl Iterator<Item = &'m Match<'a>>) -> Option<Match<'a>> {
    matches.max_by_key(|m| (m.strength(), Reverse(m.index))).copied()
}

/// A folder that is the sandbox's own, and why.
struct Region {
    depth: usize,
    reason: &'static str,
    origin: Origin,
}

/// What the command finds at a path.
enum Sight<'a> {
    /// The host's file.
    Host(Match<'a>),
    /// The sandbox's own folder; with the rule that would hide the host's file anyhow, where there is one.
    Own(Region, Option<Match<'a>>),
    /// Nothing: a rule hides it.
    Hidden(Match<'a>),
    /// Nothing: no rule shows it.
    NoRule,
}

impl Policy {
    /// May this path be read, may it be written? The path is judged as it is written: resolve symlinks first.
    ///
    /// A path below a private folder is [`Verdict::Private`] unless a rule inside that folder shows the host's.
    pub fn may_path(&self, path: &HostPath, access: Access) -> PathDecision {
        let matches = self.covering(path);
        let asked = Asked { policy: self, path, access, matches: &matches };
        match self.sight(path, &matches) {
            Sight::NoRule => asked.denied(None, "no rule allows reading it".to_owned()),
            Sight::Hidden(m) => asked.denied(Some(m), denial_reason(m.rule)),
            Sight::Own(region, hidden_by) => asked.private(region, hidden_by),
            Sight::Host(m) => match access {
                Access::Read => allowed(m, grant_reason(m.rule)),
                Access::Write => self.may_write(&asked, &matches),
            },
        }
    }

    fn covering(&self, path: &HostPath) -> Vec<Match<'_>> {
        covering(self.files.rules.candidates(Key::of_path_and_above(path)), path)
    }

    fn may_write(&self, asked: &Asked<'_>, matches: &[Match<'_>]) -> PathDecision {
        let outside = || "outside the writable roots".to_owned();
        let floor = self.region(asked.path).map_or(0, |region| region.depth);
        let grant = match winner(matches, Access::Write, usize::MAX) {
            None => return asked.denied(None, outside()),
            Some(m) if m.rule.verb.is_deny() => return asked.denied(Some(m), denial_reason(m.rule)),
            // A writable root around a private folder does not reach into it.
            Some(m) if m.depth < floor => return asked.denied(None, outside()),
            Some(m) => m,
        };
        // The workspace's own names stay protected whatever rule opens them: only `unprotect` takes a name off the list.
        let built_in =
            matches.iter().filter(|m| m.rule.verb == PathVerb::AllowWrite && m.rule.origin.layer == Layer::Builtin);
        let root = built_in.map(|m| m.depth).min().unwrap_or(grant.depth).min(grant.depth);
        if let Some(name) = self.files.protected.protecting(asked.path, root) {
            return asked.protected(name);
        }
        let above = self.ceilings.iter().find(|c| c.write.as_ref().is_some_and(|rules| !under(rules, asked.path)));
        if let Some(ceiling) = above {
            return asked.above(ceiling.origin.clone());
        }
        allowed(grant, grant_reason(grant.rule))
    }

    /// What stands at the path. Where a rule hides it, the rules above that node tell whether there was a file of the
    /// host's to hide, or the path lies in a folder that is the sandbox's own.
    fn sight<'a>(&self, path: &HostPath, matches: &[Match<'a>]) -> Sight<'a> {
        let region = self.region(path);
        let mut hidden_by = None;
        let mut bound = usize::MAX;
        while let Some(m) = winner(matches, Access::Read, bound) {
            if m.rule.verb.is_deny() {
                hidden_by = hidden_by.or(Some(m));
                if region.is_none() {
                    break;
                }
                bound = m.depth;
                continue;
            }
            return match (region, hidden_by) {
                (Some(region), _) if m.depth < region.depth => Sight::Own(region, hidden_by),
                (_, Some(hider)) => Sight::Hidden(hider),
                (_, None) => Sight::Host(m),
            };
        }
        match (region, hidden_by) {
            (Some(region), _) => Sight::Own(region, hidden_by),
            (None, Some(hider)) => Sight::Hidden(hider),
            (None, None) => Sight::NoRule,
        }
    }

    /// The deepest private folder that holds the path.
    fn region(&self, path: &HostPath) -> Option<Region> {
        let home = &self.files.home;
        let home_reason = match home.mode {
            HomeMode::Private => Some("home is private"),
            HomeMode::Empty => Some("home is empty"),
            HomeMode::Visible => None,
        };
        let home = home_reason.filter(|_| path.is_within(&home.path)).map(|reason| Region {
            depth: home.path.depth(),
            reason,
            origin: home.origin.clone(),
        });
        let folders = self.files.private.iter().filter(|folder| path.is_within(folder));
        let folders = folders.map(|folder| Region {
            depth: folder.depth(),
            reason: "private to the run",
            origin: Origin::builtin("private folders"),
        });
        folders.chain(home).max_by_key(|region| region.depth)
    }
}

fn denial_reason(rule: &PathRule) -> String {
    match (&rule.why, rule.verb) {
        (Some(why), _) => why.clone(),
        (None, PathVerb::DenyWrite) => format!("write-denied by {}", rule.origin),
        (None, _) => format!("denied by {}", rule.origin),
    }
}

fn grant_reason(rule: &PathRule) -> String {
    rule.why.clone().unwrap_or_else(|| format!("allowed by {}", rule.origin))
}

fn allowed(m: Match<'_>, reason: String) -> PathDecision {
    let (rule, origin) = (Some(m.rule.clone()), m.rule.origin.clone());
    PathDecision { verdict: Verdict::Allowed, rule, origin, reason, remedy: None, flag: None }
}

/// A question, for which an answer other than "yes" is to be worded.
struct Asked<'a> {
    policy: &'a Policy,
    path: &'a HostPath,
    access: Access,
    matches: &'a [Match<'a>],
}

impl Asked<'_> {
    fn denied(&self, by: Option<Match<'_>>, reason: String) -> PathDecision {
        let (remedy, flag) = self.remedies(by);
        let origin = by.map_or_else(|| Origin::builtin("default deny"), |m| m.rule.origin.clone());
        PathDecision { verdict: Verdict::Denied, rule: by.map(|m| m.rule.clone()), origin, reason, remedy, flag }
    }

    fn private(&self, region: Region, hidden_by: Option<Match<'_>>) -> PathDecision {
        let (remedy, flag) = self.remedies(hidden_by);
        let reason = match hidden_by.and_then(|m| m.rule.why.as_deref()) {
            Some(why) => format!("{why}; {}", region.reason),
            None => region.reason.to_owned(),
        };
        let rule = hidden_by.map(|m| m.rule.clone());
        PathDecision { verdict: Verdict::Private, rule, origin: region.origin, reason, remedy, flag }
    }

    fn protected(&self, name: &ProtectedName) -> PathDecision {
        let remedy = (name.origin.layer == Layer::Builtin)
            .then(|| format!("[files] unprotect = [\"{}\"]", name.pattern))
            .filter(|_| self.under_ceilings());
        let reason = format!("protected: {}", name.why);
        PathDecision { verdict: Verdict::Denied, rule: None, origin: name.origin.clone(), reason, remedy, flag: None }
    }

    fn above(&self, origin: Origin) -> PathDecision {
        let reason = format!("above the ceiling of {origin}");
        PathDecision { verdict: Verdict::Denied, rule: None, origin, reason, remedy: None, flag: None }
    }

    fn under_ceilings(&self) -> bool {
        let mut ceilings = self.policy.ceilings.iter().filter_map(|c| c.write.as_ref());
        self.access == Access::Read || ceilings.all(|rules| under(rules, self.path))
    }

    /// A line of policy and a flag that would allow it; none where the rule that denies would win all the same.
    fn remedies(&self, by: Option<Match<'_>>) -> (Option<String>, Option<String>) {
        let (setting, flag, verb) = match self.access {
            Access::Read => ("allow_read", "--read", PathVerb::AllowRead),
            Access::Write => ("write", "--write", PathVerb::AllowWrite),
        };
        let mine = strength(verb, Layer::CommandLine, self.path.depth(), true);
        let beaten = by.is_none_or(|m| m.rule.origin.layer != Layer::Managed && m.strength() < mine);
        let of_managed = |m: &&Match<'_>| m.rule.origin.layer == Layer::Managed && m.rule.verb.concerns(self.access);
        let unmanaged = strongest(self.matches.iter().filter(of_managed)).is_none_or(|m| !m.rule.verb.is_deny());
        let protecting = || self.policy.files.protected.protecting(self.path, self.path.depth().saturating_sub(1));
        let named =
            self.access == Access::Write && self.path.is_within(&self.policy.workspace) && protecting().is_some();
        if !beaten || !unmanaged || named || !self.under_ceilings() {
            return (None, None);
        }
        let short = self.path.shortened(&self.policy.files.home.path);
        let quoted = short.replace('\\', "\\\\").replace('"', "\\\"");
        (Some(format!("[files] {setting} = [\"{quoted}\"]")), Some(format!("{flag} {}", shell_word(&short))))
    }
}

/// A word as a shell reads it back; a leading `~/` stays outside of the quotes.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%=".contains(c);
    let (tilde, rest) = match text.strip_prefix("~/") {
        Some(rest) => ("~/", rest),
        None => ("", text),
    };
    if rest.chars().all(plain) || text == "~" {
        return text.to_owned();
    }
    format!("{tilde}'{}'", rest.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Indexed;
    use crate::path_rule::PathPattern;
    use proptest::prelude::*;

    fn texts() -> impl Strategy<Value = String> {
        let names = prop::sample::select(&["a", "b", "ab", "a-", ".e", "*", "**", "[ab]", "{a,.e}", "a*"][..]);
        prop::collection::vec(names, 0..5).prop_map(|names| format!("/{}", names.join("/")))
    }

    proptest! {
        /// The index leaves out only rules that do not cover the path.
        #[test]
        fn the_index_finds_what_a_look_at_every_rule_finds(rules in prop::collection::vec(texts(), 0..40), path in texts()) {
            let path = HostPath::new(path.replace(['*', '[', ']', '{', '}', ','], "a")).unwrap();
            let rule = |text: &String| PathRule {
                pattern: PathPattern::parse(text).unwrap(),
                verb: PathVerb::DenyRead,
                origin: Origin::builtin("test"),
                why: None,
            };
            let rules: Indexed<PathRule> = rules.iter().map(rule).collect();
            let found = |matches: Vec<Match<'_>>| {
                let mut found: Vec<_> = matches.iter().map(|m| (m.index, m.depth, m.exact)).collect();
                found.sort_unstable();
                found
            };
            let by_index = found(covering(rules.candidates(Key::of_path_and_above(&path)), &path));
            prop_assert_eq!(by_index, found(covering(rules.iter().enumerate(), &path)));
        }
    }
}
