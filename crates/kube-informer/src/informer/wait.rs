//! Waiting for an informer, and seeing how it fares.

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::Informer;
use super::{SyncError, WaitError};
use crate::body::Obj;
use crate::object::Object;
use crate::object::ObjectKey;
use crate::object::Version;
use crate::pipeline::health::Health;

impl<K: Object> Informer<K> {
    /// Completes when the cache is full. Any number may wait. Waits for [`start`](Self::start) too.
    ///
    /// Fails if the informer stops, and where waiting cannot help: see [`SyncError`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::{Informer, SyncError};
    ///
    /// let forbidden = server.faults().inject(Rule::new(Fault::status(403)));
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// assert!(matches!(maps.synced().await, Err(SyncError::Refused(cause)) if cause.is_forbidden()));
    ///
    /// forbidden.remove(); // somebody gave us the permission
    /// maps.watch_health().wait_for(|health| health.is_synced()).await?;
    /// maps.synced().await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "WaitForCacheSync")]
    #[doc(alias(
        "HasSyncedChecker",
        "DoneChecker",
        "IsDone",
        "WaitForNamedCacheSync",
        "WaitForNamedCacheSyncWithContext"
    ))]
    pub fn synced(&self) -> BoxFuture<'static, Result<(), SyncError>> {
        self.core.synced()
    }

    /// Whether the cache is full: everything that is wanted has been listed. Says nothing of handlers, and stays so whatever happens to
    /// the server; namespaces that are [added](Self::set_namespaces) make it wait for them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).build();
    /// assert!(!maps.is_synced());
    /// maps.start();
    /// maps.synced().await?;
    /// server.refuse().await; // the server is gone, the cache is not
    /// assert!(maps.is_synced());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "HasSynced")]
    #[doc(alias("InformerSynced"))]
    pub fn is_synced(&self) -> bool {
        self.core.is_synced()
    }

    /// Completes when the cache has reached a version, such as that of an object just written: whoever reads after that reads their
    /// own write.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use serde_json::json;
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube::api::{Api, PostParams};
    /// use kube_informer::{Informer, ObjectKey, Version};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client.clone()).start();
    /// let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "a"}}))?;
    /// let written = Api::default_namespaced(client).create(&PostParams::default(), &map).await?;
    /// maps.wait_for(Version::of(&written).unwrap()).await?;
    /// assert!(maps.lister().get(&ObjectKey::of(&written).unwrap()).is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Versions of other resources are reached only when the server says so, which may take a minute, or for ever if nothing at all
    /// happens to this resource. Fails if the server goes back in time meanwhile.
    #[must_use]
    pub fn wait_for(&self, version: Version) -> BoxFuture<'static, Result<(), WaitError>> {
        self.core.wait_for(version)
    }

    /// Completes when an object, or its absence, passes a test, with the object. Begins when the cache is full.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use serde_json::json;
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"done": "yes"}});
    /// # server.create(&map)?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{Informer, ObjectKey};
    /// # let maps = Informer::<ConfigMap>::builder(client).start();
    /// let done = maps.wait_until(ObjectKey::namespaced("default", "a"), |map| {
    ///     let data = map.and_then(|map| map.get().ok()?.data.as_ref());
    ///     data.is_some_and(|data| data.contains_key("done"))
    /// });
    /// let map = tokio::time::timeout(std::time::Duration::from_secs(10), done).await??;
    /// assert!(map.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The test is asked about each state that the cache was in when it was looked at; several changes in one batch are one state. To give
    /// up when the object goes, let the test pass for `None` too. Without a cache: [`until()`](crate::one_shot::until()).
    #[must_use]
    #[doc(alias("UntilWithSync", "PreconditionFunc"))]
    pub fn wait_until(
        &self,
        key: ObjectKey,
        mut test: impl FnMut(Option<&Obj<K>>) -> bool + Send + 'static,
    ) -> BoxFuture<'static, Result<Option<Obj<K>>, WaitError>> {
        let found = self.core.wait_until(key, move |object| test(object.map(Obj::view).as_ref()));
        found.map(|found| found.map(|object| object.map(Obj::cast))).boxed()
    }

    /// How it fares, now.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Condition, Informer};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).build();
    /// assert!(matches!(maps.health().condition, Condition::Idle));
    /// maps.start();
    /// maps.synced().await?;
    /// assert!(maps.health().version.is_some());
    /// maps.shutdown().await;
    /// assert!(matches!(maps.health().condition, Condition::Stopped));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        self.core.health()
    }

    /// How it fares, whenever that changes. The time of the last contact is only as new as the change.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::{Condition, Informer};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut health = maps.watch_health();
    /// health.wait_for(|health| matches!(health.condition, Condition::Synced)).await?;
    ///
    /// server.faults().inject(Rule::new(Fault::status(500)).once());
    /// server.cut();
    /// let degraded = health.wait_for(|health| matches!(health.condition, Condition::Degraded { .. })).await?.clone();
    /// assert!(degraded.is_synced(), "what is in the cache can be read, and ages");
    /// health.wait_for(|health| matches!(health.condition, Condition::Synced)).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn watch_health(&self) -> watch::Receiver<Health> {
        self.core.watch_health()
    }
}
