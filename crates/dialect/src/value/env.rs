//! Names and values of variables.

use super::{Fault, shown};
use crate::codes;

/// A pattern over names: `*` stands for any text. Names of the environment may hold more than those that a shell can
/// set, so only what can be in no name is refused (environ(7): a name holds no `=`).
pub(crate) fn pattern(text: &str) -> Result<String, Fault> {
    let fault =
        |label: &str| Fault::new(codes::ENV_NAME, format!("`{}` is no name of a variable", shown(text))).label(label);
    if text.is_empty() {
        return Err(fault("it is empty"));
    }
    if text.contains('=') {
        return Err(fault("a name holds no `=`").hint("values are given in `set = { NAME = \"value\" }`"));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(fault("a name holds no white space"));
    }
    if text.contains(['?', '[', ']', '{', '}']) {
        return Err(fault("`*` is the only wildcard"));
    }
    Ok(text.to_owned())
}

/// A name that is set: letters, digits and `_`, not starting with a digit (POSIX, XBD 8.1).
pub(crate) fn name(text: &str) -> Result<String, Fault> {
    let first = text.chars().next();
    let fits = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if fits {
        Ok(text.to_owned())
    } else {
        Err(Fault::new(codes::ENV_NAME, format!("`{}` is no name that can be set", shown(text)))
            .label("letters, digits and `_`, not starting with a digit"))
    }
}

/// A value: anything but a NUL, which ends it (execve(2)).
pub(crate) fn value(text: &str) -> Result<String, Fault> {
    if text.contains('\0') {
        return Err(Fault::new(codes::ENV_NAME, "the value holds a NUL, which ends it").label("without a NUL"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_patterns() {
        for good in ["A", "*_SECRET", "npm_config_//host/:_authToken", "ProgramFiles(x86)", "*"] {
            assert_eq!(pattern(good).as_deref(), Ok(good));
        }
        for bad in ["", "A=1", "A B", "A\0", "A?", "A[12]", "{A,B}"] {
            assert_eq!(pattern(bad).unwrap_err().code, codes::ENV_NAME, "{bad}");
        }
        for good in ["A", "_a1", "IS_SANDBOX"] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        for bad in ["", "1A", "A-B", "A*", "É"] {
            assert_eq!(name(bad).unwrap_err().code, codes::ENV_NAME, "{bad}");
        }
        assert_eq!(value("a\0b").unwrap_err().code, codes::ENV_NAME);
        assert_eq!(value("").as_deref(), Ok(""));
    }
}
