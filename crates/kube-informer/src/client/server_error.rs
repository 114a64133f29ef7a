//! Errors of requests to a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::failure::Failure;

use crate::codec::ServerStatus;

pub(crate) mod answer;
mod failure;

/// A request to a server, or its response stream, has failed.
///
/// Its message contains the operation and the reason, possibly with the server's error message, but
/// never a part of an object. Cheap to clone.
///
/// ```
/// use kube_informer::client::{Failure, Operation, ServerError};
///
/// let error = ServerError::new(Operation::Watch, "pods", Failure::ConnectionRefused);
/// assert_eq!(error.to_string(), "watching pods: connection refused");
/// assert!(error.is_connection_refused());
/// ```
#[derive(Clone)]
pub struct ServerError(Arc<Inner>);

struct Inner {
    operation: Operation,
    what: Arc<str>,
    failure: Failure,
}

/// The operation that failed.
///
/// ```
/// use kube_informer::client::{Failure, Operation, ServerError};
///
/// let error = ServerError::new(Operation::List, "pods", Failure::ConnectionRefused);
/// assert_eq!(error.operation(), Operation::List);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A LIST, or a page of one.
    List,
    /// A streaming list: a watch that begins with all objects.
    StreamingList,
    /// A watch from a version.
    Watch,
    /// A request for the current version, because a watch has been silent.
    Probe,
    /// Discovery of the served resources.
    Discover,
}

impl ServerError {
    /// Creates an error, for custom sources.
    #[must_use]
    pub fn new(operation: Operation, what: impl Into<Arc<str>>, failure: Failure) -> Self {
        Self(Arc::new(Inner { operation, what: what.into(), failure }))
    }

    /// The operation that failed.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.0.operation
    }

    /// Why it failed.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        &self.0.failure
    }

    /// The status that the server returned, or sent as the last event of a watch.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::one_shot::Pager;
    ///
    /// let nonsense = ApiListWatch::of::<ConfigMap>(client).labels("app in (");
    /// let error = Pager::<ConfigMap>::new(nonsense).list().await.unwrap_err();
    /// assert_eq!(error.code(), Some(400));
    /// assert_eq!(error.status().unwrap().reason, "BadRequest");
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn status(&self) -> Option<&ServerStatus> {
        match &self.0.failure {
            Failure::Answered { status, .. } => Some(status),
            _ => None,
        }
    }

    /// The HTTP status code of the response, if there was one.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// How long the server requires the client to wait before a retry (`Retry-After`).
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::client::ApiListWatch;
    /// use kube_informer::one_shot::Pager;
    ///
    /// server.faults().inject(Rule::new(Fault::status(429).retry_after(7)));
    /// let error = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).list().await.unwrap_err();
    /// assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.0.failure {
            Failure::Answered { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The resource version is too old: later changes are no longer available (410, `Expired` or
    /// `Gone`).
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410 || matches!(&*status.reason, "Expired" | "Gone"))
    }

    /// The server has not reached the resource version: it lags, or it went back in time.
    #[must_use]
    pub fn is_too_large_version(&self) -> bool {
        const MESSAGE: &str = "Too large resource version";
        let Some(status) = self.status() else { return false };
        let timeout = status.code == 504 || status.reason == "Timeout";
        let in_causes = || status.details.causes.iter().any(|cause| cause.message == MESSAGE);
        status.details.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || (timeout && (status.message.contains(MESSAGE) || in_causes()))
    }

    /// The server does not accept the client's credentials (401), or they could not be obtained.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401) || matches!(self.0.failure, Failure::Credentials(_))
    }

    /// The client does not have the permission (403).
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// The server does not know this resource (404, or [`Failure::NotServed`]).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404) || self.0.failure == Failure::NotServed
    }

    /// The server limits the request rate, or is not ready for this resource (429).
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == Some(429)
    }

    /// The connection was refused.
    #[must_use]
    pub fn is_connection_refused(&self) -> bool {
        matches!(self.0.failure, Failure::ConnectionRefused)
    }

    /// The server rejects the request itself (400, 405, 406, 414, 415, 422), or it cannot be built:
    /// no retry can change that.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Informer, SyncError};
    ///
    /// // Config maps cannot be selected by this field.
    /// let maps = Informer::<ConfigMap>::builder(client).fields("data.colour=blue").start();
    /// assert!(matches!(maps.synced().await, Err(SyncError::Refused(cause)) if cause.is_rejected()));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn is_rejected(&self) -> bool {
        matches!(self.code(), Some(400 | 405 | 406 | 414 | 415 | 422)) || matches!(self.0.failure, Failure::Request(_))
    }

    /// Whether waiting cannot help until permissions, credentials, the definition of the resource
    /// or the request change.
    pub(crate) fn is_refusal(&self) -> bool {
        self.is_unauthorized() || self.is_forbidden() || self.is_not_found() || self.is_rejected()
    }

    /// Whether the same request may succeed later: the server was not reached, is busy, or fails
    /// temporarily. False if it rejects the request, such as for an expired version, or returns an
    /// unusable response.
    pub(crate) fn is_retryable(&self) -> bool {
        match &self.0.failure {
            Failure::Answered { status, .. } => {
                let refused = (400..500).contains(&status.code) && !matches!(status.code, 408 | 429);
                !refused && !self.is_expired()
            }
            Failure::Credentials(_)
            | Failure::Request(_)
            | Failure::NotAList { .. }
            | Failure::UndecodableObject(_)
            | Failure::NoVersion => false,
            _ => true,
        }
    }

    /// An internal error of the server (`InternalError`).
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "InternalError" || status.code == 500)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.0.operation, self.0.what, self.0.failure)
    }
}

impl fmt::Debug for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { operation, what, failure } = &*self.0;
        f.debug_struct("ServerError")
            .field("operation", operation)
            .field("what", what)
            .field("failure", failure)
            .finish()
    }
}

impl std::error::Error for ServerError {}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::List => "listing",
            Self::StreamingList => "listing by watch",
            Self::Watch => "watching",
            Self::Probe => "asking for the version of",
            Self::Discover => "discovering",
        })
    }
}
