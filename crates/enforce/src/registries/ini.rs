//! The two shapes of plain configuration files.

/// Lines `key = value` of an rc file; `;` and `#` begin a comment, quotes around a value go.
pub(super) fn rc(text: &str) -> Vec<(String, String)> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with([';', '#', '[']))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), unquoted(value)))
        .collect()
}

/// Sections of an ini file as Python's configparser reads them: section, key, values; an indented line goes on with the
/// value before it.
pub(super) fn sections(text: &str) -> Vec<(String, String, Vec<String>)> {
    let mut section = String::new();
    let mut found: Vec<(String, String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with([';', '#']) {
            continue;
        }
        if line.starts_with([' ', '\t'])
            && let Some((_, _, values)) = found.last_mut()
        {
            values.push(trimmed.to_owned());
        } else if let Some(name) = trimmed.strip_prefix('[') {
            section = name.trim_end_matches(']').trim().to_ascii_lowercase();
        } else if let Some((key, value)) = trimmed.split_once(['=', ':']) {
            let value = unquoted(value);
            let values = if value.is_empty() { Vec::new() } else { vec![value] };
            found.push((section.clone(), key.trim().to_ascii_lowercase().replace('_', "-"), values));
        }
    }
    found
}

fn unquoted(value: &str) -> String {
    value.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rc_lines() {
        let text = "; c\n# c\nregistry = \"https://a.test/\"\n@x:registry=https://b.test\n[odd]\nplain";
        let pairs = rc(text);
        assert_eq!(pairs[0], ("registry".to_owned(), "https://a.test/".to_owned()));
        assert_eq!(pairs[1].0, "@x:registry");
        assert_eq!(pairs.len(), 2);
    }

    #[test]
    fn ini_values_go_on() {
        let text = "[global]\nIndex_URL = https://a.test/simple\nextra-index-url =\n    https://b.test/simple\n    https://c.test/simple\n[x]\nk: v\n";
        let found = sections(text);
        assert_eq!(found[0], ("global".to_owned(), "index-url".to_owned(), vec!["https://a.test/simple".to_owned()]));
        assert_eq!(found[1].2.len(), 2);
        assert_eq!(found[2], ("x".to_owned(), "k".to_owned(), vec!["v".to_owned()]));
    }
}
