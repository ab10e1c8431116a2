//! Runs trials on a few threads and prints what came of them.

use crate::stage::Stage;
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What came of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It held, or it worked. The text is a remark, often empty.
    Passed(String),
    /// It did not.
    Failed(String),
    /// This host cannot show it, or it belongs to later work.
    Skipped(String),
}

/// How a trial shares the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cost {
    /// Started first; left out by `--quick`.
    Slow,
    /// Runs beside others.
    Quick,
    /// Runs with no other beside it, at the end.
    Alone,
}

type Body = Box<dyn Fn(&Stage) -> Outcome + Send + Sync>;

/// One named test.
pub struct Trial {
    /// `group::who::id`
    pub name: String,
    pub cost: Cost,
    body: Body,
}

impl Trial {
    pub fn new(name: impl Into<String>, cost: Cost, body: impl Fn(&Stage) -> Outcome + Send + Sync + 'static) -> Self {
        Self { name: name.into(), cost, body: Box::new(body) }
    }

    fn group(&self) -> String {
        self.name.rsplit_once("::").map_or(self.name.as_str(), |(g, _)| g).to_owned()
    }
}

/// The command line; unknown flags of the usual test runner are ignored.
#[derive(Debug, Default)]
pub struct Args {
    pub list: bool,
    quick: bool,
    exact: bool,
    jobs: usize,
    filters: Vec<String>,
    skips: Vec<String>,
}

impl Args {
    pub fn from_env() -> Self {
        let mut args = Self { jobs: 4, ..Self::default() };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            match word.as_str() {
                "--list" => args.list = true,
                "--quick" => args.quick = true,
                "--exact" => args.exact = true,
                "--jobs" | "--test-threads" => args.jobs = words.next().and_then(|n| n.parse().ok()).unwrap_or(4),
                "--skip" => args.skips.extend(words.next()),
                "--format" | "--color" | "--logfile" => drop(words.next()),
                flag if flag.starts_with('-') => {}
                filter => args.filters.push(filter.to_owned()),
            }
        }
        args
    }

    pub fn wants(&self, t: &Trial) -> bool {
        let hit = |f: &String| if self.exact { t.name == *f } else { t.name.contains(f.as_str()) };
        (self.filters.is_empty() || self.filters.iter().any(hit))
            && !self.skips.iter().any(hit)
            && !(self.quick && t.cost == Cost::Slow)
    }
}

/// Prints a line at once, captured by nobody.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

pub fn list(trials: &[Trial]) {
    for t in trials {
        say(&format!("{}: test", t.name));
    }
}

struct Done {
    name: String,
    group: String,
    outcome: Outcome,
    took: Duration,
}

pub fn run(stage: &Stage, mut trials: Vec<Trial>, args: &Args) -> ExitCode {
    let begin = Instant::now();
    trials.sort_by_key(|t| t.cost);
    let (alone, beside): (Vec<_>, Vec<_>) = trials.into_iter().partition(|t| t.cost == Cost::Alone);
    say(&format!("running {} tests on {} threads; {}", alone.len() + beside.len(), args.jobs, stage.describe()));
    let done = Mutex::new(Vec::new());
    for (trials, jobs) in [(beside, args.jobs.max(1)), (alone, 1)] {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|| {
                    while let Some(trial) = trials.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let result = run_one(stage, trial);
                        done.lock().unwrap_or_else(|e| e.into_inner()).push(result);
                    }
                });
            }
        });
    }
    let mut done = done.into_inner().unwrap_or_else(|e| e.into_inner());
    done.sort_by(|a, b| a.name.cmp(&b.name));
    summary(&done, begin.elapsed())
}

fn run_one(stage: &Stage, trial: &Trial) -> Done {
    let start = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (trial.body)(stage))).unwrap_or_else(|e| {
        let text = e.downcast_ref::<String>().cloned().or_else(|| e.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Outcome::Failed(format!("the test itself broke: {}", text.unwrap_or_default()))
    });
    let took = start.elapsed();
    let (word, text) = match &outcome {
        Outcome::Passed(t) => ("ok", t),
        Outcome::Failed(t) => ("FAILED", t),
        Outcome::Skipped(t) => ("skipped", t),
    };
    let first = text.lines().next().unwrap_or_default();
    let remark = if first.is_empty() { String::new() } else { format!(": {first}") };
    say(&format!("test {} ... {word} ({:.1} s){remark}", trial.name, took.as_secs_f32()));
    Done { name: trial.name.clone(), group: trial.group(), outcome, took }
}

fn summary(done: &[Done], took: Duration) -> ExitCode {
    let mut table: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    let mut total = [0_usize; 3];
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for d in done {
        let column = match &d.outcome {
            Outcome::Passed(_) => 0,
            Outcome::Failed(_) => 1,
            Outcome::Skipped(why) => {
                *reasons.entry(why.lines().next().unwrap_or_default()).or_default() += 1;
                2
            }
        };
        table.entry(&d.group).or_default()[column] += 1;
        total[column] += 1;
    }
    let failed: Vec<_> = done.iter().filter(|d| matches!(d.outcome, Outcome::Failed(_))).collect();
    if !failed.is_empty() {
        say("\nfailures:");
        for d in failed {
            if let Outcome::Failed(why) = &d.outcome {
                say(&format!("\n---- {} ({:.1} s)\n{why}", d.name, d.took.as_secs_f32()));
            }
        }
    }
    say(&format!("\n{:<26} {:>7} {:>7} {:>8}", "group", "passed", "failed", "skipped"));
    for (group, [passed, failed, skipped]) in &table {
        say(&format!("{group:<26} {passed:>7} {failed:>7} {skipped:>8}"));
    }
    if !reasons.is_empty() {
        say("\nskipped because");
        for (why, n) in &reasons {
            say(&format!("{n:>5}  {why}"));
        }
    }
    say(&format!("\nfinished in {:.0} s", took.as_secs_f32()));
    say(&format!("{} passed, {} failed, {} skipped", total[0], total[1], total[2]));
    if total[1] == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
