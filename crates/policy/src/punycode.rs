//! RFC 3492, the encoding half: so that an error about a name that is not ASCII can say what to write.

const BASE: u32 = 36;
const TMIN: u32 = 1;
const TMAX: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;

/// A host name in A-labels: lower case, ideographic full stops as dots, each label that is not ASCII encoded. This is
/// a suggestion for a person, not UTS 46: nothing is decided on its result.
pub(crate) fn host_to_ascii(name: &str) -> Option<String> {
    // UTS 46 maps these to a dot, and full-width forms to ASCII.
    let name: String = name
        .chars()
        .map(|c| match c {
            '\u{3002}' | '\u{ff0e}' | '\u{ff61}' => '.',
            '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
            _ => c,
        })
        .flat_map(char::to_lowercase)
        .collect();
    let labels: Option<Vec<String>> = name
        .split('.')
        .map(|label| if label.is_ascii() { Some(label.to_owned()) } else { encode(label).map(|a| format!("xn--{a}")) })
        .collect();
    labels.map(|labels| labels.join("."))
}

/// Encodes one label; `None` when a number overflows (RFC 3492 section 6.4).
fn encode(label: &str) -> Option<String> {
    let mut out: String = label.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(out.len()).ok()?;
    let mut handled = basic;
    if basic > 0 {
        out.push('-');
    }
    let total = u32::try_from(label.chars().count()).ok()?;
    let (mut next, mut delta, mut bias) = (0x80_u32, 0_u32, 72_u32);
    while handled < total {
        let smallest = label.chars().map(u32::from).filter(|&c| c >= next).min()?;
        delta = delta.checked_add((smallest - next).checked_mul(handled + 1)?)?;
        next = smallest;
        for c in label.chars().map(u32::from) {
            if c < next {
                delta = delta.checked_add(1)?;
            }
            if c == next {
                push_number(&mut out, delta, bias)?;
                bias = adapt(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        next = next.checked_add(1)?;
    }
    Some(out)
}

/// A number as digits of growing thresholds (RFC 3492 section 3.3).
fn push_number(out: &mut String, mut number: u32, bias: u32) -> Option<()> {
    for k in (BASE..).step_by(36) {
        let threshold = k.saturating_sub(bias).clamp(TMIN, TMAX);
        if number < threshold {
            break;
        }
        let range = BASE - threshold;
        out.push(char::from_digit_base36(threshold + (number - threshold) % range)?);
        number = (number - threshold) / range;
    }
    out.push(char::from_digit_base36(number)?);
    Some(())
}

fn adapt(delta: u32, points: u32, first: bool) -> u32 {
    let mut delta = if first { delta / DAMP } else { delta / 2 };
    delta += delta / points;
    let mut k = 0;
    while delta > ((BASE - TMIN) * TMAX) / 2 {
        delta /= BASE - TMIN;
        k += BASE;
    }
    k + (BASE - TMIN + 1) * delta / (delta + SKEW)
}

/// The digits of RFC 3492 section 5: letters first, then numerals.
trait Base36: Sized {
    fn from_digit_base36(value: u32) -> Option<Self>;
}

impl Base36 for char {
    fn from_digit_base36(value: u32) -> Option<Self> {
        match value {
            0..=25 => char::from_u32(u32::from('a') + value),
            26..=35 => char::from_u32(u32::from('0') + value - 26),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_rfc_3492() {
        for (text, encoded) in [
            ("\u{4ed6}\u{4eec}\u{4e3a}\u{4ec0}\u{4e48}\u{4e0d}\u{8bf4}\u{4e2d}\u{6587}", "ihqwcrb4cv8a8dqg056pqjye"),
            ("3\u{5e74}B\u{7d44}\u{91d1}\u{516b}\u{5148}\u{751f}", "3B-ww4c5e180e575a65lsy2b"),
            ("\u{5b89}\u{5ba4}\u{5948}\u{7f8e}\u{6075}-with-SUPER-MONKEYS", "-with-SUPER-MONKEYS-pc58ag80a8qai00g7n9n"),
            ("\u{305d}\u{306e}\u{30b9}\u{30d4}\u{30fc}\u{30c9}\u{3067}", "d9juau41awczczp"),
            ("b\u{fc}cher", "bcher-kva"),
        ] {
            assert_eq!(encode(text).as_deref(), Some(encoded), "{text}");
        }
    }

    #[test]
    fn hosts() {
        assert_eq!(host_to_ascii("B\u{dc}CHER\u{3002}example").as_deref(), Some("xn--bcher-kva.example"));
        assert_eq!(host_to_ascii("\u{430}pi.good.test").as_deref(), Some("xn--pi-6kc.good.test"));
        assert_eq!(host_to_ascii("\u{ff11}\u{ff12}7.0.0.1").as_deref(), Some("127.0.0.1"));
    }
}
