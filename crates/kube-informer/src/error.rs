//! What can go wrong with bytes and with text written by people.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::codec::{Broken, path_to};
use crate::path::FieldPath;
use crate::server_error::ServerError;

/// A body that does not fit the type it was read as, or bytes that are no object at all.
///
/// Its text says which field of which type, never what stood there: objects hold secrets.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Obj;
///
/// let map = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"a"},"data":{"password":1234}}"#)?;
/// let error = map.get().unwrap_err();
/// assert_eq!(error.path().unwrap().to_string(), "data.password");
/// assert!(!error.to_string().contains("1234"));
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Clone)]
pub struct DecodeError(Arc<Inner>);

struct Inner {
    target: &'static str,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    /// Not JSON.
    Syntax { at: usize },
    /// Ends too early.
    Truncated,
    /// JSON, but not of the wanted shape here.
    Shape { path: Option<FieldPath> },
    /// No object that can be kept.
    Broken(Broken),
}

impl DecodeError {
    /// What serde found wrong with `json`. Its own message quotes values, and so is not kept.
    pub(crate) fn of_json<K>(error: &serde_json::Error, json: &[u8]) -> Self {
        use serde_json::error::Category;
        let at = offset(json, error.line(), error.column());
        let cause = match error.classify() {
            Category::Data => Cause::Shape { path: path_to(json, at.saturating_sub(1)) },
            Category::Eof => Cause::Truncated,
            Category::Syntax | Category::Io => Cause::Syntax { at },
        };
        Self(Arc::new(Inner { target: type_name::<K>(), cause }))
    }

    pub(crate) fn broken<K>(broken: Broken) -> Self {
        Self(Arc::new(Inner { target: type_name::<K>(), cause: Cause::Broken(broken) }))
    }

    /// The field that does not fit, if the bytes were JSON and it was one field.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Obj;
    ///
    /// let odd = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"b"},"data":{"k":7}}"#)?;
    /// assert_eq!(odd.get().unwrap_err().path().unwrap().to_string(), "data.k");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn path(&self) -> Option<&FieldPath> {
        match &self.0.cause {
            Cause::Shape { path } => path.as_ref(),
            Cause::Syntax { .. } | Cause::Truncated | Cause::Broken(_) => None,
        }
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
            Cause::Syntax { at } => write!(f, "not JSON at byte {at} (wanted {target})"),
            Cause::Truncated => write!(f, "the JSON ends too early (wanted {target})"),
            Cause::Shape { path: Some(path) } => write!(f, "{path} does not fit {target}"),
            Cause::Shape { path: None } => write!(f, "does not fit {target}"),
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

/// Where in the bytes a line and a column are, both counted from one.
fn offset(json: &[u8], line: usize, column: usize) -> usize {
    let newlines = memchr::memchr_iter(b'\n', json);
    let begin =
        line.checked_sub(2).and_then(|before| newlines.into_iter().nth(before)).map_or(0, |newline| newline + 1);
    begin + column
}

/// Text that is not what it was parsed as: a key, a selector, a path.
///
/// ```
/// use kube_informer::{ParseError, Selector};
///
/// let error: ParseError = "app in (".parse::<Selector>().unwrap_err();
/// assert!(!error.to_string().is_empty());
/// ```
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

/// An informer has not synced, and will not by waiting.
///
/// A refusal need not be the end: the informer keeps trying, and a later wait can succeed.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_embedded::fault::{Fault, Rule};
/// use kube_informer::{Informer, SyncError};
///
/// server.faults().inject(Rule::new(Fault::status(403)).times(5));
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// match maps.synced().await {
///     Err(SyncError::Refused(cause)) => assert!(cause.is_forbidden()),
///     other => panic!("{other:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[doc(alias("SyncResult"))]
pub enum SyncError {
    /// The server refuses: credentials (401), permission (403), or it does not know the resource (404).
    /// Whether this ends a wait can be [set](crate::InformerBuilder::when_refused).
    #[error("the cache cannot be filled: {0}")]
    Refused(ServerError),
    /// The informer has stopped, or the handler was removed.
    #[error("the informer has stopped, or the handler was removed")]
    Stopped,
}

/// A version or a state of an object will not come by waiting.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, Version, WaitError};
///
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// let far = maps.wait_for(Version::from(1_000_000));
/// maps.shutdown().await;
/// assert_eq!(far.await, Err(WaitError::Stopped));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The informer has stopped.
    #[error("the informer has stopped")]
    Stopped,
    /// The server went back in time, as after a restored backup: versions from before mean nothing any more.
    #[error("the server went back in time: versions from before mean nothing any more")]
    WentBack,
}

/// The namespaces of an informer out of a [`Factory`](crate::Factory) stay as they are: others may hold it who count on them.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Factory;
///
/// let factory = Factory::builder(client).build()?;
/// let maps = factory.informer::<ConfigMap>();
/// assert!(maps.set_namespaces(["default"]).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the informer of {resource} is shared, so its namespaces stay as they are: ask the factory for others")]
pub struct NamespacesShared {
    pub(crate) resource: Box<str>,
}

/// The cache has not heard of the server for too long.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, Stale};
///
/// let maps = Informer::<ConfigMap>::builder(client).build();
/// let fresh = maps.lister().fresh_within(Duration::from_secs(60));
/// assert_eq!(fresh.err(), Some(Stale { age: None }), "it has not even been started");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .age {
    Some(age) => format!("the server was last heard of {:.1} s ago", age.as_secs_f64()),
    None => "the cache has not been filled yet".to_owned(),
})]
pub struct Stale {
    /// How long ago the server was last heard of; none if the cache has not been filled yet.
    pub age: Option<Duration>,
}
