//! Field-by-field differences between two states of an object.

use std::fmt;

use serde_json::Value;

/// A field that differs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference<'v> {
    pub(crate) path: Vec<Segment>,
    pub(crate) old: Option<&'v Value>,
    pub(crate) new: Option<&'v Value>,
}

/// One segment of a field path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Field(String),
    /// The list item whose field `by` has this value.
    Keyed {
        by: &'static str,
        value: String,
    },
    Index(usize),
}

/// Fields that may identify list items, in order of preference.
const KEYS: [&str; 6] = ["type", "name", "uid", "ip", "containerPort", "port"];

/// Stands for an absent list.
static EMPTY: Value = Value::Array(Vec::new());

/// Returns all differences in field order.
///
/// `metadata.managedFields` and `metadata.resourceVersion` change with every write and are left
/// out.
pub(crate) fn diff<'v>(old: &'v Value, new: &'v Value) -> Vec<Difference<'v>> {
    let mut found = Vec::new();
    walk(&mut Vec::new(), Some(old), Some(new), &mut found);
    found.retain(|difference| !is_bookkeeping(&difference.path) && !is_own_key(&difference.path));
    found
}

/// Returns whether the field is a timestamp, whose change carries little information.
pub(crate) fn is_time(path: &[Segment]) -> bool {
    let Some(Segment::Field(name)) = path.last() else { return false };
    name.ends_with("Time") || name.ends_with("Timestamp") || name.ends_with("At")
}

pub(crate) fn path_text(path: &[Segment]) -> String {
    let mut text = String::new();
    for segment in path {
        if !text.is_empty() && matches!(segment, Segment::Field(name) if !name.contains(['.', '/'])) {
            text.push('.');
        }
        text.push_str(&segment.to_string());
    }
    text
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) if name.contains(['.', '/']) => write!(f, "[{name}]"),
            Self::Field(name) => f.write_str(name),
            Self::Keyed { value, .. } => write!(f, "[{value}]"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// The key field of a list item is already part of its path.
fn is_own_key(path: &[Segment]) -> bool {
    matches!(path, [.., Segment::Keyed { by, .. }, Segment::Field(name)] if name == by)
}

fn is_bookkeeping(path: &[Segment]) -> bool {
    let field = |at: usize, name: &str| matches!(path.get(at), Some(Segment::Field(own)) if own == name);
    field(0, "metadata") && (field(1, "managedFields") || field(1, "resourceVersion"))
}

fn walk<'v>(path: &mut Vec<Segment>, old: Option<&'v Value>, new: Option<&'v Value>, found: &mut Vec<Difference<'v>>) {
    if old == new {
        return;
    }
    match (old, new) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let gone = before.keys().filter(|key| !after.contains_key(*key));
            for key in after.keys().chain(gone) {
                path.push(Segment::Field(key.clone()));
                walk(path, before.get(key), after.get(key), found);
                path.pop();
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => match key_of(before, after) {
            Some(by) => walk_keyed(path, by, before, after, found),
            None => {
                for index in 0..before.len().max(after.len()) {
                    path.push(Segment::Index(index));
                    walk(path, before.get(index), after.get(index), found);
                    path.pop();
                }
            }
        },
        // An added or removed object is reported as its leaf fields.
        (None, Some(Value::Object(after))) if !after.is_empty() => {
            for (key, value) in after {
                path.push(Segment::Field(key.clone()));
                walk(path, None, Some(value), found);
                path.pop();
            }
        }
        (Some(Value::Object(before)), None) if !before.is_empty() => {
            for (key, value) in before {
                path.push(Segment::Field(key.clone()));
                walk(path, Some(value), None, found);
                path.pop();
            }
        }
        (None, Some(Value::Array(after))) if key_of(&[], after).is_some() => {
            walk(path, Some(&EMPTY), new, found);
        }
        (None, Some(Value::Null)) | (Some(Value::Null), None) => {}
        (old, new) => found.push(Difference { path: path.clone(), old, new }),
    }
}

fn walk_keyed<'v>(
    path: &mut Vec<Segment>,
    by: &'static str,
    before: &'v [Value],
    after: &'v [Value],
    found: &mut Vec<Difference<'v>>,
) {
    let find = |items: &'v [Value], key: &Value| items.iter().find(|item| item[by] == *key);
    let gone = before.iter().filter(|item| find(after, &item[by]).is_none());
    for item in after.iter().chain(gone) {
        let key = &item[by];
        let value = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
        path.push(Segment::Keyed { by, value });
        walk(path, find(before, key), find(after, key), found);
        path.pop();
    }
}

/// Returns a field that every item of both lists has, with distinct values.
fn key_of(before: &[Value], after: &[Value]) -> Option<&'static str> {
    if before.is_empty() && after.is_empty() {
        return None;
    }
    KEYS.into_iter().find(|by| {
        [before, after].into_iter().all(|items| {
            let scalar = |item: &Value| item.get(by).is_some_and(|value| value.is_string() || value.is_number());
            items.iter().all(scalar)
                && items.iter().enumerate().all(|(nth, item)| items[..nth].iter().all(|other| other[by] != item[by]))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn differences(old: &Value, new: &Value) -> Vec<String> {
        let show = |value: Option<&Value>| value.map_or_else(|| "-".to_owned(), Value::to_string);
        diff(old, new)
            .iter()
            .map(|each| format!("{} {} {}", path_text(&each.path), show(each.old), show(each.new)))
            .collect()
    }

    #[test]
    fn items_of_lists_are_matched_by_their_keys() {
        let old = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Initialized", "status": "True"}]}});
        let new = json!({"status": {"conditions": [{"type": "Initialized", "status": "True"}, {"type": "Ready", "status": "True"}]}});
        assert_eq!(differences(&old, &new), [r#"status.conditions[Ready].status "False" "True""#]);
    }

    #[test]
    fn additions_and_removals_are_shown_by_their_leaves() {
        let old = json!({"metadata": {"labels": {"a.b/c": "1"}}, "status": {}});
        let new = json!({"metadata": {"labels": {}}, "status": {"podIP": "10.0.0.1", "state": {"running": {"startedAt": "x"}}}});
        assert_eq!(
            differences(&old, &new),
            [
                r#"metadata.labels[a.b/c] "1" -"#,
                r#"status.podIP - "10.0.0.1""#,
                r#"status.state.running.startedAt - "x""#
            ]
        );
    }

    #[test]
    fn bookkeeping_is_no_difference() {
        let old = json!({"metadata": {"resourceVersion": "1", "managedFields": [{"time": "a"}], "name": "x"}});
        let new = json!({"metadata": {"resourceVersion": "2", "managedFields": [{"time": "b"}], "name": "x"}});
        assert!(diff(&old, &new).is_empty());
    }
}
