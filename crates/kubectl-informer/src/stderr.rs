//! Messages on standard error.

use std::io::Write as _;

/// Writes a line to standard error; write errors are ignored.
pub(crate) fn stderr(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}
