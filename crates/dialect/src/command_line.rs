//! The flags of a run, as a source like any other: the same values, the same faults, the argument as the place.

use crate::codes;
use crate::context::{ParseContext, Parsed};
use crate::presets;
use crate::source::{Diagnostic, Label, Severity, SourceText};
use crate::suggest::nearest;
use crate::value::host::Meaning;
use crate::value::path::Places;
use crate::value::{Fault, env, host, path, scalar, shown};
use ringfence_policy::env_rule::EnvSet;
use ringfence_policy::host_rule::Wide;
use ringfence_policy::limits::Limit;
use ringfence_policy::{
    EnvRule, Fragment, HostVerb, Layer, Origin, PathPattern, PathRule, PathVerb, PortRule, UnixRule,
};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

/// The values of the flags that add single rules, as they were typed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// `--preset NAME`.
    pub preset: Vec<OsString>,
    /// `--write PATH`.
    pub write: Vec<OsString>,
    /// `--read PATH`.
    pub read: Vec<OsString>,
    /// `--deny-read PATH`.
    pub deny_read: Vec<OsString>,
    /// `--deny-write PATH`.
    pub deny_write: Vec<OsString>,
    /// `--allow-host HOST[:PORT]`.
    pub allow_host: Vec<OsString>,
    /// `--deny-host HOST[:PORT]`.
    pub deny_host: Vec<OsString>,
    /// `--publish PORT`.
    pub publish: Vec<OsString>,
    /// `--host-port PORT`.
    pub host_port: Vec<OsString>,
    /// `--unix PATH`.
    pub unix: Vec<OsString>,
    /// `--env NAME[=VALUE]`.
    pub env: Vec<OsString>,
    /// `--env-deny PATTERN`.
    pub env_deny: Vec<OsString>,
    /// `--home MODE`.
    pub home: Option<OsString>,
    /// `--memory SIZE`.
    pub memory: Option<OsString>,
    /// `--pids N`.
    pub pids: Option<OsString>,
    /// `--disk SIZE`.
    pub disk: Option<OsString>,
    /// `--wall DURATION`.
    pub wall: Option<OsString>,
    /// `--allow-weaker`.
    pub allow_weaker: Weaker,
    /// `--no-prove`.
    pub proof: Proof,
}

/// Whether a layer that is not as designed is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weaker {
    /// No.
    #[default]
    Refuse,
    /// Yes.
    Accept,
}

/// Whether the walls are tried before the command starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Proof {
    /// Yes.
    #[default]
    Prove,
    /// No.
    Skip,
}

/// Reads the flags. Of `context` the home, the base (the working directory) and the sets count, see
/// [`ParseContext::flags`].
///
/// # Errors
/// All problems, in the order of the fields of [`Flags`].
pub fn parse(flags: &Flags, context: &ParseContext<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    let mut reader = Reader { context, fragment: Fragment::empty(Layer::CommandLine), problems: Vec::new() };
    reader.rules(flags);
    reader.scalars(flags);
    if reader.problems.iter().any(|problem| problem.severity == Severity::Error) {
        return Err(reader.problems);
    }
    Ok(Parsed { fragment: reader.fragment, warnings: reader.problems })
}

struct Reader<'c> {
    context: &'c ParseContext<'c>,
    fragment: Fragment,
    problems: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn rules(&mut self, flags: &Flags) {
        for name in &flags.preset {
            self.preset(name);
        }
        for (flag, verb, values) in [
            ("--write", PathVerb::AllowWrite, &flags.write),
            ("--read", PathVerb::AllowRead, &flags.read),
            ("--deny-read", PathVerb::DenyRead, &flags.deny_read),
            ("--deny-write", PathVerb::DenyWrite, &flags.deny_write),
        ] {
            for typed in values {
                let path = path::flag(typed, self.places());
                if let Some(path) = self.take(path, flag, typed) {
                    let pattern = PathPattern::Subtree(path);
                    self.fragment.paths.push(PathRule { pattern, verb, origin: Origin::flag(flag), why: None });
                }
            }
        }
        for typed in &flags.allow_host {
            self.host("--allow-host", HostVerb::Allow, Wide::Refused, typed);
        }
        for typed in &flags.deny_host {
            self.host("--deny-host", HostVerb::Deny, Wide::Forced, typed);
        }
        for typed in &flags.publish {
            let rule = self.port("--publish", typed);
            self.fragment.publish.extend(rule);
        }
        for typed in &flags.host_port {
            let rule = self.port("--host-port", typed);
            self.fragment.host_ports.extend(rule);
        }
        for typed in &flags.unix {
            let path = path::flag(typed, self.places());
            if let Some(path) = self.take(path, "--unix", typed) {
                self.fragment.unix.push(UnixRule { path, origin: Origin::flag("--unix") });
            }
        }
        for typed in &flags.env {
            self.env(typed);
        }
        for typed in &flags.env_deny {
            if let Some(pattern) = self.word("--env-deny", typed, env::pattern) {
                self.fragment.env_deny.push(EnvRule { pattern, origin: Origin::flag("--env-deny") });
            }
        }
    }

    fn scalars(&mut self, flags: &Flags) {
        if let Some(typed) = &flags.home {
            self.fragment.home = self.word("--home", typed, scalar::home).map(|mode| (mode, Origin::flag("--home")));
        }
        let limits = &mut Vec::new();
        for (flag, typed) in [("--memory", &flags.memory), ("--disk", &flags.disk)] {
            let size = typed.as_ref().and_then(|typed| self.word(flag, typed, scalar::size));
            limits.push(size.map(|value| Limit { value, origin: Origin::flag(flag) }));
        }
        self.fragment.limits.disk = limits.pop().flatten();
        self.fragment.limits.memory = limits.pop().flatten();
        if let Some(typed) = &flags.pids {
            let pids = self.word("--pids", typed, |text| match text.parse::<u64>() {
                Ok(0) => Err(scalar::zero("`--pids`")),
                Ok(number) => Ok(number),
                Err(_) => Err(Fault::new(codes::RANGE, format!("`{}` is no number of processes", shown(text)))
                    .label("a whole number, at least 1")),
            });
            self.fragment.limits.pids = pids.map(|value| Limit { value, origin: Origin::flag("--pids") });
        }
        if let Some(typed) = &flags.wall {
            let wall = self.word("--wall", typed, scalar::duration);
            self.fragment.limits.wall = wall.map(|value| Limit { value, origin: Origin::flag("--wall") });
        }
        if flags.allow_weaker == Weaker::Accept {
            self.fragment.allow_weaker = Some(Origin::flag("--allow-weaker"));
        }
        if flags.proof == Proof::Skip {
            self.fragment.skip_proof = Some(Origin::flag("--no-prove"));
        }
    }

    fn preset(&mut self, typed: &OsStr) {
        let known = self.word("--preset", typed, |name| match presets::find(name) {
            Some(preset) => Ok(preset.name.to_owned()),
            None => {
                let label = match nearest(name, presets::NAMES) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "no such preset".to_owned(),
                };
                Err(Fault::new(codes::PRESET_UNKNOWN, format!("unknown preset `{}`", shown(name)))
                    .label(label)
                    .hint(format!("presets: {}", presets::NAMES.join(", "))))
            }
        });
        self.fragment.presets.extend(known.map(|name| (name, Origin::flag("--preset"))));
    }

    fn host(&mut self, flag: &str, verb: HostVerb, wide: Wide, typed: &OsStr) {
        let (origin, context) = (Origin::flag(flag), self.context);
        let meaning = self.word(flag, typed, |text| host::meaning(text, verb, wide, &origin, None, context));
        match meaning {
            Some(Meaning::Rules(rules)) => self.fragment.hosts.extend(rules),
            Some(Meaning::Nothing(why)) => {
                let message = format!(
                    "`{}` stands for no host on this machine: {}",
                    shown(&typed.to_string_lossy()),
                    shown(&why)
                );
                let mut label = label(flag, typed);
                label.text = "this allows nothing here".to_owned();
                self.problems.push(Diagnostic::warning(codes::SET_UNRESOLVED, message).at(label));
            }
            None => {}
        }
    }

    fn port(&mut self, flag: &str, typed: &OsStr) -> Option<PortRule> {
        let port = self.word(flag, typed, |text| host::port(text.parse().ok()))?;
        Some(PortRule { port, origin: Origin::flag(flag) })
    }

    /// `NAME` passes the launcher's own value, `NAME=VALUE` sets one.
    fn env(&mut self, typed: &OsStr) {
        let origin = || Origin::flag("--env");
        let both = self.word("--env", typed, |text| match text.split_once('=') {
            Some((name, value)) => Ok((env::name(name)?, Some(env::value(value)?))),
            None => Ok((env::pattern(text)?, None)),
        });
        match both {
            Some((name, Some(value))) => self.fragment.env_set.push(EnvSet { name, value, origin: origin() }),
            Some((pattern, None)) => self.fragment.env_pass.push(EnvRule { pattern, origin: origin() }),
            None => {}
        }
    }

    fn places(&self) -> Places<'_> {
        Places { home: self.context.home, base: self.context.base }
    }

    /// A value that is text.
    fn word<T>(&mut self, flag: &str, typed: &OsStr, read: impl FnOnce(&str) -> Result<T, Fault>) -> Option<T> {
        let result = match typed.to_str() {
            Some(text) => read(text),
            None => Err(Fault::new(codes::FLAG_VALUE, format!("the value of `{flag}` is not UTF-8")).label("not text")),
        };
        self.take(result, flag, typed)
    }

    fn take<T>(&mut self, result: Result<T, Fault>, flag: &str, typed: &OsStr) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(fault) => {
                self.problems.push(fault.at(label(flag, typed)));
                None
            }
        }
    }
}

/// Of a longer value only the beginning is shown.
const LONGEST_SHOWN: usize = 400;

/// The flag as it was typed is the text, its value the place. The value of `--env` may be a secret and stays out.
fn label(flag: &str, typed: &OsStr) -> Label {
    let mut value: String = typed.to_string_lossy().chars().take(LONGEST_SHOWN).collect();
    if flag == "--env"
        && let Some((name, _)) = value.split_once('=')
    {
        value = format!("{name}=...");
    }
    let start = flag.len() + 1;
    let source = Arc::new(SourceText::new("command line", format!("{flag} {value}")));
    let end = start + value.len();
    Label::new(&source, start..end, "")
}
