//! Candidates for what can be a column: the paths and labels that objects of the kind have.

use std::collections::BTreeSet;

use clap_complete::CompletionCandidate;
use futures_util::{StreamExt as _, TryStreamExt as _};
use kube_informer::Obj;
use kube_informer::client::{ApiListWatch, ResourceScope};
use kube_informer::one_shot::Pager;
use serde_json::Value;

use super::candidates::from_server;
use super::words;
use crate::args::get::GetForm;
use crate::client::kinds;
use crate::failure::Failure;
use crate::terminal::terminal_text::is_hidden;

/// The number of objects that are read: most objects of a kind have the same fields.
const SAMPLES: u32 = 50;
/// Deeper fields are seldom columns.
const MAX_DEPTH: usize = 5;

/// Paths for `--sort-by`.
pub(crate) fn sort_paths() -> Vec<CompletionCandidate> {
    paths().iter().map(|path| CompletionCandidate::new(format!(".{path}"))).collect()
}

/// What `--by` looks for, up to the value.
pub(crate) fn by() -> Vec<CompletionCandidate> {
    if words::current().starts_with("label:") {
        return keys().iter().map(|key| CompletionCandidate::new(format!("label:{key}="))).collect();
    }
    let named = ["node=", "ip=", "owner=", "label:"].map(str::to_owned);
    let paths = paths().into_iter().map(|path| format!("{path}="));
    named.into_iter().chain(paths).map(CompletionCandidate::new).collect()
}

/// Formats, and after `custom-columns=NAME:` paths.
pub(crate) fn formats() -> Vec<CompletionCandidate> {
    let current = words::current();
    let value = current.split_once("custom-columns=").map(|(_, columns)| columns);
    match value.and_then(|columns| columns.rsplit(',').next()).and_then(|column| column.split_once(':')) {
        Some((_, path)) => {
            let columns = current.find("custom-columns=").unwrap_or(0);
            let before = &current[columns..current.len() - path.len()];
            paths().iter().map(|path| CompletionCandidate::new(format!("{before}.{path}"))).collect()
        }
        None => GetForm::NAMES.into_iter().map(CompletionCandidate::new).collect(),
    }
}

/// Label keys for `-L`.
pub(crate) fn label_keys() -> Vec<CompletionCandidate> {
    keys().into_iter().map(CompletionCandidate::new).collect()
}

fn keys() -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for object in samples() {
        keys.extend(object["metadata"]["labels"].as_object().into_iter().flatten().map(|(key, _)| key.clone()));
    }
    keys.retain(|key| !key.contains(is_hidden));
    keys
}

fn paths() -> BTreeSet<String> {
    // Every object has these, also if there is none to be read.
    let mut paths: BTreeSet<String> =
        ["name", "namespace", "creationTimestamp"].map(|field| format!("metadata.{field}")).into();
    samples().iter().for_each(|object| collect(object, &mut String::new(), 0, &mut paths));
    paths
}

/// Adds the paths of all values that are no map or list, down to a depth. Of lists, the first item
/// is taken.
fn collect(value: &Value, path: &mut String, depth: usize, found: &mut BTreeSet<String>) {
    let length = path.len();
    match value {
        Value::Object(fields) if depth < MAX_DEPTH => {
            for (key, value) in fields {
                let is_plain = key.bytes().all(|byte| byte.is_ascii_alphanumeric());
                if !is_plain || (depth == 1 && key == "managedFields") {
                    continue;
                }
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(key);
                collect(value, path, depth + 1, found);
                path.truncate(length);
            }
        }
        Value::Array(items) if depth < MAX_DEPTH => {
            path.push_str("[0]");
            items.iter().take(1).for_each(|item| collect(item, path, depth + 1, found));
            path.truncate(length);
        }
        Value::Object(_) | Value::Array(_) | Value::Null => {}
        _ => drop(found.insert(path.clone())),
    }
}

/// Some objects of the kinds on the command line.
fn samples() -> Vec<Value> {
    let mut samples = Vec::new();
    from_server(async |connected| {
        let served = kinds::served(&connected).await?;
        let words = words::positionals();
        let kind = words.first().map_or("", |word| word.split('/').next().unwrap_or_default());
        for kind in kinds::find(&served, [kind])? {
            let mut source = ApiListWatch::new(connected.client.clone(), &kind);
            if kind.scope() == ResourceScope::Namespaced && !words::all_namespaces() {
                source = source.namespace(connected.namespace.clone());
            }
            let objects = Pager::<Value>::new(source).page_size(SAMPLES).stream().take(SAMPLES as usize);
            let objects: Vec<Obj<Value>> = objects
                .try_collect()
                .await
                .map_err(|error| Failure::of_list(&connected.address, kind.plural(), &error))?;
            samples.extend(objects.iter().filter_map(|object| object.get().ok().cloned()));
        }
        Ok(Vec::new())
    });
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn paths_lead_to_single_values() {
        let pod = json!({
            "metadata": {"name": "a", "labels": {"app": "b", "a.b/c": "d"}, "managedFields": [{"manager": "m"}]},
            "spec": {"containers": [{"name": "c"}, {"image": "i"}], "volumes": []}, "status": null,
        });
        let mut found = BTreeSet::new();
        collect(&pod, &mut String::new(), 0, &mut found);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["metadata.labels.app", "metadata.name", "spec.containers[0].name"]);
    }
}
