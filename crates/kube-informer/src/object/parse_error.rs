//! Parse errors.

use std::convert::Infallible;

/// Text that is not a valid key, selector or path.
///
/// ```
/// use kube_informer::Selector;
/// use kube_informer::object::ParseError;
///
/// let error: ParseError = "app in (".parse::<Selector>().unwrap_err();
/// assert!(!error.to_string().is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{message}")]
pub struct ParseError {
    message: Box<str>,
}

impl ParseError {
    pub(crate) fn new(message: impl Into<Box<str>>) -> Self {
        Self { message: message.into() }
    }
}

/// For arguments that are already parsed.
impl From<Infallible> for ParseError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}
