//! Paths and patterns over them.

use super::{Fault, shown};
use crate::codes;
use ringfence_policy::glob::{GlobError, PathGlob};
use ringfence_policy::{HostPath, Origin, PathPattern, ProtectedKind, ProtectedName};
use std::ffi::OsStr;
use std::path::Path;

/// What paths refer to.
#[derive(Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) home: &'a HostPath,
    pub(crate) base: &'a HostPath,
}

/// The longest path that a system call takes, its closing NUL included (path_resolution(7)).
const PATH_MAX: usize = 4096;

/// The characters that make a pattern of a path in a file; a backslash takes the meaning of the next one away.
const WILDCARDS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// A path or pattern of a file: with wildcards a pattern, else a folder or file with everything below it. `x/**` is the
/// folder `x`: what lies below it, and itself, because a folder whose whole content is meant is meant.
pub(crate) fn pattern(text: &str, places: Places<'_>) -> Result<PathPattern, Fault> {
    refuse_what_a_shell_would_expand(text)?;
    let mut rest = text;
    while let Some(shorter) = rest.strip_suffix("/**") {
        rest = shorter;
    }
    if rest.is_empty() && text.starts_with('/') {
        return Ok(PathPattern::Subtree(HostPath::root()));
    }
    if !rest.contains(WILDCARDS) {
        return literal(OsStr::new(rest), places).map(PathPattern::Subtree);
    }
    glob(rest, places)
}

/// A path that is no pattern: a flag's, or one that names one thing. Where it comes from a file, wildcards are refused
/// by [`one`] before.
pub(crate) fn literal(text: &OsStr, places: Places<'_>) -> Result<HostPath, Fault> {
    if text.is_empty() {
        return Err(fault(text, "name one; `.` is the folder itself"));
    }
    let path = Path::new(text);
    let absolute = match path.strip_prefix("~") {
        Ok(below) => places.home.as_path().join(below),
        Err(_) => places.base.as_path().join(path),
    };
    if absolute.as_os_str().len() >= PATH_MAX {
        return Err(fault(text, "longer than the 4095 bytes that the kernel takes"));
    }
    HostPath::new(absolute).map_err(|error| fault(text, &error.to_string()))
}

/// A flag's path: every character means itself, but for a `~` in front that a shell left alone (`--write=~/x`).
pub(crate) fn flag(text: &OsStr, places: Places<'_>) -> Result<HostPath, Fault> {
    literal(text, places)
}

/// A path of a file that names one thing.
pub(crate) fn one(text: &str, places: Places<'_>) -> Result<HostPath, Fault> {
    refuse_what_a_shell_would_expand(text)?;
    if text.contains(WILDCARDS) {
        return Err(Fault::new(
            codes::GLOB_HERE,
            format!("`{}` is a pattern, but one path is needed here", shown(text)),
        )
        .label("name it without wildcards"));
    }
    literal(OsStr::new(text), places)
}

fn refuse_what_a_shell_would_expand(text: &str) -> Result<(), Fault> {
    let os = OsStr::new(text);
    if text.contains('\0') {
        return Err(fault(os, "a path holds no NUL"));
    }
    if text.starts_with('$') || text.contains("${") {
        return Err(fault(os, "variables are not expanded").hint("write the path out; `~` stands for the home folder"));
    }
    if text.starts_with('~') && text != "~" && !text.starts_with("~/") {
        return Err(fault(os, "other users' homes are not expanded").hint("`~/` is your own; write others out"));
    }
    Ok(())
}

fn fault(text: &OsStr, label: &str) -> Fault {
    let message = match shown(&text.to_string_lossy()) {
        empty if empty.is_empty() => "an empty text is no path".to_owned(),
        text => format!("`{text}` is no path that can be used"),
    };
    Fault::new(codes::PATH, message).label(label)
}

fn glob(text: &str, places: Places<'_>) -> Result<PathPattern, Fault> {
    let first = text.find(WILDCARDS).unwrap_or(text.len());
    let cut = text.get(..first).and_then(|head| head.rfind('/')).map_or(0, |slash| slash + 1);
    let (folder, wild) = text.split_at_checked(cut).unwrap_or(("", text));
    let folder = if folder.is_empty() { places.base.clone() } else { literal(OsStr::new(folder), places)? };
    let mut glob = compile(wild).map_err(|problem| {
        Fault::new(codes::GLOB, format!("`{}` is no pattern that can be used", shown(text))).label(problem)
    })?;
    // The folder is joined afterwards: it may hold wildcard characters, and bytes that no pattern can hold.
    glob.base = glob.base.components().fold(folder, |path, name| path.join(name));
    Ok(if glob.is_literal() { PathPattern::Subtree(glob.base) } else { PathPattern::Glob(glob) })
}

fn compile(relative: &str) -> Result<PathGlob, &'static str> {
    PathGlob::parse(&format!("/{relative}")).map_err(|error| problem(&error))
}

/// A protected name: one or more names, looked for at any depth.
pub(crate) fn protected(text: &str, why: &str, origin: Origin) -> Result<ProtectedName, Fault> {
    let malformed = |label: &str| {
        Fault::new(codes::PROTECTED_NAME, format!("`{}` is no protected name", shown(text)))
            .label(label)
            .hint("`deny_write` takes paths")
    };
    if text.contains('\0') || text.starts_with(['/', '~', '$']) {
        return Err(malformed("names are relative"));
    }
    ProtectedName::new(text, ProtectedKind::Any, why, origin).map_err(|error| malformed(problem(&error)))
}

fn problem(error: &GlobError) -> &'static str {
    match error {
        GlobError::Malformed { problem, .. } => problem,
        _ => "it cannot be used",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(test: impl FnOnce(Places<'_>) -> T) -> T {
        let (home, base) = (HostPath::new("/home/u").unwrap(), HostPath::new("/w").unwrap());
        test(Places { home: &home, base: &base })
    }

    fn subtree(text: &str) -> String {
        match with(|places| pattern(text, places)) {
            Ok(PathPattern::Subtree(path)) => path.to_string(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn paths_are_absolute_below_the_home_or_relative_to_the_base() {
        for (text, path) in [
            (".", "/w"),
            ("a", "/w/a"),
            ("./a/", "/w/a"),
            ("../b", "/b"),
            ("~", "/home/u"),
            ("~/", "/home/u"),
            ("~/.claude", "/home/u/.claude"),
            ("/", "/"),
            ("//etc//x/../y", "/etc/y"),
            ("a/**", "/w/a"),
            ("a/**/**", "/w/a"),
            ("/**", "/"),
            ("a b\u{e9}", "/w/a b\u{e9}"),
            ("a$b", "/w/a$b"),
            ("a~", "/w/a~"),
        ] {
            assert_eq!(subtree(text), path, "{text}");
        }
        for text in ["", "a\0", "$HOME/x", "a/${X}", "~root/x", "~~"] {
            assert_eq!(with(|p| pattern(text, p)).unwrap_err().code, codes::PATH, "{text}");
        }
    }

    #[test]
    fn wildcards_make_a_pattern_below_the_longest_folder_without_one() {
        for (text, base, rest) in [
            ("**/.env", "/w", "**/.env"),
            ("src/**/*.pem", "/w/src", "**/*.pem"),
            ("~/.config/*/key", "/home/u/.config", "*/key"),
            ("/etc/ssl/private*", "/etc/ssl", "private*"),
            ("/*", "/", "*"),
            ("a/./b//{c,d}/./e", "/w/a/b", "{c,d}/e"),
            ("*.pem/**", "/w", "*.pem"),
            ("a/\\*b/*", "/w/a/*b", "*"),
        ] {
            match with(|places| pattern(text, places)) {
                Ok(PathPattern::Glob(glob)) => {
                    assert_eq!((glob.base.to_string().as_str(), glob.pattern.as_str()), (base, rest), "{text}");
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        assert_eq!(subtree("a/\\[b\\]"), "/w/a/[b]", "a backslash takes the meaning away");
        for text in ["*/../x", "a/*/..", "secret[", "{a", "a**"] {
            assert_eq!(with(|p| pattern(text, p)).unwrap_err().code, codes::GLOB, "{text}");
        }
    }

    #[test]
    fn a_flag_is_literal_and_a_single_path_takes_no_wildcard() {
        let of = |text: &str| with(|p| flag(OsStr::new(text), p)).unwrap().to_string();
        assert_eq!(of("a*[b]{c}?"), "/w/a*[b]{c}?");
        assert_eq!(of("~/x"), "/home/u/x");
        assert_eq!(of("$x"), "/w/$x");
        assert_eq!(with(|p| one("~/x", p)).unwrap().to_string(), "/home/u/x");
        assert_eq!(with(|p| one("a/*", p)).unwrap_err().code, codes::GLOB_HERE);
        use std::os::unix::ffi::OsStrExt;
        let bytes = OsStr::from_bytes(b"\xff");
        assert_eq!(with(|p| flag(bytes, p)).unwrap().as_path().as_os_str().as_encoded_bytes(), b"/w/\xff");
    }

    #[test]
    fn protected_names_are_relative() {
        let name = |text: &str| protected(text, "", Origin::builtin("test")).map(|name| name.pattern);
        for (text, pattern) in [
            (".git/hooks", ".git/hooks"),
            ("**/.envrc", ".envrc"),
            (".claude/settings*.json", ".claude/settings*.json"),
            ("a/", "a"),
        ] {
            assert_eq!(name(text).as_deref(), Ok(pattern), "{text}");
        }
        for text in ["", "/", "/a", "~/a", "$A", "a/../b", "**", "a\0", "a["] {
            assert_eq!(name(text).unwrap_err().code, codes::PROTECTED_NAME, "{text}");
        }
    }
}
