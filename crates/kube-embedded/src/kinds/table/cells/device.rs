//! Cells of the kinds of dynamic resource allocation.

use serde_json::Value;

use super::cells;
use super::words::{age, is_deleting, items, name, text};
use crate::kinds::table::age::Moment;

pub(super) fn claim(object: &Value, now: Moment) -> Vec<Value> {
    let status = &object["status"];
    let allocated = !status["allocation"].is_null();
    let deleting = is_deleting(object);
    let states = [
        ("deleted", deleting),
        ("pending", !allocated && !deleting),
        ("allocated", allocated),
        ("reserved", allocated && !items(&status["reservedFor"]).is_empty()),
    ];
    let states: Vec<&str> = states.into_iter().filter(|(_, is)| *is).map(|(state, _)| state).collect();
    cells![name(object), states.join(","), age(object, now)]
}

pub(super) fn slice(object: &Value, now: Moment) -> Vec<Value> {
    let spec = &object["spec"];
    cells![name(object), text(&spec["nodeName"]), text(&spec["driver"]), text(&spec["pool"]["name"]), age(object, now)]
}

pub(super) fn taint_rule(object: &Value, now: Moment) -> Vec<Value> {
    let taint = &object["spec"]["taint"];
    let added = match &taint["timeAdded"] {
        Value::Null => String::new(),
        time => now.since(time),
    };
    cells![name(object), text(&taint["key"]), text(&taint["value"]), text(&taint["effect"]), added, age(object, now),]
}
