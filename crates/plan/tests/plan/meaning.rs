//! The plan means what the policy answers: for random rules, every path of a small tree stands as `may_path` says.

use crate::world::{Stands, World, look, path};
use proptest::prelude::*;
use ringfence_policy::{Access, HomeMode, Layer, PathVerb, Verdict};

const NAMES: [&str; 3] = ["a", "b", "c"];

/// Every path of a tree with three names in each of four levels, below the workspace, the home, and elsewhere.
fn tree() -> Vec<String> {
    let mut all = Vec::new();
    for root in ["/home/u/proj", "/home/u/other", "/srv"] {
        let mut level = vec![root.to_owned()];
        for _ in 0..3 {
            level = level.iter().flat_map(|at| NAMES.iter().map(move |name| format!("{at}/{name}"))).collect();
            all.extend(level.iter().cloned());
        }
    }
    all
}

fn pattern() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => proptest::sample::select(&NAMES[..]).prop_map(str::to_owned),
        1 => Just("*".to_owned()),
        1 => Just("{a,b}".to_owned()),
        1 => Just("**/c".to_owned()),
    ];
    let root = proptest::sample::select(vec!["/home/u/proj", "/home/u/proj", "/home/u/other", "/srv"]);
    (root, proptest::collection::vec(part, 1..4)).prop_map(|(root, parts)| format!("{root}/{}", parts.join("/")))
}

fn verb() -> impl Strategy<Value = PathVerb> {
    proptest::sample::select(vec![PathVerb::AllowRead, PathVerb::AllowWrite, PathVerb::DenyRead, PathVerb::DenyWrite])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn mounts_mean_the_policy(
        rules in proptest::collection::vec((verb(), pattern(), any::<bool>()), 0..7),
        home in proptest::sample::select(vec![HomeMode::Private, HomeMode::Empty, HomeMode::Visible]),
        root in any::<bool>(),
    ) {
        let mut world = World::new("/home/u", "/home/u/proj", if root { 0 } else { 1000 });
        let tree = tree();
        for file in &tree {
            world.view.dir(file);
        }
        world.home(home);
        for (verb, pattern, preset) in &rules {
            world.rule_of(if *preset { Layer::Preset } else { Layer::User }, *verb, pattern);
        }
        let policy = world.policy();
        let plan = world.plan();
        for at in &tree {
            let ask = |access| policy.may_path(&path(at), access).verdict;
            let expected = match (ask(Access::Read), ask(Access::Write)) {
                (Verdict::Denied, _) => Stands::Hidden,
                (Verdict::Private, _) => Stands::Ours,
                (Verdict::Allowed, Verdict::Allowed) => Stands::Writable,
                (Verdict::Allowed, _) => Stands::ReadOnly,
            };
            let found = look(&plan, at);
            // Where the sandbox has its own and a rule denies the host's, nothing at all is as good, and the other way
            // round: of the host, neither shows anything.
            let denied = policy.may_path(&path(at), Access::Read).rule.is_some();
            let nothing = |stands| matches!(stands, Stands::Ours | Stands::Hidden);
            if !(denied && nothing(expected) && nothing(found)) {
                prop_assert_eq!(found, expected, "{} {:#?}", at, plan.mounts);
            }
        }
    }
}
