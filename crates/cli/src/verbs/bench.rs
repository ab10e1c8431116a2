//! `ringfence bench`: what the walls cost on this host. Plain and fenced runs alternate, so that a change of load meets
//! both alike.

use crate::args::BenchArgs;
use crate::exit::Exit;
use crate::render::{self, complain, lines, table::table};
use serde_json::json as to_json;
use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The times of one way to run, sorted.
struct Times(Vec<Duration>);

impl Times {
    fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    fn min(&self) -> Duration {
        self.0.first().copied().unwrap_or_default()
    }

    fn median(&self) -> Duration {
        self.0.get(self.0.len() / 2).copied().unwrap_or_default()
    }
}

pub(crate) fn bench(args: BenchArgs) -> Exit {
    let BenchArgs { runs, json, command } = args;
    let command = if command.is_empty() { vec![OsString::from("true")] } else { command };
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => {
            complain(&format!("cannot find the ringfence program: {error}"));
            return Exit::Refused;
        }
    };
    let fenced: Vec<OsString> =
        [own.as_os_str(), OsStr::new("run"), OsStr::new("--quiet"), OsStr::new("--")].map(OsStr::to_owned).into();
    let fenced: Vec<OsString> = fenced.into_iter().chain(command.iter().cloned()).collect();
    let (mut plain_times, mut fenced_times) = (Vec::new(), Vec::new());
    // One of each before, to fill the caches; their times do not count.
    for round in 0..=runs {
        for (argv, times) in [(&command, &mut plain_times), (&fenced, &mut fenced_times)] {
            match time(argv) {
                Ok(_) if round == 0 => {}
                Ok(spent) => times.push(spent),
                Err(why) => {
                    complain(&why);
                    return Exit::Refused;
                }
            }
        }
    }
    report(&command, &Times::of(plain_times), &Times::of(fenced_times), runs, json)
}

/// One run, from the start to the reported end.
fn time(argv: &[OsString]) -> Result<Duration, String> {
    let Some((program, args)) = argv.split_first() else { return Err("no program to run".to_owned()) };
    let begin = Instant::now();
    let status = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("cannot run `{}`: {error}", program.display()))?;
    let spent = begin.elapsed();
    if status.success() { Ok(spent) } else { Err(format!("`{}` ended with {status}", program.display())) }
}

fn report(command: &[OsString], plain: &Times, fenced: &Times, runs: u32, json: bool) -> Exit {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown").to_owned();
    let added = |a: Duration, b: Duration| a.saturating_sub(b);
    render::stdout(|out| {
        if json {
            let micros = |d: Duration| u64::try_from(d.as_micros()).unwrap_or(u64::MAX);
            let row = |t: &Times| to_json!({ "median_us": micros(t.median()), "min_us": micros(t.min()) });
            let value = to_json!({ "runs": runs, "load": load, "plain": row(plain), "ringfence": row(fenced) });
            return writeln!(out, "{value}");
        }
        let row = |name: &str, median, min| vec![name.to_owned(), lines::time(median), lines::time(min)];
        let rows = [
            vec![String::new(), "median".to_owned(), "min".to_owned()],
            row("plain", plain.median(), plain.min()),
            row("ringfence", fenced.median(), fenced.min()),
            row("added", added(fenced.median(), plain.median()), added(fenced.min(), plain.min())),
        ];
        let program = command.first().map(|p| p.to_string_lossy().into_owned()).unwrap_or_default();
        write!(out, "{}", table(&rows, 0))?;
        writeln!(out, "{} runs of `{}` each way, alternating; load {load}", runs, lines::plain(&program))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_minimum() {
        let times = Times::of([5, 1, 9].map(Duration::from_millis).into());
        assert_eq!(times.min(), Duration::from_millis(1));
        assert_eq!(times.median(), Duration::from_millis(5));
    }

    #[test]
    fn a_run_that_fails_is_not_a_measurement() {
        assert!(time(&["false".into()]).is_err());
        assert!(time(&["/nonexistent/program".into()]).is_err());
        assert!(time(&["true".into()]).is_ok());
    }
}
