//! The error of a write.

use kube::core::{ApiResource, Status};

use crate::error_chain::ErrorChain;

/// A write has failed, or its outcome is unknown.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct WriteError(Box<FailedWrite>);

#[derive(Debug, thiserror::Error)]
#[error("{operation} of {resource} {object}: {cause}")]
struct FailedWrite {
    operation: &'static str,
    resource: String,
    object: String,
    #[source]
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{0}")]
    Refused(Box<Status>),
    #[error("the outcome is unknown: {}", ErrorChain(.0))]
    Unknown(kube::Error),
    #[error("it was not sent: {0}")]
    NotSent(String),
}

impl WriteError {
    pub(crate) fn of_server(
        operation: &'static str,
        resource: &ApiResource,
        object: String,
        error: kube::Error,
    ) -> Self {
        let cause = match error {
            kube::Error::Api(status) if is_refusal(&status) => Cause::Refused(status),
            error => Cause::Unknown(error),
        };
        Self::new(operation, resource, object, cause)
    }

    pub(crate) fn not_sent(operation: &'static str, resource: &ApiResource, object: String, reason: String) -> Self {
        Self::new(operation, resource, object, Cause::NotSent(reason))
    }

    fn new(operation: &'static str, resource: &ApiResource, object: String, cause: Cause) -> Self {
        Self(Box::new(FailedWrite { operation, resource: resource.plural.clone(), object, cause }))
    }

    /// Returns the server's response, if it refused the write.
    #[must_use]
    pub fn status(&self) -> Option<&Status> {
        match &self.0.cause {
            Cause::Refused(status) => Some(status),
            Cause::Unknown(_) | Cause::NotSent(_) => None,
        }
    }

    /// Returns whether it is not known if the server has executed the write, as after a lost
    /// response.
    ///
    /// The object that is reconciled waits until the caches have what the server has.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self.0.cause, Cause::Unknown(_))
    }

    /// Returns whether the object has changed or been replaced meanwhile (409).
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.has_reason("Conflict")
    }

    /// Returns whether an object with this name exists (409).
    #[must_use]
    pub fn is_already_exists(&self) -> bool {
        self.has_reason("AlreadyExists")
    }

    /// Returns whether the object, its namespace or its kind does not exist (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.has_reason("NotFound")
    }

    /// Returns whether the server found the object invalid (422).
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        self.has_reason("Invalid")
    }

    fn has_reason(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }
}

/// Whether the server has answered without executing the request. After any other error it may
/// have executed it.
pub(crate) fn is_refusal(status: &Status) -> bool {
    (400..500).contains(&status.code)
}
