//! The informer builder, which assembles the reflector, queue, store and controller.

use std::fmt;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use kube::Client;
use kube::core::ApiResource;
use tokio::sync::watch;

use super::core::{Core, Identity, InformerOwner, Sharing};
use super::live::{LiveInformer, Watched};
use super::settings::{InformerSettings, OnWatchError};
use super::{Informer, InvalidSetting};
use crate::body::{Arrival, BodyEncoder, BodyEncoderSettings, Keep, Raw};
use crate::body::{Obj, Untyped};
use crate::client::{ApiListWatch, ListWatch, RequestedWire, ScopedResource};
use crate::object::DecodeError;
use crate::object::Object;
use crate::pipeline::InformerName;
use crate::pipeline::controller::{Clock, Controller, ControllerShared, DecodeBody, MaintenanceMode, Parts, Reflect};
use crate::pipeline::metrics::{Reporter, default_metrics};
use crate::pipeline::processor::CheckPeriod;
use crate::pipeline::{DeltaFifo, DeltaFifoBounds};
use crate::reflector::{self, DefinitionWatch, Intake, ObjectSource, Reflector};
use crate::shard::{Shard, Sharded};
use crate::store::WatchScope;
use crate::store::{Ingest, Store};

/// Builds an [`Informer`]. See [`Informer::builder`].
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, Keep};
///
/// let maps = Informer::<ConfigMap>::builder(client)
///     .namespace("default")
///     .labels("app in (web, db)")
///     .keep(Keep::Plain)
///     .build();
/// maps.start();
/// maps.synced().await?;
/// assert_eq!(maps.lister().len(), 2);
/// # Ok(()) });
/// ```
#[must_use = "an informer is made by build() or start()"]
#[doc(alias("SharedIndexInformerOptions", "InformerOptions"))]
pub struct InformerBuilder<K> {
    pub(super) settings: InformerSettings<K>,
    resource: ScopedResource,
    source: SourceOf,
    sharing: Sharing,
    definition_watch: Option<Arc<dyn DefinitionWatch>>,
    decode_ahead: DecodeBody,
}

/// The source of list and watch requests.
enum SourceOf {
    Client(Box<ApiListWatch>),
    /// A custom source; namespaces, selectors and the wire format do not apply to it.
    Custom(CustomSource),
}

/// Creates a reflector on a custom source; erases the type of the source.
type CustomSource =
    Box<dyn Fn(Arc<str>, WatchScope, reflector::ReflectorSettings, Box<dyn Intake>) -> Reflector + Send + Sync>;

impl<K: Object> InformerBuilder<K> {
    pub(crate) fn of_client(client: Client, resource: ScopedResource) -> Self {
        Self::new(resource.clone(), SourceOf::Client(Box::new(ApiListWatch::new(client, resource))))
    }

    pub(super) fn of_source(source: impl ListWatch, resource: ScopedResource) -> Self {
        let source = Arc::new(source);
        let reflect = move |what: Arc<str>, scope, settings, intake: Box<dyn Intake>| {
            Reflector::boxed(what, scope, Arc::clone(&source), settings, intake)
        };
        Self::new(resource, SourceOf::Custom(Box::new(reflect)))
    }

    pub(crate) fn metadata_only(mut self) -> Self {
        self.source = match self.source {
            SourceOf::Client(source) => SourceOf::Client(Box::new(source.metadata_only())),
            custom @ SourceOf::Custom(_) => custom,
        };
        self
    }

    fn new(resource: ScopedResource, source: SourceOf) -> Self {
        Self {
            settings: InformerSettings::default(),
            resource,
            source,
            sharing: Sharing::No,
            definition_watch: None,
            decode_ahead: Raw::decode_ahead::<K>,
        }
    }

    /// Sets how bodies are decoded on arrival, if that is into another type than that of the
    /// builder.
    pub(crate) fn decode_ahead(mut self, decode: DecodeBody) -> Self {
        self.decode_ahead = decode;
        self
    }

    /// Declares the informer shared by a factory, which fixes its namespaces.
    pub(crate) fn shared(mut self, factory: Weak<dyn InformerOwner>) -> Self {
        self.sharing = Sharing::ByFactory(factory);
        self
    }

    /// Sets the watch that detects the definition of the resource while the server does not serve
    /// it.
    pub(crate) fn definition_watch(mut self, definition_watch: Option<Arc<dyn DefinitionWatch>>) -> Self {
        self.definition_watch = definition_watch;
        self
    }

    /// Replaces all settings made so far.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Informer;
    /// use kube_informer::informer::InformerSettings;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).namespace("kube-system").settings(InformerSettings::default()).start();
    /// maps.synced().await?;
    /// assert_eq!(maps.lister().len(), 2, "of every namespace");
    /// # Ok(()) });
    /// ```
    pub fn settings(mut self, settings: InformerSettings<K>) -> Self {
        self.settings = settings;
        self
    }

    /// Customizes the list and watch requests, for example compression or additional query
    /// parameters.
    ///
    /// Has no effect on a custom source.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client)
    ///     .source(|source| source.tweak(|parameters| parameters.set("timeoutSeconds", "60")))
    ///     .start();
    /// maps.synced().await?;
    /// assert!(server.requests()[0].query.contains("timeoutSeconds=60"));
    /// # Ok(()) });
    /// ```
    pub fn source(mut self, change: impl FnOnce(ApiListWatch) -> ApiListWatch) -> Self {
        self.source = match self.source {
            SourceOf::Client(source) => SourceOf::Client(Box::new(change(*source))),
            custom @ SourceOf::Custom(_) => custom,
        };
        self
    }

    /// Builds the informer. It does nothing until it is [started](Informer::start).
    ///
    /// If a setting is [not valid](InvalidSetting), the informer never runs and sends no request:
    /// the error is logged, and [`synced`](Informer::synced) returns it. Use
    /// [`try_build`](Self::try_build) for settings that come from outside of the program.
    #[must_use]
    pub fn build(self) -> Informer<K> {
        let invalid = self.check().err();
        if let Some(invalid) = &invalid {
            tracing::error!(resource = %self.resource.resource.plural, "an informer with an invalid setting never runs: {invalid}");
        }
        self.assemble(invalid)
    }

    /// Builds the informer, or returns the first setting that is not valid.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let (namespace, selector) = ("default", "app = web, !canary"); // for example, from arguments
    /// let maps = Informer::<ConfigMap>::builder(client).namespace(namespace).labels(selector).try_build()?;
    /// maps.start();
    /// # Ok(()) });
    /// ```
    pub fn try_build(self) -> Result<Informer<K>, InvalidSetting> {
        self.check()?;
        Ok(self.assemble(None))
    }

    fn check(&self) -> Result<(), InvalidSetting> {
        self.settings.check()?;
        match &self.source {
            SourceOf::Client(source) => {
                source.check_resource().map_err(|reason| InvalidSetting::new("resource", reason))
            }
            SourceOf::Custom(_) => Ok(()),
        }
    }

    fn assemble(self, invalid: Option<InvalidSetting>) -> Informer<K> {
        let Self { mut settings, resource, source, sharing, definition_watch, decode_ahead } = self;
        let is_cluster_scoped = resource.is_cluster_scoped();
        let resource = resource.resource;
        if is_cluster_scoped {
            settings.scopes = vec![WatchScope::Everything];
        }
        let scope = settings.scope_text();
        let metadata_only = matches!(&source, SourceOf::Client(source) if source.is_metadata_only());
        let name =
            Arc::new(InformerName::reserve(&informer_name(&settings, &resource, metadata_only), &resource, &scope));
        let live = match &source {
            SourceOf::Client(_) => {
                let (api_version, plural) = (resource.api_version.clone(), resource.plural.clone());
                let ranges = settings.shard.as_ref().map(|shard| format!(" {}", shard.ranges)).unwrap_or_default();
                let (live, is_duplicate) = LiveInformer::count(
                    Watched { api_version, plural, scope: scope + &ranges, metadata_only },
                    matches!(sharing, Sharing::ByFactory(_)),
                );
                if is_duplicate && settings.name.is_none() {
                    tracing::warn!(
                        resource = %resource.plural,
                        scope = %name.scope(),
                        "this process has another informer of the same objects, with a watch and a cache of its own: \
                         get both from one kube_informer::Factory to share them, or give each a name if they are \
                         meant to be separate, such as for two clusters"
                    );
                }
                Some(live)
            }
            SourceOf::Custom(_) => None,
        };
        let encoder = BodyEncoder::new(BodyEncoderSettings {
            keep: settings.keep,
            drop_fields: settings.cutter(),
            decode_managed_fields: settings.decode_managed_fields,
            ..BodyEncoderSettings::default()
        });
        let mut ingest = Ingest::default();
        let transforms = settings.transform.is_some();
        if let Some(transform) = settings.transform {
            ingest = ingest.transform(encoder.clone(), move |value| transform(value));
        }
        if let Some(keep_if) = settings.keep_if {
            ingest = ingest.keep_if(move |object| keep_if(object));
        }
        let store = match settings.seed {
            Some(seed) => Store::seeded(ingest, seed),
            None => Store::new(ingest),
        };
        let reader = store.reader();
        let known = store.reader();
        let span = tracing::info_span!("informer", resource = %resource.plural, name = %name);
        let source = match source {
            SourceOf::Client(mut source) => {
                if let Some(labels) = &settings.labels {
                    source = Box::new(source.labels(labels));
                }
                if let Some(fields) = &settings.fields {
                    source = Box::new(source.fields(fields));
                }
                if settings.wire != RequestedWire::default() {
                    source = Box::new(source.wire(settings.wire));
                }
                SourceOf::Client(source)
            }
            custom @ SourceOf::Custom(_) => custom,
        };
        let clock = Clock::default();
        let shards = settings.shard.map(|shard| watch::Sender::new(Arc::new(shard)));
        let reflector_parts = ReflectorParts {
            what: resource.plural.as_str().into(),
            source,
            settings: settings.reflector,
            on_error: settings.on_watch_error,
            definition_watch,
            shards: shards.as_ref().map(watch::Sender::subscribe),
            seed: settings.seed,
            encoder: encoder.clone(),
            transforms,
            clock: clock.clone(),
        };
        let shared =
            Arc::new(ControllerShared::new(resource.plural.as_str().into(), settings.scopes, settings.shutdown_grace));
        let parts = Parts {
            fifo: DeltaFifo::new(settings.discipline, DeltaFifoBounds::default(), move |key| {
                known.state().get(key).is_some()
            }),
            store,
            encoder,
            clock,
            mode: if settings.seed.is_some() { MaintenanceMode::Inline } else { MaintenanceMode::SpawnBlocking },
            decode_ahead: (settings.keep == Keep::Decoded).then_some(decode_ahead),
            check: CheckPeriod::new(settings.resync),
            reflect: reflector_parts.reflect(),
            reporter: settings
                .metrics
                .or_else(default_metrics)
                .map(|metrics| Reporter::new(metrics, Arc::clone(&name))),
            span,
        };
        let controller = Controller::new(Arc::clone(&shared), parts);
        let never_runs = invalid.is_some();
        let when_refused = settings.when_refused;
        let identity = Identity { resource, is_cluster_scoped, name, when_refused, sharing, shards, invalid, live };
        let core = Core::new(shared, reader, identity, controller);
        if never_runs {
            core.stop();
        }
        Informer::of(Arc::new(core))
    }

    /// Builds and starts the informer. See [`build`](Self::build) for settings that are not valid.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    #[must_use]
    pub fn start(self) -> Informer<K> {
        let informer = self.build();
        informer.start();
        informer
    }
}

/// The name of an informer, unless another one has it.
fn informer_name<K>(settings: &InformerSettings<K>, resource: &ApiResource, metadata_only: bool) -> String {
    if let Some(name) = &settings.name {
        return name.to_string();
    }
    let dot = if resource.group.is_empty() { "" } else { "." };
    let metadata = if metadata_only { "-metadata" } else { "" };
    format!("{}{dot}{}{metadata}", resource.plural, resource.group)
}

/// The parts of which a reflector per scope is created.
struct ReflectorParts {
    what: Arc<str>,
    source: SourceOf,
    settings: reflector::ReflectorSettings,
    on_error: Option<OnWatchError>,
    definition_watch: Option<Arc<dyn DefinitionWatch>>,
    shards: Option<watch::Receiver<Arc<Shard>>>,
    seed: Option<u64>,
    encoder: BodyEncoder,
    /// Whether a transform re-encodes every object; encoding the received one is then wasted work.
    transforms: bool,
    clock: Clock,
}

impl ReflectorParts {
    fn reflect(self) -> Reflect {
        Box::new(move |scope| {
            let intake =
                EncoderIntake { encoder: self.encoder.clone(), clock: self.clock.clone(), transforms: self.transforms };
            let what = Arc::clone(&self.what);
            let mut reflector = match &self.source {
                SourceOf::Custom(reflect) => reflect(what, scope.clone(), self.settings, Box::new(intake)),
                SourceOf::Client(source) => {
                    let mut source = ApiListWatch::clone(source);
                    if let WatchScope::Namespace(namespace) = scope {
                        source = source.namespace(Arc::clone(namespace));
                    }
                    Reflector::new(what, scope.clone(), source, self.settings, intake)
                }
            };
            if let Some(on_error) = self.on_error.clone() {
                reflector = reflector.on_error(move |error| on_error(error));
            }
            if let Some(definition_watch) = &self.definition_watch {
                reflector = reflector.definition_watch(Arc::clone(definition_watch));
            }
            if let Some(shards) = &self.shards {
                reflector = reflector.shards(shards.clone());
            }
            match self.seed {
                Some(seed) => reflector.seed(seed),
                None => reflector,
            }
        })
    }
}

/// Encodes received objects with the informer's body encoder.
struct EncoderIntake {
    encoder: BodyEncoder,
    clock: Clock,
    transforms: bool,
}

impl EncoderIntake {
    fn arrival(&self, source: ObjectSource) -> Arrival {
        match source {
            _ if self.transforms => Arrival::InTransit,
            ObjectSource::List => Arrival::Listed,
            ObjectSource::Watch => Arrival::Changed(self.clock.now()),
        }
    }
}

impl Intake for EncoderIntake {
    fn accept(&mut self, json: &Bytes, source: ObjectSource) -> Result<Obj<Untyped>, DecodeError> {
        self.encoder.accept_ahead(json, self.arrival(source))
    }

    fn accept_sharded(&mut self, json: &Bytes, source: ObjectSource, shard: &Shard) -> Result<Sharded, DecodeError> {
        self.encoder.accept_sharded(json, self.arrival(source), shard)
    }

    fn is_behind(&self) -> bool {
        self.encoder.is_behind()
    }

    fn catch_up(&mut self) {
        self.encoder.catch_up();
    }
}

impl<K> fmt::Debug for InformerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerBuilder")
            .field("resource", &self.resource.resource.plural)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
