//! Errors of settings, of waits, of staleness checks and of shared namespaces.

use std::time::Duration;

use crate::client::ServerError;
use crate::object::ParseError;

/// A setting with which no request can be sent: a namespace, selector, path or resource that is
/// not one.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, SyncError};
///
/// let invalid = Informer::<ConfigMap>::builder(client.clone()).labels("app in (").try_build().unwrap_err();
/// assert!(invalid.to_string().starts_with("label selector: "));
///
/// let maps = Informer::<ConfigMap>::builder(client).namespace("*").start();
/// assert!(matches!(maps.synced().await, Err(SyncError::Invalid(_))));
/// assert!(server.requests().is_empty());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{setting}: {reason}")]
#[non_exhaustive]
pub struct InvalidSetting {
    /// The setting.
    pub setting: &'static str,
    /// What is wrong with its value.
    pub reason: ParseError,
}

impl InvalidSetting {
    pub(crate) fn new(setting: &'static str, reason: impl Into<ParseError>) -> Self {
        Self { setting, reason: reason.into() }
    }
}

/// An informer has not synced, and waiting longer does not help.
///
/// A refusal is not final: the informer keeps retrying, and a later wait can succeed.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_embedded::faults::{Fault, Rule};
/// use kube_informer::{Informer, SyncError};
///
/// server.faults().inject(Rule::new(Fault::status(403)).times(5));
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// match maps.synced().await {
///     Err(SyncError::Refused(cause)) => assert!(cause.is_forbidden()),
///     other => panic!("{other:?}"),
/// }
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
#[doc(alias("SyncResult"))]
pub enum SyncError {
    /// The server refuses the request: missing credentials (401), missing permission (403), an
    /// unknown resource (404), or a request that it [rejects](ServerError::is_rejected), such as
    /// for a field selector that it does not support (400).
    ///
    /// [`when_refused`](crate::InformerBuilder::when_refused) configures whether this ends a wait.
    #[error("the cache cannot be filled: {0}")]
    Refused(ServerError),
    /// The informer was built with a setting that is not valid, and has never run.
    #[error("the informer cannot run: {0}")]
    Invalid(InvalidSetting),
    /// The informer has stopped, or the handler was removed.
    #[error("the informer has stopped, or the handler was removed")]
    Stopped,
}

/// A version or a state of an object was not reached, and waiting longer does not help.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, Version, WaitError};
///
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// let far = maps.wait_for(Version::from(1_000_000));
/// maps.shutdown().await;
/// assert_eq!(far.await, Err(WaitError::Stopped));
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The informer has stopped.
    #[error("the informer has stopped")]
    Stopped,
    /// The server went back in time, for example after a restored backup. Earlier resource versions
    /// are no longer meaningful.
    #[error("the server went back in time: versions from before mean nothing any more")]
    WentBack,
    /// The version cannot be compared with the one that the cache has reached, because one of them
    /// is not a number.
    #[error("the version cannot be compared with that of the cache: one of them is not a number")]
    NotComparable,
}

/// The namespaces of an informer cannot be changed.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Factory;
/// use kube_informer::informer::SetNamespacesError;
///
/// let factory = Factory::builder(client).build()?;
/// let maps = factory.informer::<ConfigMap>();
/// assert!(matches!(maps.set_namespaces(["default"]), Err(SetNamespacesError::Shared { .. })));
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetNamespacesError {
    /// The informer is one of a [`Factory`](crate::Factory). It is shared, and its other handles
    /// may rely on its namespaces.
    #[error("the informer of {resource} is shared, so its namespaces stay as they are: ask the factory for others")]
    Shared {
        /// The plural of the resource.
        resource: Box<str>,
    },
    /// One of the names is not the name of a namespace. The namespaces stay as they were.
    #[error(transparent)]
    Invalid(#[from] InvalidSetting),
}

/// The cache was last known to be current too long ago, or it has not been filled yet.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::informer::Stale;
///
/// let maps = Informer::<ConfigMap>::builder(client).build();
/// let fresh = maps.lister().fresh_within(Duration::from_secs(60));
/// assert_eq!(fresh.err(), Some(Stale { age: None }), "it has not even been started");
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .age {
    Some(age) => format!("the cache was last known to have everything that the server has {:.1} s ago", age.as_secs_f64()),
    None => "the cache has not been filled yet".to_owned(),
})]
pub struct Stale {
    /// The time since the cache was last known to be current; `None` if it has not been filled yet.
    pub age: Option<Duration>,
}
