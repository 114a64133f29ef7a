//! Generates `data/kinds.txt`: the properties of each built-in kind except its fields (those are in
//! `data/types.txt`).
//!
//! ```text
//! cargo run -p kube-embedded --example make_kinds -- FOLDER > crates/kube-embedded/data/kinds.txt
//! ```
//!
//! FOLDER contains recorded responses of a kube-apiserver: `discovery-aggregated-api.json`,
//! `discovery-aggregated-apis.json`, `discovery-legacy.json` (every legacy document by its path),
//! `field-labels.json` (supported field selectors and the error for an unsupported one),
//! `kinds.json` (the results of creating, labelling, updating and deleting an object of each kind)
//! and `bookmarks.json` (the object of the bookmark that ends the initial events, for each kind).
//!
//! One line per kind, in discovery order; parts are separated by tabs, lists by commas:
//!
//! ```text
//! group version Kind plural singular N|C short-names categories verbs subresource=verbs;… storage-version-hash
//! selectable-fields wording generation update put delete finalizers create-warning bookmark
//! ```
//!
//! wording: the error for an unsupported field, with `*` in place of its name. generation: `-` as
//! sent, `1` counted. update: `r` requires a resourceVersion. put: `c` creates a missing object.
//! delete: `o` returns the object. bookmark: the fields of its object other than kind, apiVersion,
//! resourceVersion and the annotation that ends the initial events; these are the fields of an
//! empty object of the kind.

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Served subresources. Resources are served if they can be listed and watched.
const SUBRESOURCES: [&str; 9] =
    ["status", "finalize", "scale", "approval", "binding", "ephemeralcontainers", "eviction", "resize", "token"];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("the folder of recordings is missing")?;
    let read = |name: &str| -> Result<Value, Box<dyn Error>> {
        Ok(serde_json::from_str(&fs::read_to_string(Path::new(&folder).join(name))?)?)
    };
    let recordings = Recordings {
        legacy: read("discovery-legacy.json")?,
        labels: read("field-labels.json")?,
        behaviour: read("kinds.json")?,
        bookmarks: read("bookmarks.json")?,
    };
    for document in ["discovery-aggregated-api.json", "discovery-aggregated-apis.json"] {
        for group in items(&read(document)?, "items") {
            let name = text(&group["metadata"], "name");
            for version in items(group, "versions") {
                for resource in items(version, "resources") {
                    if words(resource, "verbs").contains(&"watch") {
                        println!("{}", recordings.line(name, text(version, "version"), resource)?);
                    }
                }
            }
        }
    }
    Ok(())
}

struct Recordings {
    legacy: Value,
    labels: Value,
    behaviour: Value,
    bookmarks: Value,
}

impl Recordings {
    fn line(&self, group: &str, version: &str, resource: &Value) -> Result<String, Box<dyn Error>> {
        let plural = text(resource, "resource");
        let (group_version, path) = match group {
            "" => (version.to_owned(), format!("/api/{version}")),
            _ => (format!("{group}/{version}"), format!("/apis/{group}/{version}")),
        };
        let key = format!("{group_version}/{plural}");
        let legacy = items(&self.legacy[&path], "resources").iter().find(|legacy| text(legacy, "name") == plural);
        let subresources: Vec<String> = items(resource, "subresources")
            .iter()
            .filter(|sub| SUBRESOURCES.contains(&text(sub, "subresource")))
            .map(|sub| format!("{}={}", text(sub, "subresource"), words(sub, "verbs").join(",")))
            .collect();
        let labels = &self.labels[&key];
        let wording = text(&labels["unsupported"], "message").replace("bogus.field", "*");
        if wording.is_empty() {
            return Err(format!("no field labels of {key}").into());
        }
        let behaviour = &self.behaviour[&key];
        if behaviour.is_null() {
            eprintln!(
                "{key}: behaviour was not recorded; that of the newer kinds is assumed, whose updates need a version"
            );
        }
        let flag = |condition: bool, letter: &'static str| if condition { letter } else { "-" };
        // If the object remains, the response is always the object; this records the response if
        // the object is removed. A kind whose objects remain because of a finalizer that the server
        // adds on create also returns the object on removal; a kind whose objects remained only for
        // orphaning does not.
        let born_to_stay = !items(behaviour, "finalizers").is_empty() || plural == "namespaces";
        let returns_object = !matches!(text(behaviour, "deleteReturns"), "" | "Status");
        let replies = returns_object && (behaviour["deleteKeepsObject"] == false || born_to_stay);
        let warning = items(behaviour, "createWarning").first().and_then(Value::as_str).unwrap_or_default();
        let columns = [
            group.to_owned(),
            version.to_owned(),
            text(&resource["responseKind"], "kind").to_owned(),
            plural.to_owned(),
            text(resource, "singularResource").to_owned(),
            text(resource, "scope")[..1].to_owned(),
            words(resource, "shortNames").join(","),
            words(resource, "categories").join(","),
            words(resource, "verbs").join(","),
            subresources.join(";"),
            legacy.map(|legacy| text(legacy, "storageVersionHash")).unwrap_or_default().to_owned(),
            words(labels, "fields").join(","),
            wording,
            flag(behaviour["generation"] == 1, "1").to_owned(),
            flag(behaviour["updateWithoutRV"] == 422 || behaviour.is_null(), "r").to_owned(),
            flag(behaviour["putMissing"] == 201, "c").to_owned(),
            flag(replies, "o").to_owned(),
            words(behaviour, "finalizers").join(","),
            warning.trim_start_matches("299 - \"").trim_end_matches('"').to_owned(),
            bookmark(text(&self.bookmarks, &key))?,
        ];
        Ok(columns.join("\t"))
    }
}

fn bookmark(recorded: &str) -> Result<String, Box<dyn Error>> {
    let mut object: Value = serde_json::from_str(recorded)?;
    if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
        annotations.remove("k8s.io/initial-events-end");
    }
    let map = object.as_object_mut().ok_or("a bookmark is an object")?;
    map.retain(|key, value| match key.as_str() {
        "kind" | "apiVersion" => false,
        "metadata" => value["annotations"].as_object().is_some_and(|annotations| !annotations.is_empty()),
        _ => true,
    });
    if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    Ok(object.to_string())
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn words<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    items(value, key).iter().filter_map(Value::as_str).collect()
}
