//! The objects that kube-apiserver creates at its first start.

use serde_json::{Value, json};

use super::{namespaces, services};
use crate::api::objects::Objects;
use crate::cluster::Cluster;

/// The field manager of these objects.
const MANAGER: &str = "kube-apiserver";

/// Creates the objects of every server: the namespaces, and the service that leads to it.
pub(crate) fn create_initial(cluster: &Cluster) {
    namespaces::create_initial(cluster);
    create(cluster, &services::kubernetes());
}

/// Creates further objects of a real server: priority classes, and the roles that correspond to
/// [`Access::closed`](crate::access::Access::closed), with their bindings.
pub(crate) fn create_more(cluster: &Cluster) {
    for line in include_str!("../../data/bootstrap.jsonl").lines() {
        let object = serde_json::from_str(line);
        debug_assert!(object.is_ok(), "not an object: {line}");
        create(cluster, &object.unwrap_or_else(|_| json!({})));
    }
}

fn create(cluster: &Cluster, object: &Value) {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let objects = Objects::new(cluster, text("apiVersion"), text("kind"));
    let made = objects.and_then(|objects| objects.managed_by(MANAGER).create(object));
    debug_assert!(made.is_ok(), "{object} cannot be created: {made:?}");
}
