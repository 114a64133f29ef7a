//! Reads objects from manifest files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;
use crate::terminal::yaml;

/// Reads all objects of a directory: `CustomResourceDefinitions` first, then namespaces.
pub(crate) fn read_all(directory: &Path) -> Result<Vec<Value>, Failure> {
    let wrong = |path: &Path, why: &dyn std::fmt::Display| Failure::Usage(format!("{}: {why}", path.display()));
    let entries = fs::read_dir(directory).map_err(|error| wrong(directory, &error))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.retain(|path| path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|known| end == *known)));
    files.sort();
    let mut objects = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|error| wrong(&file, &error))?;
        let documents = match file.extension().is_some_and(|end| end == "json") {
            true => serde_json::from_str(&text).map(|object| vec![object]).map_err(|error| error.to_string()),
            false => yaml::read(&text),
        };
        for document in documents.map_err(|error| wrong(&file, &error))? {
            flatten(document, &mut objects);
        }
    }
    objects.sort_by_key(|object| match object["kind"].as_str() {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    });
    Ok(objects)
}

/// Replaces a list by its items, recursively.
fn flatten(mut document: Value, objects: &mut Vec<Value>) {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => items.into_iter().for_each(|item| flatten(item, objects)),
        Some(items) => {
            document["items"] = items;
            objects.push(document);
        }
        None => objects.push(document),
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::{fuzz_on_stack, recorded};

    #[test]
    fn any_manifest_is_read_or_refused() {
        let (bodies, _) = recorded();
        let pieces = [
            "kind: ", "List\n", "Pod\n", "items:\n", "- ", "  ", "a: ", "&a ", "*a\n", "{", "}", "[", "]", "---\n",
            "|\n", "1\n", "\"", "<<: *a\n",
        ];
        // Manifests are read on the main thread.
        fuzz_on_stack(8 << 20, 300, |source| {
            let text = match source.below(4) {
                0 => source.text(&pieces, 40),
                1 => String::from_utf8_lossy(&source.nested(300)).into_owned(),
                2 => "{kind: List, items: [".repeat(source.below(200)),
                _ => String::from_utf8_lossy(&source.mutated(&bodies)).into_owned(),
            };
            let mut objects = Vec::new();
            for document in yaml::read(&text).unwrap_or_default() {
                flatten(document, &mut objects);
            }
        });
    }
}
