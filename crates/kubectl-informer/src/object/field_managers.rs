//! Finds the field manager that last wrote a field, from `managedFields`.

use serde_json::Value;

use crate::object::diff::Segment;

/// A field manager and the time of its last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Writer<'v> {
    pub(crate) manager: &'v str,
    pub(crate) time: &'v str,
}

/// Returns the manager of the field at a path; of several owners, the one with the latest write.
pub(crate) fn writer<'v>(object: &'v Value, path: &[Segment]) -> Option<Writer<'v>> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let owners = entries.iter().filter(|entry| owns(&entry["fieldsV1"], path));
    let latest = owners.max_by_key(|entry| entry["time"].as_str().unwrap_or_default())?;
    Some(Writer { manager: latest["manager"].as_str()?, time: latest["time"].as_str().unwrap_or_default() })
}

/// Returns whether a `fieldsV1` tree contains a path; a leaf owns everything below it.
fn owns(fields: &Value, path: &[Segment]) -> bool {
    let Some(fields) = fields.as_object() else { return false };
    let Some((first, rest)) = path.split_first() else { return true };
    let below = match first {
        Segment::Field(name) => fields.get(&format!("f:{name}")),
        Segment::Keyed { by, value } => fields.iter().find(|(key, _)| is_key(key, by, value)).map(|(_, below)| below),
        Segment::Index(index) => fields.get(&format!("i:{index}")),
    };
    below.is_some_and(|below| below.as_object().is_some_and(serde_json::Map::is_empty) || owns(below, rest))
}

/// Returns whether a key such as `k:{"type":"Ready"}` selects the item whose field `by` is `value`.
fn is_key(key: &str, by: &str, value: &str) -> bool {
    let Some(Ok(parsed)) = key.strip_prefix("k:").map(serde_json::from_str::<Value>) else { return false };
    match &parsed[by] {
        Value::String(own) => own == value,
        Value::Number(own) => value.parse().is_ok_and(|value: serde_json::Number| value == *own),
        _ => false,
    }
}

/// Fields that one manager wrote at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write<'v> {
    pub(crate) by: Writer<'v>,
    /// The paths, of lists and maps without their items.
    pub(crate) paths: Vec<String>,
}

/// What `managedFields` says was written since a time in RFC 3339, the oldest first.
pub(crate) fn writes_since<'v>(object: &'v Value, since: &str) -> Vec<Write<'v>> {
    let entries = object["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut writes: Vec<Write<'v>> = entries
        .iter()
        .filter_map(|entry| {
            let by = Writer { manager: entry["manager"].as_str()?, time: entry["time"].as_str()? };
            let mut paths = Vec::new();
            collect(&entry["fieldsV1"], &mut String::new(), 0, &mut paths);
            (by.time >= since && !paths.is_empty()).then_some(Write { by, paths })
        })
        .collect();
    writes.sort_by_key(|write| write.by.time);
    writes
}

/// Collects the paths of a `fieldsV1` tree down to the fields of a section, such as
/// `status.conditions` or `spec.replicas`.
fn collect(fields: &Value, path: &mut String, depth: usize, found: &mut Vec<String>) {
    const DEPTH: usize = 2;
    for (key, below) in fields.as_object().into_iter().flatten() {
        let Some(name) = key.strip_prefix("f:") else { continue };
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(name);
        let has_fields = below.as_object().is_some_and(|below| below.keys().any(|key| key.starts_with("f:")));
        if depth + 1 < DEPTH && has_fields {
            collect(below, path, depth + 1, found);
        } else {
            found.push(path.clone());
        }
        path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_one_to_write_a_field_is_named() {
        let object = json!({"metadata": {"managedFields": [
            {"manager": "old", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:status": {"f:phase": {}}}},
            {"manager": "kubelet", "time": "2026-01-02T00:00:00Z", "fieldsV1": {"f:status": {"f:phase": {}, "f:conditions": {"k:{\"type\":\"Ready\"}": {"f:status": {}}}, "f:containerStatuses": {}}}},
            {"manager": "kubectl", "time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:metadata": {}}},
        ]}});
        let field = |name: &str| Segment::Field(name.to_owned());
        let ready = Segment::Keyed { by: "type", value: "Ready".to_owned() };
        let deep = [field("status"), field("containerStatuses"), Segment::Index(0), field("restartCount")];
        let manager = |path: &[Segment]| writer(&object, path).map(|writer| writer.manager);
        assert_eq!(manager(&[field("status"), field("phase")]), Some("kubelet"));
        assert_eq!(manager(&[field("status"), field("conditions"), ready, field("status")]), Some("kubelet"));
        assert_eq!(manager(&deep), Some("kubelet"));
        assert_eq!(manager(&[field("spec"), field("replicas")]), None);
    }

    #[test]
    fn what_was_written_since_a_time_is_listed_by_writer() {
        let entry =
            |manager: &str, time: &str, fields: Value| json!({"manager": manager, "time": time, "fieldsV1": fields});
        let object = json!({"metadata": {"managedFields": [
            entry("late", "2026-01-03T00:00:00Z", json!({"f:spec": {"f:replicas": {}}})),
            entry("kubelet", "2026-01-02T00:00:00Z", json!({"f:status": {"f:phase": {}, "f:conditions": {"k:{\"type\":\"Ready\"}": {"f:status": {}}}}})),
            entry("old", "2026-01-01T00:00:00Z", json!({"f:data": {}})),
        ]}});
        let writes = writes_since(&object, "2026-01-02T00:00:00Z");
        let shown: Vec<(&str, String)> = writes.iter().map(|write| (write.by.manager, write.paths.join(" "))).collect();
        assert_eq!(
            shown,
            [("kubelet", "status.conditions status.phase".to_owned()), ("late", "spec.replicas".to_owned())]
        );
    }
}
