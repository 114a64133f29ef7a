//! The informers under test, one of each type.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use kube::api::ListParams;
use kube::core::{ApiResource, DynamicObject};
use kube_informer::client::Compression;
use kube_informer::pipeline::{Discipline, Figures, InformerName, Metrics};
use kube_informer::reflector::{BackoffSettings, Counters, ReflectorSettings, Streaming};
use kube_informer::{Informer, InformerBuilder, Keep, Version, Wire};
use parking_lot::Mutex;
use serde_json::Value;

use crate::Error;
use crate::host::Host;

/// An informer and the expectations about it.
pub struct Watched {
    /// Its name in messages.
    pub name: &'static str,
    /// The informer.
    pub informer: Informer<Value>,
    /// Whether its namespaces change, so that objects leave the cache and return unchanged.
    pub is_rescoped: bool,
    /// Its namespaces. `None` for all.
    namespaces: Mutex<Option<Vec<String>>>,
    drops_managed_fields: bool,
}

/// The result of comparing a cache with the server.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Objects that the cache should contain but does not.
    pub missing: Vec<String>,
    /// Objects in the cache that no longer exist on the server: their deletion may be in transit.
    pub gone: HashMap<String, u64>,
}

/// Counters of all reflectors, by informer.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<Mutex<HashMap<&'static str, Counters>>>);

/// The sum of the counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Totals {
    /// Relists for any reason.
    pub relists: u64,
    /// Opened watches.
    pub watches: u64,
    /// Watches detected as stalled.
    pub stalls: u64,
    /// Failed requests and watches.
    pub errors: u64,
}

struct Named(&'static str, Tally);

impl Metrics for Named {
    fn report(&self, _: &InformerName, figures: &Figures) {
        self.1.0.lock().insert(self.0, figures.reflector);
    }

    fn ended(&self, _: &InformerName) {}
}

impl Tally {
    /// The sum of the counters.
    pub fn totals(&self) -> Totals {
        self.0.lock().values().fold(Totals::default(), |all, one| Totals {
            relists: all.relists + one.relists.total(),
            watches: all.watches + one.watches + one.streaming_lists,
            stalls: all.stalls + one.stalls,
            errors: all.errors + one.errors,
        })
    }
}

/// The API resource of a kind.
pub fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    let version = "v1".to_owned();
    let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
    ApiResource { group: group.to_owned(), version, api_version, kind: kind.to_owned(), plural: plural.to_owned() }
}

/// Starts all informers.
pub fn start(client: &Client, tally: &Tally, namespaces: &[String]) -> Vec<Watched> {
    let build = |name: &'static str, resource: ApiResource, configure: fn(Builder) -> Builder| {
        let builder = Informer::<Value>::builder_for(client.clone(), resource).reflector(settings());
        let informer = configure(builder).metrics(Named(name, tally.clone())).build();
        Watched { name, informer, is_rescoped: false, namespaces: Mutex::default(), drops_managed_fields: false }
    };
    let pods = || resource("", "Pod", "pods");
    let mut all = vec![
        build("pods, compact", pods(), |builder| builder),
        build("pods, plain, some namespaces, keyed", pods(), |builder| {
            builder.keep(Keep::Plain).queue(Discipline::Keyed)
        }),
        build("events, compact, keyed", resource("", "Event", "events"), |builder| builder.queue(Discipline::Keyed)),
        build("replicasets, decoded, resync", resource("apps", "ReplicaSet", "replicasets"), |builder| {
            builder.keep(Keep::Decoded).resync(Duration::from_secs(30))
        }),
        build("deployments, pages", resource("apps", "Deployment", "deployments"), |builder| {
            builder.reflector(ReflectorSettings { streaming: Streaming::Never, page_size: Some(50), ..settings() })
        }),
        build("nodes, compressed", resource("", "Node", "nodes"), |builder| {
            builder.source(|source| source.compression(Compression::Gzip))
        }),
        build("leases, plain", resource("coordination.k8s.io", "Lease", "leases"), |builder| builder.keep(Keep::Plain)),
        build("pods, without managedFields", pods(), Builder::drop_managed_fields),
        build("configmaps, compact", resource("", "ConfigMap", "configmaps"), |builder| builder),
        build("pods, over protobuf", pods(), |builder| builder.wire(Wire::Protobuf)),
    ];
    all[7].drops_managed_fields = true;
    all[1].is_rescoped = true;
    all[1].move_to(namespaces);
    all.iter().for_each(|watched| watched.informer.start());
    all
}

type Builder = InformerBuilder<Value>;

/// Shorter timeouts than the defaults, so that an hour covers as much as a day.
fn settings() -> ReflectorSettings {
    ReflectorSettings {
        watch_timeout: Duration::from_secs(60),
        quiet_after: Duration::from_secs(15),
        probe_window: Duration::from_secs(5),
        streaming_deadline: Duration::from_secs(5),
        backoff: BackoffSettings { cap: Duration::from_secs(2), ..BackoffSettings::default() },
        ..ReflectorSettings::default()
    }
}

impl Watched {
    /// Changes its namespaces.
    pub fn move_to(&self, namespaces: &[String]) {
        let mut now = self.namespaces.lock();
        // Cannot fail: the informer was not created by a factory, so it is not shared.
        if self.informer.set_namespaces(namespaces.iter().map(String::as_str)).is_ok() {
            *now = Some(namespaces.to_vec());
        }
    }

    /// Whether an object with this key belongs to the cache.
    fn holds(&self, key: &str) -> bool {
        let namespaces = self.namespaces.lock();
        let namespace = key.split_once('/').map_or("", |(namespace, _)| namespace);
        namespaces.as_ref().is_none_or(|all| all.iter().any(|one| one == namespace))
    }

    /// The resource versions in the cache.
    pub fn cached(&self) -> HashMap<String, u64> {
        let snapshot = self.informer.lister().snapshot();
        let version = |version: &Version| version.number().unwrap_or(0);
        snapshot.iter().map(|object| (object.key().to_string(), version(object.version()))).collect()
    }

    /// Compares the cache with the server, as far as that is possible while both change.
    pub async fn compare(&self, host: &Host) -> Result<Comparison, Error> {
        let truth = self.truth(host).await?;
        let newest = truth.values().copied().max().unwrap_or(0);
        self.informer.wait_for(Version::from(newest)).await?;
        let cached = self.cached();
        let right =
            |key: &str, version: u64| cached.get(key).is_some_and(|cached| *cached == version || *cached > newest);
        let mut missing: HashMap<String, u64> = truth
            .iter()
            .filter(|(key, version)| !right(key, **version))
            .map(|(key, version)| (key.clone(), *version))
            .collect();
        if !missing.is_empty() {
            // Objects that have not changed since the first list had to be in the cache in between.
            let later = self.truth(host).await?;
            missing.retain(|key, version| later.get(key) == Some(version));
        }
        let gone = cached.iter().filter(|(key, version)| !truth.contains_key(*key) && **version <= newest);
        Ok(Comparison {
            gone: gone.map(|(key, version)| (key.clone(), *version)).collect(),
            missing: missing
                .into_iter()
                .map(|(key, version)| {
                    let found =
                        cached.get(&key).map_or("not cached".to_owned(), |cached| format!("cached as {cached}"));
                    format!("{key} is {version} and was {found} after {newest} was waited for")
                })
                .collect(),
        })
    }

    async fn truth(&self, host: &Host) -> Result<HashMap<String, u64>, Error> {
        let resource = self.informer.resource();
        let truth = host.truth(&resource.api_version, &resource.kind).await?;
        Ok(truth.into_iter().filter(|(key, _)| self.holds(key)).collect())
    }

    /// Whether its namespaces change: then objects can be missing temporarily.
    pub fn moves(&self) -> bool {
        self.namespaces.lock().is_some()
    }

    /// Checks that the bodies in the cache equal a fresh LIST. Returns the number of objects.
    pub async fn equals_a_list(&self, client: &Client) -> Result<usize, Error> {
        let path = <DynamicObject as kube::Resource>::url_path(self.informer.resource(), None);
        let request = kube::core::Request::new(path).list(&ListParams::default())?;
        let mut list: Value = serde_json::from_str(&client.request_text(request).await?)?;
        let Value::Array(items) = list["items"].take() else { return Err("a list without items".into()) };
        let truth: BTreeMap<String, Value> = items
            .into_iter()
            .map(|object| (key_of(&object), self.bare(object)))
            .filter(|(key, _)| self.holds(key))
            .collect();
        let mut cached = BTreeMap::new();
        for object in self.informer.lister().list() {
            cached.insert(object.key().to_string(), self.bare(serde_json::from_slice(&object.json())?));
        }
        for key in truth.keys().chain(cached.keys()) {
            if truth.get(key) != cached.get(key) {
                let version = |of: &BTreeMap<String, Value>| {
                    of.get(key).map_or("nothing".to_owned(), |object| object["metadata"]["resourceVersion"].to_string())
                };
                return Err(format!("{key} is {} and cached as {}", version(&truth), version(&cached)).into());
            }
        }
        Ok(truth.len())
    }

    /// Removes type fields and, if configured, managedFields.
    fn bare(&self, mut object: Value) -> Value {
        if let Some(fields) = object.as_object_mut() {
            fields.remove("kind");
            fields.remove("apiVersion");
        }
        if self.drops_managed_fields
            && let Some(metadata) = object["metadata"].as_object_mut()
        {
            metadata.remove("managedFields");
        }
        object
    }
}

fn key_of(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}
