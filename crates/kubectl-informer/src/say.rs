//! Standard error: for whoever listens, and nobody has to.

use std::io::Write as _;

/// Says a line. That nobody hears it is no reason to stop.
pub(crate) fn say(text: &str) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}
