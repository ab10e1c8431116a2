//! What every failed call is.

use std::borrow::Cow;

pub use rustix::io::Errno;

/// A system call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{call}({args}): {}", text(*errno))]
pub struct SysError {
    /// Its name, as in section 2 of the manual.
    pub call: Cow<'static, str>,
    /// The arguments that matter, in the order of the manual.
    pub args: String,
    /// The error number.
    pub errno: Errno,
}

impl SysError {
    /// A failure of `call`.
    pub fn new(call: impl Into<Cow<'static, str>>, args: impl Into<String>, errno: Errno) -> Self {
        Self { call: call.into(), args: args.into(), errno }
    }
}

/// The system's sentence for an error number, without the number that the standard library appends.
fn text(errno: Errno) -> String {
    let full = std::io::Error::from(errno).to_string();
    full.split(" (os error").next().unwrap_or(&full).to_owned()
}

/// Adds the call to an error number.
pub(crate) trait Context<T> {
    /// `args` runs only on failure.
    fn at(self, call: &'static str, args: impl FnOnce() -> String) -> Result<T, SysError>;
}

impl<T> Context<T> for Result<T, Errno> {
    fn at(self, call: &'static str, args: impl FnOnce() -> String) -> Result<T, SysError> {
        self.map_err(|errno| SysError::new(call, args(), errno))
    }
}

/// `errno` of the thread, after a call through libc.
pub(crate) fn last_errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::INVAL, Errno::from_raw_os_error)
}

/// A failure whose number is in `errno`.
pub(crate) fn failed(call: &'static str, args: impl Into<String>) -> SysError {
    SysError::new(call, args, last_errno())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_the_call_that_failed() {
        let error = SysError::new("openat2", "\"/x\"", Errno::NOENT);
        assert_eq!(error.to_string(), "openat2(\"/x\"): No such file or directory");
        assert_ne!(error, SysError::new("openat2", "\"/x\"", Errno::ACCESS));
    }
}
