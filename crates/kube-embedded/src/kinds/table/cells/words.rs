//! Helpers for cells.

use serde_json::Value;

pub(super) use crate::encoding::value::{items, text};
pub(super) use crate::kinds::status_condition::find as condition;
use crate::kinds::table::age::Moment;

pub(super) const NONE: &str = "<none>";
pub(super) const UNSET: &str = "<unset>";
pub(super) const UNKNOWN: &str = "<unknown>";

/// A string, or `otherwise` if it is missing or empty.
pub(super) fn text_or<'v>(value: &'v Value, otherwise: &'v str) -> &'v str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(otherwise)
}

/// A string, or `otherwise` if it is missing. It may be empty.
pub(super) fn set_or<'v>(value: &'v Value, otherwise: &'v str) -> &'v str {
    value.as_str().unwrap_or(otherwise)
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

pub(super) fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or(false)
}

pub(super) fn count(value: &Value) -> i64 {
    let length = value.as_array().map_or_else(|| value.as_object().map_or(0, serde_json::Map::len), Vec::len);
    i64::try_from(length).unwrap_or(i64::MAX)
}

pub(super) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

pub(super) fn age(object: &Value, now: Moment) -> String {
    now.since(&object["metadata"]["creationTimestamp"])
}

pub(super) fn is_deleting(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

/// A quantity, or 0 if it is missing.
pub(super) fn quantity(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => "0".to_owned(),
    }
}

/// The names and the images of containers, comma-separated.
pub(super) fn containers(pod_spec: &Value) -> (String, String) {
    let all = items(&pod_spec["containers"]);
    let list = |part: &str| all.iter().map(|container| text(&container[part])).collect::<Vec<_>>().join(",");
    (list("name"), list("image"))
}

/// The strings of a list.
pub(super) fn texts(value: &Value) -> Vec<&str> {
    items(value).iter().map(text).collect()
}

/// Labels as `a=b,c=d`, sorted by name.
pub(crate) fn labels(labels: &Value) -> String {
    let mut pairs: Vec<String> =
        labels.as_object().into_iter().flatten().map(|(name, value)| format!("{name}={}", text(value))).collect();
    pairs.sort_unstable();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// Formats a label selector in command-line syntax.
pub(crate) fn selector(selector: &Value) -> Result<String, NoSelector> {
    let mut requirements: Vec<(&str, String)> = Vec::new();
    for (name, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        requirements.push((name, format!("{name}={}", text(value))));
    }
    for expression in items(&selector["matchExpressions"]) {
        let name = text(&expression["key"]);
        let mut values = texts(&expression["values"]);
        values.sort_unstable();
        let written = match (text(&expression["operator"]), values.is_empty()) {
            ("In", false) => format!("{name} in ({})", values.join(",")),
            ("NotIn", false) => format!("{name} notin ({})", values.join(",")),
            ("Exists", true) => name.to_owned(),
            ("DoesNotExist", true) => format!("!{name}"),
            _ => return Err(NoSelector),
        };
        requirements.push((name, written));
    }
    requirements.sort_by_key(|(name, _)| *name);
    Ok(requirements.into_iter().map(|(_, written)| written).collect::<Vec<_>>().join(","))
}

/// The error for an invalid label selector.
#[derive(Debug)]
pub(crate) struct NoSelector;

/// A label selector as a cell.
pub(super) fn selector_or_none(value: &Value) -> String {
    match selector(value) {
        Ok(empty) if empty.is_empty() => NONE.to_owned(),
        Ok(selector) => selector,
        Err(NoSelector) => "<error>".to_owned(),
    }
}

/// The first items of a list, and the number of the others.
pub(super) fn first_few(all: &[String], few: usize, none: &str) -> String {
    match all.len() {
        0 => none.to_owned(),
        many if many > few => format!("{} + {} more...", all[..few].join(","), many - few),
        _ => all.join(","),
    }
}
