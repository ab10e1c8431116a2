//! Whether a small configuration file holds a secret, so that it is not shown.

use ringfence_sys::files::open_read;
use std::io::Read;
use std::path::Path;

/// Files that are larger are not configuration in this sense, and are not shown.
const MAX: u64 = 128 * 1024;

/// Words in a key whose value is a secret.
const WORDS: [&str; 9] =
    ["token", "password", "passwd", "secret", "_auth", "apikey", "api_key", "api-key", "extraheader"];

/// A file's text, when it is a regular file of a moderate size.
pub(super) fn read_small(path: &Path) -> Option<String> {
    let file = open_read(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > MAX {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether some line assigns a value to a key that sounds secret, or holds a URL with a password. Errs on the side of
/// yes: a file that is not shown costs a setting, one that is shown could cost a key.
pub(super) fn holds_secret(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim();
        !line.starts_with(['#', ';']) && (secret_key(line) || url_with_password(line) || xml_secret(line))
    })
}

fn secret_key(line: &str) -> bool {
    // npm's keys hold colons themselves: `//host/:_authToken=`.
    let Some((key, value)) = line.split_once('=').or_else(|| line.split_once(':')) else { return false };
    let key = key.to_ascii_lowercase();
    let value = value.trim().trim_matches(['"', '\'']);
    // A reference to a variable, or a switch, is no secret.
    let harmless = value.is_empty() || value.starts_with("${") || ["true", "false", "0", "1"].contains(&value);
    !harmless && WORDS.iter().any(|word| key.contains(word))
}

fn url_with_password(line: &str) -> bool {
    line.match_indices("://").any(|(at, _)| {
        let rest = line.get(at + 3..).unwrap_or_default();
        let authority = rest.split(['/', '"', '\'', ' ', '?', '#', '>']).next().unwrap_or_default();
        match authority.rsplit_once('@') {
            // `git@host` names an account; a long one is a token.
            Some((user, _)) => (user.contains(':') && !user.contains("${")) || user.len() >= 20,
            None => false,
        }
    })
}

fn xml_secret(line: &str) -> bool {
    ["<password>", "<passphrase>", "<privateKey>"].iter().any(|tag| line.contains(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_seen() {
        for text in [
            "//host.test/:_authToken=abc",
            "[http]\n\textraheader = Authorization: Basic eA==",
            "index-url = https://user:pw@host.test/simple",
            "[url \"https://ghp_0123456789abcdefghij@host.test/\"]",
            "<password>x</password>",
            "npmAuthToken: abc",
            "token = \"x1\"",
        ] {
            assert!(holds_secret(text), "{text}");
        }
    }

    #[test]
    fn settings_are_no_secrets() {
        for text in [
            "[user]\n\tname = A\n\temail = a@b.test",
            "[url \"ssh://git@host.test/\"]\n\tinsteadOf = https://host.test/",
            "registry = https://host.test/npm/",
            "# token = commented",
            "//host.test/:_authToken=${NPM_TOKEN}",
            "always-auth=true",
        ] {
            assert!(!holds_secret(text), "{text}");
        }
    }
}
