//! Did you mean.

/// The candidate that `typed` was most likely meant to be, if any is near enough.
pub(crate) fn nearest<'a>(typed: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let wanted = fold(typed);
    // `allow_hosts` for `allow`, `domains` for nothing: a candidate that is a whole word of what was typed.
    let word = || candidates.iter().find(|c| words(typed).any(|w| w == **c)).copied();
    // `mem` for `memory`, `npmjs` for `npm`.
    let start = || {
        let starts = |long: &str, short: &str| short.len() >= 3 && long.starts_with(short);
        let related = |c: &&&str| starts(&wanted, &fold(c)) || starts(&fold(c), &wanted);
        candidates.iter().find(related).copied()
    };
    candidates
        .iter()
        .map(|candidate| (distance(&wanted, &fold(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= (wanted.len().max(candidate.len()) / 3).clamp(1, 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
        .or_else(word)
        .or_else(start)
}

/// `denyRead`, `deny-read` and `deny_read` are the same word to somebody who comes from another tool.
fn fold(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).take(64).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(['_', '-', '.', ' '])
}

/// Edits from one word to the other: insertions, deletions, replacements and swaps of neighbours.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    let mut last = None;
    for (row, ca) in a.chars().enumerate() {
        let mut line = vec![row + 1];
        let mut left = row + 1;
        for (column, cb) in b.iter().enumerate() {
            let at = |cells: &[usize], index: usize| cells.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = (at(&above, column) + usize::from(ca != *cb)).min(at(&above, column + 1) + 1).min(left + 1);
            let swapped = last == Some(*cb) && column.checked_sub(1).and_then(|c| b.get(c)) == Some(&ca);
            if swapped {
                best = best.min(column.checked_sub(1).map_or(usize::MAX / 2, |c| at(&before, c)) + 1);
            }
            line.push(best);
            left = best;
        }
        before = std::mem::replace(&mut above, line);
        last = Some(ca);
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, edits) in [("", "", 0), ("abc", "", 3), ("alow", "allow", 1), ("wrtie", "write", 1), ("a", "b", 1)] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn suggestions() {
        let keys = ["allow", "deny", "deny_read", "memory", "pids"];
        assert_eq!(nearest("alow", &keys), Some("allow"));
        assert_eq!(nearest("denyRead", &keys), Some("deny_read"));
        assert_eq!(nearest("allow_hosts", &keys), Some("allow"));
        assert_eq!(nearest("mem", &keys), Some("memory"));
        assert_eq!(nearest("denylist", &keys), Some("deny"));
        assert_eq!(nearest("me", &keys), None);
        assert_eq!(nearest("pid", &keys), Some("pids"));
        assert_eq!(nearest("x", &keys), None);
        assert_eq!(nearest("", &keys), None);
    }
}
