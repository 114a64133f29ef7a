//! The settings of an informer, and their setters.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::InvalidSetting;
use crate::body::Keep;
use crate::body::{Obj, Untyped};
use crate::client::ServerError;
use crate::codec::{FieldCutter, Wire};
use crate::object::{FieldPath, FieldSelector, Object, ParseError, Selector};
use crate::pipeline::Discipline;
use crate::pipeline::metrics::Metrics;
use crate::reflector;
use crate::store::Verdict;
use crate::store::WatchScope;

/// Whether a refusal by the server (401, 403, 404, or a request that it rejects, such as with 400)
/// ends a wait for the first list.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_embedded::faults::{Fault, Rule};
/// use kube_informer::Informer;
/// use kube_informer::informer::WhenRefused;
///
/// # tokio::time::pause();
/// // The resource definition does not exist yet.
/// server.faults().inject(Rule::new(Fault::status(404)).times(3));
/// let maps = Informer::<ConfigMap>::builder(client).when_refused(WhenRefused::Wait).start();
/// maps.synced().await?;
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WhenRefused {
    /// The wait fails with the cause: the refusal usually has to be fixed by a person.
    #[default]
    Fail,
    /// The wait continues, for example because permissions or the resource definition are created
    /// later.
    Wait,
}

/// The settings of an informer, with the same setters as
/// [`InformerBuilder`](crate::InformerBuilder).
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::informer::InformerSettings;
///
/// fn ours() -> InformerSettings<ConfigMap> {
///     InformerSettings::default().resync(Duration::from_secs(600)).drop_managed_fields()
/// }
/// let maps = Informer::<ConfigMap>::builder(client).settings(ours()).start();
/// maps.synced().await?;
/// # Ok(()) });
/// ```
#[must_use = "settings do nothing until an informer is built with them"]
pub struct InformerSettings<K> {
    pub(crate) scopes: Vec<WatchScope>,
    pub(crate) labels: Option<Selector>,
    pub(crate) fields: Option<FieldSelector>,
    pub(super) resync: Option<Duration>,
    pub(super) wire: Wire,
    pub(super) keep: Keep,
    pub(super) drop_fields: Vec<FieldPath>,
    pub(super) decode_managed_fields: bool,
    pub(super) keep_if: Option<KeepIf>,
    pub(super) transform: Option<Transform>,
    pub(super) on_watch_error: Option<OnWatchError>,
    pub(super) when_refused: WhenRefused,
    pub(super) discipline: Discipline,
    pub(super) reflector: reflector::ReflectorSettings,
    pub(super) metrics: Option<Arc<dyn Metrics>>,
    pub(super) name: Option<Arc<str>>,
    pub(super) seed: Option<u64>,
    pub(super) shutdown_grace: Option<Duration>,
    /// The first setting that could not be parsed.
    pub(crate) invalid: Option<InvalidSetting>,
    kind: std::marker::PhantomData<fn() -> K>,
}

pub(super) type KeepIf = Arc<dyn Fn(&Obj<Untyped>) -> bool + Send + Sync>;
pub(super) type Transform = Arc<dyn Fn(&mut Value) -> Verdict + Send + Sync>;
pub(super) type OnWatchError = Arc<dyn Fn(&ServerError) + Send + Sync>;

impl<K> Default for InformerSettings<K> {
    fn default() -> Self {
        Self {
            scopes: vec![WatchScope::Everything],
            labels: None,
            fields: None,
            resync: None,
            wire: Wire::default(),
            keep: Keep::default(),
            drop_fields: Vec::new(),
            decode_managed_fields: false,
            keep_if: None,
            transform: None,
            on_watch_error: None,
            when_refused: WhenRefused::default(),
            discipline: Discipline::default(),
            reflector: reflector::ReflectorSettings::default(),
            metrics: None,
            name: None,
            seed: None,
            shutdown_grace: None,
            invalid: None,
            kind: std::marker::PhantomData,
        }
    }
}

impl<K> InformerSettings<K> {
    pub(super) fn cutter(&self) -> FieldCutter {
        FieldCutter::new(self.drop_fields.iter().cloned())
    }

    /// Converts the settings for another type of the same objects.
    pub(crate) fn cast<V>(self) -> InformerSettings<V> {
        let Self { scopes, labels, fields, resync, wire, keep, drop_fields, keep_if, transform, .. } = self;
        let Self { on_watch_error, when_refused, discipline, reflector, metrics, name, seed, .. } = self;
        let Self { decode_managed_fields, shutdown_grace, invalid, .. } = self;
        InformerSettings {
            scopes,
            labels,
            fields,
            resync,
            wire,
            keep,
            drop_fields,
            decode_managed_fields,
            keep_if,
            transform,
            on_watch_error,
            when_refused,
            discipline,
            reflector,
            metrics,
            name,
            seed,
            shutdown_grace,
            invalid,
            kind: std::marker::PhantomData,
        }
    }

    /// The namespaces and selectors as text; empty for all objects.
    pub(super) fn scope_text(&self) -> String {
        let namespaces: Option<Vec<&str>> = self.scopes.iter().map(WatchScope::namespace).collect();
        let text = ScopeText { namespaces, labels: self.labels.as_ref(), fields: self.fields.as_ref() };
        text.to_string()
    }

    /// Whether an informer can be built with them.
    pub(crate) fn check(&self) -> Result<(), InvalidSetting> {
        match &self.invalid {
            Some(invalid) => Err(invalid.clone()),
            None => super::check_scopes(&self.scopes),
        }
    }

    /// Converts the value of a setting. Records the error if it cannot be parsed.
    fn parsed<T>(&mut self, setting: &'static str, value: impl TryInto<T, Error: Into<ParseError>>) -> Option<T> {
        match value.try_into() {
            Ok(parsed) => Some(parsed),
            Err(reason) => {
                self.invalid.get_or_insert(InvalidSetting::new(setting, reason));
                None
            }
        }
    }

    /// Drops the settings that read bodies, which metadata-only objects do not have.
    pub(crate) fn for_metadata(mut self) -> Self {
        self.keep_if = None;
        self.transform = None;
        self
    }

    /// Returns the first setting that differs: its name, its value in `self` and in `other`.
    pub(crate) fn difference(&self, other: &Self) -> Option<Difference> {
        let Self { scopes, labels, fields, resync, wire, keep, drop_fields, keep_if, transform, .. } = self;
        let Self { on_watch_error, when_refused, discipline, reflector, metrics, name, seed, shutdown_grace, .. } =
            self;
        let Self { decode_managed_fields, .. } = self;
        [
            differ("namespaces", scopes, &other.scopes),
            differ_if_set("labels", labels, &other.labels),
            differ_if_set("fields", fields, &other.fields),
            differ_if_set("resync", resync, &other.resync),
            differ("wire", wire, &other.wire),
            differ("keep", keep, &other.keep),
            differ("drop_fields", drop_fields, &other.drop_fields),
            differ("decode_managed_fields", decode_managed_fields, &other.decode_managed_fields),
            differ_in_place("keep_if", keep_if, &other.keep_if),
            differ_in_place("transform", transform, &other.transform),
            differ_in_place("on_watch_error", on_watch_error, &other.on_watch_error),
            differ("when_refused", when_refused, &other.when_refused),
            differ("queue", discipline, &other.discipline),
            differ("reflector", reflector, &other.reflector),
            differ_in_place("metrics", metrics, &other.metrics),
            differ_if_set("name", name, &other.name),
            differ_if_set("seed", seed, &other.seed),
            differ_if_set("shutdown_grace", shutdown_grace, &other.shutdown_grace),
        ]
        .into_iter()
        .flatten()
        .next()
    }
}

/// Namespaces and selectors, to be printed. `None` means all namespaces.
pub(crate) struct ScopeText<'a> {
    pub(crate) namespaces: Option<Vec<&'a str>>,
    pub(crate) labels: Option<&'a Selector>,
    pub(crate) fields: Option<&'a FieldSelector>,
}

impl fmt::Display for ScopeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        if let Some(names) = &self.namespaces {
            write!(f, "in {}", if names.is_empty() { "no namespace".to_owned() } else { names.join(", ") })?;
            before = " ";
        }
        if let Some(labels) = self.labels.filter(|labels| !labels.is_everything()) {
            write!(f, "{before}where {labels}")?;
            before = " ";
        }
        if let Some(fields) = self.fields.filter(|fields| !fields.is_everything()) {
            write!(f, "{before}with {fields}")?;
        }
        Ok(())
    }
}

/// The name of a setting, and its two values.
type Difference = (&'static str, String, String);

fn differ<T: PartialEq + fmt::Debug>(name: &'static str, ours: &T, theirs: &T) -> Option<Difference> {
    (ours != theirs).then(|| (name, format!("{ours:?}"), format!("{theirs:?}")))
}

fn differ_if_set<T: PartialEq + fmt::Debug>(
    name: &'static str,
    ours: &Option<T>,
    theirs: &Option<T>,
) -> Option<Difference> {
    let shown = |value: &Option<T>| value.as_ref().map_or_else(|| "none".to_owned(), |value| format!("{value:?}"));
    (ours != theirs).then(|| (name, shown(ours), shown(theirs)))
}

/// Compares functions by address.
fn differ_in_place<F: ?Sized>(
    name: &'static str,
    ours: &Option<Arc<F>>,
    theirs: &Option<Arc<F>>,
) -> Option<Difference> {
    let place = |value: &Option<Arc<F>>| value.as_ref().map(|value| Arc::as_ptr(value).cast::<()>());
    let shown = |value: &Option<Arc<F>>, some: &str| value.as_ref().map_or("none", |_| some).to_owned();
    (place(ours) != place(theirs)).then(|| (name, shown(ours, "one"), shown(theirs, "another")))
}

impl<K> Clone for InformerSettings<K> {
    fn clone(&self) -> Self {
        Self {
            scopes: self.scopes.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            drop_fields: self.drop_fields.clone(),
            keep_if: self.keep_if.clone(),
            transform: self.transform.clone(),
            on_watch_error: self.on_watch_error.clone(),
            metrics: self.metrics.clone(),
            name: self.name.clone(),
            invalid: self.invalid.clone(),
            ..*self
        }
    }
}

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
        self.scopes = super::scopes([namespace]);
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
        self.scopes = super::scopes(namespaces);
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

    /// Sets the wire format that is requested from the server: [`Wire::Auto`] for the fastest that
    /// loses nothing, [`Wire::Json`] by default.
    ///
    /// Has no effect on a custom source.
    fn wire(self, wire: Wire) {
        self.wire = wire;
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

impl<K> fmt::Debug for InformerSettings<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerSettings")
            .field("scopes", &self.scopes)
            .field("labels", &self.labels)
            .field("fields", &self.fields)
            .field("resync", &self.resync)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}
