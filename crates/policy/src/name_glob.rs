//! A pattern for one name: `*`, `?`, `[...]`, `{a,b}`, over bytes.

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum NameGlob {
    /// One name. Most patterns have no wildcard, and then bytes are compared.
    Literal(Vec<u8>),
    /// Alternatives, written out when the pattern is parsed, so that matching needs no nesting.
    Alternatives(Vec<Vec<Token>>),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Token {
    Literal(char),
    One,
    Many,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// `{a,b}` next to each other multiply; a pattern may not become more than this many.
const MAX_ALTERNATIVES: usize = 256;

impl NameGlob {
    /// Parses the pattern of one name.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if !text.bytes().any(|b| b"*?[{}\\".contains(&b)) {
            return Ok(Self::Literal(text.as_bytes().to_vec()));
        }
        let chars: Vec<char> = text.chars().collect();
        let mut alternatives = Vec::new();
        for branch in expand(&chars)? {
            alternatives.push(tokens(&branch)?);
        }
        let literal = |tokens: &Vec<Token>| -> Option<String> {
            tokens.iter().map(|t| if let Token::Literal(c) = t { Some(*c) } else { None }).collect()
        };
        match alternatives.as_slice() {
            [one] if let Some(name) = literal(one) => Ok(Self::Literal(name.into_bytes())),
            _ => Ok(Self::Alternatives(alternatives)),
        }
    }

    /// The name, when the pattern has no wildcard and means that name alone.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(name) => std::str::from_utf8(name).ok(),
            Self::Alternatives(_) => None,
        }
    }

    /// Whether the whole name is matched.
    pub(crate) fn matches(&self, name: &[u8]) -> bool {
        match self {
            Self::Literal(literal) => literal == name,
            Self::Alternatives(alternatives) => alternatives.iter().any(|tokens| match_tokens(tokens, name)),
        }
    }

    /// The same pattern for names that went through [`fold`].
    pub(crate) fn folded(self) -> Self {
        let mut alternatives = match self {
            Self::Literal(name) => return Self::Literal(fold(&name)),
            Self::Alternatives(alternatives) => alternatives,
        };
        for token in alternatives.iter_mut().flatten() {
            match token {
                Token::Literal(c) => *c = fold_char(*c),
                // A range is widened: to protect one name too many is no fault.
                Token::Class { negated: false, ranges } => {
                    let lower: Vec<_> =
                        ranges.iter().map(|(a, b)| (a.to_ascii_lowercase(), b.to_ascii_lowercase())).collect();
                    ranges.extend(lower);
                }
                Token::Class { negated: true, .. } | Token::One | Token::Many => {}
            }
        }
        Self::Alternatives(alternatives)
    }
}

/// Matches with one point of return: the last `*` seen. Linear in practice, never worse than length times length.
fn match_tokens(tokens: &[Token], name: &[u8]) -> bool {
    let (mut at, mut pos) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        let rest = name.get(pos..).unwrap_or_default();
        match tokens.get(at) {
            None if rest.is_empty() => return true,
            Some(Token::Many) => {
                back = Some((at + 1, pos));
                at += 1;
                continue;
            }
            Some(token) => {
                if let Some(length) = match_one(token, rest) {
                    at += 1;
                    pos += length;
                    continue;
                }
            }
            None => {}
        }
        match back {
            // The star takes one character more.
            Some((after, from)) if from < name.len() => {
                let (_, length) = next_char(name.get(from..).unwrap_or_default());
                back = Some((after, from + length));
                at = after;
                pos = from + length;
            }
            _ => return false,
        }
    }
}

fn match_one(token: &Token, rest: &[u8]) -> Option<usize> {
    if rest.is_empty() {
        return None;
    }
    let (next, length) = next_char(rest);
    let matched = match token {
        Token::One => true,
        Token::Many => false,
        Token::Literal(c) => next == Some(*c),
        // A byte that is no character lies in no range.
        Token::Class { negated, ranges } => {
            let inside = next.is_some_and(|c| ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)));
            inside != *negated
        }
    };
    matched.then_some(length)
}

/// The next character and its length; a byte that begins none counts as one thing.
fn next_char(rest: &[u8]) -> (Option<char>, usize) {
    if let Some(&byte) = rest.first()
        && byte.is_ascii()
    {
        return (Some(char::from(byte)), 1);
    }
    let head = rest.get(..rest.len().min(4)).unwrap_or(rest);
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => head.get(..error.valid_up_to()).and_then(|v| std::str::from_utf8(v).ok()).unwrap_or_default(),
    };
    valid.chars().next().map_or((None, 1), |c| (Some(c), c.len_utf8()))
}

/// Writes out `{a,b}`, nested ones too.
fn expand(chars: &[char]) -> Result<Vec<Vec<char>>, &'static str> {
    let Some(open) = find_plain(chars, '{')? else {
        return match find_plain(chars, '}')? {
            Some(_) => Err("`}` without `{`"),
            None => Ok(vec![chars.to_vec()]),
        };
    };
    let (head, tail) = chars.split_at(open);
    let tail = tail.get(1..).unwrap_or_default();
    let (branches, rest) = split_branches(tail)?;
    let mut out = Vec::new();
    let rests = expand(rest)?;
    for branch in branches {
        for middle in expand(branch)? {
            for rest in &rests {
                out.push([head, &middle, rest].concat());
                if out.len() > MAX_ALTERNATIVES {
                    return Err("its alternatives multiply to more than 256");
                }
            }
        }
    }
    Ok(out)
}

/// The position of a character outside of escapes and classes.
fn find_plain(chars: &[char], wanted: char) -> Result<Option<usize>, &'static str> {
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        match c {
            '\\' => at += 1,
            '[' => at += class_length(chars.get(at..).unwrap_or_default())? - 1,
            _ if c == wanted => return Ok(Some(at)),
            _ => {}
        }
        at += 1;
    }
    Ok(None)
}

/// Splits what follows `{` at its commas, up to the `}` that closes it.
#[allow(clippy::type_complexity, reason = "two slices of the same input")]
fn split_branches(chars: &[char]) -> Result<(Vec<&[char]>, &[char]), &'static str> {
    let mut branches = Vec::new();
    let (mut from, mut at, mut depth) = (0, 0, 0_usize);
    while let Some(&c) = chars.get(at) {
        match c {
            '\\' => at += 1,
            '[' => at += class_length(chars.get(at..).unwrap_or_default())? - 1,
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                branches.push(chars.get(from..at).unwrap_or_default());
                from = at + 1;
                if c == '}' {
                    return Ok((branches, chars.get(from..).unwrap_or_default()));
                }
            }
            _ => {}
        }
        at += 1;
    }
    Err("`{` is not closed")
}

/// The length of a class in characters, brackets included. A `]` that comes first is a member.
fn class_length(chars: &[char]) -> Result<usize, &'static str> {
    let mut at = 1;
    if matches!(chars.get(at), Some('!' | '^')) {
        at += 1;
    }
    let first = at;
    while let Some(&c) = chars.get(at) {
        match c {
            '\\' => at += 1,
            ']' if at > first => return Ok(at + 1),
            _ => {}
        }
        at += 1;
    }
    Err("`[` is not closed")
}

fn tokens(chars: &[char]) -> Result<Vec<Token>, &'static str> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        match c {
            '\\' => {
                at += 1;
                out.push(Token::Literal(*chars.get(at).ok_or("it ends in a backslash")?));
            }
            '*' => {
                if out.last() == Some(&Token::Many) {
                    return Err("`**` must stand alone between slashes");
                }
                out.push(Token::Many);
            }
            '?' => out.push(Token::One),
            '[' => {
                let length = class_length(chars.get(at..).unwrap_or_default())?;
                out.push(class(chars.get(at + 1..at + length - 1).unwrap_or_default())?);
                at += length - 1;
            }
            _ => out.push(Token::Literal(c)),
        }
        at += 1;
    }
    Ok(out)
}

/// The inside of `[...]`.
fn class(inside: &[char]) -> Result<Token, &'static str> {
    let (negated, members) = match inside {
        ['!' | '^', members @ ..] => (true, members),
        members => (false, members),
    };
    let mut ranges = Vec::new();
    let mut rest = members;
    while let Some((low, after)) = class_member(rest)? {
        match after {
            ['-', more @ ..] if !more.is_empty() => {
                let (high, after) = class_member(more)?.ok_or("a range has no end")?;
                if low > high {
                    return Err("a range runs backwards");
                }
                ranges.push((low, high));
                rest = after;
            }
            _ => {
                ranges.push((low, low));
                rest = after;
            }
        }
    }
    if ranges.is_empty() {
        return Err("`[]` is empty");
    }
    Ok(Token::Class { negated, ranges })
}

fn class_member(chars: &[char]) -> Result<Option<(char, &[char])>, &'static str> {
    match chars {
        [] => Ok(None),
        ['\\', c, rest @ ..] => Ok(Some((*c, rest))),
        ['\\'] => Err("a class ends in a backslash"),
        [c, rest @ ..] => Ok(Some((*c, rest))),
    }
}

/// A name as a case-insensitive file system compares it, as far as names of ours can be hit: ASCII letters in lower case,
/// the two characters outside of ASCII that fold to ASCII letters (K and the long s), and without the characters that
/// ext4 and HFS+ ignore in names (default-ignorable code points of the Unicode standard).
pub(crate) fn fold(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while !rest.is_empty() {
        let (next, length) = next_char(rest);
        match next {
            Some(c) if is_ignorable(c) => {}
            Some(c) => out.extend_from_slice(fold_char(c).encode_utf8(&mut [0; 4]).as_bytes()),
            None => out.extend_from_slice(rest.get(..length).unwrap_or_default()),
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    out
}

fn fold_char(c: char) -> char {
    match c {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        c => c.to_ascii_lowercase(),
    }
}

fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Text with a backslash in front of each character that has a meaning in patterns.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        NameGlob::parse(pattern).unwrap().matches(name.as_bytes())
    }

    #[test]
    fn wildcards() {
        for (pattern, yes, no) in [
            ("*", &["a", ".a", "a.b", "\u{e9}"][..], &[][..]),
            ("*.rs", &["a.rs", ".rs"], &["a.rsx", "rs"]),
            ("a*b*c", &["abc", "axbyc", "abbcc", "abcbc"], &["ab", "acb"]),
            ("?", &["a", "\u{e9}", "."], &["", "ab"]),
            ("[a-c]x", &["ax", "cx"], &["dx", "x"]),
            ("[!a-c]x", &["dx", "\u{e9}x"], &["ax"]),
            ("[]x]", &["]", "x"], &["y"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("{a,b}{1,2}", &["a1", "b2"], &["ab", "a"]),
            ("x{,.y}", &["x", "x.y"], &["xy"]),
            ("{a,{b,c}d}", &["a", "bd", "cd"], &["b", "ad"]),
            ("[{]a", &["{a"], &["a"]),
            ("\\*", &["*"], &["a"]),
            ("settings*.json", &["settings.json", "settings.local.json"], &["settings.jso"]),
        ] {
            for name in yes {
                assert!(matches(pattern, name), "{pattern} should match {name}");
            }
            for name in no {
                assert!(!matches(pattern, name), "{pattern} should not match {name}");
            }
        }
    }

    #[test]
    fn many_stars_stay_quick() {
        let name = "a".repeat(255);
        assert!(!matches(&"*a".repeat(60).replace("**", "*"), &format!("{name}b")));
        assert!(NameGlob::parse(&"{a,b}".repeat(9)).is_err());
    }

    #[test]
    fn folding_is_that_of_a_case_insensitive_file_system() {
        assert_eq!(fold(b".CLAUDE"), b".claude");
        assert_eq!(fold("hoo\u{212a}\u{17f}".as_bytes()), b"hooks");
        assert_eq!(fold(".g\u{200c}it".as_bytes()), b".git");
        assert_eq!(fold(b"\xffA"), b"\xffa");
        let glob = NameGlob::parse("Settings*.[J]son").unwrap().folded();
        assert!(glob.matches(&fold(b"SETTINGS.local.JSON")));
    }
}
