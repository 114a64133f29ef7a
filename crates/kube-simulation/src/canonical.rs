//! The form in which the final states of two runs are compared: without what every run does anew.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use serde_json::{Map, Value, json};

use crate::state::{ObjectName, State};

/// Objects by their canonical names.
pub(crate) type Canonical = BTreeMap<String, Value>;

/// What does not count in a comparison.
#[derive(Debug, Clone)]
pub(crate) struct Ignored {
    /// API version and kind.
    pub(crate) kinds: BTreeSet<(String, String)>,
    /// Kind and JSON pointer.
    pub(crate) fields: BTreeSet<(String, String)>,
}

impl Default for Ignored {
    /// Leases and events depend on time.
    fn default() -> Self {
        let kinds = [("coordination.k8s.io/v1", "Lease"), ("v1", "Event"), ("events.k8s.io/v1", "Event")];
        let kinds = kinds.map(|(version, kind)| (version.to_owned(), kind.to_owned()));
        Self { kinds: kinds.into(), fields: BTreeSet::new() }
    }
}

impl Ignored {
    pub(crate) fn is_ignored(&self, object: &Value) -> bool {
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        self.kinds.contains(&(text("apiVersion"), text("kind")))
    }
}

/// The name of an object; objects with generated names share theirs.
pub(crate) fn canonical_name(object: &Value) -> String {
    let name = ObjectName::of(object);
    match object["metadata"]["generateName"].as_str() {
        Some(prefix) if !prefix.is_empty() => ObjectName { name: format!("{prefix}*"), ..name }.to_string(),
        _ => name.to_string(),
    }
}

/// The objects of a state, comparable with those of other runs.
pub(crate) fn canonical(state: &State, ignored: &Ignored) -> Canonical {
    let mut texts: HashMap<&str, String> = HashMap::new();
    for (_, object) in state.all() {
        let metadata = &object["metadata"];
        let name = canonical_name(object);
        if let Some(uid) = metadata["uid"].as_str() {
            texts.insert(uid, format!("<uid of {name}>"));
        }
        if let (Some(prefix), Some(generated)) = (metadata["generateName"].as_str(), metadata["name"].as_str())
            && !prefix.is_empty()
        {
            texts.insert(generated, format!("{prefix}*"));
        }
    }
    let mut shared: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (_, object) in state.all().filter(|(_, object)| !ignored.is_ignored(object)) {
        shared.entry(canonical_name(object)).or_default().push(comparable(object, &texts, ignored));
    }
    let mut objects = Canonical::new();
    for (name, mut same) in shared {
        same.sort_by_key(ToString::to_string);
        let is_numbered = same.len() > 1 || name.ends_with('*');
        for (nth, object) in same.into_iter().enumerate() {
            let name = if is_numbered { format!("{name} ({})", nth + 1) } else { name.clone() };
            objects.insert(name, object);
        }
    }
    objects
}

fn comparable(object: &Value, texts: &HashMap<&str, String>, ignored: &Ignored) -> Value {
    let generation = object["metadata"]["generation"].as_i64();
    let mut object = replaced(object, texts, generation);
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"] {
            metadata.remove(field);
        }
        if let Some(time) = metadata.get_mut("deletionTimestamp") {
            *time = json!("<set>");
        }
        let owners = metadata.get_mut("ownerReferences").and_then(Value::as_array_mut);
        for owner in owners.into_iter().flatten() {
            if !owner["uid"].as_str().is_some_and(|uid| uid.starts_with("<uid of")) {
                owner["uid"] = json!("<uid of an object that does not exist>");
            }
        }
    }
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    for (_, pointer) in ignored.fields.iter().filter(|(of, _)| *of == kind) {
        if let Some(value) = object.pointer_mut(pointer) {
            *value = json!("<ignored>");
        }
    }
    object
}

/// Replaces uids, generated names and observed generations.
fn replaced(value: &Value, texts: &HashMap<&str, String>, generation: Option<i64>) -> Value {
    match value {
        Value::String(text) => texts.get(text.as_str()).map_or_else(|| value.clone(), |text| json!(text)),
        Value::Array(items) => items.iter().map(|item| replaced(item, texts, generation)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let value = match (name.as_str(), value.as_i64(), generation) {
                    ("observedGeneration", Some(seen), Some(now)) if seen == now => json!("<current>"),
                    ("observedGeneration", Some(_), Some(_)) => json!("<behind>"),
                    // Also of the system's clock, which does not stand still as the run's does.
                    ("lastTransitionTime" | "lastUpdateTime", ..) => json!("<time>"),
                    _ => replaced(value, texts, generation),
                };
                (name.clone(), value)
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        _ => value.clone(),
    }
}

/// A difference between two states; an empty path is that of a whole object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    pub(crate) object: String,
    /// A JSON pointer.
    pub(crate) path: String,
    /// Before and after; `None` is absent.
    pub(crate) values: [Option<Value>; 2],
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { object, path, values } = self;
        match values {
            [Some(_), None] if path.is_empty() => write!(f, "- {object} is missing"),
            [None, Some(_)] if path.is_empty() => write!(f, "+ {object} is left over"),
            [expected, found] => {
                let show = |value: &Option<Value>| value.as_ref().map_or_else(|| "absent".to_owned(), Value::to_string);
                write!(f, "~ {object}: {path} is {}, and not {}", show(found), show(expected))
            }
        }
    }
}

/// The differences between two states, in the order of the objects.
pub(crate) fn differences(one: &Canonical, other: &Canonical) -> Vec<Difference> {
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let mut found = Vec::new();
    for object in names {
        compare(object, "", one.get(object), other.get(object), &mut found);
    }
    found
}

fn compare(object: &str, path: &str, one: Option<&Value>, other: Option<&Value>, found: &mut Vec<Difference>) {
    match (one, other) {
        _ if one == other => {}
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                compare(object, &path, one.get(name), other.get(name), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) if one.len() == other.len() => {
            for (nth, (one, other)) in one.iter().zip(other).enumerate() {
                compare(object, &format!("{path}/{nth}"), Some(one), Some(other), found);
            }
        }
        _ => found.push(Difference {
            object: object.to_owned(),
            path: path.to_owned(),
            values: [one.cloned(), other.cloned()],
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(objects: &[Value]) -> Canonical {
        let mut state = State::default();
        for object in objects {
            state.insert(object);
        }
        canonical(&state, &Ignored::default())
    }

    fn map(name: &str, uid: &str, generated: bool, data: &str) -> Value {
        let generate_name = if generated { "a-" } else { "" };
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "x", "uid": uid, "resourceVersion": uid, "generateName": generate_name},
            "data": {"of": data},
        })
    }

    #[test]
    fn uids_versions_and_generated_names_do_not_differ() {
        let one = state(&[map("a-1", "7", true, "7"), map("b", "8", false, "a-1")]);
        let other = state(&[map("a-2", "3", true, "3"), map("b", "4", false, "a-2")]);
        assert_eq!(differences(&one, &other), []);
        assert!(one.contains_key("ConfigMap x/a-* (1)"), "{one:?}");
    }

    #[test]
    fn objects_of_two_groups_with_the_same_kind_and_name_are_both_compared() {
        let of = |group: &str, data: &str| json!({"apiVersion": format!("{group}/v1"), "kind": "Backup", "metadata": {"name": "a"}, "data": data});
        let one = state(&[of("x.example.com", "1"), of("y.example.com", "1")]);
        let other = state(&[of("x.example.com", "2"), of("y.example.com", "1")]);
        let shown: Vec<String> = differences(&one, &other).iter().map(ToString::to_string).collect();
        assert_eq!(shown, [r#"~ Backup.x.example.com a: /data is "2", and not "1""#]);
    }

    #[test]
    fn a_missing_object_and_a_changed_field_are_shown() {
        let one = state(&[map("a", "1", false, "x"), map("b", "2", false, "x")]);
        let other = state(&[map("b", "2", false, "y"), map("c", "3", false, "x")]);
        let shown: Vec<String> = differences(&one, &other).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                "- ConfigMap x/a is missing",
                r#"~ ConfigMap x/b: /data/of is "y", and not "x""#,
                "+ ConfigMap x/c is left over",
            ]
        );
    }
}
