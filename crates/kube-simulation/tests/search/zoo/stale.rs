//! Bugs that show when a controller acts on a state that is no longer the latest.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use kube::api::{DynamicObject, GetParams, PostParams};
use serde_json::json;

use super::operator::{Operator, Outcome, Reads, Reconciler, World, code, is_deleting, owned};
use super::{Exhibit, Step, Variant, life, thing};

pub(crate) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        name: "double create on a stale list",
        bug: "After a restart the children are counted in a list that is behind, and made a second time.",
        found_by: &["stale", "failures"],
        workload: || life([json!({"replicas": 2})]),
        run: |client, variant| Box::pin(any_reads().run(client, CountsChildren(variant, BTreeMap::new()))),
    },
    Exhibit {
        name: "deletes a new incarnation",
        bug: "A wish that is out of date deletes by name the child of a later wish.",
        found_by: &["stale"],
        workload: || life([json!({"enabled": true}), json!({"enabled": false}), json!({"enabled": true})]),
        run: |client, variant| Box::pin(any_reads().run(client, DeletesByName(variant))),
    },
    Exhibit {
        name: "blind overwrite",
        bug: "A whole object is written from a cache without its version, over what another client changed.",
        found_by: &["stale", "unobserved"],
        workload: registry,
        run: |client, variant| Box::pin(Operator::default().run(client, BlindOverwrite(variant))),
    },
    Exhibit {
        name: "two primaries",
        bug: "A role is given by a stale view of who has it, without a precondition.",
        found_by: &["stale"],
        workload: || life([json!({"primary": 0}), json!({"primary": 1}), json!({"primary": 0})]),
        run: |client, variant| Box::pin(any_reads().run(client, TwoPrimaries(variant))),
    },
    Exhibit {
        name: "confirmed by a read that may be behind",
        bug: "Before a deletion the wish is read once more, with a version that allows an old answer.",
        found_by: &["stale"],
        workload: || life([json!({"enabled": true}), json!({"enabled": false}), json!({"enabled": true})]),
        run: |client, variant| Box::pin(Operator::default().run(client, StaleConfirmation(variant))),
    },
];

fn any_reads() -> Operator {
    Operator { reads: Reads::Any, ..Operator::default() }
}

/// A user changes the registry just after a Thing that is to be registered is created.
fn registry() -> Vec<Step> {
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "registry", "namespace": "default"}, "data": {},
    });
    let patch = Step::Patch("ConfigMap", "registry", json!({"data": {"user": "1"}}));
    vec![Step::Create(map), thing("a", json!({})), Step::Quiet, thing("b", json!({})), patch, Step::Quiet]
}

/// The map has the children that this process made and has not seen yet.
struct CountsChildren(Variant, BTreeMap<String, DynamicObject>);

impl Reconciler for CountsChildren {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let wanted = thing.data["spec"]["replicas"].as_u64().unwrap_or(0);
        let children = world.children("ConfigMap", name);
        match self.0 {
            Variant::Buggy => {
                self.1.retain(|name, _| children.iter().all(|child| child.name_any() != *name));
                for _ in (children.len() + self.1.len()) as u64..wanted {
                    let mut child = owned(thing, "", json!({}));
                    child.metadata.name = None;
                    child.metadata.generate_name = Some(format!("{name}-"));
                    let made = world.create(&child).await?;
                    self.1.insert(made.name_any(), made);
                }
            }
            Variant::Correct => {
                for nth in 0..wanted {
                    let child = format!("{name}-{nth}");
                    if world.cached("ConfigMap", &child).is_none() && world.confirmed(thing).await?.is_some() {
                        world.ensure(&owned(thing, &child, json!({}))).await?;
                    }
                }
            }
        }
        Ok(None)
    }
}

struct DeletesByName(Variant);

impl Reconciler for DeletesByName {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let child = world.cached("ConfigMap", name);
        match (thing.data["spec"]["enabled"] == true, child) {
            (true, None) => {
                if world.confirmed(thing).await?.is_some() {
                    world.ensure(&owned(thing, name, json!({}))).await?;
                }
            }
            (false, _) if self.0 == Variant::Buggy => world.delete("ConfigMap", name).await?,
            (false, Some(child)) => {
                if world.confirmed(thing).await?.is_some() {
                    world.delete_cached(child).await?;
                }
            }
            (true, Some(_)) | (false, None) => {}
        }
        Ok(None)
    }
}

struct StaleConfirmation(Variant);

impl Reconciler for StaleConfirmation {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let live = match self.0 {
            Variant::Buggy => match world.api("Thing").get_with(name, &GetParams::any()).await {
                Err(error) if code(&error) == 404 => None,
                other => Some(other?),
            },
            Variant::Correct => world.confirmed(thing).await?,
        };
        let Some(live) = live.filter(|live| !is_deleting(live)) else { return Ok(None) };
        match (live.data["spec"]["enabled"] == true, world.cached("ConfigMap", name)) {
            (true, None) => world.ensure(&owned(&live, name, json!({}))).await?,
            (false, Some(child)) => world.delete_cached(child).await?,
            (true, Some(_)) | (false, None) => {}
        }
        Ok(None)
    }
}

struct BlindOverwrite(Variant);

impl Reconciler for BlindOverwrite {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let (Some(_), Some(registry)) = (world.thing(name), world.cached("ConfigMap", "registry")) else {
            return Ok(None);
        };
        if registry.data["data"][name].is_string() {
            return Ok(None);
        }
        let mut next = registry.clone();
        if !next.data["data"].is_object() {
            next.data["data"] = json!({});
        }
        next.data["data"][name] = json!("registered");
        if self.0 == Variant::Buggy {
            next.metadata.resource_version = None;
        }
        world.api("ConfigMap").replace("registry", &PostParams::default(), &next).await?;
        Ok(None)
    }
}

struct TwoPrimaries(Variant);

impl TwoPrimaries {
    async fn set_role(&self, world: &World, member: &DynamicObject, role: &str) -> Result<(), kube::Error> {
        let mut patch = json!({"data": {"role": role}});
        if self.0 == Variant::Correct {
            patch["metadata"] = json!({"resourceVersion": member.resource_version()});
        }
        world.patch("ConfigMap", &member.name_any(), &patch).await
    }
}

impl Reconciler for TwoPrimaries {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let member = |nth: u64| format!("{name}-{nth}");
        let mut members = Vec::new();
        for nth in 0..2 {
            match world.cached("ConfigMap", &member(nth)) {
                Some(member) => members.push(member),
                None if world.confirmed(thing).await?.is_none() => return Ok(None),
                None => {
                    world.ensure(&owned(thing, &member(nth), json!({"role": "replica"}))).await?;
                }
            }
        }
        if members.len() < 2 {
            return Ok(None);
        }
        let primary = thing.data["spec"]["primary"].as_u64().unwrap_or(0) as usize % 2;
        let is_primary = |member: &DynamicObject| member.data["data"]["role"] == "primary";
        if is_primary(members[1 - primary]) {
            self.set_role(world, members[1 - primary], "replica").await?;
        }
        if !is_primary(members[primary]) {
            self.set_role(world, members[primary], "primary").await?;
        }
        Ok(None)
    }
}
