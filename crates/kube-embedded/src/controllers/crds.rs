//! The lifecycle of `CustomResourceDefinition`s: names, conditions, serving and deletion.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use crate::admission::metadata;
use crate::api::delete_options::DeleteOptions;
use crate::api::verbs::delete::delete;
use crate::api::view::View;
use crate::api::write::{Authorship, Write};
use crate::cluster::Cluster;
use crate::http::negotiate::Form;
use crate::http::status::Cause;
use crate::kinds::{
    Condition, Definition, GroupResource, Kind, Lifecycle, Registry, Structure, accept_names, initial_status,
    set_condition, set_definition_defaults, stored_versions,
};
use crate::storage::{Draft, Expect, Key, KeyRange, Object};

/// The finalizer that keeps a definition until its custom resources are deleted.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Sets defaults and the initial status of a new definition.
pub(crate) fn prepare(crd: &mut Value) {
    set_definition_defaults(crd);
    initial_status(crd);
}

/// Sets defaults and the stored versions of an updated definition.
pub(crate) fn prepare_update(crd: &mut Value) {
    set_definition_defaults(crd);
    stored_versions(crd);
}

/// Validation errors of a definition.
pub(crate) fn problems(crd: &Value) -> Vec<Cause> {
    Definition::parse(crd).err().unwrap_or_default()
}

/// Warnings about parts of a valid definition's schemas that are not checked: unknown formats and
/// unchecked validation rules.
pub(crate) fn warnings(crd: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        let structure = Structure::new(&version["schema"]["openAPIV3Schema"]);
        warnings.extend(structure.unknown_formats());
        warnings.extend(structure.unchecked_rules());
    }
    warnings.sort();
    warnings.dedup();
    warnings
}

/// Validation errors of an update of a definition.
pub(crate) fn update_problems(crd: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = problems(crd);
    for name in ["group", "scope"] {
        let (new, old) = (&crd["spec"][name], &old["spec"][name]);
        if new != old {
            causes.push(Cause::invalid(&format!("spec.{name}"), new, "field is immutable"));
        }
    }
    causes
}

/// Reconciles a new definition: accepts its names, serves its kind and sets its conditions.
pub(crate) fn created(write: &Write<'_>, key: &Key) {
    settle(write.cluster, key);
}

/// Reconciles an updated definition.
pub(crate) fn updated(write: &Write<'_>, key: &Key) {
    settle(write.cluster, key);
}

fn settle(cluster: &Cluster, key: &Key) {
    let now = cluster.clock.seconds();
    let mut accepted = false;
    let established = |crd: &Value| condition_is_true(crd, "Established");
    change(cluster, key, |crd| {
        accepted = accept_names(crd, &cluster.registry(), &now);
        if accepted && !established(crd) {
            set_condition(crd, Condition::Installing, &now);
        }
    });
    if !accepted {
        return;
    }
    let known = cluster.registry().definition(key.name()).is_some();
    change(cluster, key, |crd| {
        if !established(crd) {
            set_condition(crd, Condition::Established, &now);
        }
    });
    serve(cluster, key);
    if let Some(definition) = cluster.registry().definition(key.name()).filter(|_| !known) {
        cluster.custom_tables.open(cluster, &definition.stored.storage);
    }
}

/// Serves the kind of a definition in its current state. If its spec has changed, the watches of
/// the kind end, of all versions.
fn serve(cluster: &Cluster, key: &Key) {
    let mut changed = None;
    let served: Result<(), Vec<Cause>> = cluster.change_registry(|registry| {
        // Read under the registry's lock, so that of two concurrent changes the later one is
        // served.
        let crd = cluster.storage.get(&table(), key).map(|crd| crd.to_value());
        let Some(crd) = crd else { return Ok(registry.clone()) };
        let next = registry.with_crd(&crd)?;
        if let (Some(before), Some(now)) = (registry.definition(key.name()), next.definition(key.name())) {
            changed = (!now.is_same_as(before)).then(|| now.stored.storage.clone());
        }
        Ok(next)
    });
    if let Some(table) = changed {
        cluster.custom_tables.renew(cluster, &table);
    }
    debug_assert!(served.is_ok(), "a definition is checked before it is stored");
}

/// Rebuilds the registry from the stored definitions.
pub(crate) fn reload(cluster: &Cluster) {
    let definitions = cluster.storage.list(&table(), &KeyRange::everything()).objects;
    let loaded: Result<(), std::convert::Infallible> = cluster.change_registry(|_| {
        let accepted = definitions.iter().map(Object::to_value).filter(|crd| condition_is_true(crd, "Established"));
        Ok(accepted.fold(Registry::new(), |registry, crd| registry.with_crd(&crd).unwrap_or(registry)))
    });
    match loaded {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

/// Deletes the custom resources of a definition that is being deleted, and then the definition.
pub(crate) fn terminate(cluster: &Cluster, key: &Key) {
    serve(cluster, key);
    let now = cluster.clock.seconds();
    change(cluster, key, |crd| set_condition(crd, Condition::DeletionInProgress, &now));
    let registry = cluster.registry();
    if let Some(definition) = registry.definition(key.name()) {
        empty(cluster, &definition.stored);
    }
    finish(cluster, key);
}

/// Deletes every object of a kind. Objects with finalizers stay until the finalizers are removed.
fn empty(cluster: &Cluster, kind: &Arc<Kind>) {
    let view = View::new(kind.clone(), kind.clone(), Form::Full, cluster.clock);
    for object in cluster.storage.list(&kind.storage, &KeyRange::everything()).objects {
        let namespace = object.key().namespace();
        let write = Write::internal(cluster, &view, namespace, Authorship::Untracked);
        // Fails only if another client deleted the object first.
        drop(delete(&write, object.key().name(), &DeleteOptions::default()));
    }
}

/// Removes a definition that is being deleted and has no custom resources left.
fn finish(cluster: &Cluster, key: &Key) {
    let table = instances(key.name());
    if cluster.storage.count(&table) > 0 {
        return;
    }
    let now = cluster.clock.seconds();
    change(cluster, key, |crd| set_condition(crd, Condition::DeletionCompleted, &now));
    let mut free = false;
    let last = change(cluster, key, |crd| {
        let rest: Vec<String> =
            metadata::finalizers(crd).into_iter().filter(|f| *f != CLEANUP).map(str::to_owned).collect();
        free = rest.is_empty();
        // The last finalizer is removed together with the object, whose final state still contains
        // it.
        if !free {
            metadata::set_finalizers(crd, rest);
        }
    });
    let Some(last) = last.filter(|_| free) else { return };
    if cluster.storage.delete(&self::table(), key, last.revision(), Instant::now()).is_ok() {
        withdraw(cluster, key);
    }
}

/// Stops serving the kind of a definition.
fn withdraw(cluster: &Cluster, key: &Key) {
    let withdrawn: Result<(), std::convert::Infallible> =
        cluster.change_registry(|registry| Ok(registry.without_crd(key.name())));
    match withdrawn {
        Ok(()) => cluster.custom_tables.retire(instances(key.name())),
        Err(never) => match never {},
    }
    // Other definitions may have conflicted with its names.
    for other in cluster.storage.list(&table(), &KeyRange::everything()).objects {
        let crd = other.to_value();
        if !metadata::is_deleting(&crd) && !condition_is_true(&crd, "Established") {
            settle(cluster, other.key());
        }
    }
}

/// Continues after an object was removed, if it was a definition or the last custom resource of one
/// that is being deleted.
pub(crate) fn removed(cluster: &Cluster, kind: &Kind, object: &Object) {
    if kind.behaviour.lifecycle == Lifecycle::CustomResourceDefinition {
        withdraw(cluster, object.key());
    } else if kind.is_custom() {
        let definition = Key::new(None, &format!("{}.{}", kind.plural, kind.group));
        let crd = cluster.storage.get(&table(), &definition).map(|crd| crd.to_value());
        if crd.is_some_and(|crd| metadata::is_deleting(&crd) && metadata::finalizers(&crd).contains(&CLEANUP)) {
            finish(cluster, &definition);
        }
    }
}

/// Changes a definition, retrying on conflicts. `None` if it no longer exists.
fn change(cluster: &Cluster, key: &Key, mut change: impl FnMut(&mut Value)) -> Option<Arc<Object>> {
    let kind = Registry::new().find("apiextensions.k8s.io", "v1", "customresourcedefinitions")?;
    loop {
        let existing = cluster.storage.get(&table(), key)?;
        let mut crd = existing.to_value();
        change(&mut crd);
        let draft = Draft::new(&kind, key.clone(), &crd);
        let expect = Expect::Revision(existing.revision());
        if let Ok(stored) = cluster.storage.put(&table(), expect, draft, Instant::now()) {
            return Some(stored);
        }
    }
}

fn condition_is_true(crd: &Value, kind: &str) -> bool {
    let conditions = crd["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

fn table() -> GroupResource {
    GroupResource { group: "apiextensions.k8s.io".into(), resource: "customresourcedefinitions".into() }
}

/// The table of the custom resources of a definition named `plural.group`.
fn instances(name: &str) -> GroupResource {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    GroupResource { group: group.to_owned().into(), resource: plural.to_owned().into() }
}
