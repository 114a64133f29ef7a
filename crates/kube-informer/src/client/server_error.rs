//! What can go wrong between us and a server.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use self::failure::Failure;

use crate::codec::ServerStatus;

pub(crate) mod answer;
mod failure;

/// A request to a server, or the stream it answered with, has failed.
///
/// Says what was being done and why it failed. Its text may hold what the server itself said of the failure, never a part of an
/// object. Cheap to clone.
///
/// ```
/// use kube_informer::{Doing, Failure, ServerError};
///
/// let error = ServerError::new(Doing::Watch, "pods", Failure::ConnectionRefused);
/// assert_eq!(error.to_string(), "watching pods: connection refused");
/// assert!(error.is_connection_refused());
/// ```
#[derive(Clone)]
pub struct ServerError(Arc<Inner>);

struct Inner {
    doing: Doing,
    what: Arc<str>,
    failure: Failure,
}

/// What was being done when something failed.
///
/// ```
/// use kube_informer::{Doing, Failure, ServerError};
///
/// let error = ServerError::new(Doing::List, "pods", Failure::ConnectionRefused);
/// assert_eq!(error.doing(), Doing::List);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Doing {
    /// A LIST, or a page of one.
    List,
    /// A watch that begins with everything there is.
    StreamingList,
    /// A watch from a version.
    Watch,
    /// Asking for the present version, because a watch has been silent.
    Probe,
    /// Asking what the server serves.
    Discover,
}

impl ServerError {
    /// An error of a source of one's own.
    #[must_use]
    pub fn new(doing: Doing, what: impl Into<Arc<str>>, failure: Failure) -> Self {
        Self(Arc::new(Inner { doing, what: what.into(), failure }))
    }

    /// What was being done.
    #[must_use]
    pub fn doing(&self) -> Doing {
        self.0.doing
    }

    /// Why it failed.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        &self.0.failure
    }

    /// The status that the server answered with, or sent as the last event of a watch.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{ApiListWatch, Pager};
    ///
    /// let nonsense = ApiListWatch::of::<ConfigMap>(client).labels("app in (");
    /// let error = Pager::<ConfigMap>::new(nonsense).list().await.unwrap_err();
    /// assert_eq!(error.code(), Some(400));
    /// assert_eq!(error.status().unwrap().reason, "BadRequest");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn status(&self) -> Option<&ServerStatus> {
        match &self.0.failure {
            Failure::Answered { status, .. } => Some(status),
            _ => None,
        }
    }

    /// The HTTP status code of the answer, if there was one.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.status().map(|status| status.code)
    }

    /// How long the server asks us to stay away.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::{ApiListWatch, Pager};
    ///
    /// server.faults().inject(Rule::new(Fault::status(429).retry_after(7)));
    /// let error = Pager::<ConfigMap>::new(ApiListWatch::of::<ConfigMap>(client)).list().await.unwrap_err();
    /// assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.0.failure {
            Failure::Answered { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The version is too old: what happened since is no longer known (410, `Expired` or `Gone`).
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410 || matches!(&*status.reason, "Expired" | "Gone"))
    }

    /// The server has not reached the version: it lags, or it went back.
    #[must_use]
    pub fn is_too_large_version(&self) -> bool {
        const SENTENCE: &str = "Too large resource version";
        let Some(status) = self.status() else { return false };
        let timeout = status.code == 504 || status.reason == "Timeout";
        let said = || status.details.causes.iter().any(|cause| cause.message == SENTENCE);
        status.details.causes.iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
            || (timeout && (status.message.contains(SENTENCE) || said()))
    }

    /// Who we are is not known (401), or our credentials could not be had.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        self.code() == Some(401) || matches!(self.0.failure, Failure::Credentials(_))
    }

    /// We may not do this (403).
    #[must_use]
    pub fn is_forbidden(&self) -> bool {
        self.code() == Some(403)
    }

    /// The server does not know this resource (404).
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// The server asks us to come more seldom, or is not ready for this resource (429).
    #[must_use]
    pub fn is_too_many_requests(&self) -> bool {
        self.code() == Some(429)
    }

    /// Nobody listens there.
    #[must_use]
    pub fn is_connection_refused(&self) -> bool {
        matches!(self.0.failure, Failure::ConnectionRefused)
    }

    /// Whether the same request may succeed later: the server was not reached, is busy, or broken for now. Not so where it refuses
    /// what was asked for, as an expired version, or answers with what cannot be used.
    pub(crate) fn may_pass(&self) -> bool {
        match &self.0.failure {
            Failure::Answered { status, .. } => {
                let refused = (400..500).contains(&status.code) && !matches!(status.code, 408 | 429);
                !refused && !self.is_expired()
            }
            Failure::Credentials(_)
            | Failure::Request(_)
            | Failure::NotAList { .. }
            | Failure::UndecodableObject
            | Failure::NoVersion => false,
            _ => true,
        }
    }

    /// Something broke inside the server (`InternalError`).
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.status().is_some_and(|status| status.reason == "InternalError" || status.code == 500)
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.0.doing, self.0.what, self.0.failure)
    }
}

impl fmt::Debug for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { doing, what, failure } = &*self.0;
        f.debug_struct("ServerError").field("doing", doing).field("what", what).field("failure", failure).finish()
    }
}

impl std::error::Error for ServerError {}

impl fmt::Display for Doing {
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
