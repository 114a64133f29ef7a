//! What can go wrong with bytes and with text written by people.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use crate::codec::Broken;

/// A body that does not fit the type it was read as, or bytes that are no object at all.
///
/// Its text says what was expected and where reading stopped, never what stood there: objects hold secrets.
#[derive(Clone)]
pub struct DecodeError(Arc<Inner>);

struct Inner {
    target: &'static str,
    cause: Cause,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
    /// Not JSON.
    Syntax { line: usize, column: usize },
    /// Ends too early.
    Truncated,
    /// JSON, but not of the wanted shape.
    Shape { line: usize, column: usize },
    /// No object that can be kept.
    Broken(Broken),
}

impl DecodeError {
    pub(crate) fn of_json<K>(error: &serde_json::Error) -> Self {
        use serde_json::error::Category;
        let (line, column) = (error.line(), error.column());
        let cause = match error.classify() {
            Category::Data => Cause::Shape { line, column },
            Category::Eof => Cause::Truncated,
            Category::Syntax | Category::Io => Cause::Syntax { line, column },
        };
        Self(Arc::new(Inner { target: type_name::<K>(), cause }))
    }

    pub(crate) fn broken<K>(broken: Broken) -> Self {
        Self(Arc::new(Inner { target: type_name::<K>(), cause: Cause::Broken(broken) }))
    }

    /// The name of the type that the bytes were read as.
    #[must_use]
    pub fn target(&self) -> &'static str {
        self.0.target
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.0.target;
        match &self.0.cause {
            Cause::Syntax { line, column } => write!(f, "not JSON at line {line} column {column} (wanted {target})"),
            Cause::Truncated => write!(f, "the JSON ends too early (wanted {target})"),
            Cause::Shape { line, column } => write!(f, "does not fit {target} at line {line} column {column}"),
            Cause::Broken(broken) => write!(f, "{broken}"),
        }
    }
}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodeError").field("target", &self.0.target).field("cause", &self.0.cause).finish()
    }
}

impl std::error::Error for DecodeError {}

/// Text that is not what it was parsed as: a key, a selector, a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    message: Box<str>,
}

impl ParseError {
    pub(crate) fn new(message: impl Into<Box<str>>) -> Self {
        Self { message: message.into() }
    }
}
