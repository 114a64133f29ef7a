//! `CustomResourceDefinition`s: what the server does about them beside storing them.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use crate::admission::metadata;
use crate::api::delete_options::DeleteOptions;
use crate::api::verbs::delete::delete;
use crate::api::view::View;
use crate::api::write::{Authorship, Write};
use crate::api::write_options::WriteOptions;
use crate::cluster::Cluster;
use crate::http::negotiate::Form;
use crate::http::status::Cause;
use crate::kinds::{
    Condition, Definition, GroupResource, Kind, Lifecycle, Registry, Structure, accept_names, initial_status,
    set_condition, set_definition_defaults, stored_versions,
};
use crate::storage::{Draft, Expect, Key, Object, Span};

/// The finalizer that holds a definition until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What a new definition gets.
pub(crate) fn prepare(crd: &mut Value) {
    set_definition_defaults(crd);
    initial_status(crd);
}

/// What a changed definition gets.
pub(crate) fn prepare_update(crd: &mut Value) {
    set_definition_defaults(crd);
    stored_versions(crd);
}

/// What is wrong with a definition.
pub(crate) fn problems(crd: &Value) -> Vec<Cause> {
    Definition::parse(crd).err().unwrap_or_default()
}

/// What is to be said about a definition that can be served: what of its schemas is not looked at.
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

/// What is wrong with a change of a definition.
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

/// Goes on with a new definition: its names are looked at, its kind is served, its conditions say so.
pub(crate) fn created(write: &Write<'_>, key: &Key) {
    settle(write.cluster, key);
}

/// Goes on with a changed definition.
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

/// Serves the kind of a definition as it now is.
fn serve(cluster: &Cluster, key: &Key) {
    let served = cluster.change_registry(|registry| {
        // Read under the registry's lock: of two changes at once, the later one is served.
        let crd = cluster.storage.get(&table(), key).map(|crd| crd.to_value());
        crd.map_or_else(|| Ok(registry.clone()), |crd| registry.with_crd(&crd))
    });
    debug_assert!(served.is_ok(), "a definition is checked before it is stored");
}

/// Serves what the definitions in the store say, whatever was served before.
pub(crate) fn reload(cluster: &Cluster) {
    let definitions = cluster.storage.list(&table(), &Span::everything()).objects;
    let loaded: Result<(), std::convert::Infallible> = cluster.change_registry(|_| {
        let accepted = definitions.iter().map(Object::to_value).filter(|crd| condition_is_true(crd, "Established"));
        Ok(accepted.fold(Registry::new(), |registry, crd| registry.with_crd(&crd).unwrap_or(registry)))
    });
    match loaded {
        Ok(()) => {}
        Err(never) => match never {},
    }
}

/// Goes on with a definition that was deleted: its objects go, and then it goes itself.
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

/// Deletes every object of a kind that nothing holds.
fn empty(cluster: &Cluster, kind: &Arc<Kind>) {
    let view = View::new(kind.clone(), kind.clone(), Form::Full, cluster.clock);
    for object in cluster.storage.list(&kind.storage, &Span::everything()).objects {
        let namespace = object.key().namespace();
        let write = Write {
            cluster,
            view: &view,
            namespace,
            options: WriteOptions::default(),
            authorship: Authorship::Unnoticed,
        };
        // The only failure is that somebody else deleted it first.
        drop(delete(&write, object.key().name(), &DeleteOptions::default()));
    }
}

/// Lets a definition go whose objects are gone.
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
        // The last finalizer goes with the object: its last state still has it.
        if !free {
            metadata::set_finalizers(crd, rest);
        }
    });
    let Some(last) = last.filter(|_| free) else { return };
    if cluster.storage.delete(&self::table(), key, last.revision(), Instant::now()).is_ok() {
        withdraw(cluster, key);
    }
}

/// Serves the kind of a definition no longer.
fn withdraw(cluster: &Cluster, key: &Key) {
    let withdrawn: Result<(), std::convert::Infallible> =
        cluster.change_registry(|registry| Ok(registry.without_crd(key.name())));
    match withdrawn {
        Ok(()) => cluster.custom_tables.retire(instances(key.name())),
        Err(never) => match never {},
    }
    // Others may have waited for its names.
    for other in cluster.storage.list(&table(), &Span::everything()).objects {
        let crd = other.to_value();
        if !metadata::is_deleting(&crd) && !condition_is_true(&crd, "Established") {
            settle(cluster, other.key());
        }
    }
}

/// Goes on after an object was removed: it may have been a definition, or the last object of one that is to go.
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

/// Changes a definition, however often somebody else is faster. `None` if it is gone.
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

/// The table of the objects of the definition of that name, `plural.group`.
fn instances(name: &str) -> GroupResource {
    let (plural, group) = name.split_once('.').unwrap_or((name, ""));
    GroupResource { group: group.to_owned().into(), resource: plural.to_owned().into() }
}
