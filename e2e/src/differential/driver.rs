//! Writes the objects that the informers watch.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::DynamicObject;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::{Value, json};

use super::scenario::{Kind, Scenario, View};
use super::transcript::{STEP, State};
use crate::Error;

/// Maximum number of objects in each namespace.
const NAMES: usize = 7;

/// Timeout until a newly defined kind is served.
const SERVED_TIMEOUT: Duration = Duration::from_secs(60);

/// Creates, updates, relabels, deletes and recreates objects at random, and records every state
/// that it has written.
pub(crate) struct Driver {
    client: kube::Client,
    scenario: Scenario,
    keys: String,
    places: Vec<Api<DynamicObject>>,
    slots: Vec<Slot>,
    rng: Pcg64Mcg,
    barriers: usize,
    pub(crate) writes: usize,
    pub(crate) written: BTreeSet<State>,
}

/// A name with or without an existing object.
#[derive(Debug)]
struct Slot {
    place: usize,
    name: String,
    object: Presence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Absent,
    Present,
}

impl Driver {
    /// Creates namespaces and definitions. The keys of all objects begin with `keys`.
    pub(crate) async fn prepare(
        client: kube::Client,
        scenario: &Scenario,
        keys: &str,
        seed: u64,
    ) -> Result<Self, Error> {
        let kind = scenario.kind();
        let resource = kind.resource();
        let namespaces = Api::<Namespace>::all(client.clone());
        let mut places = Vec::new();
        if kind.is_namespaced() {
            for namespace in namespaces_of(keys) {
                let object = serde_json::from_value(json!({"metadata": {"name": namespace}}))?;
                namespaces.create(&PostParams::default(), &object).await?;
                places.push(Api::namespaced_with(client.clone(), &namespace, &resource));
            }
        } else {
            places.push(Api::all_with(client.clone(), &resource));
        }
        if let Some(definition) = kind.definition() {
            let definitions = Api::<CustomResourceDefinition>::all(client.clone());
            definitions.create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
        }
        let prefix = prefix_of_names(kind, keys);
        let slots = (0..places.len())
            .flat_map(|place| (0..NAMES).map(move |name| (place, name)))
            .map(|(place, name)| Slot { place, name: format!("{prefix}n{name}"), object: Presence::Absent })
            .collect();
        let driver = Self {
            client,
            scenario: *scenario,
            keys: keys.to_owned(),
            places,
            slots,
            rng: Pcg64Mcg::seed_from_u64(seed),
            barriers: 0,
            writes: 0,
            written: BTreeSet::new(),
        };
        driver.served().await?;
        Ok(driver)
    }

    /// The namespace of scenarios that watch only one.
    pub(crate) fn namespace(&self) -> String {
        let [first, _] = namespaces_of(&self.keys);
        first
    }

    /// The prefix of all object keys.
    pub(crate) fn keys(&self) -> &str {
        &self.keys
    }

    /// Makes this many changes, one after the other.
    pub(crate) async fn write(&mut self, times: u32) -> Result<(), Error> {
        for _ in 0..times {
            self.write_one().await?;
        }
        Ok(())
    }

    /// Creates an object that both informers must receive, while nothing else changes.
    pub(crate) async fn barrier(&mut self) -> Result<State, Error> {
        let name = format!("{}barrier-{}", prefix_of_names(self.scenario.kind(), &self.keys), self.barriers);
        self.barriers += 1;
        self.create(0, &name, "gold").await
    }

    /// Lists the objects that the informers select.
    pub(crate) async fn list(&self) -> Result<Vec<State>, Error> {
        let wanted = ListParams {
            label_selector: self.scenario.labels().map(str::to_owned),
            field_selector: self.scenario.fields().map(str::to_owned),
            ..ListParams::default()
        };
        let seen = if self.scenario.view == View::OneNamespace { &self.places[..1] } else { &self.places[..] };
        let mut states = Vec::new();
        for place in seen {
            for object in place.list(&wanted).await? {
                states.push(state(&object)?);
            }
        }
        states.retain(|state| state.key.starts_with(&self.keys));
        Ok(states)
    }

    /// Deletes what was created, as far as possible.
    pub(crate) async fn clean_up(&self) {
        let kind = self.scenario.kind();
        let delete = DeleteParams::background();
        if kind.is_namespaced() {
            let namespaces = Api::<Namespace>::all(self.client.clone());
            for namespace in namespaces_of(&self.keys) {
                drop(namespaces.delete(&namespace, &delete).await);
            }
        } else {
            for state in &self.written {
                drop(self.places[0].delete(&state.key, &delete).await);
            }
        }
        if let Some(name) = kind.definition().as_ref().and_then(|definition| definition["metadata"]["name"].as_str()) {
            drop(Api::<CustomResourceDefinition>::all(self.client.clone()).delete(name, &delete).await);
        }
    }

    async fn write_one(&mut self) -> Result<(), Error> {
        let nth = self.rng.random_range(0..self.slots.len());
        let tier = ["gold", "silver", "tin"][self.rng.random_range(0..3)];
        let Slot { place, name, object } = &self.slots[nth];
        let (place, name, object) = (*place, name.clone(), *object);
        let (api, chance) = (self.places[place].clone(), self.rng.random_range(0..100));
        let now = match (object, chance) {
            (Presence::Absent, _) => {
                self.create(place, &name, tier).await?;
                Presence::Present
            }
            (Presence::Present, 0..45) => {
                self.patch(&api, &name, &json!({"metadata": {"annotations": {STEP: self.step()}}})).await?;
                Presence::Present
            }
            (Presence::Present, 45..70) => {
                self.relabel(&api, &name, tier).await?;
                Presence::Present
            }
            (Presence::Present, 70..85) => {
                self.delete(&api, &name).await?;
                Presence::Absent
            }
            (Presence::Present, _) => {
                self.delete(&api, &name).await?;
                self.create(place, &name, tier).await?;
                Presence::Present
            }
        };
        self.slots[nth].object = now;
        Ok(())
    }

    async fn create(&mut self, place: usize, name: &str, tier: &str) -> Result<State, Error> {
        let resource = self.scenario.kind().resource();
        let mut object = self.scenario.kind().body();
        object["apiVersion"] = json!(resource.api_version);
        object["kind"] = json!(resource.kind);
        object["metadata"] = json!({"name": name, "labels": {"tier": tier}, "annotations": {STEP: self.step()}});
        let object: DynamicObject = serde_json::from_value(object)?;
        let created = self.places[place].create(&PostParams::default(), &object).await;
        self.wrote(&created.map_err(|error| format!("creating {name}: {error}"))?)
    }

    /// Changes the label that selectors use.
    async fn relabel(&mut self, place: &Api<DynamicObject>, name: &str, tier: &str) -> Result<(), Error> {
        if self.scenario.kind() == Kind::Pod {
            let phase = ["Pending", "Running"][self.rng.random_range(0..2)];
            let patch = Patch::Merge(json!({"status": {"phase": phase}}));
            let patched = place.patch_status(name, &PatchParams::default(), &patch).await?;
            self.wrote(&patched)?;
            return Ok(());
        }
        let patch = json!({"metadata": {"labels": {"tier": tier}, "annotations": {STEP: self.step()}}});
        self.patch(place, name, &patch).await
    }

    async fn patch(&mut self, place: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<(), Error> {
        let patched = place.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        self.wrote(&patched.map_err(|error| format!("patching {name}: {error}"))?)?;
        Ok(())
    }

    async fn delete(&mut self, place: &Api<DynamicObject>, name: &str) -> Result<(), Error> {
        let deleted = place.delete(name, &DeleteParams::default().grace_period(0)).await;
        deleted.map_err(|error| format!("deleting {name}: {error}"))?;
        self.writes += 1;
        Ok(())
    }

    fn wrote(&mut self, object: &DynamicObject) -> Result<State, Error> {
        let state = state(object)?;
        self.writes += 1;
        self.written.insert(state.clone());
        Ok(state)
    }

    fn step(&self) -> String {
        self.writes.to_string()
    }

    /// Waits until the kind can be listed.
    pub(crate) async fn served(&self) -> Result<(), Error> {
        let began = Instant::now();
        while let Err(error) = self.list().await {
            if began.elapsed() > SERVED_TIMEOUT {
                return Err(format!("{} cannot be listed: {error}", self.scenario.resource()).into());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

fn namespaces_of(keys: &str) -> [String; 2] {
    ["a", "b"].map(|name| format!("{keys}-{name}"))
}

/// The name prefix of objects without a namespace, whose keys must begin with `keys`.
fn prefix_of_names(kind: Kind, keys: &str) -> String {
    if kind.is_namespaced() { String::new() } else { format!("{keys}-") }
}

fn state(object: &DynamicObject) -> Result<State, Error> {
    let meta = &object.metadata;
    let name = meta.name.clone().unwrap_or_default();
    Ok(State {
        key: meta.namespace.as_ref().map_or(name.clone(), |namespace| format!("{namespace}/{name}")),
        uid: meta.uid.clone().unwrap_or_default(),
        version: meta.resource_version.as_deref().unwrap_or_default().parse()?,
        step: meta.annotations.as_ref().and_then(|all| all.get(STEP)).cloned().unwrap_or_default(),
    })
}
