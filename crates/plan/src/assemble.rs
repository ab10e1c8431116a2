//! The parts put together; and the one place where a layer that is not as designed stops a run.

use crate::facts::{Availability, HostFacts};
use crate::guard::{GUARD_KERNEL, GUARDED, GuardPlan};
use crate::layout::{Place, Want};
use crate::mounts::{self, Given, MountOp};
use crate::seccomp::{self, Arch};
use crate::status::{Status, Statuses, some_of};
use crate::survey::{Survey, is_explicit};
use crate::walk::{self, Bounds};
use crate::{FsView, Identity, Plan, PlanError, PrepareOp, Request, SeccompPlan};
use crate::{aliases, doors, env, landlock, limits, proof, sockets, system};
use ringfence_policy::{Access, HomeMode, HostPath, Policy};

/// The most that `/tmp` may hold unless a limit says less.
const TEMPORARY_SIZE: u64 = 8 << 30;
/// The most that `/dev/shm` may hold unless a limit says less.
const SHM_SIZE: u64 = 2 << 30;

/// See [`crate::plan`].
pub(crate) fn plan(
    policy: &Policy,
    facts: &HostFacts,
    request: &Request,
    view: &dyn FsView,
) -> Result<Plan, Vec<PlanError>> {
    let mut survey = Survey::new(policy, facts, request, view);
    let mut statuses = Statuses::new();
    refuse_what_is_not_built(policy, &mut survey.errors);

    let own_proc = namespaces(&mut survey, &mut statuses);
    survey.rules();
    system::place(&mut survey);
    if !own_proc {
        system::proc_of_host(&mut survey);
    }
    walk::search(&mut survey, Bounds::default());
    sockets::place(&mut survey);
    aliases::hide(&mut survey);

    let (doors, door_notes) = doors::build(&policy.network);
    let cwd = cwd(&survey);
    let environment = env::build(&survey, &doors, &cwd);
    let at_most = [policy.limits.memory.as_ref(), policy.limits.disk.as_ref()].into_iter().flatten();
    let at_most = at_most.map(|limit| limit.value).min().unwrap_or(u64::MAX);
    let mounts = mounts::emit(
        &survey.layout,
        Given {
            private_home: &request.private_home,
            home: policy.files.home.mode,
            proc: own_proc.then(|| system::proc(&survey)),
            dev: MountOp::Dev { nodes: system::nodes(&survey), shm_size: SHM_SIZE.min(at_most) },
            files: system::files(&survey, doors::RESOLVER),
            folders: environment.folders,
            temporary_size: TEMPORARY_SIZE.min(at_most),
        },
    );
    files_status(&survey, &mut statuses);
    let landlock = landlock(&mut survey, &mounts.writable, &mut statuses);
    let (seccomp, guard) = seccomp(&mut survey, &mut statuses);
    sockets_status(&survey, guard.is_some(), &mut statuses);
    network_status(&survey, &doors, &door_notes, &mut statuses);
    let (limits, unheld, limits_status) = limits::build(&policy.limits, facts);
    // A preset's limit is its author's wish for any host; somebody's own word is about this one.
    for limit in unheld.iter().filter(|limit| is_explicit(&limit.origin)) {
        let (layer, hint) = (format!("limit of {}", limit.limit), "delegate a cgroup v2 folder (systemd-run --scope)");
        weaker(&mut survey, &layer, &format!("{} ({})", limit.why, limit.origin), hint);
    }
    statuses.put("limits", with_unheld(limits_status, &unheld), None);
    let proof = proof::build(&survey, &mounts.ops, &doors, !seccomp.program.is_empty());
    let proved = if proof.enabled { Status::Enforced } else { Status::Missing("switched off".to_owned()) };
    statuses.put("proof", proved, None);

    if !survey.errors.is_empty() {
        return Err(survey.errors);
    }
    Ok(Plan {
        identity: Identity { uid: facts.uid, gid: facts.gid, map_all: facts.uid == 0 },
        prepare: prepare(&survey),
        mounts: mounts.ops,
        landlock,
        seccomp,
        guard,
        env: environment.env,
        environment: environment.variables,
        cwd,
        doors,
        limits,
        proof,
        status: statuses.into_rows(),
    })
}

/// What the policy can say and this version cannot do is refused, never dropped.
fn refuse_what_is_not_built(policy: &Policy, errors: &mut Vec<PlanError>) {
    let mut refuse = |what: &str, origin: String| {
        errors.push(PlanError::Unenforceable {
            what: format!("{what} need TLS termination, which this version does not have"),
            hint: "take the rule away".to_owned(),
            origin,
        });
    };
    for rule in &policy.network.requests {
        refuse("rules over requests", rule.origin.to_string());
    }
    for credential in &policy.credentials {
        refuse("injected credentials", credential.origin.to_string());
    }
}

/// A layer is not as designed: an error, unless that was accepted.
fn weaker(survey: &mut Survey<'_>, layer: &str, why: &str, hint: &str) {
    if survey.policy.walls.allow_weaker.is_none() {
        let (layer, why, hint) = (layer.to_owned(), why.to_owned(), hint.to_owned());
        survey.errors.push(PlanError::Weaker { layer, why, hint });
    }
}

/// Whether the sandbox has a `/proc` of its own.
fn namespaces(survey: &mut Survey<'_>, statuses: &mut Statuses) -> bool {
    match &survey.facts.userns {
        Availability::Yes => statuses.put("namespaces", Status::Enforced, None),
        // There is no wall without them yet, so nobody can accept that.
        Availability::No { why, remedy } => {
            let (layer, why, hint) = ("namespaces".to_owned(), why.clone(), remedy.clone());
            survey.errors.push(PlanError::Weaker { layer, why, hint });
        }
    }
    match survey.facts.proc_mount.clone() {
        Availability::Yes => {
            statuses.put("processes", Status::Enforced, None);
            true
        }
        Availability::No { why, remedy } => {
            weaker(survey, "processes", &why, &remedy);
            let shown = format!("{why}; the host's own /proc is shown, with the names of all its processes");
            statuses.put("processes", Status::Weaker(shown), Some(remedy));
            false
        }
    }
}

fn files_status(survey: &Survey<'_>, statuses: &mut Statuses) {
    let notes = &survey.notes;
    let mut hints = Vec::new();
    if !notes.shares_absent.is_empty() {
        let which = some_of(&notes.shares_absent);
        hints.push(match survey.policy.files.home.mode {
            HomeMode::Private => format!("not there yet, so kept in the private home: {which}"),
            HomeMode::Empty | HomeMode::Visible => format!("not there, so not writable: {which}"),
        });
    }
    if !notes.unreadable.is_empty() {
        hints.push(format!("not searched, because it cannot be read: {}", some_of(&notes.unreadable)));
    }
    let status = if notes.accepted.is_empty() { Status::Enforced } else { Status::Weaker(some_of(&notes.accepted)) };
    statuses.put("files", status, (!hints.is_empty()).then(|| hints.join("; ")));

    let protects = !survey.policy.files.protected.is_empty() || !notes.names_absent.is_empty();
    let status = if protects {
        let mut gaps = vec![format!(
            "the {} that exist are covered; one that is made, or replaced from outside, in mid-run is not",
            notes.names_held
        )];
        if !notes.names_linked.is_empty() {
            gaps.push(format!("links that can be replaced: {}", some_of(&notes.names_linked)));
        }
        if !notes.names_absent.is_empty() {
            gaps.push(format!("not there yet: {}", some_of(&notes.names_absent)));
        }
        Status::Weaker(gaps.join("; "))
    } else {
        Status::Unused
    };
    statuses.put("protected names", status, None);
}

fn sockets_status(survey: &Survey<'_>, guarded: bool, statuses: &mut Statuses) {
    let notes = &survey.notes;
    let absent = (!notes.sockets_absent.is_empty())
        .then(|| format!("allowed, but not there: {}", some_of(&notes.sockets_absent)));
    let status = if guarded {
        Status::Enforced
    } else {
        Status::Weaker(
            "sockets that programs outside open in mid-run, in folders that are seen, are not covered".to_owned(),
        )
    };
    statuses.put("unix sockets", status, absent);
}

fn landlock(survey: &mut Survey<'_>, writable: &[HostPath], statuses: &mut Statuses) -> landlock::LandlockPlan {
    let abi = survey.facts.landlock_abi;
    let (kernel, hint) =
        (survey.facts.kernel, "boot a kernel from 6.12 on with `landlock` in its list of security modules");
    let lack = match abi {
        0 => Some(Status::Missing("the kernel does not offer Landlock".to_owned())),
        abi if abi < landlock::SCOPES_ABI => Some(Status::Weaker(format!(
            "Landlock ABI {abi} of Linux {}.{} does not scope signals and abstract sockets; the namespaces do",
            kernel.0, kernel.1
        ))),
        _ => None,
    };
    match lack {
        Some(status) => {
            let (Status::Missing(why) | Status::Weaker(why)) = &status else { return landlock::build(abi, writable) };
            weaker(survey, "landlock", why, hint);
            statuses.put("landlock", status, Some(hint.to_owned()));
        }
        None => statuses.put("landlock", Status::Enforced, None),
    }
    landlock::build(abi, writable)
}

fn seccomp(survey: &mut Survey<'_>, statuses: &mut Statuses) -> (SeccompPlan, Option<GuardPlan>) {
    let none = || SeccompPlan { program: Vec::new(), rules: Vec::new() };
    let built = match (survey.facts.seccomp.clone(), Arch::native()) {
        (Availability::No { why, remedy }, _) => Err((why, remedy)),
        (Availability::Yes, None) => Err((
            "there is no table of system calls for this machine".to_owned(),
            "use x86-64 or 64-bit ARM".to_owned(),
        )),
        (Availability::Yes, Some(arch)) => {
            let guarded = if survey.facts.kernel >= GUARD_KERNEL { GUARDED } else { &[] };
            seccomp::build(arch, guarded).map_err(|error| (error.to_string(), "report this as a fault".to_owned()))
        }
    };
    match built {
        Ok(plan) => {
            statuses.put("seccomp", Status::Enforced, None);
            let guard = (survey.facts.kernel >= GUARD_KERNEL)
                .then(|| GuardPlan { allowed: survey.sockets.iter().cloned().collect() });
            (plan, guard)
        }
        Err((why, remedy)) => {
            weaker(survey, "seccomp", &why, &remedy);
            statuses.put("seccomp", Status::Missing(why), Some(remedy));
            (none(), None)
        }
    }
}

fn network_status(survey: &Survey<'_>, doors: &crate::DoorsPlan, notes: &doors::DoorNotes, statuses: &mut Statuses) {
    let mut gaps = Vec::new();
    if notes.every_port && doors.enabled {
        gaps.push("a rule for every port: programs that know of no proxy reach the usual ones only".to_owned());
    }
    if !notes.taken.is_empty() {
        gaps.push(format!("needed by something else, so reached through the proxy only: {}", some_of(&notes.taken)));
    }
    if doors.enabled && survey.facts.resolver.resolv_conf.is_none() {
        gaps.push("there is no /etc/resolv.conf: names are resolved by the proxy only".to_owned());
    }
    // What is missing here is convenience: nothing more can be reached.
    statuses.put("network", Status::Enforced, (!gaps.is_empty()).then(|| gaps.join("; ")));
}

fn with_unheld(status: Status, unheld: &[limits::Unheld]) -> Status {
    if unheld.is_empty() {
        return status;
    }
    let mut why: Vec<String> = unheld.iter().map(|limit| format!("{}: {}", limit.limit, limit.why)).collect();
    if let Status::Weaker(more) = status {
        why.push(more);
    }
    Status::Missing(why.join("; "))
}

/// Where the command starts: where it was asked to, unless what stands there inside is not what stands there outside.
fn cwd(survey: &Survey<'_>) -> HostPath {
    let asked = survey.would_be(&survey.request.cwd);
    let is_place = survey.layout.node(&asked).is_some_and(|node| matches!(node.want, Want::Private(_)));
    if survey.layout.want(&asked).is_host() || is_place {
        survey.request.cwd.clone()
    } else {
        survey.policy.workspace.clone()
    }
}

fn prepare(survey: &Survey<'_>) -> Vec<PrepareOp> {
    let mut ops = vec![PrepareOp::MakeDir { path: survey.request.state_dir.clone(), mode: 0o700 }];
    let has_home = survey.layout.nodes().any(|(_, node)| node.want == Want::Private(Place::Home));
    if !has_home || survey.policy.files.home.mode != HomeMode::Private {
        return ops;
    }
    let private_home = &survey.request.private_home;
    ops.push(PrepareOp::MakeDir { path: private_home.clone(), mode: 0o700 });
    for copy in &survey.policy.files.copies {
        let Ok(below) = copy.path.as_path().strip_prefix(survey.policy.files.home.path.as_path()) else { continue };
        let Ok(to) = HostPath::new(private_home.as_path().join(below)) else { continue };
        // The file itself is not seen inside; but who denies reading it means its content, too.
        let denied = survey.policy.may_path(&copy.path, Access::Read).rule;
        let denied = denied.is_some_and(|rule| rule.verb.is_deny() && is_explicit(&rule.origin));
        if let Some((from, crate::Kind::File)) = survey.resolve(&copy.path)
            && !denied
        {
            ops.push(PrepareOp::CopyOnce { from, to });
        }
    }
    ops
}
