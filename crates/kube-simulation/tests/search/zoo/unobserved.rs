//! Bugs that show when a controller does not see a state, because a later one replaced it.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::operator::{Event, Gone, Operator, Outcome, Reconciler, World, owned, unowned};
use super::{Exhibit, Step, Variant, deleted, life, thing};

pub(crate) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        name: "missed deletion",
        bug: "Only a DELETED event leads to the cleanup: a deletion that a relist skips leaks the child.",
        found_by: &["intermediate", "unobserved"],
        workload: || deleted(life([json!({})])),
        run: |client, variant| Box::pin(Operator::default().run(client, MissedDeletion(variant, BTreeSet::new()))),
    },
    Exhibit {
        name: "edge triggered",
        bug: "Each change of the spec is expected to be seen, and a difference of two is not understood.",
        found_by: &["unobserved"],
        workload: || life([json!({"rotation": 1}), json!({"rotation": 2}), json!({"rotation": 3})]),
        run: |client, variant| Box::pin(Operator::default().run(client, EdgeTriggered(variant, BTreeMap::new()))),
    },
    Exhibit {
        name: "name taken for identity",
        bug: "What is known of an object is kept by name: a new object of that name inherits it.",
        found_by: &["unobserved"],
        workload: || {
            let mut steps = deleted(life([json!({})]));
            steps.extend([thing("a", json!({})), Step::Quiet]);
            steps
        },
        run: |client, variant| Box::pin(Operator::default().run(client, NameForIdentity(variant, BTreeSet::new()))),
    },
    Exhibit {
        name: "resumes after 410",
        bug: "After 410 the watch is repeated from the same version, for ever.",
        found_by: &["unobserved"],
        workload: || life([json!({"rotation": 1}), json!({"rotation": 2}), json!({"rotation": 3})]),
        run: |client, variant| {
            let gone = if variant == Variant::Buggy { Gone::Resume } else { Gone::Relist };
            let operator = Operator { gone, ..Operator::default() };
            Box::pin(operator.run(client, EdgeTriggered(Variant::Correct, BTreeMap::new())))
        },
    },
];

/// The set has the names whose DELETED event was seen.
struct MissedDeletion(Variant, BTreeSet<String>);

impl Reconciler for MissedDeletion {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        if let Some(thing) = world.thing(name) {
            if world.cached("ConfigMap", name).is_none() && world.confirmed(thing).await?.is_some() {
                world.ensure(&unowned(name, name, json!({}))).await?;
            }
            return Ok(None);
        }
        if self.0 == Variant::Buggy {
            if self.1.contains(name) {
                world.delete("ConfigMap", name).await?;
                self.1.remove(name);
            }
            return Ok(None);
        }
        for child in world.children("ConfigMap", name) {
            if world.api("Thing").get_opt(name).await?.is_none() {
                world.delete_cached(child).await?;
            }
        }
        Ok(None)
    }

    fn observe(&mut self, kind: &str, event: &Event) {
        if let (true, Event::Deleted(thing)) = (kind == "Thing", event) {
            self.1.insert(thing.name_any());
        }
    }
}

/// The map has the rotations that are due.
struct EdgeTriggered(Variant, BTreeMap<String, Value>);

impl Reconciler for EdgeTriggered {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let rotation = json!(thing.data["spec"]["rotation"].to_string());
        let Some(child) = world.cached("ConfigMap", name) else {
            if world.confirmed(thing).await?.is_some() {
                world.ensure(&owned(thing, name, json!({ "rotation": rotation }))).await?;
            }
            return Ok(None);
        };
        let due = match self.0 {
            Variant::Buggy => self.1.get(name).cloned(),
            Variant::Correct => (child.data["data"]["rotation"] != rotation).then_some(rotation),
        };
        if let Some(rotation) = due {
            world.patch("ConfigMap", name, &json!({"data": {"rotation": rotation}})).await?;
            self.1.remove(name);
        }
        Ok(None)
    }

    fn observe(&mut self, kind: &str, event: &Event) {
        let rotation = |thing: &kube::api::DynamicObject| thing.data["spec"]["rotation"].as_u64().unwrap_or(0);
        match event {
            Event::Changed(states) if kind == "Thing" => {
                let [old, new] = &**states;
                if rotation(new) == rotation(old) + 1 {
                    self.1.insert(new.name_any(), json!(rotation(new).to_string()));
                }
            }
            // A restarted controller starts from what it finds.
            Event::Added(thing) if kind == "Thing" => {
                self.1.insert(thing.name_any(), json!(rotation(thing).to_string()));
            }
            _ => {}
        }
    }
}

/// The set has the names of Things whose child this process made.
struct NameForIdentity(Variant, BTreeSet<String>);

impl Reconciler for NameForIdentity {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let is_made = match self.0 {
            Variant::Buggy => self.1.contains(name),
            Variant::Correct => world.cached("ConfigMap", name).is_some(),
        };
        if !is_made && world.confirmed(thing).await?.is_some() {
            world.ensure(&owned(thing, name, json!({}))).await?;
            self.1.insert(name.to_owned());
        }
        Ok(None)
    }

    fn observe(&mut self, kind: &str, event: &Event) {
        if let (true, Event::Deleted(thing) | Event::Vanished(thing)) = (kind == "Thing", event) {
            self.1.remove(&thing.name_any());
        }
    }
}
