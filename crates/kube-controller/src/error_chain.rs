//! The text of an error with its causes.

use std::error::Error;
use std::fmt;

/// Displays an error and its causes, separated by colons. A cause whose text is there already is
/// left out, because many errors display their cause themselves.
pub(crate) struct ErrorChain<'a>(pub(crate) &'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(next) = cause {
            let line = next.to_string();
            if !text.contains(&line) {
                text.push_str(": ");
                text.push_str(&line);
            }
            cause = next.source();
        }
        f.write_str(&text)
    }
}
