//! The fields that differ between two states of an object, and the fields that a configuration
//! sets.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::fields::Fields;
use super::types::{Granularity, Type, keyed, valued};

/// The fields in which two states differ.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) added: Fields,
    pub(super) modified: Fields,
    pub(super) removed: Fields,
}

impl Comparison {
    pub(super) fn of(old: &Value, new: &Value, of: Type<'_>) -> Self {
        let mut comparison = Self::default();
        comparison.walk(Some(old), Some(new), of, &mut Vec::new());
        comparison
    }

    /// The fields that were added or modified.
    pub(super) fn touched(&self) -> Fields {
        let mut touched = self.added.clone();
        touched.union(&self.modified);
        touched
    }

    fn leaf(&mut self, old: Option<&Value>, new: Option<&Value>, path: &[String]) {
        match (old, new) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            (Some(old), Some(new)) if old != new => self.modified.insert(path),
            _ => {}
        }
    }

    fn walk(&mut self, old: Option<&Value>, new: Option<&Value>, of: Type<'_>, path: &mut Vec<String>) {
        // Fast path: most of an object is unchanged.
        if old == new {
            return;
        }
        let shown = new.filter(|new| !new.is_null()).or(old).unwrap_or(&Value::Null);
        let sharing = of.sharing(shown);
        let empty = |value: Option<&Value>| match value {
            None | Some(Value::Null) => true,
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            Some(_) => false,
        };
        let fits = |value: Option<&Value>| match (value, &sharing) {
            (None | Some(Value::Null), _) => true,
            (Some(value), Granularity::Fields) => value.is_object(),
            (Some(value), Granularity::Set | Granularity::Map(_)) => value.is_array(),
            (Some(_), Granularity::Atomic) => false,
        };
        if empty(old) && empty(new) || !fits(old) || !fits(new) {
            return self.leaf(old, new, path);
        }
        match &sharing {
            Granularity::Atomic => {}
            Granularity::Fields => self.fields(old, new, of, path),
            Granularity::Set => self.items(old, new, of, path, &valued),
            Granularity::Map(keys) => self.items(old, new, of, path, &|item| keyed(keys, item)),
        }
        if !path.is_empty() {
            match (old, new) {
                (None, _) => self.added.insert(path),
                (_, None) => self.removed.insert(path),
                _ => {}
            }
        }
    }

    fn fields(&mut self, old: Option<&Value>, new: Option<&Value>, of: Type<'_>, path: &mut Vec<String>) {
        let before = old.and_then(Value::as_object);
        let after = new.and_then(Value::as_object);
        let names = before.into_iter().flat_map(|map| map.keys());
        let more = after
            .into_iter()
            .flat_map(|map| map.keys())
            .filter(|name| before.is_none_or(|before| !before.contains_key(name.as_str())));
        for name in names.chain(more) {
            let (old, new) = (before.and_then(|map| map.get(name)), after.and_then(|map| map.get(name)));
            path.push(format!("f:{name}"));
            self.walk(old, new, of.field(name).unwrap_or(Type::Any), path);
            path.pop();
        }
    }

    fn items(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        of: Type<'_>,
        path: &mut Vec<String>,
        element: &dyn Fn(&Value) -> String,
    ) {
        let index = |list: Option<&'_ Value>| -> Vec<(String, Value)> {
            let items = list.and_then(Value::as_array).into_iter().flatten();
            items.map(|item| (element(item), item.clone())).collect()
        };
        let (before, after) = (index(old), index(new));
        // The first of several that are the same comes last, and stays.
        let in_after: HashMap<&str, &Value> =
            after.iter().rev().map(|(element, item)| (element.as_str(), item)).collect();
        let mut seen = HashSet::new();
        for (at, (element, item)) in before.iter().chain(&after).enumerate() {
            if !seen.insert(element) {
                continue;
            }
            let (old, new) = match at < before.len() {
                true => (Some(item), in_after.get(element.as_str()).copied()),
                false => (None, Some(item)),
            };
            path.push(element.clone());
            self.walk(old, new, of.item(), path);
            path.pop();
        }
    }
}

/// The fields that a configuration sets.
///
/// # Errors
///
/// The error message for the first field that does not match its schema.
pub(super) fn set_of(config: &Value, of: Type<'_>) -> Result<Fields, String> {
    let mut set = Fields::default();
    collect_fields(config, of, &mut Vec::new(), &mut set)?;
    Ok(set)
}

fn collect_fields(value: &Value, of: Type<'_>, path: &mut Vec<String>, set: &mut Fields) -> Result<(), String> {
    let path_text = |path: &[String]| {
        let mut one = Fields::default();
        one.insert(path);
        one.paths().pop().unwrap_or_default()
    };
    if of.is_text() && !value.is_string() && !value.is_null() {
        let why = format!("expected string, got &value.valueUnstructured{{Value:{value}}}");
        return Err(format!("{}: {why}", path_text(path)));
    }
    match (of.sharing(value), value) {
        (Granularity::Fields, Value::Object(map)) => {
            for (name, value) in map {
                path.push(format!("f:{name}"));
                let Some(field) = of.field(name) else {
                    return Err(format!("{}: field not declared in schema", path_text(path)));
                };
                collect_fields(value, field, path, set)?;
                let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                if empty || !of.is_named(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        (Granularity::Fields | Granularity::Set | Granularity::Map(_), Value::Null) => {}
        (sharing @ (Granularity::Set | Granularity::Map(_)), Value::Array(items)) => {
            for item in items {
                path.push(match &sharing {
                    Granularity::Map(keys) => keyed(keys, item),
                    _ => valued(item),
                });
                collect_fields(item, of.item(), path, set)?;
                set.insert(path);
                path.pop();
            }
        }
        _ => set.insert(path),
    }
    Ok(())
}
