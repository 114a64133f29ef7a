//! Cells of services, ingresses and other network kinds.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cells;
use super::words::{
    NONE, UNKNOWN, UNSET, age, first_few, items, labels, name, number, selector_or_none, set_or, text, texts,
};
use crate::kinds::table::age::Moment;

/// Maximum number of list items shown.
const MAX_SHOWN: usize = 3;

pub(super) fn service(object: &Value, now: Moment) -> Vec<Value> {
    let spec = &object["spec"];
    let ports: Vec<String> = items(&spec["ports"]).iter().map(port).collect();
    cells![
        name(object),
        text(&spec["type"]),
        set_or(&spec["clusterIPs"][0], NONE),
        external_address(object),
        if ports.is_empty() { NONE.to_owned() } else { ports.join(",") },
        age(object, now),
        labels(&spec["selector"]),
    ]
}

fn port(port: &Value) -> String {
    let (number_of, protocol) = (number(&port["port"]), text(&port["protocol"]));
    match number(&port["nodePort"]) {
        node if node > 0 => format!("{number_of}:{node}/{protocol}"),
        _ => format!("{number_of}/{protocol}"),
    }
}

fn external_address(service: &Value) -> String {
    let spec = &service["spec"];
    let mut addresses = texts(&spec["externalIPs"]);
    match text(&spec["type"]) {
        "ClusterIP" | "NodePort" if addresses.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => addresses.join(","),
        "LoadBalancer" => {
            let mut all = balancers(service);
            all.append(&mut addresses);
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => text(&spec["externalName"]).to_owned(),
        _ => UNKNOWN.to_owned(),
    }
}

/// The sorted addresses or host names of load balancers.
fn balancers(object: &Value) -> Vec<&str> {
    let ingress = items(&object["status"]["loadBalancer"]["ingress"]).iter();
    let named = ingress.filter_map(|each| {
        [text(&each["ip"]), text(&each["hostname"])].into_iter().find(|address| !address.is_empty())
    });
    named.collect::<BTreeSet<_>>().into_iter().collect()
}

pub(super) fn endpoints(object: &Value, now: Moment) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in items(&object["subsets"]) {
        let addresses: Vec<&str> = items(&subset["addresses"]).iter().map(|each| text(&each["ip"])).collect();
        let ports = items(&subset["ports"]);
        if ports.is_empty() {
            all.extend(addresses.iter().map(|&address| address.to_owned()));
        }
        for port in ports {
            let port = number(&port["port"]);
            all.extend(addresses.iter().map(|address| match address.contains(':') {
                true => format!("[{address}]:{port}"),
                false => format!("{address}:{port}"),
            }));
        }
    }
    let none = if items(&object["subsets"]).is_empty() { NONE } else { "" };
    cells![name(object), first_few(&all, MAX_SHOWN, none), age(object, now)]
}

pub(super) fn endpoint_slice(object: &Value, now: Moment) -> Vec<Value> {
    let ports: Vec<String> = items(&object["ports"])
        .iter()
        .map(|port| match (port["port"].as_i64(), port["name"].as_str()) {
            (Some(number), _) => number.to_string(),
            (None, Some(name)) => name.to_owned(),
            (None, None) => "*".to_owned(),
        })
        .collect();
    let endpoints = items(&object["endpoints"]).iter();
    let addresses: Vec<String> =
        endpoints.flat_map(|endpoint| texts(&endpoint["addresses"])).map(str::to_owned).collect();
    let few = |all: &[String]| match first_few(all, MAX_SHOWN, UNSET) {
        empty if empty.is_empty() => UNSET.to_owned(),
        few => few,
    };
    cells![name(object), text(&object["addressType"]), few(&ports), few(&addresses), age(object, now)]
}

pub(super) fn ingress(object: &Value, now: Moment) -> Vec<Value> {
    let spec = &object["spec"];
    cells![
        name(object),
        set_or(&spec["ingressClassName"], NONE),
        hosts(items(&spec["rules"])),
        balancers(object).join(","),
        if items(&spec["tls"]).is_empty() { "80" } else { "80, 443" },
        age(object, now),
    ]
}

fn hosts(rules: &[Value]) -> String {
    let mut few: Vec<&str> = Vec::new();
    let mut more = false;
    for rule in rules {
        more |= few.len() == MAX_SHOWN;
        let host = text(&rule["host"]);
        if !more && !host.is_empty() {
            few.push(host);
        }
    }
    match few.is_empty() {
        true => "*".to_owned(),
        // Counts all rules beyond the shown ones, with or without a host.
        false if more => format!("{} + {} more...", few.join(","), rules.len() - MAX_SHOWN),
        false => few.join(","),
    }
}

pub(super) fn ingress_class(object: &Value, now: Moment) -> Vec<Value> {
    let default = object["metadata"]["annotations"]["ingressclass.kubernetes.io/is-default-class"] == "true";
    let shown = if default { format!("{} (default)", name(object)) } else { name(object).to_owned() };
    let parameters = match &object["spec"]["parameters"] {
        Value::Null => NONE.to_owned(),
        parameters => {
            let group = parameters["apiGroup"].as_str().map(|group| format!(".{group}")).unwrap_or_default();
            format!("{}{group}/{}", text(&parameters["kind"]), text(&parameters["name"]))
        }
    };
    cells![shown, text(&object["spec"]["controller"]), parameters, age(object, now)]
}

pub(super) fn network_policy(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), selector_or_none(&object["spec"]["podSelector"]), age(object, now)]
}

pub(super) fn service_cidr(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), texts(&object["spec"]["cidrs"]).join(","), age(object, now)]
}

/// Has one cell more than there are columns, like kube-apiserver.
pub(super) fn ip_address(object: &Value, now: Moment) -> Vec<Value> {
    let parent = match &object["spec"]["parentRef"] {
        Value::Null => NONE.to_owned(),
        parent => {
            let resource = super::cluster::group_resource(parent).to_lowercase();
            let place = match text(&parent["namespace"]) {
                "" => String::new(),
                namespace => format!("/{namespace}"),
            };
            format!("{resource}{place}/{}", text(&parent["name"]))
        }
    };
    cells![name(object), parent, age(object, now)]
}
