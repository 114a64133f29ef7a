//! Rules about several fields, for which the table is not enough.

use std::net::IpAddr;

use base64::Engine as _;
use serde_json::Value;

use super::condition::is_set;
use super::formats::quoted;
use super::rule::{as_in_go, unsupported};
use super::{Site, certificates, formats, pods, running_pods};
use crate::admission::{decode, metadata};
use crate::encoding::json;
use crate::encoding::value::{items, text};
use crate::http::status::Cause;
use crate::kinds::quantity;
use crate::storage::Labels;
use crate::storage::selector::LabelSelector;

/// A check of a value, with the argument in the table.
pub(super) type Check = fn(&Site<'_>, &str, &mut Vec<Cause>);

const MAX_DATA_BYTES: usize = 1024 * 1024;
const RBAC: &str = "rbac.authorization.k8s.io";

/// The check with this name in the table.
pub(super) fn named(name: &str) -> Check {
    match name {
        "pod-update" => pods::update,
        "ephemeral-update" => running_pods::ephemeral_update,
        "ephemeral-names" => running_pods::ephemeral_names,
        "resize" => running_pods::resize,
        "volumes" => pods::volumes,
        "init-containers" => pods::init_containers,
        "host-ports" => pods::host_ports,
        "tolerations" => pods::tolerations,
        "requests" => pods::requests,
        "env" => pods::env,
        "handlers" => pods::handlers,
        "selector" => selector,
        "deployment-strategy" => deployment_strategy,
        "progress-deadline" => progress_deadline,
        "cluster-ip-update" => cluster_ip_update,
        "port-names" => port_names,
        "port-numbers" => port_numbers,
        "ip-addresses" => ip_addresses,
        "empty" => empty,
        "webhook-client" => webhook_client,
        "webhook-timeout" => webhook_timeout,
        "review-versions" => review_versions,
        "unique-values" => unique_values,
        "approval" => certificates::approval,
        "signing-request" => certificates::signing_request,
        "signer-name" => certificates::signer_name,
        "lifetime" => certificates::lifetime,
        "certificate" => certificates::certificate,
        "frozen" => frozen,
        "config-keys" => config_keys,
        "data-size" => data_size,
        "phase" => phase,
        "claim-update" => claim_update,
        "subjects" => subjects,
        "access-modes" => access_modes,
        "docker-config" => docker_config,
        "end-port" => end_port,
        "env-from" => pods::env_from,
        "ingress-path" => ingress_path,
        "ingress-backend" => ingress_backend,
        "both-budgets" => both_budgets,
        "replica-bounds" => replica_bounds,
        other => panic!("no check is called {other}"),
    }
}

pub(super) fn shown(value: &Value) -> String {
    String::from_utf8_lossy(&json::encode_sorted(value)).into_owned()
}

/// A struct that is always written has no members.
fn empty(site: &Site<'_>, why: &str, causes: &mut Vec<Cause>) {
    if site.value.as_object().is_some_and(|members| !members.is_empty()) {
        causes.push(Cause::forbidden(site.field, why));
    }
}

fn webhook_client(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let url = text(&site.value["url"]);
    if url.is_empty() != site.value["service"].is_object() {
        causes.push(Cause::required(site.field, "exactly one of url or service is required"));
    } else if !url.is_empty() && !url.starts_with("https://") {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        let why = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
        causes.push(Cause::invalid(&site.at("url"), quoted(scheme), why));
    }
}

fn webhook_timeout(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    if let Some(seconds) = site.value.as_i64().filter(|seconds| !(1..=30).contains(seconds)) {
        causes.push(Cause::invalid(site.field, seconds, "the timeout value must be between 1 and 30 seconds"));
    }
}

fn review_versions(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let versions = items(site.value);
    if !versions.is_empty() && !versions.iter().any(|version| version == "v1" || version == "v1beta1") {
        let why = "must include at least one of v1, v1beta1";
        causes.push(Cause::invalid(site.field, shown(site.value), why));
    }
}

/// No two items of a list are the same.
fn unique_values(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    for (at, value) in items(site.value).iter().enumerate() {
        if items(site.value)[..at].contains(value) {
            causes.push(Cause::duplicate(&format!("{}[{at}]", site.field), value));
        }
    }
}

/// The selector of a workload matches the labels of its pod template, of which the pods run for
/// ever. `what` is the kind in messages.
fn selector(site: &Site<'_>, what: &str, causes: &mut Vec<Cause>) {
    let (selector, template) = (&site.value["selector"], &site.value["template"]);
    let is_map = what == "ReplicationController";
    let is_empty = ["matchLabels", "matchExpressions"].iter().all(|part| {
        selector[*part].as_object().is_none_or(serde_json::Map::is_empty) && items(&selector[*part]).is_empty()
    });
    if !is_map && what != "Job" && selector.is_object() && is_empty {
        let name = if what == "ReplicaSet" { "deployment".to_owned() } else { what.to_lowercase() };
        let why = format!("empty selector is invalid for {name}");
        causes.push(Cause::invalid(&site.at("selector"), site.shown("selector"), why));
    }
    if is_map && template.is_null() {
        return;
    }
    let labels = &template["metadata"]["labels"];
    let labels_of_pods = Labels::of(labels);
    let matched = match selector {
        // No selector at all selects nothing.
        Value::Null => Some(false),
        map if is_map => LabelSelector::of(&serde_json::json!({"matchLabels": map}))
            .map(|selector| selector.matches(&labels_of_pods)),
        selector => LabelSelector::of(selector).map(|selector| selector.matches(&labels_of_pods)),
    };
    match matched {
        Some(false) if !(is_map && selector.is_null()) => {
            let why = "`selector` does not match template `labels`";
            causes.push(Cause::invalid(&site.at("template.metadata.labels"), shown(labels), why));
        }
        None if what == "ReplicaSet" => {
            causes.push(Cause::invalid(&site.at("selector"), site.shown("selector"), "invalid label selector"));
        }
        None if what == "StatefulSet" => {
            let message = format!("Invalid value: {}", site.shown("selector"));
            causes.push(Cause::new("FieldValueInvalid", site.at("selector"), message));
        }
        _ => {}
    }
    if what == "Job" {
        return;
    }
    let policy = text(&template["spec"]["restartPolicy"]);
    if policy != "Always" && template["spec"].is_object() {
        causes.push(unsupported(&site.at("template.spec.restartPolicy"), policy, &["Always"]));
    }
    if is_set(&template["spec"]["activeDeadlineSeconds"]) {
        let why = format!("activeDeadlineSeconds in {what} is not Supported");
        causes.push(Cause::forbidden(&site.at("template.spec.activeDeadlineSeconds"), why));
    }
}

fn deployment_strategy(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let strategy = &site.value["strategy"];
    match text(&strategy["type"]) {
        "RollingUpdate" => {}
        "Recreate" if strategy["rollingUpdate"].is_object() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden(&site.at("strategy.rollingUpdate"), why));
        }
        "Recreate" => {}
        _ => {
            let of = site.of.field("strategy").and_then(|(_, field)| field.shape.inner());
            let shown = of.map_or_else(String::new, |of| as_in_go(of, strategy));
            causes.push(Cause::unsupported(&site.at("strategy"), shown, r#""Recreate", "RollingUpdate""#));
        }
    }
}

fn progress_deadline(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let ready = site.value["minReadySeconds"].as_i64().unwrap_or(0);
    if let Some(deadline) = site.value["progressDeadlineSeconds"].as_i64().filter(|deadline| *deadline <= ready) {
        let why = "must be greater than minReadySeconds";
        causes.push(Cause::invalid(&site.at("progressDeadlineSeconds"), deadline, why));
    }
}

fn cluster_ip_update(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let Some(old) = site.old else { return };
    let is_external = |spec: &Value| spec["type"] == "ExternalName";
    let (before, after) = (items(&old["clusterIPs"]), items(&site.value["clusterIPs"]));
    if is_external(old) || is_external(site.value) {
        return;
    }
    let why = match (before.first(), after.first()) {
        (Some(before), Some(after)) if before != after => "may not change once set",
        (Some(_), None) => "primary clusterIP can not be unset",
        _ => return,
    };
    causes.push(Cause::invalid(&site.at("clusterIPs[0]"), shown(&site.value["clusterIPs"]), why));
}

fn port_names(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let ports = items(site.value);
    for (at, port) in ports.iter().enumerate() {
        let (name, field) = (text(&port["name"]), site.at(&format!("[{at}].name")));
        if name.is_empty() && ports.len() > 1 {
            causes.push(Cause::required(&field, ""));
        } else if !name.is_empty() && ports[..at].iter().any(|other| other["name"] == port["name"]) {
            causes.push(Cause::duplicate(&field, &port["name"]));
        }
    }
}

/// No two ports have the same protocol and number.
fn port_numbers(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let ports = items(site.value);
    for (at, port) in ports.iter().enumerate() {
        let is_same = |other: &Value| other["protocol"] == port["protocol"] && other["port"] == port["port"];
        if ports[..at].iter().any(is_same) {
            let key = serde_json::json!({"protocol": port["protocol"], "port": port["port"]});
            causes.push(Cause::duplicate(&site.at(&format!("[{at}]")), as_in_go(site.of, &key)));
        }
    }
}

fn ip_addresses(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    for (at, address) in items(site.value).iter().enumerate() {
        if address != "None" && text(address).parse::<IpAddr>().is_err() {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            causes.push(Cause::invalid(&site.at(&format!("[{at}]")), shown(address), why));
        }
    }
}

/// An immutable config map or secret keeps its data and its `immutable` field.
fn frozen(site: &Site<'_>, parts: &str, causes: &mut Vec<Cause>) {
    const WHY: &str = "field is immutable when `immutable` is set";
    let (new, old) = (site.value, site.old.unwrap_or(&Value::Null));
    if old["immutable"] != true {
        return;
    }
    if new["immutable"] != true {
        causes.push(Cause::forbidden("immutable", WHY));
    }
    let changed = parts.split(',').filter(|part| new.get(part) != old.get(part));
    causes.extend(changed.map(|part| Cause::forbidden(part, WHY)));
}

fn config_keys(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    for part in ["data", "binaryData"] {
        formats::keys(part, &site.value[part], causes);
    }
    for (name, _) in site.value["data"].as_object().into_iter().flatten() {
        if site.value["binaryData"].get(name).is_some() {
            let why = "duplicate of key present in binaryData";
            causes.push(Cause::invalid(&format!("data[{name}]"), quoted(name), why));
        }
    }
}

fn data_size(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let engine = base64::engine::general_purpose::STANDARD;
    let is_encoded = |part: &str| site.kind == "Secret" || part == "binaryData";
    let size_of = |part: &str, value: &Value| match is_encoded(part) {
        true => engine.decode(text(value)).map_or(0, |bytes| bytes.len()),
        false => text(value).len(),
    };
    let all = ["data", "binaryData"]
        .into_iter()
        .flat_map(|part| site.value[part].as_object().into_iter().flatten().map(move |(_, value)| (part, value)));
    // Base64 is longer than its content, so the sum is an upper bound.
    if all.clone().map(|(_, value)| text(value).len()).sum::<usize>() <= MAX_DATA_BYTES {
        return;
    }
    if all.map(|(part, value)| size_of(part, value)).sum::<usize>() > MAX_DATA_BYTES {
        causes.push(Cause::too_long(if site.kind == "Secret" { "data" } else { "" }, MAX_DATA_BYTES));
    }
}

/// A namespace is Terminating if and only if it is being deleted.
fn phase(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let phase = text(&site.value["status"]["phase"]);
    let why = match metadata::is_deleting(site.value) {
        false if phase != "Active" => "may only be 'Active' if `deletionTimestamp` is empty",
        true if phase != "Terminating" => "may only be 'Terminating' if `deletionTimestamp` is not empty",
        _ => return,
    };
    causes.push(Cause::invalid("status.Phase", format!("{phase:?}"), why));
}

/// A claim changes only in its size, once it is bound.
fn claim_update(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let (Some(old), mut new) = (site.old, site.value["spec"].clone()) else { return };
    let old_spec = &old["spec"];
    let size = |spec: &Value| quantity::nanos_of(text(&spec["resources"]["requests"]["storage"])).unwrap_or(0);
    let (old_size, new_size) = (size(old_spec), size(&new));
    if site.value["status"]["phase"] == "Bound" {
        new["resources"]["requests"]["storage"] = old_spec["resources"]["requests"]["storage"].clone();
        new["volumeAttributesClassName"] = old_spec["volumeAttributesClassName"].clone();
    }
    if !is_set(&old_spec["volumeName"]) {
        new["volumeName"] = old_spec["volumeName"].clone();
    }
    let names = [
        "accessModes",
        "selector",
        "resources",
        "volumeName",
        "storageClassName",
        "volumeMode",
        "dataSource",
        "dataSourceRef",
        "volumeAttributesClassName",
    ];
    if names.iter().any(|name| new[*name] != old_spec[*name]) {
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n";
        causes.push(Cause::forbidden("spec", format!("{why}{}", pods::difference(old_spec, &new))));
    }
    let capacity = quantity::nanos_of(text(&site.value["status"]["capacity"]["storage"])).unwrap_or(0);
    if new_size < old_size && new_size <= capacity {
        let why = "field can not be less than status.capacity";
        causes.push(Cause::forbidden("spec.resources.requests.storage", why));
    }
}

fn access_modes(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let is_single = |mode: &Value| mode == "ReadWriteOncePod";
    if items(site.value).iter().any(is_single) && !items(site.value).iter().all(is_single) {
        causes.push(Cause::forbidden(site.field, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn docker_config(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    for name in [".dockercfg", ".dockerconfigjson"] {
        let Some(config) = site.value[name].as_str() else { continue };
        let config = base64::engine::general_purpose::STANDARD.decode(config).unwrap_or_default();
        if let Err(why) = decode::parse(&config) {
            let shown = "\"<secret contents redacted>\"";
            causes.push(Cause::invalid(&site.at(&format!("[{name}]")), shown, why));
        }
    }
}

fn end_port(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let end = site.value["endPort"].as_i64().unwrap_or(0);
    let why = match &site.value["port"] {
        Value::Null => "may not be specified when `port` is not specified",
        Value::String(_) => "may not be specified when `port` is non-numeric",
        port if port.as_i64().is_some_and(|port| end < port) => "must be greater than or equal to `port`",
        _ if !formats::is_port(end) => formats::NO_PORT,
        _ => return,
    };
    causes.push(Cause::invalid(&site.at("endPort"), end, why));
}

fn subjects(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    for (at, subject) in items(&site.value["subjects"]).iter().enumerate() {
        let field = |name: &str| format!("subjects[{at}].{name}");
        let group = text(&subject["apiGroup"]);
        match text(&subject["kind"]) {
            "ServiceAccount" => {
                let name = text(&subject["name"]);
                let problems = if name.is_empty() { Vec::new() } else { formats::named("subdomain")(name) };
                causes.extend(problems.into_iter().map(|why| Cause::invalid(&field("name"), quoted(name), why)));
                if !group.is_empty() {
                    causes.push(unsupported(&field("apiGroup"), group, &[""]));
                }
                if site.kind == "ClusterRoleBinding" && !is_set(&subject["namespace"]) {
                    causes.push(Cause::required(&field("namespace"), ""));
                }
            }
            "User" | "Group" if group != RBAC => causes.push(unsupported(&field("apiGroup"), group, &[RBAC])),
            _ => {}
        }
    }
}

fn ingress_path(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let path = text(&site.value["path"]);
    let mut invalid = |why: String| causes.push(Cause::invalid(&site.at("path"), quoted(path), why));
    let is_literal = matches!(text(&site.value["pathType"]), "Exact" | "Prefix");
    if !path.starts_with('/') && (is_literal || !path.is_empty() && site.value["pathType"] == "ImplementationSpecific")
    {
        invalid("must be an absolute path".to_owned());
    }
    if !is_literal {
        return;
    }
    for sequence in ["//", "/./", "/../", "%2f", "%2F"] {
        if path.contains(sequence) {
            invalid(format!("must not contain '{sequence}'"));
        }
    }
    for end in ["/..", "/."] {
        if path.ends_with(end) {
            invalid(format!("cannot end with '{end}'"));
        }
    }
}

fn ingress_backend(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let (service, resource) = (&site.value["service"], &site.value["resource"]);
    let port = |name: &str| is_set(&service["port"][name]) && service["port"][name] != 0;
    let why = match (service.is_object(), resource.is_object()) {
        (true, true) => "cannot set both resource and service backends",
        (false, false) => "resource or service backend is required",
        (false, true) => return,
        (true, false) => match (port("name"), port("number")) {
            (true, true) => "cannot set both port name & port number",
            (false, false) => return causes.push(Cause::required(site.field, "port name or number is required")),
            _ => return,
        },
    };
    causes.push(Cause::invalid(site.field, "\"\"", why));
}

fn both_budgets(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let why = "minAvailable and maxUnavailable cannot be both set";
    causes.push(Cause::invalid(site.field, as_in_go(site.of, site.value), why));
}

fn replica_bounds(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let most = site.value["maxReplicas"].as_i64().unwrap_or(0);
    if site.value["minReplicas"].as_i64().is_some_and(|least| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        causes.push(Cause::invalid(&site.at("maxReplicas"), most, why));
    }
    let is_idle_metric = |metric: &Value| metric["type"] == "Object" || metric["type"] == "External";
    if site.value["minReplicas"] == 0 && !items(&site.value["metrics"]).iter().any(is_idle_metric) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(Cause::forbidden(&site.at("metrics"), why));
    }
}
