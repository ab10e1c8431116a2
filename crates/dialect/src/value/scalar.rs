//! Sizes, times, and words of a fixed list.

use super::{Fault, shown};
use crate::codes;
use crate::suggest::nearest;
use ringfence_policy::HomeMode;
use std::time::Duration;

/// The spellings of [`HomeMode`].
pub(crate) const HOME_MODES: &[&str] = &["private", "visible", "empty"];

/// `private`, `visible` or `empty`.
pub(crate) fn home(text: &str) -> Result<HomeMode, Fault> {
    match text {
        "private" => Ok(HomeMode::Private),
        "visible" => Ok(HomeMode::Visible),
        "empty" => Ok(HomeMode::Empty),
        _ => Err(not_one_of("home", text, HOME_MODES)),
    }
}

/// The fault of a word that is none of a list.
pub(crate) fn not_one_of(what: &str, text: &str, list: &[&str]) -> Fault {
    let known = list.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let fault = Fault::new(codes::VALUE, format!("`{}` is no value of `{what}`", shown(text)));
    match nearest(text, list) {
        Some(near) => fault.label(format!("did you mean `{near}`?")).hint(format!("it can be {known}")),
        None => fault.label(format!("one of {known}")),
    }
}

/// `512M`, `8G`, `8GiB`, `1.5T`, `1048576`: bytes, in powers of 1024, at least 1.
pub(crate) fn size(text: &str) -> Result<u64, Fault> {
    let malformed = || {
        Fault::new(codes::SIZE, format!("`{}` is no size", shown(text)))
            .label("a number and a unit, such as `512M` or `8G`")
            .hint("units are K, M, G and T, in powers of 1024")
    };
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(split).ok_or_else(malformed)?;
    let shift = match unit.to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(malformed()),
    };
    let (whole, fraction) =
        number.trim_end_matches(' ').split_once('.').map_or((number.trim_end_matches(' '), ""), |p| p);
    let digits = |part: &str| !part.is_empty() && part.len() <= 15 && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || (number.contains('.') && !digits(fraction)) {
        return Err(malformed());
    }
    // Exact, in 128 bits: at most 10^15 * 10^15 * 2^40.
    let scale = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(0));
    let parts = format!("{whole}{fraction}").parse::<u128>().map_err(|_| malformed())?;
    let bytes = parts.checked_mul(1_u128 << shift).ok_or_else(malformed)? / scale;
    match u64::try_from(bytes) {
        Ok(0) => Err(zero("a size")),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err(Fault::new(codes::RANGE, format!("`{}` is more bytes than there can be", shown(text)))
            .label("at most 16777215T")),
    }
}

/// The fault of a limit of nothing.
pub(crate) fn zero(what: &str) -> Fault {
    Fault::new(codes::RANGE, format!("{what} of nothing lets nothing run"))
        .label("at least 1")
        .hint("leave the limit out to set none")
}

/// `90s`, `15m`, `2h`, `1d`, `1h30m`, `500ms`; more than nothing, at most a year.
pub(crate) fn duration(text: &str) -> Result<Duration, Fault> {
    const YEAR: u64 = 366 * 24 * 3600 * 1000;
    let malformed = || {
        Fault::new(codes::DURATION, format!("`{}` is no time", shown(text)))
            .label("numbers with units, such as `90s` or `1h30m`")
            .hint("units are ms, s, m, h and d")
    };
    let mut rest = text;
    let mut millis: u64 = 0;
    let mut last = u64::MAX;
    if rest.is_empty() {
        return Err(malformed());
    }
    while !rest.is_empty() {
        let (number, tail) = split(rest, |c| c.is_ascii_digit());
        let (unit, tail) = split(tail, |c| c.is_ascii_alphabetic());
        let factor: u64 = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" | "min" => 60 * 1000,
            "h" => 3600 * 1000,
            "d" => 24 * 3600 * 1000,
            _ => return Err(malformed()),
        };
        // Units go from large to small, so that `5m1h` is taken for the slip that it is.
        if factor >= last {
            return Err(malformed());
        }
        last = factor;
        let number: u64 = number.parse().map_err(|_| malformed())?;
        millis = number.checked_mul(factor).and_then(|m| millis.checked_add(m)).ok_or_else(malformed)?;
        rest = tail;
    }
    match millis {
        0 => Err(zero("a time")),
        1..=YEAR => Ok(Duration::from_millis(millis)),
        _ => Err(Fault::new(codes::RANGE, format!("`{}` is longer than a year", shown(text)))
            .hint("leave the limit out to set none")),
    }
}

fn split(text: &str, matches: impl Fn(char) -> bool) -> (&str, &str) {
    let at = text.find(|c: char| !matches(c)).unwrap_or(text.len());
    text.split_at_checked(at).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("1", 1),
            ("1B", 1),
            ("8G", 8 << 30),
            ("8g", 8 << 30),
            ("8GB", 8 << 30),
            ("8GiB", 8 << 30),
            ("8 GiB", 8 << 30),
            ("1.5K", 1536),
            ("0.5M", 1 << 19),
            ("16777215T", 16_777_215 << 40),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1G", "1e3", "1.G", ".5G", "8X", "8GG", "1,5G", "8 G B", "８G", "0x10", "1_000", "+1"] {
            assert_eq!(size(text).unwrap_err().code, codes::SIZE, "{text}");
        }
        for text in ["0", "0G", "0.0001B", "99999999T"] {
            assert_eq!(size(text).unwrap_err().code, codes::RANGE, "{text}");
        }
    }

    #[test]
    fn durations() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("15min", 900), ("2h", 7200), ("1d", 86400), ("1h30m", 5400)]
        {
            assert_eq!(duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        for text in ["", "2", "h", "-1h", "1.5h", "1h 30m", "30m1h", "1h1h", "2 fortnights", "99999999999999999999s"] {
            assert_eq!(duration(text).unwrap_err().code, codes::DURATION, "{text}");
        }
        for text in ["0s", "367d"] {
            assert_eq!(duration(text).unwrap_err().code, codes::RANGE, "{text}");
        }
    }
}
