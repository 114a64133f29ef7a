//! The zoo: small controllers, each with one bug of a class that was published, beside a correct
//! twin.
//!
//! The classes are those of the reports on Sieve (OSDI '22) and Acto (SOSP '23) and of the issue
//! trackers of operators; the controllers are ours.

use futures_util::future::LocalBoxFuture;
use kube::Client;
use serde_json::{Value, json};

mod failures;
mod intermediate;
mod leader;
pub(crate) mod operator;
mod stale;
mod unobserved;

/// Which of the two twins runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    Buggy,
    Correct,
}

/// A step of a workload.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create(Value),
    /// Kind, name and merge patch.
    Patch(&'static str, &'static str, Value),
    Delete(&'static str, &'static str),
    Quiet,
}

/// A controller with a bug, and its twin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exhibit {
    pub(crate) name: &'static str,
    /// The published class of the bug, in a sentence.
    pub(crate) bug: &'static str,
    /// The classes of plans that find it.
    pub(crate) found_by: &'static [&'static str],
    pub(crate) workload: fn() -> Vec<Step>,
    pub(crate) run: fn(Client, Variant) -> LocalBoxFuture<'static, ()>,
}

pub(crate) fn exhibits() -> impl Iterator<Item = &'static Exhibit> {
    [intermediate::EXHIBITS, stale::EXHIBITS, unobserved::EXHIBITS, failures::EXHIBITS].into_iter().flatten()
}

/// The definition of the zoo's custom kind.
pub(crate) fn definition() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.zoo.example.com"},
        "spec": {
            "group": "zoo.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}},
            }],
        },
    })
}

fn thing(name: &str, spec: Value) -> Step {
    Step::Create(json!({
        "apiVersion": "zoo.example.com/v1", "kind": "Thing",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec,
    }))
}

/// A Thing that is created, changed and deleted, with a wait after each step.
fn life(specs: impl IntoIterator<Item = Value>) -> Vec<Step> {
    let mut steps = Vec::new();
    for spec in specs {
        steps.push(match steps.is_empty() {
            true => thing("a", spec),
            false => Step::Patch("Thing", "a", json!({ "spec": spec })),
        });
        steps.push(Step::Quiet);
    }
    steps
}

fn deleted(mut steps: Vec<Step>) -> Vec<Step> {
    steps.extend([Step::Delete("Thing", "a"), Step::Quiet]);
    steps
}
