//! Laws that hold for every policy, over policies, paths and hosts that are drawn at random.

use crate::*;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Few names, so that rules meet.
fn names() -> impl Strategy<Value = &'static str> {
    select(&["a", "b", ".env", ".git", "hooks", "config", "u", "w", "home", "tmp", ".ssh", ".vscode"][..])
}

fn paths() -> impl Strategy<Value = String> {
    let roots = select(&["", "/home/u", "/home/u/w", "/tmp"][..]);
    (roots, prop::collection::vec(names(), 0..5)).prop_map(|(root, names)| {
        let path = names.iter().fold(root.to_owned(), |path, name| format!("{path}/{name}"));
        if path.is_empty() { "/".to_owned() } else { path }
    })
}

/// Paths in and around the stores of a home folder.
fn store_paths() -> impl Strategy<Value = String> {
    let names = select(
        &[
            ".aws",
            ".ssh",
            "known_hosts",
            "id_rsa",
            ".docker",
            "config.json",
            "key.pem",
            ".config",
            "gh",
            "git",
            "config",
            "w",
            "a",
        ][..],
    );
    let roots = select(&["/home/u", "/home/u/w", "/home", "/srv", ""][..]);
    (roots, prop::collection::vec(names, 0..4)).prop_map(|(root, names)| {
        let path = names.iter().fold(root.to_owned(), |path, name| format!("{path}/{name}"));
        if path.is_empty() { "/".to_owned() } else { path }
    })
}

fn store_rules() -> impl Strategy<Value = PathRule> {
    let verbs = select(&["+r", "+w", "-r", "-w"][..]);
    let patterns = prop_oneof![
        3 => store_paths(),
        1 => (store_paths(), select(&["*", "**/config.json", ".*", "**/a"][..])).prop_map(|(folder, rest)| format!("{}/{rest}", folder.trim_end_matches('/'))),
    ];
    (verbs, patterns, select(LAYERS)).prop_map(|(verb, pattern, layer)| path_rule(layer, &format!("{verb} {pattern}")))
}

fn glob_parts() -> impl Strategy<Value = &'static str> {
    select(&["a", "b", "*", "**", "?", ".*", "[ab]", "{a,.env}", "*e*", ".env", "h?*s", "[!a]"][..])
}

fn patterns() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => paths(),
        1 => (select(&["", "/home/u", "/home/u/w", "/tmp"][..]), prop::collection::vec(glob_parts(), 1..4))
            .prop_map(|(root, parts)| format!("{root}/{}", parts.join("/"))),
    ]
}

const LAYERS: &[Layer] = &[Layer::Managed, Layer::CommandLine, Layer::User, Layer::Project, Layer::Preset];

fn path_rules() -> impl Strategy<Value = PathRule> {
    let verbs = select(&["+r", "+w", "-r", "-w"][..]);
    (verbs, patterns(), select(LAYERS))
        .prop_map(|(verb, pattern, layer)| path_rule(layer, &format!("{verb} {pattern}")))
}

fn host_texts() -> impl Strategy<Value = &'static str> {
    select(
        &[
            "a.test",
            "*.a.test",
            "b.a.test",
            "*",
            "a.test:22",
            "*.a.test:*",
            "10.0.0.0/8",
            "10.1.2.3:22",
            "1.1.1.1",
            "[::/0]:*",
            "c.b.a.test:443",
            "127.0.0.1",
            "metadata",
        ][..],
    )
}

fn host_rules() -> impl Strategy<Value = HostRule> {
    (select(&["+", "-"][..]), host_texts(), select(LAYERS))
        .prop_map(|(verb, text, layer)| host_rule(layer, &format!("{verb} {text}")))
}

fn destinations() -> impl Strategy<Value = Destination> {
    let hosts = select(
        &[
            "a.test",
            "b.a.test",
            "c.b.a.test",
            "evil.test",
            "xa.test",
            "10.1.2.3",
            "1.1.1.1",
            "127.0.0.1",
            "[2606::1]",
            "[64:ff9b::a01:203]",
            "metadata",
        ][..],
    );
    (hosts, select(&[22, 80, 443, 8080][..])).prop_map(|(host, port)| to(&format!("{host}:{port}")))
}

fn addresses() -> impl Strategy<Value = std::net::IpAddr> {
    select(
        &[
            "10.1.2.3",
            "10.9.9.9",
            "1.1.1.1",
            "127.0.0.1",
            "::1",
            "169.254.169.254",
            "64:ff9b::a01:203",
            "2606::1",
            "fe80::1",
        ][..],
    )
    .prop_map(|text| text.parse().unwrap())
}

fn homes() -> impl Strategy<Value = HomeMode> {
    select(&[HomeMode::Empty, HomeMode::Private, HomeMode::Visible][..])
}

/// Rules as the fragments of their layers; the home is the user's choice.
fn fragments(paths: &[PathRule], hosts: &[HostRule], home: HomeMode) -> Vec<Fragment> {
    LAYERS
        .iter()
        .map(|&layer| {
            let mut fragment = Fragment::empty(layer);
            fragment.paths = paths.iter().filter(|r| r.origin.layer == layer).cloned().collect();
            fragment.hosts = hosts.iter().filter(|r| r.origin.layer == layer).cloned().collect();
            fragment.home = (layer == Layer::User).then(|| (home, origin(layer, 1)));
            fragment
        })
        .collect()
}

fn of(paths: &[PathRule], hosts: &[HostRule], home: HomeMode) -> Policy {
    policy(fragments(paths, hosts, home))
}

/// What the command can do to the host's file.
fn reaches(policy: &Policy, at: &str) -> (bool, bool) {
    let at = path(at);
    let allowed = |access| policy.may_path(&at, access).verdict == Verdict::Allowed;
    (allowed(Access::Read), allowed(Access::Write))
}

fn within(narrow: (bool, bool), wide: (bool, bool)) -> bool {
    (!narrow.0 || wide.0) && (!narrow.1 || wide.1)
}

fn connects(policy: &Policy, destination: &Destination) -> bool {
    policy.may_connect(destination).verdict == Verdict::Allowed
}

fn dials(policy: &Policy, destination: &Destination, address: std::net::IpAddr) -> bool {
    policy.may_address(destination, address, &[]).verdict == Verdict::Allowed
}

/// Matches component by component with plain recursion: the reference for the machine.
fn naive(pattern: &[&str], names: &[&str]) -> bool {
    match (pattern.split_first(), names.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((&"**", rest)), None) => naive(rest, names),
        (Some((&"**", rest)), Some((_, tail))) => naive(rest, names) || naive(pattern, tail),
        (Some(_), None) => false,
        (Some((part, rest)), Some((name, tail))) => naive_name(part.as_bytes(), name.as_bytes()) && naive(rest, tail),
    }
}

fn naive_name(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.first() {
        None => name.is_empty(),
        Some(b'*') => (0..=name.len()).any(|at| naive_name(&pattern[1..], &name[at..])),
        Some(b'?') => !name.is_empty() && naive_name(&pattern[1..], &name[1..]),
        Some(b'[') => {
            let close = pattern.iter().position(|&b| b == b']').unwrap();
            let (negated, members) = match &pattern[1..close] {
                [b'!', members @ ..] => (true, members),
                members => (false, members),
            };
            !name.is_empty() && members.contains(&name[0]) != negated && naive_name(&pattern[close + 1..], &name[1..])
        }
        Some(b'{') => {
            let close = pattern.iter().position(|&b| b == b'}').unwrap();
            let rest = &pattern[close + 1..];
            pattern[1..close].split(|&b| b == b',').any(|branch| naive_name(&[branch, rest].concat(), name))
        }
        Some(&byte) => name.first() == Some(&byte) && naive_name(&pattern[1..], &name[1..]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn removing_a_path_grant_never_widens(rules in prop::collection::vec(path_rules(), 1..8), one in any::<Index>(), home in homes(), at in paths()) {
        let before = reaches(&of(&rules, &[], home), &at);
        let mut fewer = rules.clone();
        let removed = fewer.remove(one.index(rules.len()));
        let after = reaches(&of(&fewer, &[], home), &at);
        if removed.verb.is_deny() {
            prop_assert!(within(before, after), "removing {removed:?} narrowed {at}");
        } else {
            prop_assert!(within(after, before), "removing {removed:?} widened {at}");
        }
    }

    #[test]
    fn a_run_decides_as_the_whole_tables_do(rules in prop::collection::vec(store_rules(), 0..6), home in homes(), at in store_paths()) {
        let whole = of(&rules, &[], home);
        let (run, _) = merge_for_run(&base(), fragments(&rules, &[], home));
        for access in [Access::Read, Access::Write] {
            let verdict = |policy: &Policy| policy.may_path(&path(&at), access).verdict;
            prop_assert_eq!(verdict(&run), verdict(&whole), "{} {:?}", at, access);
        }
    }

    #[test]
    fn what_is_written_can_be_read(rules in prop::collection::vec(path_rules(), 0..8), home in homes(), at in paths()) {
        let (read, write) = reaches(&of(&rules, &[], home), &at);
        prop_assert!(read || !write);
    }

    #[test]
    fn a_managed_denial_holds_whatever_the_others_say(rules in prop::collection::vec(path_rules(), 0..8), home in homes(), at in paths(), below in paths()) {
        let others: Vec<_> = rules.into_iter().filter(|r| r.origin.layer != Layer::Managed).collect();
        let deny = path_rule(Layer::Managed, &format!("-r {at}"));
        let policy = of(&[others, vec![deny]].concat(), &[], home);
        let below = format!("{}{below}", if at == "/" { "" } else { &at });
        prop_assert_eq!(reaches(&policy, &below), (false, false), "{}", below);
    }

    #[test]
    fn nobody_writes_above_a_ceiling(rules in prop::collection::vec(path_rules(), 0..8), roots in prop::collection::vec(paths(), 0..3), home in homes(), at in paths()) {
        let mut all = fragments(&rules, &[], home);
        let write = roots.iter().map(|root| path_rule(Layer::Managed, &format!("+w {root}"))).collect();
        all[0].ceiling = Some(Ceiling {
            write: Some(write), hosts: None, home: None, allow_weaker: false, ports: false, unix: false,
            limits: Limits::default(), origin: origin(Layer::Managed, 9),
        });
        let (_, write) = reaches(&policy(all), &at);
        prop_assert!(!write || roots.iter().any(|root| path(&at).is_within(&path(root))));
    }

    #[test]
    fn nobody_connects_above_a_ceiling(rules in prop::collection::vec(host_rules(), 0..8), bound in prop::collection::vec(host_rules(), 0..3), to in destinations(), address in addresses()) {
        let mut all = fragments(&[], &rules, HomeMode::Private);
        let bound: Vec<_> = bound.into_iter().filter(|r| r.verb == HostVerb::Allow).collect();
        let without = policy(all.clone());
        all[0].ceiling = Some(Ceiling {
            write: None, hosts: Some(bound.clone()), home: None, allow_weaker: false, ports: false, unix: false,
            limits: Limits::default(), origin: origin(Layer::Managed, 9),
        });
        let policy = policy(all);
        prop_assert!(!connects(&policy, &to) || bound.iter().any(|rule| rule.covers(&to)));
        prop_assert!(!connects(&policy, &to) || connects(&without, &to));
        prop_assert!(!dials(&policy, &to, address) || dials(&without, &to, address));
    }

    #[test]
    fn removing_a_host_grant_never_widens(rules in prop::collection::vec(host_rules(), 1..8), one in any::<Index>(), to in destinations(), address in addresses()) {
        let before = of(&[], &rules, HomeMode::Private);
        let mut fewer = rules.clone();
        let removed = fewer.remove(one.index(rules.len()));
        let after = of(&[], &fewer, HomeMode::Private);
        let (wide, narrow) = match removed.verb {
            HostVerb::Allow => (before, after),
            HostVerb::Deny => (after, before),
        };
        prop_assert!(!connects(&narrow, &to) || connects(&wide, &to));
        prop_assert!(!dials(&narrow, &to, address) || dials(&wide, &to, address));
    }

    #[test]
    fn an_untrusted_project_never_widens(rules in prop::collection::vec(path_rules(), 0..6), hosts in prop::collection::vec(host_rules(), 0..6), mode in homes(), home in homes(), at in paths(), to in destinations(), address in addresses()) {
        let mut with = fragments(&rules, &hosts, home);
        let project = with.iter_mut().find(|f| f.layer == Layer::Project).unwrap();
        project.trusted = false;
        project.home = Some((mode, origin(Layer::Project, 1)));
        let without = with.iter().filter(|f| f.layer != Layer::Project).cloned().collect();
        let (with, without) = (policy(with), policy(without));
        prop_assert!(within(reaches(&with, &at), reaches(&without, &at)));
        prop_assert!(!connects(&with, &to) || connects(&without, &to));
        prop_assert!(!dials(&with, &to, address) || dials(&without, &to, address));
    }

    #[test]
    fn the_order_of_sources_has_no_meaning(rules in prop::collection::vec(path_rules(), 0..8), hosts in prop::collection::vec(host_rules(), 0..8), homes in prop::collection::vec(homes(), 6), seed in any::<u64>()) {
        // Two fragments of each layer, each with its own home.
        let mut all = Vec::new();
        for (half, home) in homes.iter().enumerate().take(2) {
            let part = |i: usize| i % 2 == half;
            let paths: Vec<_> = rules.iter().enumerate().filter(|(i, _)| part(*i)).map(|(_, r)| r.clone()).collect();
            let hosts: Vec<_> = hosts.iter().enumerate().filter(|(i, _)| part(*i)).map(|(_, r)| r.clone()).collect();
            all.extend(fragments(&paths, &hosts, *home));
        }
        let mut shuffled = all.clone();
        let mut state = seed;
        for i in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(i, usize::try_from(state >> 33).unwrap() % (i + 1));
        }
        prop_assert_eq!(merge(&base(), all), merge(&base(), shuffled));
    }

    #[test]
    fn every_spelling_of_a_name_decides_alike(rules in prop::collection::vec(host_rules(), 0..8), to in destinations(), upper in prop::collection::vec(any::<bool>(), 20), dot in any::<bool>()) {
        let policy = of(&[], &rules, HomeMode::Private);
        let plain = to.host.to_string();
        let mut spelled: String = plain.chars().zip(upper.iter().cycle()).map(|(c, up)| if *up { c.to_ascii_uppercase() } else { c }).collect();
        if dot && !plain.starts_with('[') {
            spelled.push('.');
        }
        let spelled = Destination::parse_authority(format!("{spelled}:{}", to.port), None, to.protocol).unwrap();
        prop_assert_eq!(&spelled, &to);
        prop_assert_eq!(policy.may_connect(&spelled), policy.may_connect(&to));
    }

    #[test]
    fn every_spelling_of_an_address_is_that_address(address in any::<u32>(), form in 0..7_usize) {
        let v4 = std::net::Ipv4Addr::from(address);
        let [a, b, c, d] = v4.octets();
        let spelled = match form {
            0 => format!("{address}"),
            1 => format!("{address:#x}"),
            2 => format!("0{address:o}"),
            3 => format!("{a:#X}.0{b:o}.{c}.{d:#x}"),
            4 => format!("{a}.{b}.{}", u32::from(c) << 8 | u32::from(d)),
            5 => format!("{a}.{}", address & 0xff_ffff),
            _ => format!("[::ffff:{v4}]"),
        };
        prop_assert_eq!(Host::parse(&spelled), Ok(Host::Address(v4.into())), "{}", spelled);
    }

    #[test]
    fn bytes_are_a_canonical_host_or_nothing(bytes in prop::collection::vec(prop_oneof![any::<u8>(), select(&b"a0.-x:[]%@"[..])], 0..24)) {
        if let Ok(host) = Host::parse(&bytes) {
            let text = host.to_string();
            prop_assert_eq!(Host::parse(&text), Ok(host));
            prop_assert!(text.bytes().all(|b| b.is_ascii_graphic() && !b.is_ascii_uppercase()));
        }
        if let Ok(destination) = Destination::parse_authority(&bytes, Some(443), Protocol::Tcp) {
            let again = Destination::parse_authority(destination.to_string(), None, Protocol::Tcp);
            prop_assert_eq!(again, Ok(destination));
        }
    }

    #[test]
    fn host_rules_read_back_as_they_are_printed(rule in host_rules(), text in "[a-c*:./\\[\\]0-9@,-]{0,16}") {
        let again = HostPattern::parse(&rule.to_string(), Wide::Forced);
        prop_assert_eq!(again, Ok((rule.host, rule.ports)));
        if let Ok((host, ports)) = HostPattern::parse(&text, Wide::Forced) {
            prop_assert_eq!(HostPattern::parse(&format!("{host}{ports}"), Wide::Forced), Ok((host, ports)));
        }
    }

    #[test]
    fn path_patterns_read_back_as_they_are_printed(text in "(/[a-b*?\\[\\]{},!\\\\.-]{0,6}){1,4}") {
        if let Ok(pattern) = PathPattern::parse(&text) {
            prop_assert_eq!(PathPattern::parse(&pattern.to_string()), Ok(pattern), "{}", text);
        }
        let literal = path(&text);
        prop_assert_eq!(PathPattern::parse(&PathPattern::Subtree(literal.clone()).to_string()), Ok(PathPattern::Subtree(literal)));
    }

    #[test]
    fn globs_match_as_the_reference_does(parts in prop::collection::vec(glob_parts(), 1..5), names in prop::collection::vec(names(), 0..5)) {
        let glob = PathGlob::parse(&format!("/{}", parts.join("/"))).unwrap();
        // A `**` at the end is dropped: the rule covers what lies below its match anyhow.
        let last = parts.iter().rposition(|part| *part != "**").map_or(0, |at| at + 1);
        let parts = &parts[..last];
        let at = |count: usize| path(&format!("/{}", names[..count].join("/")));
        let matches: Vec<usize> = (0..=names.len()).filter(|&n| naive(parts, &names[..n])).collect();
        prop_assert_eq!(glob.matches(&at(names.len())), matches.contains(&names.len()));
        prop_assert_eq!(glob.match_depth(&at(names.len())), matches.iter().max().copied());
        // A search that follows `could_match_below` misses nothing.
        for &matched in &matches {
            for above in 0..matched {
                prop_assert!(glob.could_match_below(&at(above)), "{} is pruned", at(above));
            }
        }
    }

    #[test]
    fn folded_names_are_found(prefix in prop::collection::vec(names(), 0..3), upper in prop::collection::vec(any::<bool>(), 24), name in select(&[".git/hooks/x", ".claude/settings.json", ".vscode/a", ".mcp.json", ".bashrc"][..])) {
        let spelled: String = name.chars().zip(&upper).map(|(c, up)| if *up { c.to_ascii_uppercase() } else { c }).collect();
        let at = prefix.iter().fold("/home/u/w".to_owned(), |at, name| format!("{at}/{name}"));
        let decision = policy(vec![]).may_path(&path(&format!("{at}/{spelled}")), Access::Write);
        prop_assert_eq!(decision.verdict, Verdict::Denied);
    }
}
