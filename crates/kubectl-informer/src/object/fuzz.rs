//! Mutated objects in everything that describes and compares them.

use std::collections::HashSet;

use kube_informer::Obj;
use serde_json::{Value, json};

use super::by::By;
use super::change::{headline, summary, value_text};
use super::diff::path_text;
use super::field_managers::{writer, writes_since};
use super::noise::Noise;
use super::quantity::quantity;
use super::redaction::{Secrets, without_secrets};
use super::tree::{Forest, readiness};
use crate::fuzzing::{Source, fuzz, recorded};
use crate::terminal::document::Document;
use crate::terminal::terminal_text::{is_hidden, visible};

const KINDS: [&str; 7] = ["Pod", "Secret", "Deployment", "Node", "Event", "Lease", "Widget"];

fn object(source: &mut Source, bodies: &[Vec<u8>]) -> Value {
    serde_json::from_slice(&source.mutated(bodies)).unwrap_or_else(|_| json!({"metadata": {"name": "a"}}))
}

#[test]
fn any_objects_are_described_and_compared() {
    let (bodies, _) = recorded();
    fuzz(200, |source| {
        let (kind, old) = (*source.choose(&KINDS), object(source, &bodies));
        let new = if source.one_in(3) { object(source, &bodies) } else { changed(source, &old) };
        drop((headline(kind, &new), readiness(kind, &new), value_text(Some(&new))));
        drop(summary(kind, &old, &new, Secrets::Redacted, Noise::Muted));
        let differences = Noise::Shown.diff(kind, &old, &new);
        for difference in &differences {
            drop((path_text(&difference.path), writer(&new, &difference.path)));
        }
        assert!(old != new || differences.is_empty());
        drop(writes_since(&new, "2020-01-01T00:00:00Z"));
        let kept = without_secrets(kind, &new);
        for document in [Document::json(&kept), Document::yaml(&kept).expect("YAML")] {
            let text = document.as_str();
            assert!(!text.contains(|c: char| !matches!(c, '\n' | '\t') && is_hidden(c)), "{text:?}");
        }
    });
}

/// The object with one value replaced.
fn changed(source: &mut Source, object: &Value) -> Value {
    let steps: Vec<usize> = (0..source.below(8)).map(|_| source.below(8)).collect();
    let mut changed = object.clone();
    replace(&mut changed, &steps, serde_json::from_slice(&source.nested(20)).unwrap_or(Value::Null));
    changed
}

fn replace(value: &mut Value, steps: &[usize], with: Value) {
    match (value, steps) {
        (Value::Array(items), [step, rest @ ..]) if !items.is_empty() => {
            let at = step % items.len();
            replace(&mut items[at], rest, with);
        }
        (Value::Object(fields), [step, rest @ ..]) if !fields.is_empty() => {
            let at = step % fields.len();
            fields.values_mut().nth(at).into_iter().for_each(|value| replace(value, rest, with.clone()));
        }
        (value, _) => *value = with,
    }
}

#[test]
fn any_owners_make_a_tree_that_ends() {
    fuzz(200, |source| {
        let mut forest = Forest::default();
        let objects = 1 + source.below(60);
        for nth in 0..objects {
            let owners: Vec<Value> = (0..source.below(4))
                .map(|_| {
                    let owner = source.below(objects + 2);
                    json!({"apiVersion": "v1", "kind": "Pod", "name": format!("o{owner}"), "uid": format!("u{owner}"), "controller": source.one_in(2)})
                })
                .collect();
            let metadata = json!({"name": format!("o{nth}"), "uid": format!("u{nth}"), "ownerReferences": owners});
            let object = Obj::<Value>::from_json(json!({"metadata": metadata}).to_string()).expect("an object");
            forest.add("Pod", &object);
        }
        let subject = format!("u{}", source.below(objects));
        let members: HashSet<String> = forest.members(&subject).into_iter().collect();
        assert!(members.contains(&subject) && members.len() <= objects);
        assert!(!forest.lines(&subject, &|_| None).is_empty());
    });
}

#[test]
fn any_place_and_any_quantity_is_parsed_or_refused() {
    let pieces = [
        "node",
        "ip",
        "owner",
        "label:",
        "=",
        "spec.nodeName",
        "[*]",
        "['a']",
        "..",
        "1",
        "-",
        "e9",
        "Ki",
        "m",
        "é",
        "\u{202e}",
        "\x1b[2J",
    ];
    let pod =
        r#"{"metadata":{"name":"a","labels":{"a":"1"}},"spec":{"nodeName":"1"},"status":{"podIPs":[{"ip":"1"}]}}"#;
    let pod = Obj::<Value>::from_json(pod).expect("an object");
    fuzz(1_000, |source| {
        let text = source.text(&pieces, 8);
        if let Ok(by) = text.parse::<By>() {
            by.fits(&pod);
        }
        assert!(quantity(&text).is_none_or(f64::is_finite), "{text}");
        assert!(!visible(&text).contains(is_hidden), "{text:?}");
    });
}
