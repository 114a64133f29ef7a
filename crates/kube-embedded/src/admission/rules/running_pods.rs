//! Rules about the changes of a pod that subresources permit.

use serde_json::Value;

use super::Site;
use super::condition::is_set;
use super::formats::quoted;
use super::pods::difference;
use crate::admission::defaults::quality_of_service;
use crate::encoding::value::{items, text};
use crate::http::status::Cause;

/// The annotation of a pod that a kubelet runs from a file.
const MIRROR: &str = "kubernetes.io/config.mirror";

fn is_static(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get(MIRROR).is_some()
}

/// Ephemeral containers can only be added.
pub(super) fn ephemeral_update(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let Some(old) = site.old else { return };
    if is_static(old) {
        *causes = vec![Cause::forbidden("", "static pods do not support ephemeral containers")];
        return;
    }
    let (field, new) = ("spec.ephemeralContainers", items(&site.value["spec"]["ephemeralContainers"]));
    for before in items(&old["spec"]["ephemeralContainers"]) {
        let name = quoted(text(&before["name"]));
        match new.iter().find(|container| container["name"] == before["name"]) {
            None => {
                let why = format!("existing ephemeral containers {name} may not be removed\n");
                causes.push(Cause::forbidden(field, why));
            }
            Some(after) if after != before => {
                let why = format!("existing ephemeral containers {name} may not be changed\n");
                causes.push(Cause::forbidden(field, why + &difference(before, after)));
            }
            Some(_) => {}
        }
    }
}

/// The name of an ephemeral container is that of no other, and its target is a container.
pub(super) fn ephemeral_names(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let containers = ["containers", "initContainers"].iter().flat_map(|list| items(&site.value[*list]));
    let mut names: Vec<&Value> = containers.map(|container| &container["name"]).collect();
    let targets = names.len();
    for (at, container) in items(&site.value["ephemeralContainers"]).iter().enumerate() {
        let field = |name: &str| site.at(&format!("ephemeralContainers[{at}].{name}"));
        if names.contains(&&container["name"]) {
            causes.push(Cause::duplicate(&field("name"), &container["name"]));
        } else {
            names.push(&container["name"]);
        }
        let target = &container["targetContainerName"];
        if is_set(target) && !names[..targets].contains(&target) {
            let why = format!("Not found: {}", quoted(text(target)));
            causes.push(Cause::new("FieldValueNotFound", field("targetContainerName"), why));
        }
    }
}

/// A resize changes CPU and memory of the containers that there are.
pub(super) fn resize(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let Some(old) = site.old else { return };
    if is_static(old) {
        *causes = vec![Cause::forbidden("", "static pods cannot be resized")];
        return;
    }
    let class = old["status"]["qosClass"].as_str().unwrap_or_else(|| quality_of_service(old));
    if class != quality_of_service(site.value) {
        let shown = quoted(text(&site.value["status"]["qosClass"]));
        causes.push(Cause::invalid("spec", shown, "Pod QOS Class may not change as a result of resizing"));
    }
    let running =
        items(&old["status"]["containerStatuses"]).iter().find(|status| status["state"]["running"].is_object());
    if running.is_some_and(|status| status["resources"].is_null()) {
        causes.push(Cause::forbidden("spec", "Pod running on node without support for resize"));
    }
    let lists = ["containers", "initContainers"];
    let before = causes.len();
    for list in lists {
        same_containers(list, items(&old["spec"][list]), items(&site.value["spec"][list]), causes);
    }
    if causes.len() > before {
        return;
    }
    let pairs = |list: &'static str| items(&old["spec"][list]).iter().zip(items(&site.value["spec"][list])).enumerate();
    for list in ["initContainers", "containers"] {
        for (at, (old, new)) in pairs(list) {
            for part in ["requests", "limits"] {
                let is_removed = |name: &String| new["resources"][part].get(name).is_none();
                if old["resources"][part].as_object().is_some_and(|old| old.keys().any(is_removed)) {
                    let field = format!("spec.{list}[{at}].resources.{part}");
                    causes.push(Cause::forbidden(&field, format!("resource {part} cannot be removed")));
                }
            }
        }
    }
    for list in lists {
        for (at, (old, new)) in pairs(list) {
            if without_compute(old) == without_compute(new) {
                continue;
            }
            let (field, why) = match list {
                "containers" => ("spec".to_owned(), "only cpu and memory resources are mutable"),
                _ => {
                    let why = "only cpu and memory resources for init or sidecar containers are mutable";
                    (format!("spec.initContainers[{at}]"), why)
                }
            };
            causes.push(Cause::forbidden(&field, why));
        }
    }
}

fn same_containers(list: &str, old: &[Value], new: &[Value], causes: &mut Vec<Cause>) {
    if old.len() != new.len() {
        let why = format!("{list} may not be added or removed on resize");
        return causes.push(Cause::forbidden(&format!("spec.{list}"), why));
    }
    for (at, (old, new)) in old.iter().zip(new).enumerate() {
        if old["name"] != new["name"] {
            let why = format!("{list} may not be renamed or reordered on resize");
            causes.push(Cause::forbidden(&format!("spec.{list}[{at}].name"), why));
        }
    }
}

/// A container without its amounts of CPU and memory.
fn without_compute(container: &Value) -> Value {
    let mut container = container.clone();
    for part in ["requests", "limits"] {
        if let Some(amounts) = container.pointer_mut(&format!("/resources/{part}")).and_then(Value::as_object_mut) {
            amounts.retain(|name, _| !matches!(name.as_str(), "cpu" | "memory"));
        }
        let resources = container.get_mut("resources").and_then(Value::as_object_mut);
        resources.into_iter().for_each(|resources| resources.retain(|_, part| part != &serde_json::json!({})));
    }
    container
}
