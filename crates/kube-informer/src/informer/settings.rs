//! The settings of an informer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub(crate) use self::scope_text::ScopeText;
use super::InvalidSetting;
use crate::body::{Keep, Obj, Untyped};
use crate::client::{RequestedWire, ServerError};
use crate::codec::FieldCutter;
use crate::object::{FieldPath, FieldSelector, ParseError, Selector};
use crate::pipeline::Discipline;
use crate::pipeline::metrics::Metrics;
use crate::reflector;
use crate::shard::Shard;
use crate::store::{Verdict, WatchScope};

mod difference;
mod scope_text;
mod setters;

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
    pub(super) shard: Option<Shard>,
    pub(super) resync: Option<Duration>,
    pub(super) wire: RequestedWire,
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
            shard: None,
            resync: None,
            wire: RequestedWire::default(),
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
        let Self {
            scopes,
            labels,
            fields,
            shard,
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
            kind: _,
        } = self;
        InformerSettings {
            scopes,
            labels,
            fields,
            shard,
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
        let shard = self.shard.as_ref().map(|shard| shard.key);
        let text = ScopeText { namespaces, labels: self.labels.as_ref(), fields: self.fields.as_ref(), shard };
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
}

impl<K> Clone for InformerSettings<K> {
    fn clone(&self) -> Self {
        Self {
            scopes: self.scopes.clone(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            shard: self.shard.clone(),
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
