//! Reading the audit file back: filter, and follow while it grows.

use super::{AuditError, KEPT, io_error};
use ringfence_policy::HostPath;
use ringfence_sys::files::open_read;
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// Longer lines are no events of ours.
const MAX_LINE: u64 = 1024 * 1024;
/// How often a growing file is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// Which lines are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only refusals.
    pub denied: bool,
    /// Only this host: the name itself, or a name below it when it starts with `*.`.
    pub host: Option<String>,
    /// Only this run.
    pub run: Option<String>,
}

/// Whether to go on when the end is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// Stop there.
    No,
    /// Wait for more, also across rotations.
    Yes,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// RFC 3339.
    pub time: String,
    /// Names the run.
    pub run: String,
    /// `denied`, `allowed` ...
    pub event: String,
    /// Destination with its port, where the event has one.
    pub destination: Option<String>,
    /// The whole line, as data.
    pub json: Value,
    /// The whole line, as it stands in the file; safe to print.
    pub line: String,
}

/// What was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadSummary {
    /// Events that the filter let through.
    pub shown: u64,
    /// Lines that are no events: torn by a full disk, or of another program.
    pub damaged: u64,
}

/// Reads the file, with the files that were set aside before it when it is not followed from its end.
///
/// `each` is called for every event that the filter lets through and may stop the reading.
///
/// # Errors
/// The file cannot be opened or read. A file that does not exist is an error unless it is followed.
pub fn read(
    path: &HostPath,
    filter: &Filter,
    follow: Follow,
    each: &mut dyn FnMut(&Record) -> ControlFlow<()>,
) -> Result<ReadSummary, AuditError> {
    let mut summary = ReadSummary::default();
    for n in (1..=KEPT).rev() {
        let mut name = path.file_name().unwrap_or_default();
        name.push(format!(".{n}"));
        let aside = path.parent().unwrap_or_else(HostPath::root).join(name);
        if let Ok(file) = open_read(aside.as_path())
            && drain(&mut Tail::new(file), &aside, filter, each, &mut summary)?.is_break()
        {
            return Ok(summary);
        }
    }
    let mut tail: Option<Tail> = None;
    loop {
        if tail.is_none() {
            tail = match open_read(path.as_path()) {
                Ok(file) => Some(Tail::new(file)),
                Err(error) if error.kind() == ErrorKind::NotFound && follow == Follow::Yes => None,
                Err(error) => return Err(io_error("open", path)(error)),
            };
        }
        if let Some(open) = &mut tail {
            if drain(open, path, filter, each, &mut summary)?.is_break() {
                return Ok(summary);
            }
            if follow == Follow::No {
                summary.damaged += u64::from(!open.partial.is_empty());
                return Ok(summary);
            }
            // Set aside or removed meanwhile: what was written to it before is read already, go on with the new one.
            let same = path.as_path().symlink_metadata().is_ok_and(|m| m.ino() == open.inode);
            if !same {
                if drain(open, path, filter, each, &mut summary)?.is_break() {
                    return Ok(summary);
                }
                tail = None;
                continue;
            }
        }
        std::thread::sleep(PAUSE);
    }
}

struct Tail {
    reader: BufReader<File>,
    inode: u64,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
}

impl Tail {
    fn new(file: File) -> Self {
        let inode = file.metadata().map_or(0, |m| m.ino());
        Self { reader: BufReader::new(file), inode, partial: Vec::new() }
    }

    /// The next whole line; `None` at the end.
    fn next_line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let left = MAX_LINE.saturating_sub(u64::try_from(self.partial.len()).unwrap_or(MAX_LINE));
        let done = self.reader.by_ref().take(left.max(1)).read_until(b'\n', &mut self.partial)?;
        let whole = self.partial.ends_with(b"\n") || u64::try_from(self.partial.len()).is_ok_and(|n| n >= MAX_LINE);
        Ok((done > 0 && whole).then(|| std::mem::take(&mut self.partial)))
    }
}

fn drain(
    tail: &mut Tail,
    path: &HostPath,
    filter: &Filter,
    each: &mut dyn FnMut(&Record) -> ControlFlow<()>,
    summary: &mut ReadSummary,
) -> Result<ControlFlow<()>, AuditError> {
    while let Some(bytes) = tail.next_line().map_err(io_error("read", path))? {
        match parse(&bytes) {
            Some(record) if filter.lets_through(&record) => {
                summary.shown += 1;
                if each(&record).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Some(_) => {}
            None if bytes.trim_ascii().is_empty() => {}
            None => summary.damaged += 1,
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn parse(bytes: &[u8]) -> Option<Record> {
    let line = std::str::from_utf8(bytes).ok()?.trim();
    // A line that holds a control character was not written by us and must not reach a terminal.
    if line.chars().any(char::is_control) {
        return None;
    }
    let json: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| json.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(Record {
        time: text("time")?,
        run: text("run").unwrap_or_default(),
        event: text("event")?,
        destination: text("destination"),
        line: line.to_owned(),
        json,
    })
}

impl Filter {
    /// Whether a record is wanted.
    pub fn lets_through(&self, record: &Record) -> bool {
        (!self.denied || record.event == "denied")
            && self.run.as_ref().is_none_or(|run| *run == record.run)
            && self.host.as_ref().is_none_or(|host| record.destination.as_ref().is_some_and(|d| host_matches(host, d)))
    }
}

fn host_matches(wanted: &str, destination: &str) -> bool {
    let wanted = wanted.to_ascii_lowercase();
    let host = match destination.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => destination,
    };
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    match wanted.strip_prefix("*.") {
        Some(apex) => host.strip_suffix(apex).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => host == wanted.trim_matches(['[', ']']) || destination.eq_ignore_ascii_case(&wanted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const LINES: &str = concat!(
        r#"{"v":1,"time":"t1","run":"a","event":"started","program":"x"}"#,
        "\n",
        r#"{"v":1,"time":"t2","run":"a","event":"denied","destination":"evil.test:443"}"#,
        "\n\n{torn\n\x1b[2J\n",
        r#"{"v":1,"time":"t3","run":"b","event":"allowed","destination":"api.good.test:443"}"#,
        "\n",
    );

    fn times(path: &HostPath, filter: &Filter) -> (Vec<String>, ReadSummary) {
        let mut seen = Vec::new();
        let summary = read(path, filter, Follow::No, &mut |r| {
            seen.push(r.time.clone());
            ControlFlow::Continue(())
        });
        (seen, summary.unwrap())
    }

    fn world() -> (tempfile::TempDir, HostPath) {
        let dir = tempfile::tempdir().unwrap();
        let path = HostPath::new(dir.path().join("audit.jsonl")).unwrap();
        (dir, path)
    }

    #[test]
    fn filters() {
        let (_dir, path) = world();
        std::fs::write(path.as_path(), LINES).unwrap();
        let (all, summary) = times(&path, &Filter::default());
        assert_eq!(all, ["t1", "t2", "t3"]);
        assert_eq!(summary, ReadSummary { shown: 3, damaged: 2 });
        assert_eq!(times(&path, &Filter { denied: true, ..Filter::default() }).0, ["t2"]);
        let host = |h: &str| Filter { host: Some(h.to_owned()), ..Filter::default() };
        assert_eq!(times(&path, &host("EVIL.test")).0, ["t2"]);
        assert_eq!(times(&path, &host("*.good.test")).0, ["t3"]);
        assert!(times(&path, &host("good.test")).0.is_empty());
        assert_eq!(times(&path, &Filter { run: Some("b".to_owned()), ..Filter::default() }).0, ["t3"]);
    }

    #[test]
    fn files_that_were_set_aside_come_first() {
        let (dir, path) = world();
        std::fs::write(path.as_path(), "{\"time\":\"new\",\"event\":\"e\"}\n").unwrap();
        std::fs::write(dir.path().join("audit.jsonl.1"), "{\"time\":\"old\",\"event\":\"e\"}\n").unwrap();
        assert_eq!(times(&path, &Filter::default()).0, ["old", "new"]);
    }

    #[test]
    fn a_missing_file_is_an_error() {
        let (_dir, path) = world();
        let result = read(&path, &Filter::default(), Follow::No, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(result, Err(AuditError::Io { .. })));
    }

    #[test]
    fn following_sees_new_lines_and_new_files() {
        let (_dir, path) = world();
        std::fs::write(path.as_path(), "{\"time\":\"t1\",\"event\":\"e\"}\n").unwrap();
        let writer_path = path.clone();
        let writer = std::thread::spawn(move || {
            let append = |text: &str| {
                let mut file = File::options().append(true).create(true).open(writer_path.as_path()).unwrap();
                file.write_all(text.as_bytes()).unwrap();
            };
            std::thread::sleep(Duration::from_millis(50));
            append("{\"time\":\"t2\",");
            std::thread::sleep(Duration::from_millis(300));
            append("\"event\":\"e\"}\n");
            std::thread::sleep(Duration::from_millis(300));
            std::fs::remove_file(writer_path.as_path()).unwrap();
            append("{\"time\":\"t3\",\"event\":\"e\"}\n");
        });
        let mut seen = Vec::new();
        read(&path, &Filter::default(), Follow::Yes, &mut |r| {
            seen.push(r.time.clone());
            if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        writer.join().unwrap();
        assert_eq!(seen, ["t1", "t2", "t3"]);
    }
}
