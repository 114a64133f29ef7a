//! The error of a reconciler.

use std::error::Error as StdError;
use std::fmt;

use crate::error_chain::ErrorChain;

/// Why an attempt to reconcile failed, and whether trying again can help.
///
/// Made from any error by `?`, and then retried with backoff. A [terminal](Self::terminal) one is
/// not retried until the object changes.
///
/// ```
/// use kube_controller::Error;
///
/// fn port(text: &str) -> Result<u16, Error> {
///     text.parse().map_err(Error::terminal) // only a change of the object helps
/// }
/// assert!(port("many").unwrap_err().is_terminal());
///
/// fn file() -> Result<String, Error> {
///     Ok(std::fs::read_to_string("/does/not/exist")?) // tried again
/// }
/// assert!(!file().unwrap_err().is_terminal());
/// ```
#[doc(alias = "TerminalError")]
pub struct Error {
    source: Box<dyn StdError + Send + Sync>,
    is_terminal: bool,
}

impl Error {
    /// Creates an error that is retried with backoff.
    ///
    /// For what `?` does not convert: text, and error types that are not
    /// [`std::error::Error`] themselves.
    pub fn new(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: source.into(), is_terminal: false }
    }

    /// Creates an error that is not retried: only a change of the object can help.
    pub fn terminal(source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: source.into(), is_terminal: true }
    }

    /// Returns whether trying again cannot help.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Returns the error that this one was made from.
    #[must_use]
    pub fn into_source(self) -> Box<dyn StdError + Send + Sync> {
        self.source
    }
}

// `Error` is not a `std::error::Error` itself, which lets it be made from all of them.
impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(source: E) -> Self {
        Self::new(source)
    }
}

/// The error and its causes, separated by colons. A cause whose text the error already has is left
/// out.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(&*self.source), f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error").field("source", &self.source).field("is_terminal", &self.is_terminal).finish()
    }
}
