//! Bugs that show when a controller stops between two writes.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt as _;
use serde_json::{Value, json};

use super::operator::{Operator, Outcome, Reconciler, World, absent_is_ok, is_deleting, owned, unowned};
use super::{Exhibit, Step, Variant, deleted, life, thing};

pub(crate) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        name: "existing child is an error",
        bug: "A crash between the creation of a child and the status: the repeated creation fails for ever.",
        found_by: &["intermediate", "failures"],
        workload: || life([json!({})]),
        run: |client, variant| Box::pin(Operator::default().run(client, ExistingIsError(variant))),
    },
    Exhibit {
        name: "name in the status only",
        bug: "A child with a generated name, recorded after its creation: a crash in between leaks it.",
        found_by: &["intermediate", "failures"],
        workload: || life([json!({})]),
        run: |client, variant| Box::pin(Operator::default().run(client, NameInStatus(variant, BTreeMap::new()))),
    },
    Exhibit {
        name: "finalizer before the cleanup",
        bug: "The finalizer is removed first: a crash or a failure before the cleanup leaks what it was for.",
        found_by: &["intermediate", "failures"],
        workload: || deleted(life([json!({})])),
        run: |client, variant| Box::pin(Operator::default().run(client, FinalizerFirst(variant))),
    },
    Exhibit {
        name: "owner in a second write",
        bug: "A child gets its owner after its creation: a crash in between leaves it without one.",
        found_by: &["intermediate"],
        workload: || deleted(life([json!({})])),
        run: |client, variant| Box::pin(Operator::default().run(client, OwnerLater(variant, BTreeSet::new()))),
    },
    Exhibit {
        name: "replacement deletes first",
        bug: "What is to be carried over exists in memory only between deletion and creation.",
        found_by: &["intermediate"],
        workload: || {
            let old = json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": {"note": "kept"},
                "metadata": {"name": "a-1", "namespace": "default", "labels": {"thing": "a"}},
            });
            vec![Step::Create(old), thing("a", json!({"version": 2})), Step::Quiet]
        },
        run: |client, variant| Box::pin(Operator::default().run(client, DeletesFirst(variant, BTreeMap::new()))),
    },
    Exhibit {
        name: "first step taken for all",
        bug: "A restarted controller takes the first of two steps for the completion of both.",
        found_by: &["intermediate"],
        workload: || life([json!({})]),
        run: |client, variant| Box::pin(Operator::default().run(client, FirstStep(variant, BTreeSet::new()))),
    },
    Exhibit {
        name: "scale down from memory",
        bug: "Which children are too many is known from memory, which is lost with the process.",
        found_by: &["intermediate", "unobserved"],
        workload: || life([json!({"replicas": 3}), json!({"replicas": 1})]),
        run: |client, variant| Box::pin(Operator::default().run(client, ScaleFromMemory(variant, BTreeMap::new()))),
    },
];

struct ExistingIsError(Variant);

impl Reconciler for ExistingIsError {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name).filter(|thing| thing.data["status"]["phase"] != "Ready") else {
            return Ok(None);
        };
        let child = owned(thing, name, json!({}));
        match self.0 {
            Variant::Buggy => drop(world.create(&child).await?),
            Variant::Correct => world.ensure(&child).await?,
        }
        world.patch_status(name, &json!({"phase": "Ready"})).await?;
        Ok(None)
    }
}

/// The names in memory hide the bug until they are lost.
struct NameInStatus(Variant, BTreeMap<String, String>);

impl Reconciler for NameInStatus {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name).filter(|thing| thing.data["status"]["child"].is_null()) else {
            return Ok(None);
        };
        let mut child = owned(thing, &format!("{name}-child"), json!({}));
        let made = match (self.0, self.1.get(name)) {
            (Variant::Correct, _) => {
                world.ensure(&child).await?;
                child.name_any()
            }
            (Variant::Buggy, Some(made)) => made.clone(),
            (Variant::Buggy, None) => {
                child.metadata.generate_name = child.metadata.name.take().map(|name| name + "-");
                let made = world.create(&child).await?.name_any();
                self.1.insert(name.to_owned(), made.clone());
                made
            }
        };
        world.patch_status(name, &json!({ "child": made })).await?;
        Ok(None)
    }
}

struct FinalizerFirst(Variant);

impl Reconciler for FinalizerFirst {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let finalizers = |finalizers: Value| json!({"metadata": {"finalizers": finalizers, "uid": thing.uid()}});
        if is_deleting(thing) {
            let done = finalizers(json!(null));
            if self.0 == Variant::Buggy {
                absent_is_ok(world.patch("Thing", name, &done).await)?;
            }
            world.delete("ConfigMap", name).await?;
            if self.0 == Variant::Correct {
                absent_is_ok(world.patch("Thing", name, &done).await)?;
            }
            return Ok(None);
        }
        if thing.finalizers().is_empty() {
            world.patch("Thing", name, &finalizers(json!(["zoo.example.com/cleanup"]))).await?;
        }
        if world.cached("ConfigMap", name).is_none() && world.confirmed(thing).await?.is_some() {
            world.ensure(&unowned(name, name, json!({}))).await?;
        }
        Ok(None)
    }
}

/// The set has the names of children that are being made in this process.
struct OwnerLater(Variant, BTreeSet<String>);

impl Reconciler for OwnerLater {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        if world.cached("ConfigMap", name).is_some() && !self.1.contains(name) {
            return Ok(None);
        }
        if world.confirmed(thing).await?.is_none() {
            return Ok(None);
        }
        let child = owned(thing, name, json!({}));
        if self.0 == Variant::Correct {
            world.ensure(&child).await?;
            return Ok(None);
        }
        self.1.insert(name.to_owned());
        world.ensure(&unowned(name, name, json!({}))).await?;
        let owners = json!({"metadata": {"ownerReferences": child.owner_references()}});
        world.patch("ConfigMap", name, &owners).await?;
        self.1.remove(name);
        Ok(None)
    }
}

/// The map has what is carried over from the deleted child to the next.
struct DeletesFirst(Variant, BTreeMap<String, Value>);

impl Reconciler for DeletesFirst {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let wanted = format!("{name}-{}", thing.data["spec"]["version"]);
        let children = world.children("ConfigMap", name);
        let others: Vec<_> = children.iter().filter(|child| child.name_any() != wanted).collect();
        if let Some(old) = others.first() {
            self.1.insert(name.to_owned(), old.data["data"]["note"].clone());
        }
        if self.0 == Variant::Buggy {
            for old in &others {
                world.delete_cached(old).await?;
            }
        }
        if children.len() == others.len() {
            let Some(thing) = world.confirmed(thing).await? else { return Ok(None) };
            let note = self.1.get(name).and_then(Value::as_str).unwrap_or("new");
            world.ensure(&owned(&thing, &wanted, json!({ "note": note }))).await?;
        }
        if self.0 == Variant::Correct {
            for old in &others {
                world.delete_cached(old).await?;
            }
        }
        Ok(None)
    }
}

/// The set has the names whose first step this process has begun.
struct FirstStep(Variant, BTreeSet<String>);

impl Reconciler for FirstStep {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name).filter(|thing| thing.data["status"]["phase"].is_null()) else {
            return Ok(None);
        };
        let is_begun = self.1.contains(name);
        if self.0 == Variant::Buggy && !is_begun && world.cached("ConfigMap", name).is_some() {
            return Ok(None);
        }
        self.1.insert(name.to_owned());
        world.ensure(&owned(thing, name, json!({}))).await?;
        world.patch_status(name, &json!({"phase": "Ready"})).await?;
        Ok(None)
    }
}

/// The map has the number of children that this process last wanted.
struct ScaleFromMemory(Variant, BTreeMap<String, u64>);

impl Reconciler for ScaleFromMemory {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let wanted = thing.data["spec"]["replicas"].as_u64().unwrap_or(0);
        let missing: Vec<_> = (0..wanted)
            .map(|nth| format!("{name}-{nth}"))
            .filter(|child| world.cached("ConfigMap", child).is_none())
            .collect();
        if !missing.is_empty() && world.confirmed(thing).await?.is_none() {
            return Ok(None);
        }
        for child in missing {
            world.ensure(&owned(thing, &child, json!({}))).await?;
        }
        match self.0 {
            Variant::Buggy => {
                for nth in wanted..self.1.get(name).copied().unwrap_or(wanted) {
                    world.delete("ConfigMap", &format!("{name}-{nth}")).await?;
                }
            }
            Variant::Correct => {
                let wanted: BTreeSet<_> = (0..wanted).map(|nth| format!("{name}-{nth}")).collect();
                for child in world.children("ConfigMap", name) {
                    if !wanted.contains(&child.name_any()) {
                        world.delete_cached(child).await?;
                    }
                }
            }
        }
        self.1.insert(name.to_owned(), wanted);
        Ok(None)
    }
}
