//! Small pieces of lines: paths, counts, sizes and times as people read them.

use std::path::Path;
use std::time::Duration;

/// A path with the home folder as `~`, control bytes escaped so that a name cannot write to the terminal.
pub(crate) fn path(path: &Path, home: &Path) -> String {
    let short = match path.strip_prefix(home) {
        Ok(rest) if home.parent().is_some() && rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) if home.parent().is_some() => format!("~/{}", rest.to_string_lossy()),
        _ => path.to_string_lossy().into_owned(),
    };
    plain(&short)
}

/// Text from elsewhere, made harmless for a terminal: control characters are escaped.
pub(crate) fn plain(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_harmful(c) {
            out.extend(c.escape_default())
        } else {
            out.push(c)
        }
        out
    })
}

/// Control characters, and those that change the direction of text, with which a name can look like another.
fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `1 host`, `2 hosts`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{plural}")
}

/// The same of a number that came from elsewhere.
pub(crate) fn count_of(n: u64, noun: &str) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), noun)
}

/// A time with a unit that keeps it short.
pub(crate) fn time(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        10_000..10_000_000 => format!("{} ms", time.as_millis()),
        _ => format!("{} s", time.as_secs()),
    }
}

/// How long ago, in the largest unit that fits.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..60 => count_of(seconds, "second"),
        60..3_600 => count_of(seconds / 60, "minute"),
        3_600..86_400 => count_of(seconds / 3_600, "hour"),
        _ => count_of(seconds / 86_400, "day"),
    }
}

/// A size in MB, as the house prints them.
pub(crate) fn size(bytes: u64) -> String {
    let tenths = bytes / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_folder_is_a_tilde() {
        let home = Path::new("/home/u");
        assert_eq!(path(Path::new("/home/u"), home), "~");
        assert_eq!(path(Path::new("/home/u/a b"), home), "~/a b");
        assert_eq!(path(Path::new("/home/user"), home), "/home/user");
        assert_eq!(path(Path::new("/etc"), Path::new("/")), "/etc", "a home of `/` shortens nothing");
    }

    #[test]
    fn names_cannot_write_to_the_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\nc\u{202e}d é"), "a\\u{1b}[2Jb\\nc\\u{202e}d é");
    }

    #[test]
    fn units() {
        assert_eq!(time(Duration::from_micros(950)), "950 µs");
        assert_eq!(time(Duration::from_micros(2_340)), "2.3 ms");
        assert_eq!(time(Duration::from_millis(41)), "41 ms");
        assert_eq!(time(Duration::from_secs(75)), "75 s");
        assert_eq!(age(59), "59 seconds");
        assert_eq!(age(86_400), "1 day");
        assert_eq!(size(0), "0.0 MB");
        assert_eq!(size(12_345_678), "12.3 MB");
        assert_eq!(count(1, "host"), "1 host");
        assert_eq!(count(0, "host"), "0 hosts");
    }
}
