//! Waiting for an informer, and its health.

use super::Informer;
use super::{SyncError, WaitError};
use crate::body::Obj;
use crate::object::Object;
use crate::object::ObjectKey;
use crate::object::Version;
use crate::pipeline::health::Health;
use crate::pipeline::platform::watch;

impl<K: Object> Informer<K> {
    /// Completes when the cache is full, that is, when every scope has been listed.
    ///
    /// May be called before [`start`](Self::start), and any number of times. Fails if the informer
    /// stops, or if waiting does not help; see [`SyncError`].
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
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
    /// forbidden.remove(); // the permission is granted
    /// maps.watch_health().wait_for(|health| health.is_synced()).await?;
    /// maps.synced().await?;
    /// # Ok(()) });
    /// ```
    #[doc(alias = "WaitForCacheSync")]
    #[doc(alias(
        "HasSyncedChecker",
        "DoneChecker",
        "IsDone",
        "WaitForNamedCacheSync",
        "WaitForNamedCacheSyncWithContext"
    ))]
    pub fn synced(&self) -> impl Future<Output = Result<(), SyncError>> + Send + use<K> {
        self.core.synced()
    }

    /// Whether the cache is full, that is, whether every scope has been listed.
    ///
    /// This does not imply that handlers have processed the objects. It stays `true` when the
    /// server becomes unreachable. Adding [namespaces](Self::set_namespaces) resets it until they
    /// are listed.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).build();
    /// assert!(!maps.is_synced());
    /// maps.start();
    /// maps.synced().await?;
    /// server.refuse().await; // the server is unreachable, the cache stays readable
    /// assert!(maps.is_synced());
    /// # Ok(()) });
    /// ```
    #[must_use]
    #[doc(alias = "HasSynced")]
    #[doc(alias("InformerSynced"))]
    pub fn is_synced(&self) -> bool {
        self.core.is_synced()
    }

    /// Completes when the cache has reached a resource version.
    ///
    /// With the version of an object that was just written, this gives read-your-writes
    /// consistency.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # use serde_json::json;
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
    /// # Ok(()) });
    /// ```
    ///
    /// A version of another resource is reached only when the server reports it, for example with a
    /// bookmark. This may take a minute, or may never happen if this resource does not change at
    /// all. Fails if the server goes back in time meanwhile, and if the version cannot be compared
    /// with that of the cache because one of them is not a number.
    pub fn wait_for(&self, version: Version) -> impl Future<Output = Result<(), WaitError>> + Send + use<K> {
        self.core.wait_for(version)
    }

    /// Completes with an object when the object, or its absence, passes a test.
    ///
    /// Testing begins when the cache is full.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # use serde_json::json;
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
    /// # Ok(()) });
    /// ```
    ///
    /// The test is called once for each observed state of the object, with `None` while the object
    /// does not exist. Several changes in one batch are observed as one state. To stop waiting when
    /// the object is deleted, let the test pass for `None` too. To wait without a cache, use
    /// [`until()`](crate::one_shot::until()).
    #[doc(alias("UntilWithSync", "PreconditionFunc"))]
    pub fn wait_until<F>(
        &self,
        key: ObjectKey,
        mut test: F,
    ) -> impl Future<Output = Result<Option<Obj<K>>, WaitError>> + Send + use<K, F>
    where
        F: FnMut(Option<&Obj<K>>) -> bool + Send + 'static,
    {
        let found = self.core.wait_until(key, move |object| test(object.map(Obj::view).as_ref()));
        async move { Ok(found.await?.map(Obj::cast)) }
    }

    /// Returns the current health of the informer.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
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
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        self.core.health()
    }

    /// Returns a receiver that is notified when the health changes.
    ///
    /// [`Health::last_contact`] in a received value dates from that change;
    /// [`health`](Self::health) returns the current one.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
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
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn watch_health(&self) -> watch::Receiver<Health> {
        self.core.watch_health()
    }
}
