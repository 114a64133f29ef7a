//! A webhook of a configuration, and what it is called for.

use serde_json::Value;

use super::gate::{Operation, Stage};
use crate::cluster::Cluster;
use crate::encoding::value::{items, text};
use crate::kinds::{GroupResource, Kind, ResourceScope, are_met};
use crate::storage::selector::LabelSelector;
use crate::storage::{Key, KeyRange, Labels};

/// A webhook as its configuration describes it.
#[derive(Debug, Clone)]
pub(super) struct Hook {
    pub(super) stage: Stage,
    pub(super) spec: Value,
}

/// What a write is about, for the rules of webhooks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'s> {
    pub(super) kind: &'s Kind,
    pub(super) subresource: &'s str,
    pub(super) operation: Operation,
    pub(super) namespace: Option<&'s str>,
}

/// The resources of which a request calls no webhooks: a wrong webhook could not be removed.
const EXEMPT: &str = "admissionregistration.k8s.io";

/// The webhooks of all configurations, in the order in which they are called; none for the
/// resources of which a request calls none.
pub(super) fn all(cluster: &Cluster, kind: &Kind) -> Vec<Hook> {
    if kind.group == EXEMPT {
        return Vec::new();
    }
    let mut hooks = Vec::new();
    for (stage, resource) in
        [(Stage::Mutation, "mutatingwebhookconfigurations"), (Stage::Validation, "validatingwebhookconfigurations")]
    {
        let table = GroupResource { group: EXEMPT.into(), resource: resource.into() };
        if cluster.storage.count(&table) == 0 {
            continue;
        }
        // In the order of their names.
        for configuration in cluster.storage.list_cached(&table, &KeyRange::everything()).objects {
            let mut configuration = configuration.to_value();
            if let Value::Array(specs) = configuration["webhooks"].take() {
                hooks.extend(specs.into_iter().map(|spec| Hook { stage, spec }));
            }
        }
    }
    hooks
}

impl Hook {
    pub(super) fn name(&self) -> &str {
        text(&self.spec["name"])
    }

    pub(super) fn ignores_failures(&self) -> bool {
        self.spec["failurePolicy"] == "Ignore"
    }

    pub(super) fn is_called_again(&self) -> bool {
        self.spec["reinvocationPolicy"] == "IfNeeded"
    }

    pub(super) fn permits_dry_run(&self) -> bool {
        matches!(self.spec["sideEffects"].as_str(), Some("None" | "NoneOnDryRun"))
    }

    /// The kind in whose version the webhook receives the object, if one of its rules is about the
    /// write: that of the request, or another version of the same objects.
    pub(super) fn kind<'k>(&self, subject: Subject<'k>, versions: &[&'k Kind]) -> Option<&'k Kind> {
        let rules = items(&self.spec["rules"]);
        if rules.iter().any(|rule| is_about(rule, subject)) {
            return Some(subject.kind);
        }
        let is_equivalent = self.spec["matchPolicy"] != "Exact";
        let others = versions.iter().copied().filter(|_| is_equivalent);
        rules.iter().find_map(|rule| others.clone().find(|kind| is_about(rule, Subject { kind, ..subject })))
    }

    /// Whether the selectors match the namespace and the object, new or old.
    pub(super) fn selects(&self, cluster: &Cluster, subject: Subject<'_>, objects: [&Value; 2]) -> bool {
        let of_object = selector(&self.spec["objectSelector"]).is_none_or(|selector| {
            let objects = objects.into_iter().filter(|object| object.is_object());
            objects.map(|object| Labels::of(&object["metadata"]["labels"])).any(|labels| selector.matches(&labels))
        });
        of_object
            && selector(&self.spec["namespaceSelector"]).is_none_or(|selector| {
                if subject.kind.kind == "Namespace" && subject.kind.group.is_empty() {
                    let object = if objects[0].is_object() { objects[0] } else { objects[1] };
                    return selector.matches(&Labels::of(&object["metadata"]["labels"]));
                }
                let Some(namespace) = subject.namespace else { return true };
                let table = GroupResource { group: "".into(), resource: "namespaces".into() };
                let found = cluster.storage.get(&table, &Key::new(None, namespace));
                found.is_some_and(|namespace| selector.matches(namespace.labels()))
            })
    }

    /// Whether the match conditions hold.
    ///
    /// # Errors
    ///
    /// The message of a condition that fails to be evaluated, if none is false.
    pub(super) fn meets_conditions(&self, variables: &[(&str, &Value)]) -> Result<bool, String> {
        let conditions = items(&self.spec["matchConditions"]);
        let expressions: Vec<&str> = conditions.iter().map(|condition| text(&condition["expression"])).collect();
        if expressions.is_empty() { Ok(true) } else { are_met(&expressions, variables) }
    }
}

/// The selector, unless it selects everything.
fn selector(value: &Value) -> Option<LabelSelector> {
    LabelSelector::of(value).filter(|selector| !selector.is_everything())
}

fn is_about(rule: &Value, subject: Subject<'_>) -> bool {
    let has = |list: &str, wanted: &str| items(&rule[list]).iter().any(|each| *each == "*" || *each == wanted);
    let is_resource = items(&rule["resources"]).iter().filter_map(Value::as_str).any(|pattern| {
        let (resource, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
        let is_part = match subresource {
            "*" => resource == "*" || !subject.subresource.is_empty() || resource == subject.kind.plural,
            part => part == subject.subresource,
        };
        (resource == "*" || resource == subject.kind.plural) && is_part
    });
    let is_scope = match rule["scope"].as_str() {
        Some("Cluster") => subject.kind.scope == ResourceScope::Cluster,
        Some("Namespaced") => subject.kind.scope == ResourceScope::Namespaced,
        _ => true,
    };
    is_resource
        && is_scope
        && has("apiGroups", &subject.kind.group)
        && has("apiVersions", &subject.kind.version)
        && has("operations", subject.operation.name())
}
