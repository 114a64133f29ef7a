//! A continuous writer with a seed, so that its writes are reproducible.

use std::collections::BTreeMap;
use std::time::Duration;

use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, DynamicObject};
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::playground::builtin;
use super::watched::TIER;
use crate::Error;

/// Delay after each write of the continuous writer.
const PAUSE: Duration = Duration::from_millis(5);

/// Creates, updates, relabels and deletes objects of several kinds in several namespaces.
#[derive(Clone)]
pub(super) struct Writer {
    client: Client,
    rng: Pcg64Mcg,
    kinds: Vec<ApiResource>,
    namespaces: Vec<String>,
    written: Written,
}

/// The results of the writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    /// Every state that the server has confirmed: kind, key and version.
    pub(super) states: Vec<(String, String, String)>,
    pub(super) creates: usize,
    pub(super) updates: usize,
    pub(super) deletes: usize,
    /// Writes that failed, or whose response was lost.
    pub(super) failures: usize,
    versions: BTreeMap<(String, String), String>,
}

impl Written {
    pub(super) fn count(&self) -> usize {
        self.creates + self.updates + self.deletes
    }
}

/// Built-in kinds.
pub(super) fn kinds() -> Vec<ApiResource> {
    vec![
        builtin("", "v1", "ConfigMap", "configmaps"),
        builtin("", "v1", "Secret", "secrets"),
        builtin("", "v1", "Pod", "pods"),
        builtin("apps", "v1", "Deployment", "deployments"),
    ]
}

impl Writer {
    pub(super) fn new(client: Client, seed: u64, kinds: Vec<ApiResource>, namespaces: Vec<String>) -> Self {
        Self { client, rng: Pcg64Mcg::seed_from_u64(seed), kinds, namespaces, written: Written::default() }
    }

    pub(super) fn written(&self) -> &Written {
        &self.written
    }

    /// Makes this many writes. Rejected writes count as failures.
    pub(super) async fn write(&mut self, count: usize) {
        for _ in 0..count {
            self.step().await;
        }
    }

    /// Writes on a separate task until it is stopped.
    pub(super) fn write_on(self) -> Writing {
        let (stop, stopped) = watch::channel(());
        let mut writer = self;
        let task = tokio::spawn(async move {
            // The sender is dropped to stop the writer.
            while stopped.has_changed().is_ok() {
                writer.step().await;
                tokio::time::sleep(PAUSE).await;
            }
            writer
        });
        Writing { stop, task }
    }

    async fn step(&mut self) {
        let kind = self.kinds[self.rng.random_range(0..self.kinds.len())].clone();
        let namespace = self.namespaces[self.rng.random_range(0..self.namespaces.len())].clone();
        let name = format!("m{}", self.rng.random_range(0..8));
        let tier = ["gold", "tin", "clay"][self.rng.random_range(0..3)];
        let (what, value) = (self.rng.random_range(0..10), self.rng.random::<u32>());
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &namespace, &kind);
        let key = format!("{namespace}/{name}");
        if !self.written.versions.contains_key(&(kind.plural.clone(), key.clone())) {
            let Ok(body) = serde_json::from_value(body(&kind, &name, tier, value)) else { return };
            let made = api.create(&PostParams::default(), &body).await;
            self.written.creates += usize::from(made.is_ok());
            self.note(&kind, key, made);
        } else if what < 3 {
            let gone = api.delete(&name, &DeleteParams::default().grace_period(0)).await;
            match gone {
                Ok(_) => self.written.deletes += 1,
                Err(_) => self.written.failures += 1,
            }
            // The result is unknown; the next write will reveal it.
            self.written.versions.remove(&(kind.plural, key));
        } else {
            let change = match what {
                3..6 => json!({"metadata": {"labels": {TIER: tier}}}),
                6 => json!({"metadata": {"labels": {TIER: null}}}),
                _ => json!({"metadata": {"annotations": {"value": value.to_string()}}}),
            };
            let changed = api.patch(&name, &PatchParams::default(), &Patch::Merge(change)).await;
            self.written.updates += usize::from(changed.is_ok());
            self.note(&kind, key, changed);
        }
    }

    fn note(&mut self, kind: &ApiResource, key: String, answer: kube::Result<DynamicObject>) {
        let place = (kind.plural.clone(), key.clone());
        match answer {
            Ok(object) => {
                let version = object.metadata.resource_version.unwrap_or_default();
                if self.written.versions.insert(place, version.clone()).as_ref() != Some(&version) {
                    self.written.states.push((kind.plural.clone(), key, version));
                }
            }
            Err(error) => {
                self.written.failures += 1;
                match error {
                    kube::Error::Api(status) if status.code == 409 => {
                        self.written.versions.insert(place, String::new());
                    }
                    kube::Error::Api(status) if status.code == 404 => {
                        self.written.versions.remove(&place);
                    }
                    _ => {}
                }
            }
        }
    }
}

/// A running writer.
pub(super) struct Writing {
    stop: watch::Sender<()>,
    task: JoinHandle<Writer>,
}

impl Writing {
    /// Stops the writer after its current write.
    pub(super) async fn stop(self) -> Result<Writer, Error> {
        drop(self.stop);
        Ok(self.task.await?)
    }
}

/// A new object. Pods name a scheduler that does not exist, and deployments have no replicas, so
/// that controllers do not act on them.
fn body(kind: &ApiResource, name: &str, tier: &str, value: u32) -> Value {
    let mut body = json!({
        "apiVersion": kind.api_version, "kind": kind.kind,
        "metadata": {"name": name, "labels": {TIER: tier}},
    });
    let containers = json!([{"name": "main", "image": "example.com/none"}]);
    match kind.plural.as_str() {
        "configmaps" => body["data"] = json!({"value": value.to_string()}),
        "secrets" => {
            body["stringData"] = json!({"username": "a", "password": value.to_string()});
            body["type"] = json!(if value.is_multiple_of(2) { "Opaque" } else { "kubernetes.io/basic-auth" });
        }
        "pods" => body["spec"] = json!({"schedulerName": "nobody", "containers": containers}),
        "deployments" => {
            body["spec"] = json!({
                "replicas": 0,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}},
            });
        }
        _ => body["spec"] = json!({"value": value, "tier": tier}),
    }
    body
}
