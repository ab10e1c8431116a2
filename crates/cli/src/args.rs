//! What may be typed. Definitions only: what they mean is in [`crate::verbs`].
//!
//! This one table feeds the parser, `--help`, the man pages and the completions, so they cannot drift.

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Run a program inside walls: files, network and secrets fenced by one policy.
#[derive(Debug, Parser)]
#[command(
    name = "ringfence",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "\
exit status of run and exec: the command's own; 128+n when signal n ended it;
125 when the walls could not be built or the policy is wrong; 126 when the program cannot be executed;
127 when it is not found; 124 when the wall-time limit ended it"
)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a program inside walls
    Run(RunArgs),
    /// Run a shell command line inside walls, for harnesses: no line at the start, the summary of denials at the end
    Exec(ExecArgs),
    /// Print the effective policy with its origins, the plan and the status of each wall; or what a diagnostic code means
    Explain(ExplainArgs),
    /// Say whether a path or a host would be allowed, by which rule, and what would change that
    Why(WhyArgs),
    /// List the built-in presets, or print one
    Preset(PresetArgs),
    /// Trust the present content of a repository's ringfence.toml, so that its grants hold
    Trust(TrustArgs),
    /// Check what this host can enforce, with the remedy for what it cannot
    Doctor(DoctorArgs),
    /// Read an audit file
    Log(LogArgs),
    /// List or remove the private home folders
    Home(HomeArgs),
    /// Measure what the walls cost on this host
    Bench(BenchArgs),
    /// Print the manual page
    Man(ManArgs),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// Print the JSON schema of policy files
    Schema,
}

/// `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The policy flags.
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// How to run.
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// `exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The policy flags.
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// How to run.
    #[command(flatten)]
    pub(crate) launch: LaunchArgs,
    /// The command line, for /bin/sh, or bash where that is the user's shell
    #[arg(value_name = "STRING", allow_hyphen_values = true)]
    pub(crate) script: OsString,
}

/// `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The policy flags.
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// Print data instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// Name every entry of the built-in tables instead of counting them
    #[arg(long)]
    pub(crate) all: bool,
    /// Print all diagnostic codes, as Markdown
    #[arg(long, conflicts_with = "subject")]
    pub(crate) codes: bool,
    /// A diagnostic code such as RF0103, or a program whose run is to be explained
    #[arg(value_name = "CODE|PROGRAM")]
    pub(crate) subject: Option<OsString>,
}

/// `why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// The policy flags.
    #[command(flatten)]
    pub(crate) policy: PolicyArgs,
    /// Print data instead of text
    #[arg(long)]
    pub(crate) json: bool,
    /// The program that would ask, which picks its preset
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) program: Option<OsString>,
    /// `read`, `write`, or a HOST:PORT
    #[arg(value_name = "read|write|HOST:PORT")]
    pub(crate) question: OsString,
    /// The path of `read` and `write`
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) path: Option<PathBuf>,
}

/// `preset`.
#[derive(Debug, Args)]
pub(crate) struct PresetArgs {
    /// What of them.
    #[command(subcommand)]
    pub(crate) action: PresetAction,
}

/// What of the presets.
#[derive(Debug, Subcommand)]
pub(crate) enum PresetAction {
    /// Names and one line each
    List {
        /// Print data instead of text
        #[arg(long)]
        json: bool,
    },
    /// The whole file, with the reason for every entry
    Show {
        /// Its name
        name: String,
    },
}

/// `trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// The file; the one that is found from here upwards, when none is named
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Take the trust away again
    #[arg(long)]
    pub(crate) revoke: bool,
    /// List what is trusted
    #[arg(long, conflicts_with_all = ["file", "revoke"])]
    pub(crate) list: bool,
}

/// `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print data instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

/// `log`.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The audit file; the one that is written when a run names none, by default
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Only this run, as the lines name it
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Wait for new lines
    #[arg(long)]
    pub(crate) follow: bool,
    /// Print the lines as they are
    #[arg(long)]
    pub(crate) json: bool,
    /// Only what was refused
    #[arg(long)]
    pub(crate) denied: bool,
    /// Only this host, or with `*.` those below it
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
}

/// `home`.
#[derive(Debug, Args)]
pub(crate) struct HomeArgs {
    /// What of them.
    #[command(subcommand)]
    pub(crate) action: HomeAction,
}

/// What of the private homes.
#[derive(Debug, Subcommand)]
pub(crate) enum HomeAction {
    /// The folders, their workspaces and sizes
    List {
        /// Print data instead of text
        #[arg(long)]
        json: bool,
    },
    /// Remove them: this workspace's, or all whose workspace is gone, or all
    Clean {
        /// Those whose workspace no longer exists
        #[arg(long, conflicts_with_all = ["all", "workspace"])]
        orphans: bool,
        /// Every one
        #[arg(long, conflicts_with = "workspace")]
        all: bool,
        /// The workspace whose home is removed; the working directory, when none is named
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        workspace: Option<PathBuf>,
    },
}

/// `bench`.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// How many interleaved pairs of runs
    #[arg(long, short = 'n', default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    /// Print data instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// What is run, instead of `true`
    #[arg(trailing_var_arg = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The verb; the whole program, when none is named
    pub(crate) verb: Option<String>,
    /// Write one page a verb into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "verb", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// What stands in the place of the home folder.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Home {
    /// A persistent folder of ours per workspace
    Private,
    /// The real home, read-only, without the credential stores
    Visible,
    /// Nothing that stays
    Empty,
}

/// Who reads the summary of denials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Reader {
    /// A person: a table, with the flag that would allow each
    #[default]
    Person,
    /// A language model: sentences in a frame, with what not to do
    Model,
}

/// Flags that make the policy of one run.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyArgs {
    /// Use this policy file alone, under the managed ceiling
    #[arg(long = "policy", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Add a built-in preset; the program's name picks one by itself
    #[arg(long = "preset", value_name = "NAME")]
    pub(crate) presets: Vec<OsString>,
    /// Use no preset that the program's name would pick
    #[arg(long)]
    pub(crate) no_preset: bool,
    /// The folder to work in; the working directory, when none is named
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) workspace: Option<PathBuf>,
    /// Accept `/`, the home folder or a folder above it as the workspace that --workspace names
    #[arg(long, requires = "workspace")]
    pub(crate) allow_wide_workspace: bool,
    /// Let this path, taken literally, be read and written
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) write: Vec<PathBuf>,
    /// Let this path, taken literally, be read
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<PathBuf>,
    /// Hide this path, taken literally
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) deny_read: Vec<PathBuf>,
    /// Keep this path, taken literally, from being written
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) deny_write: Vec<PathBuf>,
    /// What stands in the place of the home folder
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) home: Option<Home>,
    /// Let this host be reached, on ports 443 and 80 unless one is named
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) allow_host: Vec<OsString>,
    /// Keep this host from being reached
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(crate) deny_host: Vec<OsString>,
    /// Open a port of a server inside on the host's loopback
    #[arg(long, value_name = "PORT")]
    pub(crate) publish: Vec<OsString>,
    /// Open a port of a server on the host's loopback inside
    #[arg(long, value_name = "PORT")]
    pub(crate) host_port: Vec<OsString>,
    /// Let this Unix socket of the host be connected to
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) unix: Vec<PathBuf>,
    /// Pass a variable that would be withheld, or set it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<OsString>,
    /// Withhold variables whose names match, `*` being a wildcard
    #[arg(long, value_name = "PATTERN")]
    pub(crate) env_deny: Vec<OsString>,
    /// The most memory, such as 8G
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<OsString>,
    /// The most processes and threads
    #[arg(long, value_name = "N")]
    pub(crate) pids: Option<OsString>,
    /// The most bytes written, such as 20G
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk: Option<OsString>,
    /// The longest time, such as 90s or 2h
    #[arg(long, value_name = "DURATION")]
    pub(crate) wall: Option<OsString>,
    /// Run although a wall is weaker than designed or missing
    #[arg(long)]
    pub(crate) allow_weaker: bool,
    /// Do not prove the walls before the command starts
    #[arg(long)]
    pub(crate) no_prove: bool,
}

/// How a run behaves, beyond the policy.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Run")]
pub(crate) struct LaunchArgs {
    /// Hand the terminal itself to the command instead of a private one
    #[arg(long)]
    pub(crate) no_pty: bool,
    /// Append every decision to this file, one JSON line each, instead of to the log that `ringfence log` reads
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) audit: Option<PathBuf>,
    /// Say nothing but errors
    #[arg(long, short, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say every denial at once, and more at the start
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Errors and events as JSON lines on standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// For whom the denials are summed up at the end
    #[arg(long, value_enum, value_name = "WHO", default_value_t = Reader::Person)]
    pub(crate) explain: Reader,
    /// Print what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Never ask; what is not allowed is denied
    #[arg(long)]
    pub(crate) no_ask: bool,
}
