//! Sets of field paths.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A set of field paths, as a tree of path elements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Fields {
    /// Whether this node itself is in the set.
    own: bool,
    children: BTreeMap<String, Fields>,
}

impl Fields {
    pub(super) fn is_empty(&self) -> bool {
        !self.own && self.children.is_empty()
    }

    pub(super) fn is_member(&self) -> bool {
        self.own
    }

    pub(super) fn child(&self, element: &str) -> Option<&Fields> {
        self.children.get(element)
    }

    pub(super) fn insert(&mut self, path: &[String]) {
        match path.split_first() {
            None => self.own = true,
            Some((first, rest)) => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    pub(super) fn contains(&self, path: &[&str]) -> bool {
        match path.split_first() {
            None => self.own,
            Some((first, rest)) => self.child(first).is_some_and(|child| child.contains(rest)),
        }
    }

    /// Removes a path, but not the paths below it.
    pub(super) fn remove(&mut self, path: &[&str]) {
        match path.split_first() {
            None => self.own = false,
            Some((first, rest)) => {
                if let Some(child) = self.children.get_mut(*first) {
                    child.remove(rest);
                    if child.is_empty() {
                        self.children.remove(*first);
                    }
                }
            }
        }
    }

    /// Removes a child and all paths below it.
    pub(super) fn remove_below(&mut self, child: &str) {
        self.children.remove(child);
    }

    /// Keeps only these children.
    pub(super) fn retain(&mut self, kept: &[&str]) {
        self.children.retain(|element, _| kept.contains(&element.as_str()));
    }

    pub(super) fn union(&mut self, other: &Fields) {
        self.own |= other.own;
        for (element, child) in &other.children {
            self.children.entry(element.clone()).or_default().union(child);
        }
    }

    pub(super) fn subtract(&mut self, other: &Fields) {
        self.own &= !other.own;
        for (element, removed) in &other.children {
            if let Some(child) = self.children.get_mut(element) {
                child.subtract(removed);
                if child.is_empty() {
                    self.children.remove(element);
                }
            }
        }
    }

    /// The intersection.
    pub(super) fn common(&self, other: &Fields) -> Fields {
        let children = self.children.iter().filter_map(|(element, child)| {
            let common = child.common(other.children.get(element)?);
            (!common.is_empty()).then(|| (element.clone(), common))
        });
        Fields { own: self.own && other.own, children: children.collect() }
    }

    /// Every path of the set in readable notation: `.spec.containers[name="a"].image`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect(&mut String::new(), &mut paths);
        paths
    }

    fn collect(&self, path: &mut String, paths: &mut Vec<String>) {
        if self.own {
            paths.push(path.clone());
        }
        for (element, child) in &self.children {
            let length = path.len();
            path.push_str(&written(element));
            child.collect(path, paths);
            path.truncate(length);
        }
    }

    /// Parses `fieldsV1`.
    pub(super) fn parse(value: &Value) -> Fields {
        let Some(map) = value.as_object() else { return Fields::default() };
        let mut fields = Fields::default();
        for (element, child) in map {
            if element == "." {
                fields.own = true;
                continue;
            }
            let mut child = Fields::parse(child);
            // A leaf is a member itself.
            child.own |= child.children.is_empty();
            fields.children.insert(element.clone(), child);
        }
        fields
    }

    /// Encodes as `fieldsV1`.
    pub(super) fn to_value(&self) -> Value {
        let mut map = Map::new();
        if self.own && !self.children.is_empty() {
            map.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            map.insert(element.clone(), child.to_value());
        }
        Value::Object(map)
    }
}

/// A path element in readable notation.
fn written(element: &str) -> String {
    match element.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some(("k", keys)) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        _ => format!("[{element}]"),
    }
}
