//! The managers of an object's replicas, as those of its scale, and back.

use serde_json::Value;

use super::fields::Fields;
use super::managers::{Manager, read, write};
use crate::kinds::{self, Kind};

/// The replicas in a scale.
const REPLICAS: [&str; 2] = ["f:spec", "f:replicas"];

/// Sets the managers of a scale: those that own the replicas of the object, at this path.
pub(crate) fn to_scale(object: &Value, path: &[String], scale: &mut Value) {
    let path = elements(path);
    let owners = read(object).into_iter().filter(|manager| owns(manager, &path));
    let owners = owners.map(|mut manager| {
        manager.api_version = kinds::scale().api_version().to_owned();
        manager.fields = only(&REPLICAS.map(str::to_owned));
        manager
    });
    write(scale, owners.collect());
}

/// Sets the managers of an object after a write of its scale: the owners of the scale's replicas
/// become the only owners of the object's.
pub(crate) fn from_scale(kind: &Kind, object: &mut Value, path: &[String], scale: &Value) {
    let path = elements(path);
    let owners = read(scale).into_iter().filter(|owner| owner.fields.contains(&REPLICAS));
    let owners: Vec<Manager> = owners
        .map(|mut owner| {
            owner.api_version = kind.api_version().to_owned();
            owner.fields = only(&path);
            owner
        })
        .collect();
    let mut managers = read(object);
    for manager in managers.iter_mut().filter(|manager| !owners.iter().any(|owner| owner.is(manager))) {
        manager.fields.remove(&path.iter().map(String::as_str).collect::<Vec<_>>());
    }
    for owner in owners {
        if !managers.iter().any(|manager| manager.is(&owner) && owns(manager, &path)) {
            managers.push(owner);
        }
    }
    write(object, managers);
}

fn owns(manager: &Manager, path: &[String]) -> bool {
    manager.fields.contains(&path.iter().map(String::as_str).collect::<Vec<_>>())
}

fn only(path: &[String]) -> Fields {
    let mut fields = Fields::default();
    fields.insert(path);
    fields
}

/// The path in the notation of `fieldsV1`.
fn elements(path: &[String]) -> Vec<String> {
    path.iter().map(|field| format!("f:{field}")).collect()
}
