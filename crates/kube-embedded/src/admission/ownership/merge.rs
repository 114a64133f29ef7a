//! Merging for server-side apply: fields of the configuration are merged in; fields that it no
//! longer sets and no other manager owns are removed.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::fields::Fields;
use super::types::{Granularity, Type, keyed, valued};

/// Merges a configuration into an object.
pub(super) fn merge(live: Option<&Value>, config: &Value, of: Type<'_>) -> Value {
    let Some(live) = live else { return config.clone() };
    match (of.sharing(config), live, config) {
        (Granularity::Fields, Value::Object(old), Value::Object(new)) => {
            let mut merged: Map<String, Value> = old.clone();
            for (name, value) in new {
                let field = of.field(name).unwrap_or(Type::Any);
                merged.insert(name.clone(), merge(old.get(name), value, field));
            }
            merged.into()
        }
        (Granularity::Fields, old @ Value::Object(_), Value::Null) => old.clone(),
        (Granularity::Set, Value::Array(old), Value::Array(new)) => merge_items(old, new, of, &valued),
        (Granularity::Map(keys), Value::Array(old), Value::Array(new)) => {
            merge_items(old, new, of, &|item| keyed(&keys, item))
        }
        _ => config.clone(),
    }
}

/// Where each name is; the first of several that are the same.
fn places(names: &[String]) -> HashMap<&str, usize> {
    // The first of several comes last, and stays.
    names.iter().enumerate().rev().map(|(place, name)| (name.as_str(), place)).collect()
}

/// Merges lists: items of the configuration are in its order, the others keep their position among
/// them.
fn merge_items(old: &[Value], new: &[Value], of: Type<'_>, element: &dyn Fn(&Value) -> String) -> Value {
    let (left, right): (Vec<String>, Vec<String>) =
        (old.iter().map(element).collect(), new.iter().map(element).collect());
    let (in_left, in_right) = (places(&left), places(&right));
    let mut shared = right.iter().filter(|each| in_left.contains_key(each.as_str())).peekable();
    let merged = |name: &String| {
        let before = in_left.get(name.as_str()).map(|at| &old[*at]);
        match in_right.get(name.as_str()) {
            Some(at) => merge(before, &new[*at], of.item()),
            None => before.cloned().unwrap_or_default(),
        }
    };
    let mut done: HashSet<&String> = HashSet::new();
    let mut out = Vec::with_capacity(old.len() + new.len());
    let (mut l, mut r) = (0, 0);
    while l < left.len() || r < right.len() {
        if l < left.len() && r < right.len() {
            if left[l] == right[r] {
                done.insert(&right[r]);
                out.push(merged(&right[r]));
                shared.next();
                l += 1;
                r += 1;
                continue;
            }
            // The item is in both lists, but another common item comes first.
            if in_right.contains_key(left[l].as_str()) && shared.peek().is_some_and(|next| **next != left[l]) {
                l += 1;
                continue;
            }
        }
        if l < left.len() {
            if !in_right.contains_key(left[l].as_str()) {
                out.push(old[l].clone());
                l += 1;
                continue;
            }
            if done.contains(&left[l]) {
                l += 1;
            }
        }
        if r < right.len() {
            done.insert(&right[r]);
            out.push(merged(&right[r]));
            if shared.peek().is_some_and(|next| **next == right[r]) {
                shared.next();
            }
            r += 1;
        }
    }
    out.into()
}

/// Removes the fields that the manager set `before` and that no manager owns now.
pub(super) fn prune(object: &mut Value, of: Type<'_>, before: &Fields, owned: &Fields) {
    let sharing = of.sharing(object);
    match (object, sharing) {
        (Value::Object(map), Granularity::Fields) => {
            map.retain(|name, value| {
                let element = format!("f:{name}");
                let Some(previous) = before.child(&element) else { return true };
                match owned.child(&element) {
                    Some(owned) => {
                        prune(value, of.field(name).unwrap_or(Type::Any), previous, owned);
                        true
                    }
                    // A field of a struct counts as set if anything below it was set.
                    None => !(previous.is_member() || of.is_named(name)),
                }
            });
        }
        (Value::Array(items), sharing @ (Granularity::Set | Granularity::Map(_))) => {
            items.retain_mut(|item| {
                let element = match &sharing {
                    Granularity::Map(keys) => keyed(keys, item),
                    _ => valued(item),
                };
                let Some(previous) = before.child(&element) else { return true };
                match owned.child(&element) {
                    Some(owned) => {
                        prune(item, of.item(), previous, owned);
                        true
                    }
                    None => !previous.is_member(),
                }
            });
        }
        _ => {}
    }
}
