//! The attack corpus: each attempt first without a sandbox, where it must succeed, then behind the wall, where it must not.

use crate::case::{Attack, load};
use crate::runner::{Cost, Outcome, Trial};
use crate::stage::{Stage, Who};
use crate::wall::Wall;

/// Cases that belong to later work. They run all the same: one that holds already is counted as passed.
const LATER: &[(&str, &str)] = &[
    (
        "fr-07-host-atomic-save-drops-mask",
        "next: broker (the guardian puts a cover back when the host replaces a file)",
    ),
    ("pe-03-git-config-worktree", "next: broker (a protected name that does not exist at the start)"),
    ("pe-09-new-repo-in-run", "next: broker (a protected name that does not exist at the start)"),
    ("pe-12-core-hookspath", "next: broker (a protected name that does not exist at the start)"),
    ("pe-13-agent-settings-created", "next: broker (a protected name that does not exist at the start)"),
    ("pe-15-ide-tasks", "next: broker (a protected name that does not exist at the start)"),
    ("pe-16-package-manager-config", "next: broker (the change report)"),
    ("pe-18-devcontainer-init", "next: broker (a protected name that does not exist at the start)"),
    ("tt-04-osc52-clipboard", "next: the terminal's output filter"),
];

/// Cases in which the launcher may refuse to start at all: what the policy asks cannot be held, and it says so.
const MAY_REFUSE: &[&str] = &[
    "cf-01-deny-path-absent",
    "cf-02-broken-policy",
    "fw-04-writable-root-becomes-link",
    // Root's processes are counted by a control group only, which not every machine has.
    "re-01-fork-flood",
];

/// Cases whose control cannot show the effect on every machine; any other control that shows nothing is a failure.
const CONTROL_MAY_FAIL: &[&str] = &[
    "tt-03-tioclinux-paste",
    "pe-20-crontab-at",
    "ne-06-icmp",
    "ke-05-int80-abi",
    "fw-17-sysctl-core-pattern",
    "ke-06-userfaultfd",
];

/// Cases that reach for everything on the machine, so that nothing may run beside them.
const ALONE: &[&str] =
    &["pr-02-kill-broadcast", "tt-05-other-terminal", "re-01-fork-flood", "tt-01-tiocsti", "ke-09-helper-ptrace"];

/// Cases whose control, as root, would disturb programs that have nothing to do with the tests.
const NO_ROOT_CONTROL: &[&str] = &["tt-05-other-terminal", "pr-02-kill-broadcast", "ke-09-helper-ptrace"];

pub fn collect(trials: &mut Vec<Trial>) {
    let cases: Vec<Attack> = load("attacks.jsonl");
    for who in [Who::User, Who::Root] {
        for case in cases.clone() {
            let cost = if ALONE.contains(&case.id.as_str()) { Cost::Alone } else { Cost::Quick };
            trials.push(Trial::new(format!("attacks::{}::{}", who.name(), case.id), cost, move |stage| {
                one(stage, who, &case)
            }));
        }
    }
}

fn one(stage: &Stage, who: Who, case: &Attack) -> Outcome {
    let id = case.id.as_str();
    if let Some(why) = stage.lacks(who, case.needs_world()) {
        return Outcome::Skipped(why);
    }
    if case.spec.user.as_deref() == Some("root") && who == Who::User {
        return Outcome::Skipped("a case for root".into());
    }
    let control = if who == Who::Root && NO_ROOT_CONTROL.contains(&id) {
        None
    } else {
        match case.attempt(stage, who, Wall::Nothing) {
            Ok(seen) => Some(seen),
            Err(why) => return Outcome::Skipped(why),
        }
    };
    if let Some(seen) = control.filter(|s| !s.escaped) {
        if CONTROL_MAY_FAIL.contains(&id) {
            return Outcome::Skipped(format!(
                "not applicable: {id} does nothing here without a sandbox either: {}",
                case.needs
            ));
        }
        return Outcome::Failed(format!(
            "the control shows nothing: without a sandbox the attempt must succeed\n{}",
            seen.text
        ));
    }
    let seen = match case.attempt(stage, who, stage.wall) {
        Ok(seen) => seen,
        Err(why) => return Outcome::Failed(format!("the set-up worked once and then not: {why}")),
    };
    let later = LATER.iter().find(|(name, _)| *name == id).map(|(_, why)| *why);
    match (seen.escaped, seen.ran, later) {
        (true, _, Some(why)) => Outcome::Skipped(why.into()),
        (true, _, None) => Outcome::Failed(format!("escaped ({})\n{}", case.class, seen.text)),
        (false, false, _) if !MAY_REFUSE.contains(&id) => {
            Outcome::Failed(format!("the attempt did not start, which shows nothing\n{}", seen.text))
        }
        (false, _, Some(_)) => Outcome::Passed("holds already, though listed for later".into()),
        (false, _, None) => Outcome::Passed(String::new()),
    }
}
