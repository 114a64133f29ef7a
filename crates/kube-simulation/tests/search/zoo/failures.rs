//! Bugs that show when a request fails, or when time passes in a jump.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::ResourceExt as _;
use serde_json::json;
use tokio::time::Instant;

use super::leader::run_while_leading;
use super::operator::{Operator, Outcome, Reconciler, World, code, owned, unowned};
use super::{Exhibit, Variant, deleted, life};

pub(crate) const EXHIBITS: &[Exhibit] = &[
    Exhibit {
        name: "error taken for absence",
        bug: "Any failure of a read is taken for the absence of the object, whose child is deleted.",
        found_by: &["failures"],
        workload: || deleted(life([json!({})])),
        run: |client, variant| Box::pin(Operator::default().run(client, ErrorForAbsence(variant))),
    },
    Exhibit {
        name: "panic on an error",
        bug: "A request that usually succeeds is unwrapped.",
        found_by: &["failures"],
        workload: || life([json!({})]),
        run: |client, variant| Box::pin(Operator::default().run(client, PanicsOnError(variant))),
    },
    Exhibit {
        name: "no retry",
        bug: "A failed reconciliation is logged and never repeated.",
        found_by: &["failures"],
        workload: || life([json!({})]),
        run: |client, variant| Box::pin(Operator::default().run(client, NoRetry(variant))),
    },
    Exhibit {
        name: "repeats a create that was stored",
        bug: "A create with a generated name whose response is lost is sent again.",
        found_by: &["failures"],
        workload: || life([json!({"replicas": 2})]),
        run: |client, variant| Box::pin(Operator::default().run(client, RepeatsCreate(variant, BTreeSet::new()))),
    },
    Exhibit {
        name: "status never settles",
        bug: "After an error each reconciliation writes a status that leads to the next.",
        found_by: &["failures"],
        workload: || life([json!({})]),
        run: |client, variant| Box::pin(Operator::default().run(client, NeverSettles(variant, 0))),
    },
    Exhibit {
        name: "missed schedule",
        bug: "When the clock jumps past a deadline, the work is given up.",
        found_by: &["failures"],
        workload: || life([json!({})]),
        run: |client, variant| Box::pin(Operator::default().run(client, MissedSchedule(variant, BTreeMap::new()))),
    },
    Exhibit {
        name: "wedged without the lease",
        bug: "A controller that lost its lease stops to work, and its process does not end.",
        found_by: &["failures"],
        workload: || life([json!({"replicas": 1}), json!({"replicas": 2}), json!({"replicas": 3})]),
        run: |client, variant| {
            let work = Operator::default().run(client.clone(), RepeatsCreate(Variant::Correct, BTreeSet::new()));
            Box::pin(async move {
                run_while_leading(client, work).await;
                if variant == Variant::Buggy {
                    std::future::pending::<()>().await;
                }
            })
        },
    },
];

struct ErrorForAbsence(Variant);

impl Reconciler for ErrorForAbsence {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let exists = match (world.api("Thing").get_opt(name).await, self.0) {
            (Ok(thing), _) => thing.is_some(),
            (Err(_), Variant::Buggy) => false,
            (Err(error), Variant::Correct) => return Err(error),
        };
        match (exists, world.cached("ConfigMap", name)) {
            (true, None) => world.ensure(&unowned(name, name, json!({}))).await?,
            (false, Some(child)) => world.delete_cached(child).await?,
            (true, Some(_)) | (false, None) => {}
        }
        Ok(None)
    }
}

struct PanicsOnError(Variant);

impl Reconciler for PanicsOnError {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        if world.cached("ConfigMap", name).is_none() {
            let made = world.ensure(&owned(thing, name, json!({}))).await;
            match self.0 {
                Variant::Buggy => made.expect("a config map can be created"),
                Variant::Correct => made?,
            }
        }
        Ok(None)
    }
}

struct NoRetry(Variant);

impl Reconciler for NoRetry {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        if world.cached("ConfigMap", name).is_none() {
            world.ensure(&owned(thing, name, json!({}))).await?;
        }
        Ok(None)
    }

    fn retries(&self) -> bool {
        self.0 == Variant::Correct
    }
}

/// The set has the children that this process made and has not seen yet.
struct RepeatsCreate(Variant, BTreeSet<String>);

impl Reconciler for RepeatsCreate {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        let wanted = thing.data["spec"]["replicas"].as_u64().unwrap_or(0);
        let children = world.children("ConfigMap", name);
        if self.0 == Variant::Correct {
            for nth in 0..wanted {
                let child = format!("{name}-{nth}");
                if world.cached("ConfigMap", &child).is_none() && world.confirmed(thing).await?.is_some() {
                    world.ensure(&owned(thing, &child, json!({}))).await?;
                }
            }
            return Ok(None);
        }
        self.1.retain(|name| children.iter().all(|child| child.name_any() != *name));
        for _ in (children.len() + self.1.len()) as u64..wanted {
            let mut child = owned(thing, "", json!({}));
            child.metadata.name = None;
            child.metadata.generate_name = Some(format!("{name}-"));
            let made = match world.create(&child).await {
                Err(error) if code(&error) == 0 => world.create(&child).await?,
                other => other?,
            };
            self.1.insert(made.name_any());
        }
        Ok(None)
    }
}

/// The number is that of errors since the start.
struct NeverSettles(Variant, u64);

impl Reconciler for NeverSettles {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        let Some(thing) = world.thing(name) else { return Ok(None) };
        if world.cached("ConfigMap", name).is_none() {
            let made = world.ensure(&owned(thing, name, json!({}))).await;
            self.1 += u64::from(made.is_err());
            made?;
        }
        if self.0 == Variant::Buggy && self.1 > 0 {
            self.1 += 1;
            world.patch_status(name, &json!({"attempts": self.1})).await?;
            return Ok(None);
        }
        if thing.data["status"]["phase"].is_null() {
            world.patch_status(name, &json!({"phase": "Ready"})).await?;
        }
        Ok(None)
    }
}

/// The map has when each Thing is due.
struct MissedSchedule(Variant, BTreeMap<String, Instant>);

impl Reconciler for MissedSchedule {
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome {
        const DELAY: Duration = Duration::from_secs(10);
        const GRACE: Duration = Duration::from_secs(300);
        let Some(thing) = world.thing(name) else { return Ok(None) };
        if world.cached("ConfigMap", name).is_some() {
            return Ok(None);
        }
        let now = Instant::now();
        let due = *self.1.entry(name.to_owned()).or_insert(now + DELAY);
        if now < due {
            return Ok(Some(due - now));
        }
        if self.0 == Variant::Buggy && now > due + GRACE {
            tracing::warn!(name, "the schedule was missed");
            return Ok(None);
        }
        world.ensure(&owned(thing, name, json!({}))).await?;
        Ok(None)
    }
}
