//! Rules about several fields of a pod.

use std::collections::HashSet;

use serde_json::Value;

use super::Site;
use super::checks::shown;
use super::condition::is_set;
use super::formats::{self, quoted};
use super::rule::unsupported;
use crate::encoding::value::{items, text};
use crate::http::status::Cause;
use crate::kinds::quantity;
use crate::storage::selector::{label_value_problem, qualified_name_problems};

/// What clients may change in the spec of a pod, in the order of the message.
const UPDATABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
     `spec.tolerations` (only additions to existing tolerations),\
     `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn update(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let Some(old) = site.old.map(|old| &old["spec"]) else { return };
    let mut new = site.value["spec"].clone();
    for part in ["containers", "initContainers"] {
        let olds = items(&old[part]);
        if items(&new[part]).len() != olds.len() {
            let why = "pod updates may not add or remove containers";
            return causes.push(Cause::forbidden(&format!("spec.{part}"), why));
        }
        for (at, old) in olds.iter().enumerate() {
            new[part][at]["image"] = old["image"].clone();
        }
    }
    let (deadline, before) = (new["activeDeadlineSeconds"].as_i64(), old["activeDeadlineSeconds"].as_i64());
    let why = match (deadline, before) {
        (Some(deadline), Some(before)) if deadline > before => Some("must be less than or equal to previous value"),
        (None, Some(_)) => Some("must not update from a positive integer to nil value"),
        _ => None,
    };
    let field = "spec.activeDeadlineSeconds";
    causes.extend(why.map(|why| Cause::invalid(field, shown(&new["activeDeadlineSeconds"]), why)));
    let tolerations: HashSet<&Value> = items(&new["tolerations"]).iter().collect();
    if items(&old["tolerations"]).iter().any(|old| !tolerations.contains(old)) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", why));
    }
    for part in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        new[part] = old[part].clone();
    }
    let mut old = old.clone();
    for spec in [&mut old, &mut new] {
        for part in ["initContainers", "activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            spec.as_object_mut().into_iter().for_each(|spec| spec.retain(|name, value| name != part || is_set(value)));
        }
    }
    if new != old {
        let why = format!("pod updates may not change fields other than {UPDATABLE}\n{}", difference(&old, &new));
        causes.push(Cause::forbidden("spec", why));
    }
}

/// The members that differ, a line for each side.
pub(super) fn difference(old: &Value, new: &Value) -> String {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return String::new() };
    let mut lines = String::new();
    for name in old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))) {
        let sides = [("-", old.get(name)), ("+", new.get(name))];
        if sides[0].1 != sides[1].1 {
            for (sign, value) in sides {
                lines.extend(value.map(|value| format!("{sign} {name}: {value}\n")));
            }
        }
    }
    lines
}

/// The volumes have names of their own and one source, and containers mount those that there are.
pub(super) fn volumes(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let mut known: HashSet<&str> = HashSet::new();
    for (at, volume) in items(&site.value["volumes"]).iter().enumerate() {
        let (field, before) = (site.at(&format!("volumes[{at}]")), causes.len());
        source(&field, volume, causes);
        let name = text(&volume["name"]);
        formats_of_name(&format!("{field}.name"), name, causes);
        if known.contains(name) {
            causes.push(Cause::duplicate(&format!("{field}.name"), &volume["name"]));
        }
        if causes.len() == before {
            known.insert(name);
        }
    }
    let claims = &site.root["spec"]["volumeClaimTemplates"];
    known.extend(items(claims).iter().map(|claim| text(&claim["metadata"]["name"])));
    for part in ["containers", "initContainers"] {
        for (at, container) in items(&site.value[part]).iter().enumerate() {
            mounts(&site.at(&format!("{part}[{at}].volumeMounts")), container, &known, causes);
        }
    }
}

fn formats_of_name(field: &str, name: &str, causes: &mut Vec<Cause>) {
    if name.is_empty() {
        causes.push(Cause::required(field, ""));
    }
    let problems = if name.is_empty() { Vec::new() } else { formats::named("label")(name) };
    causes.extend(problems.into_iter().map(|why| Cause::invalid(field, quoted(name), why)));
}

fn source(field: &str, volume: &Value, causes: &mut Vec<Cause>) {
    let sources: Vec<(&String, &Value)> =
        volume.as_object().into_iter().flatten().filter(|(name, value)| *name != "name" && !value.is_null()).collect();
    if sources.is_empty() {
        causes.push(Cause::required(field, "must specify a volume type"));
    }
    for (name, _) in sources.iter().skip(1) {
        causes.push(Cause::forbidden(&format!("{field}.{name}"), "may not specify more than 1 volume type"));
    }
    let required = [
        ("hostPath", "path"),
        ("secret", "secretName"),
        ("configMap", "name"),
        ("persistentVolumeClaim", "claimName"),
        ("nfs", "server"),
        ("nfs", "path"),
        ("csi", "driver"),
    ];
    for (kind, part) in required {
        if volume[kind].is_object() && !is_set(&volume[kind][part]) {
            causes.push(Cause::required(&format!("{field}.{kind}.{part}"), ""));
        }
    }
}

fn mounts(field: &str, container: &Value, known: &HashSet<&str>, causes: &mut Vec<Cause>) {
    let mut paths = HashSet::new();
    for (at, mount) in items(&container["volumeMounts"]).iter().enumerate() {
        let name = format!("{field}[{at}].name");
        if !is_set(&mount["name"]) {
            causes.push(Cause::required(&name, ""));
        }
        if !known.contains(text(&mount["name"])) {
            let shown = format!("Not found: {}", quoted(text(&mount["name"])));
            causes.push(Cause::new("FieldValueNotFound", name, shown));
        }
        if !paths.insert(&mount["mountPath"]) {
            let path = format!("{field}[{at}].mountPath");
            causes.push(Cause::invalid(&path, shown(&mount["mountPath"]), "must be unique"));
        }
    }
}

/// Init containers have names that no other container has, and no probes, as they end.
pub(super) fn init_containers(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let mut names: HashSet<&Value> = items(&site.value["containers"]).iter().map(|each| &each["name"]).collect();
    for (at, container) in items(&site.value["initContainers"]).iter().enumerate() {
        let field = site.at(&format!("initContainers[{at}]"));
        let name = &container["name"];
        if !names.insert(name) {
            causes.push(Cause::duplicate(&format!("{field}.name"), name));
        }
        if container["restartPolicy"] == "Always" {
            continue;
        }
        for part in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if !container[part].is_null() {
                let why = "may not be set for init containers without restartPolicy=Always";
                causes.push(Cause::forbidden(&format!("{field}.{part}"), why));
            }
        }
    }
}

/// No two ports of containers use the same port of the host.
pub(super) fn host_ports(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let mut used = HashSet::new();
    for (at, container) in items(&site.value["containers"]).iter().enumerate() {
        for (nth, port) in items(&container["ports"]).iter().enumerate() {
            let number = port["hostPort"].as_i64().unwrap_or(0);
            let field = site.at(&format!("containers[{at}].ports[{nth}].hostPort"));
            let use_of = format!("{}/{}/{number}", text(&port["protocol"]), text(&port["hostIP"]));
            if number != 0 && used.contains(&use_of) {
                causes.push(Cause::duplicate(&field, quoted(&use_of)));
            }
            used.insert(use_of);
            if site.value["hostNetwork"] == true && number != 0 && port["containerPort"] != port["hostPort"] {
                let why = "must match `containerPort` when `hostNetwork` is true";
                causes.push(Cause::invalid(&field, number, why));
            }
        }
    }
}

pub(super) fn tolerations(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    for (at, toleration) in items(&site.value["tolerations"]).iter().enumerate() {
        let field = |name: &str| site.at(&format!("tolerations[{at}].{name}"));
        let part = |name: &str| text(&toleration[name]);
        let (key, operator, value, effect) = (part("key"), part("operator"), part("value"), part("effect"));
        if !key.is_empty() {
            let problems = qualified_name_problems(key).into_iter();
            causes.extend(problems.map(|why| Cause::invalid(&field("key"), quoted(key), why)));
        } else if operator != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(Cause::invalid(&field("operator"), quoted(operator), why));
        }
        if !toleration["tolerationSeconds"].is_null() && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.push(Cause::invalid(&field("effect"), quoted(effect), why));
        }
        match operator {
            "" | "Equal" => {
                let problem = label_value_problem(value);
                causes.extend(problem.map(|why| Cause::invalid(&field("operator"), quoted(value), why)));
            }
            "Exists" if !value.is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                causes.push(Cause::invalid(&field("operator"), quoted(value), why));
            }
            "Exists" => {}
            "Lt" | "Gt" => causes.push(unsupported(&field("operator"), operator, &["Equal", "Exists", "Lt", "Gt"])),
            _ => causes.push(unsupported(&field("operator"), operator, &["Equal", "Exists"])),
        }
        let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
        if !effect.is_empty() && !effects.contains(&effect) {
            causes.push(unsupported(&field("effect"), effect, &effects));
        }
    }
}

/// Resources have names and amounts that there can be, and no request is above its limit.
pub(super) fn requests(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let amount = |value: &Value| quantity::nanos_of(text(value)).unwrap_or(0);
    for part in ["limits", "requests"] {
        for (name, value) in site.value[part].as_object().into_iter().flatten() {
            let field = site.at(&format!("{part}[{name}]"));
            resource_name(&field, name, causes);
            if amount(value) < 0 {
                causes.push(Cause::invalid(&field, shown(value), "must be greater than or equal to 0"));
            }
            let is_whole = name.contains('/') && !name.starts_with("kubernetes.io/");
            if is_whole && amount(value) % 1_000_000_000 != 0 {
                causes.push(Cause::invalid(&field, shown(value), "must be an integer"));
            }
            let limit = &site.value["limits"][name];
            if part == "limits" || limit.is_null() && !is_whole {
                continue;
            }
            let why = match (limit.is_null(), amount(value).cmp(&amount(limit))) {
                (true, _) => {
                    let why = "Limit must be set for non overcommitable resources";
                    causes.push(Cause::required(&site.at("limits"), why));
                    continue;
                }
                (_, order) if is_whole && order.is_ne() => format!("must be equal to {name} limit of {}", text(limit)),
                (_, order) if order.is_gt() => format!("must be less than or equal to {name} limit of {}", text(limit)),
                _ => continue,
            };
            causes.push(Cause::invalid(&site.at("requests"), shown(value), why));
        }
    }
}

fn resource_name(field: &str, name: &str, causes: &mut Vec<Cause>) {
    let before = causes.len();
    causes.extend(qualified_name_problems(name).into_iter().map(|why| Cause::invalid(field, quoted(name), why)));
    let is_compute = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if name.contains('/') || is_compute {
        return;
    }
    let is_standard = ["requests.", "limits."].iter().any(|part| name.starts_with(part))
        || matches!(name, "storage" | "pods" | "services" | "secrets" | "configmaps" | "persistentvolumeclaims");
    let is_qualified = causes.len() == before;
    let mut invalid = |why: &str| causes.push(Cause::invalid(field, quoted(name), why));
    if !is_standard && is_qualified {
        invalid("must be a standard resource type or fully qualified");
    }
    invalid("must be a standard resource for containers");
}

pub(super) fn env(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let from = &site.value["valueFrom"];
    let Some(sources) = from.as_object() else { return };
    let count = sources.values().filter(|source| !source.is_null()).count();
    let why = match count {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        _ if is_set(&site.value["value"]) => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    causes.push(Cause::invalid(&site.at("valueFrom"), "\"\"", why));
}

pub(super) fn env_from(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    // The real server names the list, not the item.
    let list = site.field.rsplit_once('[').map_or(site.field, |(list, _)| list);
    causes.push(Cause::invalid(list, "\"\"", "must specify one of: `configMapRef` or `secretRef`"));
}

/// A probe or a hook has one handler.
pub(super) fn handlers(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let names = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let set: Vec<_> = names.into_iter().filter(|name| !site.value[*name].is_null()).collect();
    if set.is_empty() {
        causes.push(Cause::required(site.field, "must specify a handler type"));
    }
    let more = set.iter().skip(1);
    causes.extend(more.map(|name| Cause::forbidden(&site.at(name), "may not specify more than 1 handler type")));
}
