//! The setters of settings, for informers and their builders.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::{InformerSettings, WhenRefused};
use crate::body::{Keep, Obj};
use crate::client::{RequestedWire, ServerError};
use crate::informer::scopes;
use crate::object::{FieldPath, FieldSelector, Object, ParseError, Selector};
use crate::pipeline::Discipline;
use crate::pipeline::metrics::Metrics;
use crate::reflector;
use crate::shard::Shard;
use crate::store::{Verdict, WatchScope};

/// Defines each setter for both [`InformerSettings`] and the builder that contains them.
macro_rules! setters {
    ($($(#[$meta:meta])* fn $name:ident($self:ident $(, $arg:ident: $type:ty)*) $body:block)*) => {
        impl<K: Object> InformerSettings<K> {
            $($(#[$meta])* pub fn $name(mut $self $(, $arg: $type)*) -> Self { $body $self })*
        }

        impl<K: Object> crate::InformerBuilder<K> {
            $($(#[$meta])* pub fn $name(mut self $(, $arg: $type)*) -> Self {
                self.settings = self.settings.$name($($arg),*);
                self
            })*
        }
    };
}

setters! {
    /// Restricts the informer to one namespace. All namespaces by default, and with `""`.
    ///
    /// A name that no namespace can have is an error: of [`try_build`], or of the wait for the
    /// first list if the informer is built without it. Has no effect on cluster-scoped kinds.
    ///
    /// [`try_build`]: crate::InformerBuilder::try_build
    fn namespace(self, namespace: impl Into<Arc<str>>) {
        self.scopes = scopes([namespace]);
    }

    /// Restricts the informer to these namespaces; to none if there are none, and not at all if
    /// `""` is among them.
    ///
    /// Each namespace is listed and watched separately, into one cache. They can be
    /// [changed](crate::Informer::set_namespaces) while the informer runs.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for namespace in ["default", "kube-system", "kube-public"] {
    /// #     let metadata = serde_json::json!({"name": "a", "namespace": namespace});
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).namespaces(["default", "kube-system"]).start();
    /// maps.synced().await?; // both namespaces are listed
    /// assert_eq!(maps.lister().len(), 2);
    /// assert_eq!(maps.lister().namespace("kube-public").len(), 0);
    /// # Ok(()) });
    /// ```
    fn namespaces(self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) {
        self.scopes = scopes(namespaces);
    }

    /// Includes all namespaces, and cluster-scoped objects. Overrides earlier namespace settings.
    fn all_namespaces(self) {
        self.scopes = vec![WatchScope::Everything];
    }

    /// Restricts the informer to objects that match a label selector.
    ///
    /// Takes a [`Selector`] or its text. The server evaluates the selector; an object that no
    /// longer matches is deleted from the cache.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).labels("app=web").start();
    /// let mut events = maps.subscribe();
    /// assert_eq!(events.next().await.unwrap().key().name(), "a");
    /// let other = serde_json::json!({"metadata": {"labels": {"app": "cache"}}});
    /// server.objects("v1", "ConfigMap")?.patch("a", &other)?;
    /// assert!(events.next().await.unwrap().is_deleted());
    /// # Ok(()) });
    /// ```
    fn labels(self, labels: impl TryInto<Selector, Error: Into<ParseError>>) {
        self.labels = self.parsed("label selector", labels);
    }

    /// Restricts the informer to objects that match a field selector.
    ///
    /// Takes a [`FieldSelector`] or its text. The server evaluates the selector, and defines which
    /// fields of a kind can be selected.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{FieldSelector, Informer};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).fields(FieldSelector::named("a")).start();
    /// maps.synced().await?;
    /// assert_eq!(maps.lister().len(), 1);
    /// # Ok(()) });
    /// ```
    fn fields(self, fields: impl TryInto<FieldSelector, Error: Into<ParseError>>) {
        self.fields = self.parsed("field selector", fields);
    }

    /// Restricts the informer to a [shard](crate::shard): several processes with different shards
    /// divide the objects of a resource between them.
    ///
    /// Requests carry the selector of the shard (KEP-5866), and every received object is checked
    /// here as well, before anything but its metadata is read. So the cache has exactly the objects
    /// of the shard, whether the server obeys the selector or ignores it, as those before 1.36 and
    /// those without the feature gate `ShardedListAndWatch` do;
    /// [`Health::shard`](crate::Health::shard) says which. A server that ignores it sends
    /// everything to everyone: memory is divided all the same, but bandwidth and the scan of
    /// metadata are not.
    ///
    /// The ranges can be moved: [`Informer::set_shard`](crate::Informer::set_shard). A shard
    /// without ranges holds nothing.
    ///
    /// Children do not follow their owners into a shard by uid, because they have uids of their
    /// own: see [`shard`](crate::shard#owners-and-children).
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b", "c"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Informer;
    /// use kube_informer::shard::{HashRanges, Shard, ShardKey};
    ///
    /// let mut objects = 0;
    /// for part in HashRanges::parts(3) {
    ///     let member = Informer::<ConfigMap>::builder(client.clone()).shard(Shard::new(ShardKey::Uid, part)).start();
    ///     member.synced().await?;
    ///     objects += member.lister().len();
    /// }
    /// assert_eq!(objects, 3); // each object is in one of the three
    /// # Ok(()) });
    /// ```
    fn shard(self, shard: Shard) {
        self.shard = Some(shard);
    }

    /// Sets the resync period. None by default.
    ///
    /// A resync delivers every object to every handler again, without a request to the server: see
    /// [Resync](crate::Informer#resync).
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use std::time::Duration;
    /// use kube_informer::{Informer, Origin};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).resync(Duration::from_secs(600)).start();
    /// let mut events = maps.subscribe();
    /// assert_eq!(events.next().await.map(|event| event.origin()), Some(Origin::Initial));
    /// assert_eq!(events.next().await.map(|event| event.origin()), Some(Origin::Resync)); // ten minutes later
    /// # Ok(()) });
    /// ```
    #[doc(alias("ResyncPeriod", "ShouldResync"))]
    fn resync(self, period: Duration) {
        self.resync = Some(period);
    }

    /// Sets the wire format that is requested from the server: [`RequestedWire::Auto`] for the
    /// fastest that loses nothing, [`RequestedWire::Json`] by default.
    ///
    /// Has no effect on a custom source.
    fn wire(self, wire: impl Into<RequestedWire>) {
        self.wire = wire.into();
    }

    /// Sets how the bodies of objects are stored. [`Keep::Compact`] by default.
    fn keep(self, keep: Keep) {
        self.keep = keep;
    }

    /// Removes these fields from every object before it is stored: they are never visible, and use
    /// no memory.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).drop_fields(["data.ip"]).start();
    /// maps.synced().await?;
    /// for map in maps.lister().list() {
    ///     assert!(map.get()?.data.as_ref().is_none_or(|data| data.is_empty()));
    /// }
    /// # Ok(()) });
    /// ```
    fn drop_fields(self, fields: impl IntoIterator<Item: TryInto<FieldPath, Error: Into<ParseError>>>) {
        for field in fields {
            let field: Option<FieldPath> = self.parsed("field to drop", field);
            self.drop_fields.extend(field);
        }
    }

    /// Removes `metadata.managedFields` from every object, often half of its size. Then
    /// [`Obj::managed_fields`] and [`Obj::json`] do not have them either.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"ip": "10.0.0.1"}});
    /// # server.create(&map)?;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).drop_managed_fields().start();
    /// maps.synced().await?;
    /// assert!(maps.lister().list()[0].get()?.metadata.managed_fields.is_none());
    /// # Ok(()) });
    /// ```
    fn drop_managed_fields(self) {
        self = self.drop_fields(["metadata.managedFields"]);
    }

    /// Decodes `metadata.managedFields` with every body.
    ///
    /// By default [`Obj::get`] leaves them empty, because they are half of the work of decoding a
    /// pod and few programs read them; [`Obj::managed_fields`] decodes them alone.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # let managers = serde_json::json!([{"manager": "us", "operation": "Apply", "apiVersion": "v1"}]);
    /// # let map = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": managers}});
    /// # server.create(&map)?;
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).decode_managed_fields().start();
    /// maps.synced().await?;
    /// let map = &maps.lister().list()[0];
    /// assert_eq!(map.get()?.metadata.managed_fields, Some(map.managed_fields()?));
    /// # Ok(()) });
    /// ```
    fn decode_managed_fields(self) {
        self.decode_managed_fields = true;
    }

    /// Stores only objects that pass a test, which must depend on nothing but the object.
    ///
    /// An object that stops passing is deleted from the cache, with the final state
    /// [`Filtered`](crate::FinalState::Filtered).
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).keep_if(|map| map.label("app") != Some("db")).start();
    /// maps.synced().await?;
    /// assert_eq!(maps.lister().len(), 1);
    /// # Ok(()) });
    /// ```
    fn keep_if(self, test: impl Fn(&Obj<K>) -> bool + Send + Sync + 'static) {
        self.keep_if = Some(Arc::new(move |object| test(&object.view())));
    }

    /// Transforms each object exactly once before it is stored, and may drop it.
    ///
    /// This decodes and encodes each object: to remove fields, [`drop_fields`](Self::drop_fields)
    /// is much cheaper.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Informer;
    /// use kube_informer::store::Verdict;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client)
    ///     .transform(|map| {
    ///         map["data"]["ip"] = "hidden".into();
    ///         if map["metadata"]["name"] == "b" { Verdict::Drop } else { Verdict::Keep }
    ///     })
    ///     .start();
    /// maps.synced().await?;
    /// assert_eq!(maps.lister().len(), 1);
    /// assert_eq!(maps.lister().list()[0].value_at("data.ip")?.as_deref(), Some("hidden"));
    /// # Ok(()) });
    /// ```
    #[doc(alias("Transform", "SetTransform", "TransformFunc"))]
    fn transform(self, transform: impl Fn(&mut Value) -> Verdict + Send + Sync + 'static) {
        self.transform = Some(Arc::new(transform));
    }

    /// Sets a function that is called with every failure of a list or a watch, including failures
    /// of an established stream.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_embedded::faults::{Fault, Rule};
    /// # use kube_informer::Informer;
    /// # server.faults().inject(Rule::new(Fault::status(500)).times(2));
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let maps = Informer::<ConfigMap>::builder(client)
    ///     .on_watch_error(move |error| sender.send(error.code()).unwrap_or_default())
    ///     .start();
    /// maps.synced().await?; // succeeds at the third attempt
    /// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [Some(500), Some(500)]);
    /// # Ok(()) });
    /// ```
    #[doc(alias("SetWatchErrorHandler", "SetWatchErrorHandlerWithContext", "WatchErrorHandler", "WatchErrorHandlerWithContext"))]
    fn on_watch_error(self, on_error: impl Fn(&ServerError) + Send + Sync + 'static) {
        self.on_watch_error = Some(Arc::new(on_error));
    }

    /// Sets whether a refusal by the server ends a wait for the first list. [`WhenRefused::Fail`]
    /// by default.
    fn when_refused(self, when_refused: WhenRefused) {
        self.when_refused = when_refused;
    }

    /// Sets how the queue between reflector and controller treats several changes of one object.
    /// [`Discipline::Ordered`] by default.
    fn queue(self, discipline: Discipline) {
        self.discipline = discipline;
    }

    /// Sets how the reflector lists, watches and handles failures.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Informer;
    /// use kube_informer::reflector::{ReflectorSettings, Streaming};
    ///
    /// // LIST, then WATCH, as with servers that do not support streaming lists.
    /// let settings = ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() };
    /// let maps = Informer::<ConfigMap>::builder(client).reflector(settings).start();
    /// maps.synced().await?;
    /// assert!(!server.requests()[0].query.contains("watch=true"));
    /// # Ok(()) });
    /// ```
    fn reflector(self, settings: reflector::ReflectorSettings) {
        self.reflector = settings;
    }

    /// Sets the name of the informer in metrics and logs. By default, the resource and its group.
    ///
    /// If another informer has the name, a number is added to it; see
    /// [`InformerName`](crate::pipeline::InformerName).
    #[doc(alias("Identifier", "WithInformerName"))]
    fn name(self, name: impl Into<Arc<str>>) {
        self.name = Some(name.into());
    }

    /// Sets the receiver of metrics. With the feature `metrics`, the default is
    /// `pipeline::Facade`, which reports to the recorder of the `metrics` crate.
    #[doc(alias("InformerMetricsProvider"))]
    fn metrics(self, metrics: impl Metrics) {
        self.metrics = Some(Arc::new(metrics));
    }

    /// Sets how long an asynchronous handler may go on after the informer has been stopped. For as
    /// long as it takes by default, with a warning every ten seconds.
    ///
    /// A stopped informer delivers no further events, and waits until each handler has returned
    /// from the event that it is busy with. After this time, the future of the handler is dropped
    /// where it waits, and a warning names the object. A handler that blocks its thread cannot be
    /// cancelled.
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use std::time::Duration;
    /// use kube_informer::Informer;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).shutdown_grace(Duration::from_secs(30)).start();
    /// let stuck = maps.on_event_async(|_| std::future::pending());
    /// maps.synced().await?;
    /// maps.shutdown().await; // after half a minute
    /// # drop(stuck);
    /// # Ok(()) });
    /// ```
    fn shutdown_grace(self, grace: Duration) {
        self.shutdown_grace = Some(grace);
    }

    /// Seeds all randomness, and uses no other thread, for reproducible tests.
    ///
    /// Randomness affects for example the duration of watches and the order of objects in the
    /// cache. On a single-threaded runtime with paused time, every run has the same order of
    /// events.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b", "c", "d", "e"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::{Informer, SyncError};
    /// let list = async |seed| {
    ///     let maps = Informer::<ConfigMap>::builder(client.clone()).seed(seed).start();
    ///     maps.synced().await?;
    ///     Ok::<_, SyncError>(maps.lister().keys()) // in no particular order
    /// };
    /// assert_eq!(list(7).await?, list(7).await?);
    /// # Ok(()) });
    /// ```
    fn seed(self, seed: u64) {
        self.seed = Some(seed);
    }
}
