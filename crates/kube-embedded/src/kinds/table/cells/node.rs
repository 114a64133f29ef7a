//! Cells of nodes.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cells;
use super::words::{NONE, UNKNOWN, age, flag, items, name, text, text_or};
use crate::kinds::table::age::Moment;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

pub(super) fn node(object: &Value, now: Moment) -> Vec<Value> {
    let info = &object["status"]["nodeInfo"];
    // If several conditions have the same type, the last one counts.
    let ready = items(&object["status"]["conditions"]).iter().rev().find(|condition| condition["type"] == "Ready");
    let mut status = match ready {
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if flag(&object["spec"]["unschedulable"]) {
        status += ",SchedulingDisabled";
    }
    let mut kernel = text_or(&info["kernelVersion"], UNKNOWN).to_owned();
    if !text(&info["architecture"]).is_empty() {
        kernel += &format!(" ({})", text(&info["architecture"]));
    }
    cells![
        name(object),
        status,
        roles(object),
        age(object, now),
        text(&info["kubeletVersion"]),
        address(object, "InternalIP"),
        address(object, "ExternalIP"),
        text_or(&info["osImage"], UNKNOWN),
        kernel,
        text_or(&info["containerRuntimeVersion"], UNKNOWN),
    ]
}

fn roles(node: &Value) -> String {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(label, value)| match label.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None if label == ROLE => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { NONE.to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn address<'n>(node: &'n Value, kind: &str) -> &'n str {
    let addresses = items(&node["status"]["addresses"]);
    addresses.iter().find(|address| address["type"] == kind).map_or(NONE, |address| text(&address["address"]))
}
