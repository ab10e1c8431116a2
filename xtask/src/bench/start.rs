//! From start to exit of `true`: plain, behind bwrap, behind ringfence, behind srt.

use super::median_min;
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const ROUNDS: usize = 60;
/// srt takes half a second a run; a few runs place it.
const SLOW_ROUNDS: usize = 8;

struct Contender {
    name: &'static str,
    argv: Vec<String>,
    rounds: usize,
    millis: Vec<f64>,
}

pub(super) fn run(program: &Path, target: &Path, place: &Path) -> Result<String> {
    let place_text = place.to_string_lossy().into_owned();
    let ringfence = program.to_string_lossy().into_owned();
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut contenders = vec![
        Contender { name: "plain", argv: words("/bin/true"), rounds: ROUNDS, millis: Vec::new() },
        Contender {
            name: "ringfence, everything on",
            argv: words(&format!("{ringfence} run --quiet --allow-host example.com -- /bin/true")),
            rounds: ROUNDS,
            millis: Vec::new(),
        },
        Contender {
            name: "ringfence, no network",
            argv: words(&format!("{ringfence} run --quiet --no-preset -- /bin/true")),
            rounds: ROUNDS,
            millis: Vec::new(),
        },
        Contender {
            name: "ringfence, proof off",
            argv: words(&format!("{ringfence} run --quiet --no-prove --allow-host example.com -- /bin/true")),
            rounds: ROUNDS,
            millis: Vec::new(),
        },
    ];
    if Path::new("/usr/bin/bwrap").exists() {
        // The same namespaces and as many mounts; bwrap adds neither a filter nor Landlock nor a proxy.
        let argv = format!(
            "/usr/bin/bwrap --unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup \
             --ro-bind / / --dev /dev --proc /proc --tmpfs /tmp --tmpfs /run --tmpfs /var/tmp --bind {place_text} \
             {place_text} --chdir {place_text} --cap-drop ALL --new-session --die-with-parent /bin/true"
        );
        contenders.insert(1, Contender { name: "bwrap", argv: words(&argv), rounds: ROUNDS, millis: Vec::new() });
    }
    let srt = target.join("test-peers/node_modules/.bin/srt");
    if srt.exists() {
        let settings = place.join("srt.json");
        let text = serde_json::json!({
            "network": {"allowedDomains": ["example.com"], "deniedDomains": []},
            "filesystem": {"denyRead": [], "allowWrite": ["."], "denyWrite": []}
        });
        std::fs::write(&settings, text.to_string()).context("cannot write srt's settings")?;
        let argv = words(&format!("{} --settings {} -c true", srt.display(), settings.display()));
        contenders.push(Contender { name: "srt", argv, rounds: SLOW_ROUNDS, millis: Vec::new() });
    }
    for contender in &contenders {
        once(contender, place).with_context(|| format!("warming {} up", contender.name))?;
    }
    for round in 0..ROUNDS {
        for contender in &mut contenders {
            if round < contender.rounds {
                let millis = once(contender, place)?;
                contender.millis.push(millis);
            }
        }
    }
    let mut report =
        String::from("| start to exit of `true` | median ms | min ms | median / bwrap |\n|---|---|---|---|\n");
    let bwrap = contenders.iter_mut().find(|c| c.name == "bwrap").map(|c| median_min(&mut c.millis).0);
    for contender in &mut contenders {
        let (median, min) = median_min(&mut contender.millis);
        let ratio = bwrap.map_or_else(|| "-".to_owned(), |b| format!("{:.2}", median / b));
        let _ = writeln!(report, "| {} | {median:.2} | {min:.2} | {ratio} |", contender.name);
    }
    report.push('\n');
    Ok(report)
}

fn once(contender: &Contender, place: &Path) -> Result<f64> {
    let Some((program, args)) = contender.argv.split_first() else { bail!("empty command") };
    let begin = Instant::now();
    let status = Command::new(program)
        .args(args)
        .current_dir(place)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    let millis = begin.elapsed().as_secs_f64() * 1e3;
    if !status.success() {
        bail!("{} failed: {status}", contender.name);
    }
    Ok(millis)
}
