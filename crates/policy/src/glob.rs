//! Path patterns with wildcards, matched component by component.

use crate::name_glob::NameGlob;
use crate::parts::{Part, Parts, State};
use crate::path_rule::HostPath;
use serde::Serialize;

/// A pattern such as `/home/u/project/**/.env`: a literal base folder and components below it, in which `*`, `?`,
/// `[...]` and `{a,b}` match within one name and `**` matches any number of names (none included). A backslash takes
/// the meaning of the next character away.
///
/// `*` and `?` match a leading dot as well: what is kept secret most often begins with one. A `/**` at the end is
/// dropped, because a rule covers what lies below its match anyhow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PathGlob {
    /// The longest folder without wildcards.
    pub base: HostPath,
    /// The rest, as it was written.
    pub pattern: String,
    #[serde(skip)]
    parts: Parts,
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GlobError {
    /// A class or alternation is not closed, or is empty.
    #[error("pattern `{pattern}`: {problem}")]
    Malformed {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl PathGlob {
    /// Parses an absolute pattern.
    ///
    /// # Errors
    /// It is not absolute, a class or alternation is malformed, `**` is only a part of a component, or a component is
    /// `..`.
    pub fn parse(pattern: &str) -> Result<Self, GlobError> {
        if !pattern.starts_with('/') {
            return Err(GlobError::Malformed { pattern: pattern.to_owned(), problem: "it is not absolute" });
        }
        Self::parse_below(&HostPath::root(), pattern)
    }

    /// Parses a pattern that is relative to a folder, whose own name is taken literally.
    ///
    /// # Errors
    /// As [`PathGlob::parse`].
    pub fn parse_below(folder: &HostPath, pattern: &str) -> Result<Self, GlobError> {
        let malformed = |problem| GlobError::Malformed { pattern: pattern.to_owned(), problem };
        if pattern.contains('\0') {
            return Err(malformed("it contains a NUL byte, which no path may hold"));
        }
        let mut written: Vec<&str> = pattern.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        while written.last() == Some(&"**") {
            written.pop();
        }
        let mut base = folder.clone();
        let mut parts = Vec::new();
        let mut rest = Vec::new();
        for name in written {
            if name == ".." {
                return Err(malformed("`..` in a pattern has no meaning"));
            }
            if name == "**" {
                // Two in a row mean the same as one.
                if parts.last() != Some(&Part::AnyDepth) {
                    parts.push(Part::AnyDepth);
                    rest.push(name);
                }
                continue;
            }
            let glob = NameGlob::parse(name).map_err(malformed)?;
            match glob.literal() {
                // `\\.\\.` is not a name, either.
                Some(literal) if literal == ".." || literal == "." => return Err(malformed("a name is `.` or `..`")),
                Some(literal) if parts.is_empty() => base = base.join(literal),
                _ => {
                    parts.push(Part::Name(glob));
                    rest.push(name);
                }
            }
        }
        let parts = Parts::new(parts).map_err(malformed)?;
        Ok(Self { base, pattern: rest.join("/"), parts })
    }

    /// Whether the pattern holds no wildcard, so that it means its base alone.
    pub fn is_literal(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether exactly this path is matched. What lies below a matched folder is not.
    pub fn matches(&self, path: &HostPath) -> bool {
        self.walk(path).is_some_and(|walk| self.parts.accepts(walk.now))
    }

    /// The depth of the deepest node on the way to `path` (itself included) that the pattern matches; `None` when it
    /// matches none of them. A rule with this pattern covers the path exactly when this is `Some`.
    pub fn match_depth(&self, path: &HostPath) -> Option<usize> {
        self.walk(path).and_then(|walk| walk.deepest)
    }

    /// Whether something strictly below this folder may be matched: if not, a search need not enter it.
    pub fn could_match_below(&self, folder: &HostPath) -> bool {
        if self.base.is_within(folder) {
            return *folder != self.base || !self.parts.is_empty();
        }
        self.walk(folder).is_some_and(|walk| self.parts.can_go_on(walk.now))
    }

    /// Follows the names below the base; `None` when the path does not lie there.
    fn walk(&self, path: &HostPath) -> Option<Walk> {
        let names = path.names_below(&self.base)?;
        let mut depth = self.base.depth();
        let mut now = self.parts.start();
        let mut deepest = self.parts.accepts(now).then_some(depth);
        for name in names {
            depth += 1;
            now = self.parts.step(now, name);
            if self.parts.accepts(now) {
                deepest = Some(depth);
            }
        }
        Some(Walk { now, deepest })
    }
}

impl std::fmt::Display for PathGlob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let base = self.base.to_string();
        let slash = if base == "/" || self.parts.is_empty() { "" } else { "/" };
        write!(f, "{}{slash}{}", crate::name_glob::escape(&base), self.pattern)
    }
}

struct Walk {
    now: State,
    deepest: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glob(text: &str) -> PathGlob {
        PathGlob::parse(text).unwrap()
    }

    fn path(text: &str) -> HostPath {
        HostPath::new(text).unwrap()
    }

    #[test]
    fn the_base_is_the_longest_literal_folder() {
        for (text, base, pattern) in [
            ("/w/**/.env", "/w", "**/.env"),
            ("/w/a/b", "/w/a/b", ""),
            ("/*", "/", "*"),
            ("/**", "/", ""),
            ("/w/**", "/w", ""),
            ("/w//./x/", "/w/x", ""),
            ("/w/\\*x/*", "/w/*x", "*"),
            ("/w/**/**/x", "/w", "**/x"),
        ] {
            let glob = glob(text);
            assert_eq!((glob.base.to_string().as_str(), glob.pattern.as_str()), (base, pattern), "{text}");
        }
    }

    #[test]
    fn any_depth_matches_none_and_many() {
        let env = glob("/w/**/.env");
        for text in ["/w/.env", "/w/a/.env", "/w/a/b/c/.env"] {
            assert!(env.matches(&path(text)), "{text}");
        }
        for text in ["/w", "/.env", "/w/x.env", "/w/.env/x", "/wx/.env"] {
            assert!(!env.matches(&path(text)), "{text}");
        }
        assert_eq!(env.match_depth(&path("/w/.env/x")), Some(2));
        assert_eq!(env.match_depth(&path("/w/.env/a/.env/y")), Some(4));
        assert_eq!(env.match_depth(&path("/w/a")), None);
    }

    #[test]
    fn a_star_stays_within_a_name_and_matches_dot_files() {
        let glob = glob("/w/*/x");
        assert!(glob.matches(&path("/w/a/x")) && glob.matches(&path("/w/.a/x")));
        assert!(!glob.matches(&path("/w/x")) && !glob.matches(&path("/w/a/b/x")));
    }

    #[test]
    fn a_search_enters_only_where_a_match_may_be() {
        let glob = glob("/w/src/*/gen/**/k[0-9]");
        for (text, could) in [
            ("/", true),
            ("/w", true),
            ("/w/src", true),
            ("/w/lib", false),
            ("/x", false),
            ("/w/src/a", true),
            ("/w/src/a/b", false),
            ("/w/src/a/gen", true),
            ("/w/src/a/gen/p/q", true),
        ] {
            assert_eq!(glob.could_match_below(&path(text)), could, "{text}");
        }
        let one = PathGlob::parse("/w/*").unwrap();
        assert!(one.could_match_below(&path("/w")));
        assert!(!one.could_match_below(&path("/w/a")));
        assert!(!PathGlob::parse("/w").unwrap().could_match_below(&path("/w")));
        assert!(PathGlob::parse("/w").unwrap().could_match_below(&path("/")));
    }

    #[test]
    fn bytes_need_not_be_utf8() {
        use std::os::unix::ffi::OsStrExt;
        let name = std::ffi::OsStr::from_bytes(b"/w/\xff\xfe.key");
        let path = HostPath::new(name).unwrap();
        assert!(glob("/w/*.key").matches(&path));
        assert!(glob("/w/??.key").matches(&path));
        assert!(!glob("/w/?.key").matches(&path));
    }

    #[test]
    fn malformed_patterns_are_refused() {
        for text in
            ["relative/*", "/w/[", "/w/[]", "/w/{a,b", "/w/a**", "/w/**a", "/w/../x", "/w/\0", "/w/x\\", "/w/{a/b,c}"]
        {
            assert!(PathGlob::parse(text).is_err(), "{text}");
        }
    }
}
