//! The objects that kube-apiserver creates at its first start.

use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use super::{namespaces, services};
use crate::api::objects::Objects;
use crate::api::write::SERVER_MANAGER;
use crate::cluster::Cluster;

/// The field manager of flow schemas and priority levels.
const FLOW_CONTROL_MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

/// Creates the objects of every server: the namespaces, and the service that leads to it.
pub(crate) fn create_initial(cluster: &Cluster) {
    namespaces::create_initial(cluster);
    create(cluster, &services::kubernetes());
}

/// Creates further objects of a real server, as recorded: its roles and their bindings, priority
/// classes, flow schemas and priority levels, API services, and the network of services.
pub(crate) fn create_more(cluster: &Cluster) {
    let mut lines = String::new();
    let packed = include_bytes!("../../data/bootstrap.jsonl.gz").as_slice();
    let read = GzDecoder::new(packed).read_to_string(&mut lines);
    debug_assert!(read.is_ok(), "the file is packed");
    for line in lines.lines() {
        let object = serde_json::from_str(line);
        debug_assert!(object.is_ok(), "not an object: {line}");
        create(cluster, &object.unwrap_or_else(|_| json!({})));
    }
}

fn create(cluster: &Cluster, object: &Value) {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let manager = if text("apiVersion").starts_with("flowcontrol") { FLOW_CONTROL_MANAGER } else { SERVER_MANAGER };
    let objects = Objects::new(cluster, text("apiVersion"), text("kind"));
    let made = objects.and_then(|objects| {
        let objects = objects.managed_by(manager);
        let mut made = objects.create(object)?;
        if let Some(conditions) = object["status"]["conditions"].as_array() {
            made["status"] = object["status"].clone();
            for at in 0..conditions.len() {
                made["status"]["conditions"][at]["lastTransitionTime"] = cluster.clock.seconds().into();
            }
            objects.update_status(&made)?;
        }
        Ok(())
    });
    debug_assert!(made.is_ok(), "{object} cannot be created: {made:?}");
}
