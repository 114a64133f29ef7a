//! Cells of autoscalers.

use std::borrow::Cow;

use serde_json::Value;

use super::cells;
use super::words::{NONE, UNKNOWN, UNSET, age, items, name, number, quantity, text};
use crate::kinds::convert;
use crate::kinds::table::age::Moment;

/// Maximum number of metrics shown.
const MAX_SHOWN: usize = 2;

pub(super) fn autoscaler(object: &Value, now: Moment) -> Vec<Value> {
    let object = newest(object);
    let (spec, status) = (&object["spec"], &object["status"]);
    let target = &spec["scaleTargetRef"];
    cells![
        name(&object),
        format!("{}/{}", text(&target["kind"]), text(&target["name"])),
        metrics(items(&spec["metrics"]), items(&status["currentMetrics"])),
        spec["minReplicas"].as_i64().map_or_else(|| UNSET.to_owned(), |least| least.to_string()),
        number(&spec["maxReplicas"]),
        number(&status["currentReplicas"]),
        age(&object, now),
    ]
}

/// The `scale` subresource of any kind.
pub(super) fn scale(object: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    cells![name(object), number(&spec["replicas"]), number(&status["replicas"]), age(object, now)]
}

/// The autoscaler converted to version 2, which has metrics.
fn newest(object: &Value) -> Cow<'_, Value> {
    if object["apiVersion"] != "autoscaling/v1" {
        return Cow::Borrowed(object);
    }
    let mut newest = object.clone();
    convert::autoscaler_to_newest(&mut newest);
    Cow::Owned(newest)
}

fn metrics(specs: &[Value], statuses: &[Value]) -> String {
    if specs.is_empty() {
        return NONE.to_owned();
    }
    let all: Vec<String> =
        specs.iter().enumerate().map(|(at, spec)| metric(spec, statuses.get(at).unwrap_or(&Value::Null))).collect();
    match all.len() > MAX_SHOWN {
        true => format!("{} + {} more...", all[..MAX_SHOWN].join(", "), all.len() - MAX_SHOWN),
        false => all.join(", "),
    }
}

fn metric(spec: &Value, status: &Value) -> String {
    let (part, by_name) = match text(&spec["type"]) {
        "External" => ("external", false),
        "Object" => ("object", false),
        "Pods" => ("pods", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let (target, seen) = (&spec[part]["target"], &status[part]);
    let current = &seen["current"];
    let average = !target["averageValue"].is_null();
    if by_name {
        let name = text(&spec[part]["name"]);
        if average {
            let current = if seen.is_null() { UNKNOWN.to_owned() } else { quantity(&current["averageValue"]) };
            return format!("{name}: {current}/{}", quantity(&target["averageValue"]));
        }
        let percent = |value: &Value, otherwise: &str| {
            value.as_i64().map_or_else(|| otherwise.to_owned(), |percent| format!("{percent}%"))
        };
        let (current, target) = (&current["averageUtilization"], &target["averageUtilization"]);
        return format!("{name}: {}/{}", percent(current, UNKNOWN), percent(target, "<auto>"));
    }
    let seen_as = |value: &Value| if seen.is_null() { UNKNOWN.to_owned() } else { quantity(value) };
    match (part, average) {
        ("pods", _) => format!("{}/{}", seen_as(&current["averageValue"]), quantity(&target["averageValue"])),
        (_, true) => {
            let value = &current["averageValue"];
            let seen = if value.is_null() { UNKNOWN.to_owned() } else { quantity(value) };
            format!("{seen}/{} (avg)", quantity(&target["averageValue"]))
        }
        (_, false) => format!("{}/{}", seen_as(&current["value"]), quantity(&target["value"])),
    }
}
