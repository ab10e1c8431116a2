//! An event as one line of JSON.

use ringfence_policy::event::{Event, EventKind, SCHEMA_VERSION};
use serde::Serialize;
use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Serialize)]
struct Line<'a> {
    v: u32,
    time: String,
    run: &'a str,
    #[serde(flatten)]
    kind: &'a EventKind,
}

/// The line with its end; `None` when the event cannot be serialised.
pub(super) fn render(event: &Event, run: &str) -> Option<String> {
    let line = Line { v: SCHEMA_VERSION, time: rfc3339(event.time), run, kind: &event.kind };
    let mut text = escape(serde_json::to_string(&line).ok()?);
    text.push('\n');
    Some(text)
}

/// JSON leaves DEL, the C1 controls, line separators and the characters that reorder text as they are. Outside of
/// strings the text is ASCII, so each of them stands in a string and may be written as an escape.
fn escape(text: String) -> String {
    if text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 32);
    for c in text.chars() {
        let code = u32::from(c);
        match code {
            0x7f..=0x9f | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{code:04x}");
            }
            _ => out.push(c),
        }
    }
    out
}

/// UTC with milliseconds, RFC 3339.
pub(super) fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (rest / 3600, rest % 3600 / 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// Days since 1970-01-01 as year, month and day of the Gregorian calendar, counted in eras of 400 years that begin on a
/// first of March, so that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates() {
        let at = |seconds: u64| rfc3339(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7));
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00.007Z");
        assert_eq!(at(1_709_164_800), "2024-02-29T00:00:00.007Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.007Z");
    }

    #[test]
    fn plain_text_of_any_script_stays() {
        assert_eq!(escape("\"häuser 家\"".to_owned()), "\"häuser 家\"");
        assert_eq!(escape("\"a\u{2066}b\"".to_owned()), "\"a\\u2066b\"");
    }
}
