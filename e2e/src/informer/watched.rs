//! An informer under test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use kube::Client;
use kube::core::{ApiResource, DynamicObject};
use kube_informer::client::ServerError;
use kube_informer::pipeline::{Backlog, Figures, InformerName, Metrics};
use kube_informer::reflector::{BackoffSettings, Counters, ReflectorSettings};
use kube_informer::{Condition, Index, Informer, InformerBuilder, MetadataOnly, Object, Registration};
use serde_json::Value;

use super::deadline::{eventually, in_time};
use super::event_recorder::EventRecorder;
use super::playground::{Content, Playground, Query, bare, by_key, version_of};
use crate::Error;

/// The indexed label.
pub(super) const TIER: &str = "tier";

/// An informer with handlers and indexes, all of which must agree with the server.
pub(super) struct Watched {
    /// Its name in messages.
    name: String,
    resource: ApiResource,
    query: Query,
    pub(super) informer: Informer<Value>,
    tiers: Index<Value, String>,
    handlers: Vec<Handler>,
    pub(super) errors: Errors,
    figures: Tally,
}

struct Handler {
    name: &'static str,
    filter: HandlerFilter,
    recorder: EventRecorder,
    registration: Registration,
}

/// The filter of a handler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HandlerFilter {
    All,
    /// Objects whose label [`TIER`] is `gold`.
    Gold,
}

/// All recorded errors.
#[derive(Debug, Clone, Default)]
pub(super) struct Errors(Arc<Mutex<Vec<ServerError>>>);

/// The latest counters.
#[derive(Debug, Clone, Default)]
struct Tally(Arc<Mutex<Counters>>);

impl Metrics for Tally {
    fn report(&self, _: &InformerName, figures: &Figures) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = figures.reflector;
    }

    fn ended(&self, _: &InformerName) {}
}

impl Errors {
    /// Whether an error of this type occurred.
    pub(super) fn any(&self, test: impl FnMut(&ServerError) -> bool) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(test)
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Additional configuration of an informer.
pub(super) trait Shape {
    fn shape<K: Object>(&self, builder: InformerBuilder<K>) -> InformerBuilder<K>;
}

/// The default configuration.
pub(super) struct Plain;

impl Shape for Plain {
    fn shape<K: Object>(&self, builder: InformerBuilder<K>) -> InformerBuilder<K> {
        builder
    }
}

/// A low backoff cap.
pub(super) struct Eager;

impl Shape for Eager {
    fn shape<K: Object>(&self, builder: InformerBuilder<K>) -> InformerBuilder<K> {
        builder.reflector(ReflectorSettings { backoff: eager(), ..ReflectorSettings::default() })
    }
}

/// A backoff of at most two seconds.
pub(super) fn eager() -> BackoffSettings {
    BackoffSettings { cap: Duration::from_secs(2), ..BackoffSettings::default() }
}

impl Watched {
    /// Starts an informer with a handler that receives everything.
    pub(super) fn start(
        name: impl Into<String>,
        client: Client,
        resource: &ApiResource,
        query: Query,
        shape: &impl Shape,
    ) -> Result<Self, Error> {
        let (errors, figures) = (Errors::default(), Tally::default());
        let seen = (errors.clone(), figures.clone());
        let informer = match query.content {
            Content::Everything => {
                dressed(Informer::<Value>::builder_for(client, resource.clone()), &query, shape, seen)?.build()
            }
            Content::Metadata => {
                let builder = Informer::<MetadataOnly<DynamicObject>>::builder_for(client, resource.clone());
                dressed(builder, &query, shape, seen)?.build().view()
            }
        };
        let tiers = informer.index_by_label(TIER);
        let name = format!("{} {}", resource.plural, name.into());
        let resource = resource.clone();
        let mut watched = Self { name, resource, query, informer, tiers, handlers: Vec::new(), errors, figures };
        watched.add_handler("first", HandlerFilter::All, Backlog::default());
        watched.informer.start();
        Ok(watched)
    }

    /// Adds a handler.
    pub(super) fn add_handler(&mut self, name: &'static str, filter: HandlerFilter, backlog: Backlog) {
        let recorder = EventRecorder::default();
        let mut handler = self.informer.handler().backlog(backlog);
        if filter == HandlerFilter::Gold {
            handler = handler.filter(|object| object.label(TIER) == Some("gold"));
        }
        let registration = handler.on_event(recorder.handler());
        self.handlers.push(Handler { name, filter, recorder, registration });
    }

    /// Waits until the cache is synced.
    pub(super) async fn synced(&self) -> Result<(), Error> {
        in_time(&self.name, self.informer.synced()).await?.map_err(|error| format!("{}: {error}", self.name).into())
    }

    /// Waits until the cache, every handler and every index agree with a fresh LIST. Returns the
    /// number of objects.
    pub(super) async fn agrees(&self, playground: &Playground) -> Result<usize, Error> {
        eventually(&self.name, async || {
            let truth = by_key(playground.list(&self.resource, &self.query).await?);
            self.compare(&truth).map_err(|wrong| format!("{wrong}; {:?}", self.informer.health().condition))?;
            Ok(truth.len())
        })
        .await
    }

    /// Checks that the informer agrees with these objects.
    pub(super) fn compare(&self, truth: &BTreeMap<String, Value>) -> Result<(), String> {
        same(truth, &self.cached()?)?;
        for (tier, keys) in tiers(truth) {
            let indexed: BTreeSet<String> = self.tiers.keys(tier.as_str()).iter().map(ToString::to_string).collect();
            if indexed != keys {
                return Err(format!("by {TIER} {tier} the index finds {indexed:?}, not {keys:?}"));
            }
        }
        let values: BTreeSet<String> = self.tiers.values().into_iter().collect();
        if values != tiers(truth).into_keys().collect() {
            return Err(format!("the index has the values {values:?}"));
        }
        self.handlers.iter().try_for_each(|handler| handler.compare(truth))
    }

    /// Cached objects by key.
    fn cached(&self) -> Result<BTreeMap<String, Value>, String> {
        let all = self.informer.lister().list();
        // With managedFields, which decoded bodies leave out.
        let body = |object: &kube_informer::Obj<Value>| {
            serde_json::from_slice::<Value>(&object.json()).map_err(|error| error.to_string())
        };
        all.iter().map(|object| Ok((object.key().to_string(), bare(body(object)?)))).collect()
    }

    /// Whether the first handler received this state of this object.
    pub(super) fn has_received(&self, key: &str, version: &str) -> bool {
        self.handlers.first().is_some_and(|handler| handler.recorder.has_received(key, version))
    }

    /// Waits until the informer reports an error that passes a test.
    pub(super) async fn degraded(&self, what: &str, test: impl Fn(&ServerError) -> bool) -> Result<(), Error> {
        eventually(&format!("{} says {what}", self.name), async || match self.informer.health().condition {
            Condition::Degraded { cause, .. } if test(&cause) => Ok(()),
            other => Err(format!("it says {other:?}")),
        })
        .await
    }

    /// Total number of events that handlers received.
    pub(super) fn events(&self) -> usize {
        self.handlers.iter().map(|handler| handler.recorder.events()).sum()
    }

    /// Shuts down the informer. Returns the counters of its reflector.
    pub(super) async fn shutdown(self) -> Result<Counters, Error> {
        in_time(&self.name, self.informer.shutdown()).await?;
        Ok(*self.figures.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Handler {
    fn compare(&self, truth: &BTreeMap<String, Value>) -> Result<(), String> {
        let name = self.name;
        let received = self.recorder.objects().map_err(|error| format!("the {name} handler: {error}"))?;
        let wanted: BTreeMap<String, String> = truth
            .iter()
            .filter(|(_, object)| self.filter == HandlerFilter::All || object["metadata"]["labels"][TIER] == "gold")
            .map(|(key, object)| (key.clone(), version_of(object)))
            .collect();
        if received == wanted {
            return Ok(());
        }
        let waiting = self.registration.backlog();
        Err(format!("the {name} handler received {received:?}, not {wanted:?}, and {waiting} events are queued"))
    }
}

/// The configuration of every informer under test.
fn dressed<K: Object>(
    mut builder: InformerBuilder<K>,
    query: &Query,
    shape: &impl Shape,
    (errors, figures): (Errors, Tally),
) -> Result<InformerBuilder<K>, Error> {
    if let Some(namespaces) = &query.namespaces {
        builder = builder.namespaces(namespaces.iter().map(String::as_str));
    }
    if let Some(labels) = query.labels {
        builder = builder.labels(labels);
    }
    if let Some(fields) = query.fields {
        builder = builder.fields(fields);
    }
    let failed = move |error: &ServerError| {
        errors.0.lock().unwrap_or_else(PoisonError::into_inner).push(error.clone());
    };
    Ok(shape.shape(builder).on_watch_error(failed).metrics(figures))
}

/// The keys of the objects of each tier.
fn tiers(truth: &BTreeMap<String, Value>) -> BTreeMap<String, BTreeSet<String>> {
    let mut tiers: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (key, object) in truth {
        if let Some(tier) = object["metadata"]["labels"][TIER].as_str() {
            tiers.entry(tier.to_owned()).or_default().insert(key.clone());
        }
    }
    tiers
}

/// Describes how two sets of objects differ.
pub(super) fn same(truth: &BTreeMap<String, Value>, cached: &BTreeMap<String, Value>) -> Result<(), String> {
    if truth == cached {
        return Ok(());
    }
    let keys: BTreeSet<&String> = truth.keys().chain(cached.keys()).collect();
    let differences: Vec<String> = keys
        .into_iter()
        .filter(|key| truth.get(*key) != cached.get(*key))
        .map(|key| match (truth.get(key), cached.get(key)) {
            (Some(truth), Some(cached)) => {
                let (at, versions) = (first_difference(truth, cached), (version_of(truth), version_of(cached)));
                format!("{key} is {} and cached as {}, which differs at {at}", versions.0, versions.1)
            }
            (Some(_), None) => format!("{key} is not cached"),
            (None, _) => format!("{key} is cached and gone"),
        })
        .collect();
    Err(differences.join("; "))
}

/// The path of the first difference between two objects. Values are not shown, because they may be
/// secret.
fn first_difference(one: &Value, other: &Value) -> String {
    let part = |name: &str, one: Option<&Value>, other: Option<&Value>| match (one, other) {
        (Some(one), Some(other)) if one == other => None,
        (Some(one), Some(other)) => Some(format!("/{name}{}", first_difference(one, other))),
        _ => Some(format!("/{name}")),
    };
    let mut parts = match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            names.into_iter().filter_map(|name| part(name, one.get(name), other.get(name))).collect()
        }
        (Value::Array(one), Value::Array(other)) => {
            (0..one.len().max(other.len())).filter_map(|at| part(&at.to_string(), one.get(at), other.get(at))).collect()
        }
        _ => Vec::new(),
    };
    if parts.is_empty() { String::new() } else { parts.swap_remove(0) }
}
