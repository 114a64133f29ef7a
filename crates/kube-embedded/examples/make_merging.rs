//! Generates `data/merging.txt`: how patches and server-side apply merge the fields of the built-in
//! kinds.
//!
//! ```text
//! cargo run -p kube-embedded --example make_merging -- FILE > crates/kube-embedded/data/merging.txt
//! ```
//!
//! FILE is the OpenAPI document (version 2) of a kube-apiserver. The structs are those of
//! `data/types.txt`, matched by traversing both from every kind.
//!
//! One line per struct with merge rules, its parts separated by tabs: its index in `types.txt`,
//! followed by `!` if the struct is atomic; then `field=patch/apply` for each field. patch: `m`
//! merge, `r` retainKeys, `b` both, followed by `:` and the merge key if there is one. apply: `a`
//! atomic, `g` granular, `s` a set, `l:` and the keys of a list of type `map`.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use serde_json::{Map, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the file of definitions is missing")?;
    let document: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let definitions = document["definitions"].as_object().ok_or("the document has no definitions")?;
    let types = include_str!("../data/types.txt");
    let structs: Vec<&str> = types.lines().filter(|line| !line.starts_with('@')).collect();
    let mut by_kind: HashMap<String, &str> = HashMap::new();
    for (name, definition) in definitions {
        let Some([kind]) = definition["x-kubernetes-group-version-kind"].as_array().map(Vec::as_slice) else {
            continue;
        };
        let part = |part: &str| kind[part].as_str().unwrap_or_default();
        by_kind.insert(format!("{}/{}/{}", part("group"), part("version"), part("kind")), name);
    }
    let mut walk = Walk { definitions, structs: &structs, seen: BTreeMap::new() };
    for line in types.lines() {
        let Some((kind, number)) = line.strip_prefix('@').and_then(|line| line.split_once('\t')) else { continue };
        match by_kind.get(kind) {
            Some(name) => walk.visit(number.parse()?, name),
            None => eprintln!("no definition of {kind}"),
        }
    }
    for (number, line) in walk.seen {
        if line.contains(['!', '=']) {
            println!("{number}{line}");
        }
    }
    Ok(())
}

struct Walk<'a> {
    definitions: &'a Map<String, Value>,
    structs: &'a [&'a str],
    seen: BTreeMap<usize, String>,
}

impl Walk<'_> {
    fn visit(&mut self, number: usize, name: &str) {
        if self.seen.contains_key(&number) {
            return;
        }
        self.seen.insert(number, String::new());
        let definition = &self.definitions[name];
        let mut line = if definition["x-kubernetes-map-type"] == "atomic" { "!".to_owned() } else { String::new() };
        for field in self.structs[number].split('\t').skip(1) {
            let (name, shape) = field.split_once(['!', '?', '*', '+']).expect("a field says when it is present");
            let property = &definition["properties"][name];
            let (patch, apply) = (patch(property), apply(property));
            if !patch.is_empty() || !apply.is_empty() {
                line += &format!("\t{name}={patch}/{apply}");
            }
            let inner = [property, &property["items"], &property["additionalProperties"]];
            let target = inner.into_iter().find_map(|each| each["$ref"].as_str());
            let shape = shape.split('~').next().unwrap_or_default();
            let inner = shape.find('#').map(|at| shape[at + 1..].parse());
            if let (Some(target), Some(Ok(inner))) = (target, inner) {
                self.visit(inner, target.rsplit('/').next().unwrap_or_default());
            }
        }
        self.seen.insert(number, line);
    }
}

fn patch(property: &Value) -> String {
    let letter = match property["x-kubernetes-patch-strategy"].as_str() {
        Some("merge") => "m",
        Some("retainKeys") => "r",
        Some("merge,retainKeys") => "b",
        _ => return String::new(),
    };
    match property["x-kubernetes-patch-merge-key"].as_str() {
        Some(key) => format!("{letter}:{key}"),
        None => letter.to_owned(),
    }
}

/// The list type for server-side apply. Without an explicit type it follows the patch strategy.
fn apply(property: &Value) -> String {
    let keys = |keys: &Value| {
        let keys: Vec<&str> = keys.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("l:{}", keys.join(","))
    };
    let merge_key = property["x-kubernetes-patch-merge-key"].as_str();
    match (property["x-kubernetes-list-type"].as_str(), property["x-kubernetes-patch-strategy"].as_str()) {
        (Some("map"), _) => keys(&property["x-kubernetes-list-map-keys"]),
        (Some("set"), _) => "s".to_owned(),
        (None, Some("merge" | "merge,retainKeys")) if property["type"] == "array" => match merge_key {
            Some(key) => format!("l:{key}"),
            None => "s".to_owned(),
        },
        _ if property["x-kubernetes-map-type"] == "atomic" => "a".to_owned(),
        _ if property["x-kubernetes-map-type"] == "granular" => "g".to_owned(),
        _ => String::new(),
    }
}
