//! Cells of config maps, secrets and resource quotas.

use serde_json::Value;

use super::cells;
use super::words::{age, count, name, quantity, text};
use crate::kinds::table::age::Moment;

pub(super) fn config_map(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), count(&object["data"]) + count(&object["binaryData"]), age(object, now)]
}

pub(super) fn secret(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), text(&object["type"]), count(&object["data"]), age(object, now)]
}

pub(super) fn resource_quota(object: &Value, now: Moment) -> Vec<Value> {
    let status = &object["status"];
    let mut hard: Vec<_> = status["hard"].as_object().into_iter().flatten().collect();
    hard.sort_unstable_by_key(|(resource, _)| *resource);
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, bound) in hard {
        let usage = format!("{resource}: {}/{}", quantity(&status["used"][resource]), quantity(bound));
        if resource.starts_with("limits.") { limits.push(usage) } else { requests.push(usage) }
    }
    cells![name(object), requests.join(", "), limits.join(", "), age(object, now)]
}
