//! From a description to a plan.

use crate::builder::{Builder, ProgramPreset};
use crate::denials::{Denials, Fanout};
use crate::error::Error;
use crate::explanation::Explanation;
use crate::host_sets::{NamedBy, Sets};
use crate::layers::{Files, Layers, Reader};
use crate::place::{Place, Spot, WideWorkspace, config_dir};
use crate::running::Running;
use crate::{env_hosts, machine};
use ringfence_dialect::{Diagnostic, ParseContext, SetAnswer, codes, command_line, presets};
use ringfence_enforce::TerminalPolicy;
use ringfence_enforce::audit::{self, AuditLog};
use ringfence_enforce::probe::{self, Asked, RealView};
use ringfence_enforce::store::{Store, Trust};
use ringfence_plan::doors::PROBE_V4;
use ringfence_plan::proof::Attempt;
use ringfence_plan::{HostFacts, Plan, PlanError, Request, plan};
use ringfence_policy::{
    Base, EventSink, Finding, Fragment, HostPath, Layer, Origin, PathPattern, PathRule, PathVerb, Policy, Source, lint,
    merge, merge_for_run,
};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A run that is ready: its policy is read, its plan is made, and nothing has been changed but for the audit file.
pub struct Sandbox {
    pub(crate) explanation: Explanation,
    pub(crate) plan: Plan,
    pub(crate) command: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) terminal: TerminalPolicy,
    pub(crate) store: Store,
    pub(crate) sink: Arc<dyn EventSink>,
    pub(crate) denials: Denials,
}

impl Sandbox {
    /// Describes a run, starting from the policy that the machine, the user and the repository have.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Describes a run, starting from this policy file alone, under the managed ceiling.
    pub fn from_policy(file: impl AsRef<Path>) -> Builder {
        Builder::default().policy_file(file)
    }

    /// What will be done, and why.
    pub fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// Builds the walls, proves them, and starts the command. Must be called while the process has one thread: the code
    /// behind clone3(2) allocates, and the locks of other threads would stay locked there for ever.
    ///
    /// # Errors
    /// A wall cannot be built or does not hold, the program is not found or not executable. No process is left then.
    pub fn spawn(self) -> Result<Running, Error> {
        Running::start(self)
    }
}

/// Place and files of ours, for a verb that runs nothing.
pub(crate) fn here() -> Result<(Place, Store), Error> {
    let env: Vec<_> = std::env::vars_os().collect();
    let spot = Spot::find(None)?;
    let home = probe::gather(&Asked { workspace: &spot.workspace, env: &env, program: None })?.facts.home;
    let store = Store::at(&env, &home);
    // Nothing is made writable, so no folder is too wide.
    Ok((spot.anywhere(home), store))
}

/// Everything that was found out on the way to a policy.
struct Judged {
    place: Place,
    /// The user's policy folder.
    config: HostPath,
    store: Store,
    env: Vec<(OsString, OsString)>,
    facts: HostFacts,
    /// What was found on the host, and used or not.
    notes: Vec<String>,
    layers: Layers,
    policy: Policy,
    findings: Vec<Finding>,
}

pub(crate) fn explain(builder: &Builder) -> Result<Explanation, Error> {
    let judged = judge(builder, merge)?;
    let planned = judged.plan();
    Ok(judged.explanation(planned))
}

pub(crate) fn build(builder: Builder) -> Result<Sandbox, Error> {
    if builder.command.is_empty() {
        return Err(Error::NoCommand);
    }
    let judged = judge(&builder, merge_for_run)?;
    let own = [&judged.config, judged.store.data_dir(), judged.store.state_dir()];
    machine::make_own_folders(&judged.policy, own)?;
    // Before the plan, which covers only what is there.
    let named = builder.audit.as_ref().map(|path| NamedAudit::open(&judged.place.absolute(path)?)).transpose()?;
    let plan = judged.plan().map_err(|errors| {
        named.iter().for_each(NamedAudit::abandon);
        Error::Plan(errors)
    })?;
    let audit = match named {
        Some(named) => named.log,
        None => default_audit(&judged.store)?,
    };
    let mut sinks: Vec<Arc<dyn EventSink>> = vec![Arc::new(builder.denials.clone()), Arc::new(audit)];
    sinks.extend(builder.sinks);
    let (env, store) = (judged.env.clone(), judged.store.clone());
    let sink = Arc::new(Fanout::new(sinks, proof_traces(&plan)));
    Ok(Sandbox {
        explanation: judged.explanation(Ok(plan.clone())),
        plan,
        command: builder.command,
        env,
        terminal: builder.terminal,
        store,
        sink,
        denials: builder.denials,
    })
}

/// What the proof leaves at the transparent door: a connection to an address that never stands for anything.
fn proof_traces(plan: &Plan) -> Vec<String> {
    let rows = plan.proof.rows.iter();
    rows.filter_map(|row| match &row.attempt {
        Attempt::Connect(address, port) if address == PROBE_V4 => Some(format!("{address}:{port}")),
        _ => None,
    })
    .collect()
}

/// An audit file that was named, opened. The command can neither read nor write it, because a rule hides it.
struct NamedAudit {
    log: AuditLog,
    /// Whether it was made just now.
    new: bool,
}

impl NamedAudit {
    fn open(path: &HostPath) -> Result<Self, Error> {
        let new = path.as_path().symlink_metadata().is_err();
        let log = AuditLog::open(path, audit::Place::Named, &[], &run_name()).map_err(Error::Audit)?;
        Ok(Self { log, new })
    }

    /// Takes back what a run that cannot begin has made.
    fn abandon(&self) {
        if self.new {
            // It is empty; where it cannot be removed, it does no harm.
            let _ = std::fs::remove_file(self.log.path().as_path());
        }
    }
}

/// The audit file that is used when none is named; its folder is hidden from every command.
fn default_audit(store: &Store) -> Result<AuditLog, Error> {
    AuditLog::open(&store.audit_file(), audit::Place::Default, &[], &run_name()).map_err(Error::Audit)
}

/// A name for the run that no other run on this machine has.
fn run_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", since.as_micros(), std::process::id())
}

/// Reads all sources and merges them.
fn judge(builder: &Builder, merge: fn(&Base, Vec<Fragment>) -> (Policy, Vec<Finding>)) -> Result<Judged, Error> {
    let env = builder.env.clone().unwrap_or_else(|| std::env::vars_os().collect());
    let spot = Spot::find(builder.workspace.as_deref())?;
    let program = named_by_path(&spot, builder.command.first());
    let probed = probe::gather(&Asked { workspace: &spot.workspace, env: &env, program: program.as_ref() })?;
    let place = spot.in_home(probed.facts.home.clone(), builder.wide)?;
    let config = config_dir(&env, &place.home);
    let store = Store::at(&env, &place.home);

    let sets = Sets::new(&place, &store, &env);
    let resolve_set = |name: &str| sets.resolve(name, NamedBy::Trusted);
    let resolve_untrusted = |name: &str| sets.resolve(name, NamedBy::Untrusted);
    // A list that cannot be read trusts nothing.
    let trusts = |file: &HostPath, text: &str| matches!(store.trust_of(file, text.as_bytes()), Ok(Trust::Trusted));
    let reader = Reader {
        place: &place,
        config: &config,
        resolve_set: &resolve_set,
        resolve_untrusted: &resolve_untrusted,
        trusts: &trusts,
    };
    // The problems of files and flags are told together.
    let mut problems = Vec::new();
    let mut layers = match reader.read(&builder.files) {
        Ok(layers) => layers,
        Err(Error::Policy(found)) => {
            problems.extend(found);
            Layers::default()
        }
        Err(error) => return Err(error),
    };
    let context = ParseContext::flags(&place.home, &place.typed_from, &resolve_set);
    match command_line::parse(&builder.flags, &context) {
        Ok(parsed) => {
            layers.fragments.push(parsed.fragment);
            layers.warnings.extend(parsed.warnings);
        }
        Err(found) => problems.extend(found),
    }
    if !problems.is_empty() {
        return Err(Error::Policy(problems));
    }
    let own = [&config, store.data_dir(), store.state_dir()];
    add_presets(builder, &place, &resolve_set, &mut layers)?;
    let seen = machine::Seen { place: &place, fragments: &layers.fragments, env: &env };
    let machine = machine::fragment(&probed, own, &layers.used, &seen);
    layers.fragments.push(machine);
    layers.fragments.push(sets.fragment());
    if let Some(audit) = &builder.audit {
        layers.fragments.push(hidden(place.absolute(audit)?));
    }
    if builder.wide == WideWorkspace::Accept {
        layers.fragments.push(insistence(&place));
    }
    let (named, warnings) = env_hosts::read(&layers.fragments, &env);
    layers.fragments.push(named);
    layers.warnings.extend(warnings);

    let base = Base {
        home: place.home.clone(),
        workspace: place.workspace.clone(),
        git_dirs: probed.facts.git_dirs.clone(),
        uid: probed.facts.uid,
    };
    let (policy, findings) = merge(&base, std::mem::take(&mut layers.fragments));
    let mut notes: Vec<String> = probed.notes.iter().map(|note| note.text.clone()).collect();
    notes.extend(sets.notes());
    drop(sets);
    Ok(Judged { place, config, store, env, facts: probed.facts, notes, layers, policy, findings })
}

/// Hides the audit file from the command, which would write its own history.
fn hidden(audit: HostPath) -> Fragment {
    let mut fragment = Fragment::empty(Layer::CommandLine);
    fragment.paths.push(PathRule {
        pattern: PathPattern::Subtree(audit),
        verb: PathVerb::DenyRead,
        origin: Origin::flag("--audit"),
        why: Some("the audit file".to_owned()),
    });
    fragment
}

/// A workspace that is too wide is planned only where a rule of the command line names it once more.
fn insistence(place: &Place) -> Fragment {
    let mut fragment = Fragment::empty(Layer::CommandLine);
    fragment.paths.push(PathRule {
        pattern: PathPattern::Subtree(place.workspace.clone()),
        verb: PathVerb::AllowWrite,
        origin: Origin::flag("--allow-wide-workspace"),
        why: None,
    });
    fragment
}

/// The program, where it was named by a path.
fn named_by_path(spot: &Spot, program: Option<&OsString>) -> Option<HostPath> {
    let program = program?;
    let has_slash = program.as_encoded_bytes().contains(&b'/');
    if has_slash { HostPath::new(spot.cwd.as_path().join(program)).ok() } else { None }
}

/// Adds the presets that the sources name and the one that the program's name picks.
fn add_presets(
    builder: &Builder,
    place: &Place,
    resolve_set: &dyn Fn(&str) -> SetAnswer,
    layers: &mut Layers,
) -> Result<(), Error> {
    let mut wanted: Vec<String> = layers
        .fragments
        .iter()
        .flat_map(|fragment| fragment.granted_presets().iter().map(|(name, _)| name.clone()))
        .collect();
    if builder.program_preset == ProgramPreset::Pick
        && builder.files == Files::Usual
        && let Some(preset) = builder.command.first().and_then(presets::preset_for_program)
        && !wanted.iter().any(|name| name == preset.name)
    {
        let mut picked = Fragment::empty(Layer::CommandLine);
        let source = Source::Flag("the program's name".to_owned());
        picked.presets.push((preset.name.to_owned(), Origin { layer: Layer::CommandLine, source, line: None }));
        layers.fragments.push(picked);
        wanted.push(preset.name.to_owned());
    }
    let context = ParseContext::presets(&place.home, &place.workspace, resolve_set);
    let loaded = presets::load(wanted.iter().map(String::as_str), &context).map_err(Error::Policy)?;
    layers.fragments.extend(loaded.fragments);
    // A preset names every registry that its tool may use; that a machine lacks one is no news to its user.
    layers.warnings.extend(loaded.warnings.into_iter().filter(|warning| warning.code != codes::SET_UNRESOLVED));
    Ok(())
}

impl Judged {
    fn plan(&self) -> Result<Plan, Vec<PlanError>> {
        let request = Request {
            cwd: self.place.cwd.clone(),
            env: self.env.clone(),
            private_home: self.store.home_of(&self.place.workspace),
            state_dir: self.store.state_dir().clone(),
        };
        plan(&self.policy, &self.facts, &request, &RealView)
    }

    fn explanation(self, planned: Result<Plan, Vec<PlanError>>) -> Explanation {
        let (plan, problems): (_, Vec<Diagnostic>) = match planned {
            Ok(plan) => (Some(plan), Vec::new()),
            Err(errors) => (None, Error::Plan(errors).diagnostics()),
        };
        Explanation {
            private_home: self.store.home_of(&self.place.workspace),
            place: self.place,
            sources: self.layers.used,
            findings: self.findings,
            warnings: self.layers.warnings,
            notes: self.notes,
            lints: lint::lint(&self.policy),
            policy: self.policy,
            plan,
            problems,
        }
    }
}
