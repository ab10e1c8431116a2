//! The host and port of a registry's URL.

use ringfence_policy::Host;

/// Host and port of an `http` or `https` URL, also with a client's prefix (`sparse+https://`, `mirror+http://`). `None`: the
/// URL leads to no host (`file:`, a path, `direct`).
pub(super) fn place(url: &str) -> Result<Option<(String, u16)>, String> {
    let url = url.trim();
    let Some((scheme, rest)) = url.split_once("://") else { return Ok(None) };
    let scheme = scheme.rsplit('+').next().unwrap_or(scheme).to_ascii_lowercase();
    let default = match scheme.as_str() {
        "http" => 80,
        "https" => 443,
        _ => return Ok(None),
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = match authority.rsplit_once(':') {
        // The last colon of an IPv6 address stands inside the brackets.
        Some((host, port)) if !port.ends_with(']') => {
            (host, if port.is_empty() { default } else { port.parse().map_err(|_| format!("`{port}` is no port"))? })
        }
        _ => (authority, default),
    };
    let host = Host::parse(host).map_err(|error| format!("`{host}`: {error}"))?;
    if port == 0 {
        return Err("port 0 cannot be reached".to_owned());
    }
    Ok(Some((host.to_string(), port)))
}

/// The URL without a user and password; `None` when it has none to begin with a host.
pub(super) fn without_user(url: &str) -> Option<String> {
    let (scheme, rest) = url.trim().split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    Some(format!("{scheme}://{host}{path}"))
}

/// Whether a URL holds a user or a password.
pub(super) fn has_user(url: &str) -> bool {
    without_user(url).is_some_and(|plain| plain != url.trim())
}

/// Replaces `${NAME}` by the value of a variable; `None` when one is not set.
pub(super) fn expand(text: &str, mut value: impl FnMut(&str) -> Option<String>) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, tail) = after.split_once('}')?;
        out.push_str(before);
        out.push_str(&value(name)?);
        rest = tail;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let ok = |url: &str| place(url).unwrap();
        let at = |host: &str, port: u16| Some((host.to_owned(), port));
        assert_eq!(ok("https://Mirror.Test/npm/"), at("mirror.test", 443));
        assert_eq!(ok("http://user:p%40w@mirror.test:8081/x"), at("mirror.test", 8081));
        assert_eq!(ok("sparse+https://index.test/"), at("index.test", 443));
        assert_eq!(ok("http://[::1]:4873/"), at("[::1]", 4873));
        assert_eq!(ok("http://[fd00::1]"), at("[fd00::1]", 80));
        assert_eq!(ok("file:///srv/mirror"), None);
        assert_eq!(ok("direct"), None);
        assert!(place("https://bad%00host/").is_err());
        assert!(place("https:///x").is_err());
        assert!(place("https://h.test:99999/").is_err());
        // The host ends where WHATWG says that it ends, not at a later `@`.
        assert_eq!(ok("https://good.test\\@evil.test/"), at("good.test", 443));
    }

    #[test]
    fn users_go() {
        assert_eq!(without_user("https://u:p@h.test/a@b").unwrap(), "https://h.test/a@b");
        assert!(has_user("https://u:p@h.test/") && !has_user("https://h.test/a@b"));
    }

    #[test]
    fn variables() {
        let value = |name: &str| (name == "A").then(|| "x".to_owned());
        assert_eq!(expand("1${A}2", value).unwrap(), "1x2");
        assert_eq!(expand("${B}", value), None);
        assert_eq!(expand("plain", value).unwrap(), "plain");
    }
}
