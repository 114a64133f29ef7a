//! Cells of cluster-level kinds: namespaces, events, definitions, leases and others.

use serde_json::Value;

use super::cells;
use super::words::{NONE, age, condition, flag, items, name, number, text, text_or, texts};
use crate::kinds::table::age::Moment;

pub(super) fn namespace(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), text(&object["status"]["phase"]), age(object, now)]
}

/// Events of both groups: `involvedObject` in the core group is `regarding` in the other.
pub(super) fn event(object: &Value, now: Moment) -> Vec<Value> {
    let either = |old: &str, new: &str| if object[old].is_null() { &object[new] } else { &object[old] };
    let since = |time: &Value| if time.is_null() { None } else { Some(now.since(time)) };
    let first = since(either("firstTimestamp", "deprecatedFirstTimestamp"));
    let first = first.unwrap_or_else(|| now.since(&object["eventTime"]));
    let last = since(either("lastTimestamp", "deprecatedLastTimestamp")).unwrap_or_else(|| first.clone());
    let series = &object["series"];
    let (last, count) = match (series, number(either("count", "deprecatedCount"))) {
        (Value::Null, 0) => (last, 1),
        (Value::Null, count) => (last, count),
        (series, _) => (now.since(&series["lastObservedTime"]), number(&series["count"])),
    };
    let involved = either("involvedObject", "regarding");
    let kind = text(&involved["kind"]).to_lowercase();
    let target = match text(&involved["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    cells![
        last,
        text(&object["type"]),
        text(&object["reason"]),
        target,
        text(&involved["fieldPath"]),
        source(object, either("source", "deprecatedSource")),
        text(either("message", "note")).trim(),
        first,
        count,
        name(object),
    ]
}

fn source(event: &Value, source: &Value) -> String {
    let reporting = text_or(&event["reportingComponent"], text(&event["reportingController"]));
    let component = text_or(&source["component"], reporting);
    match text_or(&source["host"], text(&event["reportingInstance"])) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

pub(super) fn component_status(object: &Value, _: Moment) -> Vec<Value> {
    let healthy = items(&object["conditions"]).iter().find(|condition| condition["type"] == "Healthy");
    match healthy {
        None => cells![name(object), "Unknown", "", ""],
        Some(healthy) => {
            let status = if healthy["status"] == "True" { "Healthy" } else { "Unhealthy" };
            cells![name(object), status, text(&healthy["message"]), text(&healthy["error"])]
        }
    }
}

pub(super) fn definition(object: &Value, _: Moment) -> Vec<Value> {
    let (spec, metadata) = (&object["spec"], &object["metadata"]);
    let served = items(&spec["versions"]).iter().filter(|version| flag(&version["served"]));
    let mut versions: Vec<String> = served
        .map(|version| match flag(&version["storage"]) {
            true => format!("{}(storage)", text(&version["name"])),
            false => text(&version["name"]).to_owned(),
        })
        .collect();
    versions.sort_unstable();
    let conditions = items(&object["status"]["conditions"]).iter();
    let established = conditions.into_iter().any(|each| each["type"] == "Established" && each["status"] == "True");
    cells![
        name(object),
        text(&spec["scope"]),
        versions.join(","),
        metadata["creationTimestamp"].as_str().unwrap_or("0001-01-01T00:00:00Z"),
        text(&spec["group"]),
        text(&spec["names"]["kind"]),
        texts(&spec["names"]["shortNames"]).join(","),
        established,
    ]
}

pub(super) fn api_service(object: &Value, now: Moment) -> Vec<Value> {
    let service = match &object["spec"]["service"] {
        Value::Null => "Local".to_owned(),
        service => format!("{}/{}", text(&service["namespace"]), text(&service["name"])),
    };
    let available = condition(object, "Available").map_or_else(
        || "Unknown".to_owned(),
        |available| match (text(&available["status"]), text(&available["reason"])) {
            (status, reason) if status != "True" && !reason.is_empty() => format!("{status} ({reason})"),
            (status, _) => status.to_owned(),
        },
    );
    cells![name(object), service, available, age(object, now)]
}

pub(super) fn priority_class(object: &Value, now: Moment) -> Vec<Value> {
    let policy = text(&object["preemptionPolicy"]);
    cells![name(object), number(&object["value"]), flag(&object["globalDefault"]), age(object, now), policy]
}

pub(super) fn lease(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), text(&object["spec"]["holderIdentity"]), age(object, now)]
}

pub(super) fn runtime_class(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), text(&object["handler"]), age(object, now)]
}

pub(super) fn flow_schema(object: &Value, now: Moment) -> Vec<Value> {
    let spec = &object["spec"];
    cells![
        name(object),
        text(&spec["priorityLevelConfiguration"]["name"]),
        number(&spec["matchingPrecedence"]),
        spec["distinguisherMethod"]["type"].as_str().unwrap_or(NONE),
        age(object, now),
        condition(object, "Dangling").map_or("?", |dangling| text(&dangling["status"])),
    ]
}

pub(super) fn priority_level(object: &Value, now: Moment) -> Vec<Value> {
    let limited = &object["spec"]["limited"];
    let queuing = &limited["limitResponse"]["queuing"];
    let figure = |of: &Value, part: &str| match of {
        Value::Null => Value::from(NONE),
        of => number(&of[part]).into(),
    };
    cells![
        name(object),
        text(&object["spec"]["type"]),
        figure(limited, "nominalConcurrencyShares"),
        figure(queuing, "queues"),
        figure(queuing, "handSize"),
        figure(queuing, "queueLengthLimit"),
        age(object, now),
    ]
}

pub(super) fn storage_migration(object: &Value, _: Moment) -> Vec<Value> {
    let conditions = items(&object["status"]["conditions"]).iter().filter(|condition| condition["status"] == "True");
    let states = conditions.map(|condition| text(&condition["type"]));
    let state = states.rev().find(|state| matches!(*state, "Running" | "Failed" | "Succeeded"));
    cells![name(object), group_resource(&object["spec"]["resource"]), state.unwrap_or("Unknown")]
}

/// `deployments.apps`
pub(super) fn group_resource(of: &Value) -> String {
    match (text(&of["resource"]), text(&of["group"])) {
        (resource, "") => resource.to_owned(),
        (resource, group) => format!("{resource}.{group}"),
    }
}
