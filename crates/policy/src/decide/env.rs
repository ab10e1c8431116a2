//! May this variable be passed to the command?

use super::{EnvDecision, Verdict};
use crate::env_rule::{EnvPolicy, EnvRule};
use crate::origin::Layer;
use std::cmp::Reverse;
use std::ffi::OsStr;

impl EnvPolicy {
    /// May this variable of the launcher's environment be passed? The most specific pattern decides: a name beats a
    /// pattern, more letters beat fewer, what somebody wrote beats what is built in, a denial beats a grant. A managed
    /// denial yields only to a managed grant.
    pub fn may_pass(&self, name: &OsStr) -> EnvDecision {
        let name = name.as_encoded_bytes();
        let of = |rules, denies: bool| matching(rules, name).map(move |rule| (rule, denies));
        let rules: Vec<_> = of(&self.deny, true).chain(of(&self.pass, false)).collect();
        let strongest = |managed: bool| {
            let rules = rules.iter().filter(|(rule, _)| !managed || rule.origin.layer == Layer::Managed);
            rules.copied().max_by_key(|(rule, denies)| {
                let letters = rule.pattern.bytes().filter(|&b| b != b'*').count();
                let layer = rule.origin.layer;
                (!rule.pattern.contains('*'), letters, layer != Layer::Builtin, *denies, Reverse(layer))
            })
        };
        let managed = strongest(true).filter(|(_, denies)| *denies);
        match managed.or_else(|| strongest(false)) {
            Some((rule, true)) => EnvDecision { verdict: Verdict::Denied, rule: Some(rule.clone()) },
            Some((rule, false)) => EnvDecision { verdict: Verdict::Allowed, rule: Some(rule.clone()) },
            None => EnvDecision { verdict: Verdict::Allowed, rule: None },
        }
    }
}

fn matching<'a>(rules: &'a [EnvRule], name: &'a [u8]) -> impl Iterator<Item = &'a EnvRule> {
    rules.iter().filter(|rule| matches(rule.pattern.as_bytes(), name))
}

/// Whether the name is of the pattern, in which `*` stands for any bytes. Case does not matter: programs read secrets in
/// lower case as well.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Nearly every pattern is told apart by its first or last letter.
    let differs = |a: Option<&u8>, b: Option<&u8>| match (a, b) {
        (Some(b'*'), _) => false,
        (Some(a), Some(b)) => !a.eq_ignore_ascii_case(b),
        (a, b) => a.is_some() != b.is_some(),
    };
    if differs(pattern.first(), name.first()) || differs(pattern.last(), name.last()) {
        return false;
    }
    let star = |&b: &u8| b == b'*';
    let (Some(first), Some(last)) = (pattern.iter().position(star), pattern.iter().rposition(star)) else {
        return pattern.eq_ignore_ascii_case(name);
    };
    let (front, end) = (pattern.get(..first).unwrap_or_default(), pattern.get(last + 1..).unwrap_or_default());
    let Some(inside) = strip_start(name, front).and_then(|rest| strip_end(rest, end)) else { return false };
    let mut rest = inside;
    for part in pattern.get(first..last).unwrap_or_default().split(star) {
        let Some(behind) = (0..=rest.len()).find_map(|at| strip_start(rest.get(at..)?, part)) else { return false };
        rest = behind;
    }
    true
}

fn strip_end<'a>(text: &'a [u8], end: &[u8]) -> Option<&'a [u8]> {
    let (head, tail) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    tail.eq_ignore_ascii_case(end).then_some(head)
}

fn strip_start<'a>(text: &'a [u8], start: &[u8]) -> Option<&'a [u8]> {
    let (head, tail) = text.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(tail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Origin;

    #[test]
    fn patterns() {
        for (pattern, yes, no) in [
            ("A", &["A", "a"][..], &["AB", "", "BA"][..]),
            ("*", &["", "A"], &[]),
            ("AWS_*", &["AWS_", "AWS_X", "aws_x"], &["AWS", "XAWS_"]),
            ("*_TOKEN", &["A_TOKEN", "_TOKEN"], &["TOKEN", "A_TOKENS"]),
            ("*_SECRET_*", &["A_SECRET_B", "A_SECRET_"], &["A_SECRET"]),
            ("A*B*C", &["ABC", "AXBYC", "ABBCC"], &["AB", "ACB"]),
            ("AB*BA", &["ABBA", "ABxBA"], &["ABA"]),
        ] {
            for name in yes {
                assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern} should match {name}");
            }
            for name in no {
                assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} should not match {name}");
            }
        }
    }

    #[test]
    fn the_most_specific_word_counts() {
        let rule = |pattern: &str, layer| EnvRule {
            pattern: pattern.to_owned(),
            origin: Origin { layer, ..Origin::builtin("test") },
        };
        let env = EnvPolicy {
            deny: vec![
                rule("*_API_KEY", Layer::Builtin),
                rule("AWS_*", Layer::Builtin),
                rule("CORP_*", Layer::Managed),
                rule("MY_API_KEY", Layer::User),
            ],
            pass: vec![
                rule("ANTHROPIC_API_KEY", Layer::Preset),
                rule("MY_API_KEY", Layer::Preset),
                rule("AWS_*", Layer::CommandLine),
                rule("CORP_PROXY", Layer::CommandLine),
            ],
            set: vec![],
        };
        let verdict = |name: &str| env.may_pass(OsStr::new(name)).verdict;
        assert_eq!(verdict("OTHER_API_KEY"), Verdict::Denied);
        assert_eq!(verdict("ANTHROPIC_API_KEY"), Verdict::Allowed);
        assert_eq!(verdict("MY_API_KEY"), Verdict::Denied);
        assert_eq!(verdict("AWS_SECRET_ACCESS_KEY"), Verdict::Allowed);
        assert_eq!(verdict("CORP_PROXY"), Verdict::Denied);
        assert_eq!(verdict("PATH"), Verdict::Allowed);
    }
}
