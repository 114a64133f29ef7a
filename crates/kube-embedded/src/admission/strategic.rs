//! Strategic merge patch: a merge patch that merges lists by key where the schema defines one.
//!
//! A patch may contain directives: `$patch: replace` or `delete` in an object or an item,
//! `$retainKeys` in an object, and next to a list `x` the lists `$setElementOrder/x` and
//! `$deleteFromPrimitiveList/x`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::encoding::value::type_name;
use crate::http::status::Status;
use crate::kinds::schema::{PatchRule, Struct};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const DELETE: &str = "$deleteFromPrimitiveList/";

/// Why a patch cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PatchError {
    /// The patch is malformed.
    Malformed(String),
    /// The patch cannot be merged into the object.
    Unmergeable(String),
}

impl PatchError {
    pub(crate) fn into_status(self) -> Status {
        match self {
            Self::Malformed(why) => Status::bad_request(why),
            Self::Unmergeable(why) => Status::internal(why),
        }
    }
}

/// Merges a patch into an object with the schema `of`.
///
/// # Errors
///
/// Invalid directives, and items without their merge key.
pub(crate) fn merge(object: &mut Value, patch: Value, of: &'static Struct) -> Result<(), PatchError> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else { return Ok(()) };
    merge_map(object, patch, Some(of))
}

fn merge_map(
    object: &mut Map<String, Value>,
    mut patch: Map<String, Value>,
    of: Option<&'static Struct>,
) -> Result<(), PatchError> {
    match patch.remove(PATCH) {
        None => {}
        Some(Value::String(word)) if word == "replace" => {
            *object = without_nulls(patch);
            return Ok(());
        }
        Some(Value::String(word)) if word == "delete" => {
            object.clear();
            return Ok(());
        }
        Some(other) => return Err(bad_directive(other, &patch)),
    }
    if let Some(keys) = patch.remove(RETAIN_KEYS) {
        retain_keys(object, &patch, &keys)?;
    }
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with('$')).cloned().collect();
    // Deletions come first: the order directive does not contain the deleted values.
    for name in directives.iter().filter_map(|key| key.strip_prefix(DELETE)) {
        let to_delete = patch.remove(&format!("{DELETE}{name}")).unwrap_or_default();
        if let (Value::Array(to_delete), Some(Value::Array(list))) = (to_delete, object.get_mut(name)) {
            let to_delete: HashSet<Value> = to_delete.into_iter().collect();
            list.retain(|value| !to_delete.contains(value));
        }
    }
    for name in directives.iter().filter_map(|key| key.strip_prefix(ORDER)) {
        let order = patch.remove(&format!("{ORDER}{name}")).unwrap_or_default();
        let Value::Array(order) = order else { return Err(no_list(&order)) };
        merge_ordered(object, patch.remove(name), name, &order, of)?;
    }
    for (name, value) in patch {
        let field = of.and_then(|of| of.field(&name)).map(|(_, field)| field);
        let (rule, inner) = field.map_or((PatchRule::default(), None), |field| (field.patch, field.shape.structure()));
        match (object.get_mut(&name), value) {
            (_, Value::Null) => {
                object.remove(&name);
            }
            (Some(Value::Object(old)), Value::Object(new)) => merge_map(old, new, inner)?,
            (Some(Value::Array(old)), Value::Array(new)) if rule.merges => {
                *old = merge_list(std::mem::take(old), new, rule, inner)?;
            }
            (_, value) => {
                object.insert(name, without_directives(value));
            }
        }
    }
    Ok(())
}

/// Removes the keys that are not listed. A patch that sets a key it does not list is malformed.
fn retain_keys(object: &mut Map<String, Value>, patch: &Map<String, Value>, keys: &Value) -> Result<(), PatchError> {
    let Value::Array(keys) = keys else { return Err(bad_list("retainKeys")) };
    let named = |key: &str| keys.iter().any(|each| each == key);
    if patch.iter().any(|(key, value)| !key.starts_with('$') && !value.is_null() && !named(key)) {
        return Err(bad_list("retainKeys"));
    }
    object.retain(|key, _| named(key));
    Ok(())
}

/// Merges a list and sorts it by `$setElementOrder`.
fn merge_ordered(
    object: &mut Map<String, Value>,
    patch: Option<Value>,
    name: &str,
    order: &[Value],
    of: Option<&'static Struct>,
) -> Result<(), PatchError> {
    let field = of.and_then(|of| of.field(name)).map(|(_, field)| field);
    let (rule, inner) = field.map_or((PatchRule::default(), None), |field| (field.patch, field.shape.structure()));
    let before = match object.get(name) {
        Some(Value::Array(list)) => Some(list.clone()),
        _ => None,
    };
    if let Some(Value::Array(patch)) = &patch {
        check_order(patch, order, rule.key)?;
    }
    let merged = match (before.clone(), patch) {
        (None, None) => return Ok(()),
        (Some(before), None | Some(Value::Null)) => before,
        (Some(before), Some(Value::Array(patch))) if rule.merges => merge_list(before, patch, rule, inner)?,
        (_, Some(patch)) => match without_directives(patch) {
            Value::Array(list) => list,
            other => return Err(no_list(&other)),
        },
    };
    let ordered = arrange(merged, order, &before.unwrap_or_default(), rule.key);
    object.insert(name.to_owned(), ordered.into());
    Ok(())
}

/// Checks that the items of a patch are in the order of its `$setElementOrder`.
fn check_order(patch: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    let mut rest = order.iter();
    let in_order = patch.iter().filter(|item| item.get(PATCH).is_none()).all(|item| {
        rest.any(|each| match key {
            Some(key) => each.get(key) == item.get(key),
            None => each == item,
        })
    });
    if in_order {
        return Ok(());
    }
    let shown = |list: &[Value]| go_value(&Value::Array(list.to_vec()));
    Err(PatchError::Unmergeable(format!(
        "The order in patch list:\n{}\n doesn't match {} list:\n{}\n",
        shown(patch),
        ORDER.trim_end_matches('/'),
        shown(order)
    )))
}

fn merge_list(
    mut list: Vec<Value>,
    patch: Vec<Value>,
    rule: PatchRule,
    inner: Option<&'static Struct>,
) -> Result<Vec<Value>, PatchError> {
    let objects = list.iter().chain(&patch).all(Value::is_object) && !(list.is_empty() && patch.is_empty());
    if !objects {
        let before = list.clone();
        let mut present: HashSet<&Value> = before.iter().collect();
        list.extend(patch.iter().filter(|value| present.insert(value)).cloned());
        return Ok(arrange(list, &patch, &before, None));
    }
    let Some(key) = rule.key else {
        let name = inner.map_or("", Struct::name);
        return Err(PatchError::Unmergeable(format!("cannot merge lists without merge key for {name}")));
    };
    let mut replaces = false;
    let (mut items, mut deleted) = (Vec::new(), HashSet::new());
    for mut item in patch {
        match item.as_object_mut().and_then(|item| item.remove(PATCH)) {
            None => items.push(item),
            Some(Value::String(word)) if word == "delete" => {
                deleted.insert(key_of(&item, key)?.clone());
            }
            Some(Value::String(word)) if word == "replace" => replaces = true,
            Some(other) => return Err(bad_directive(other, item.as_object().unwrap_or(&Map::new()))),
        }
    }
    if replaces {
        return Ok(items);
    }
    list.retain(|each| each.get(key).is_none_or(|value| !deleted.contains(value)));
    let before = list.clone();
    let mut places = places(&before, Some(key));
    for item in &items {
        let value = key_of(item, key)?;
        match (places.get(value).and_then(|place| list.get_mut(*place)), item) {
            (Some(Value::Object(old)), Value::Object(new)) => merge_map(old, new.clone(), inner)?,
            _ => {
                places.insert(value, list.len());
                list.push(without_directives(item.clone()));
            }
        }
    }
    Ok(arrange(list, &items, &before, Some(key)))
}

fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    item.get(key).ok_or_else(|| {
        let shown = go_value(item);
        PatchError::Unmergeable(format!("map: {shown} does not contain declared merge key: {key}"))
    })
}

/// Sorts the items that the patch names into its order. The others keep their order, and stay
/// before the named items that they preceded.
fn arrange(list: Vec<Value>, order: &[Value], before: &[Value], key: Option<&str>) -> Vec<Value> {
    let (in_order, in_before) = (places(order, key), places(before, key));
    let place = |places: &HashMap<&Value, usize>, item: &Value| places.get(identity(item, key)?).copied();
    let (mut named, mut others): (Vec<Value>, Vec<Value>) =
        list.into_iter().partition(|item| place(&in_order, item).is_some());
    named.sort_by_cached_key(|item| place(&in_order, item));
    others.sort_by_cached_key(|item| place(&in_before, item).unwrap_or(usize::MAX));
    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(name), Some(other)) = (named.peek(), others.peek()) {
        let other_first = match (place(&in_before, name), place(&in_before, other)) {
            (Some(name), Some(other)) => other < name,
            _ => false,
        };
        arranged.extend(if other_first { others.next() } else { named.next() });
    }
    arranged.extend(named);
    arranged.extend(others);
    arranged
}

/// What an item is found by: the value of its merge key, or itself if the list has none.
fn identity<'v>(item: &'v Value, key: Option<&str>) -> Option<&'v Value> {
    match key {
        Some(key) => item.get(key),
        None => Some(item),
    }
}

/// Where each item is in a list; the first of several that are the same. Built once for each list,
/// because searching it for each item of a patch takes minutes for a patch of a few megabytes.
fn places<'v>(list: &'v [Value], key: Option<&str>) -> HashMap<&'v Value, usize> {
    let places = list.iter().enumerate().filter_map(|(place, item)| Some((identity(item, key)?, place)));
    // The first of several comes last, and stays.
    places.rev().collect()
}

/// A value that replaces nothing: nulls and directives have no effect and are removed.
fn without_directives(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(without_nulls(map)),
        Value::Array(items) => {
            let deleted = |item: &Value| item.get(PATCH).is_some_and(|word| word == "delete" || word == "replace");
            items.into_iter().filter(|item| !deleted(item)).map(without_directives).collect()
        }
        plain => plain,
    }
}

fn without_nulls(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter()
        .filter(|(key, value)| !value.is_null() && !is_directive(key))
        .map(|(key, value)| (key, without_directives(value)))
        .collect()
}

fn is_directive(key: &str) -> bool {
    key == PATCH || key == RETAIN_KEYS || key.starts_with(ORDER) || key.starts_with(DELETE)
}

fn bad_directive(found: Value, among: &Map<String, Value>) -> PatchError {
    let shown = go_value(&found);
    let mut among = among.clone();
    among.insert(PATCH.to_owned(), found);
    PatchError::Unmergeable(format!("unknown patch type: {shown} in map: {}", go_value(&Value::Object(among))))
}

fn no_list(found: &Value) -> PatchError {
    let found = match found {
        Value::Object(_) => "map[string]interface {}",
        other => type_name(other),
    };
    PatchError::Unmergeable(format!("expected a []interface {{}}, but received a {found}"))
}

fn bad_list(what: &str) -> PatchError {
    PatchError::Malformed(format!("invalid patch format of {what}"))
}

/// A value in Go's `%v` format.
fn go_value(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members: Vec<String> =
                members.into_iter().map(|(key, value)| format!("{key}:{}", go_value(value))).collect();
            format!("map[{}]", members.join(" "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
