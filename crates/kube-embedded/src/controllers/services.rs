//! Services: the API server's own, and the allocation of cluster IPs and node ports.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::Arc;

use parking_lot::MutexGuard;
use serde_json::{Value, json};

use crate::admission::metadata;
use crate::api::write::Write;
use crate::cluster::Cluster;
use crate::encoding::json;
use crate::http::status::{Cause, Status};
use crate::kinds::{GroupResource, Kind, Registry};
use crate::storage::{KeyRange, Object};

/// Service network, 10.96.0.0/16.
const NETWORK: [u8; 2] = [10, 96];

/// The address of the service `default/kubernetes`: the first one of the network.
const KUBERNETES: &str = "10.96.0.1";

/// The ports of nodes that services may use.
const NODE_PORTS: RangeInclusive<i64> = 30_000..=32_767;

/// Random addresses tried before the allocation gives up.
const MAX_ATTEMPTS: usize = 64;

/// The fields of a service's address.
const FIELDS: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

/// The service `default/kubernetes`, which leads to the API server.
pub(crate) fn kubernetes() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {
            "clusterIP": KUBERNETES,
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
        },
    })
}

/// Allocates an address for a new service that has none. An `ExternalName` service gets none.
pub(crate) fn give_address(cluster: &Cluster, service: &mut Value) {
    if service["spec"]["type"] == "ExternalName" || !service["spec"].is_object() {
        return;
    }
    let address = match service["spec"]["clusterIP"].as_str() {
        Some(own) if !own.is_empty() => own.to_owned(),
        _ => match free(cluster) {
            Some(address) => address.to_string(),
            None => return,
        },
    };
    let spec = &mut service["spec"];
    let family = if address.contains(':') { "IPv6" } else { "IPv4" };
    for (name, value) in [
        ("clusterIPs", json!([address])),
        ("ipFamilies", json!([family])),
        ("ipFamilyPolicy", json!("SingleStack")),
        ("clusterIP", json!(address)),
    ] {
        if spec.get(name).is_none_or(|value| value.is_null() || *value == "") {
            spec[name] = value;
        }
    }
}

/// Keeps the old address and the old node ports in an update that omits them.
pub(crate) fn keep_allocated(new: &mut Value, old: &Value) {
    keep_node_ports(new, old);
    if new["spec"]["type"] == "ExternalName" || !new["spec"].is_object() {
        return;
    }
    if new["spec"]["clusterIP"] != old["spec"]["clusterIP"]
        && new["spec"]["clusterIP"].as_str().is_some_and(|address| !address.is_empty())
        && new["spec"]["clusterIPs"] == old["spec"]["clusterIPs"]
    {
        // A client that does not know the list changes only the first address.
        new["spec"]["clusterIPs"] = json!([new["spec"]["clusterIP"]]);
    }
    for name in FIELDS {
        let missing = new["spec"].get(name).is_none_or(|value| value.is_null() || *value == "");
        if let Some(value) = old["spec"].get(name).filter(|_| missing) {
            new["spec"][name] = value.clone();
        }
    }
}

/// Keeps the node ports of ports by their name, and drops them if the new type has none.
fn keep_node_ports(new: &mut Value, old: &Value) {
    let has_ports = has_node_ports(new);
    if !has_node_ports(old) {
        return;
    }
    let (before, sent) = (node_ports(old), node_ports(new));
    for port in new["spec"]["ports"].as_array_mut().into_iter().flatten() {
        let named = ports(old).iter().find(|old| old.get("name") == port.get("name")).map_or(0, node_port);
        match node_port(port) {
            0 if has_ports && named != 0 && !sent.contains(&named) => port["nodePort"] = json!(named),
            number if !has_ports && before.contains(&number) => {
                port.as_object_mut().into_iter().for_each(|port| drop(port.remove("nodePort")));
            }
            _ => {}
        }
    }
    if has_health_check(old) && has_health_check(new) && health_check(new) == 0 {
        new["spec"]["healthCheckNodePort"] = old["spec"]["healthCheckNodePort"].clone();
    }
    for name in ["externalTrafficPolicy", "allocateLoadBalancerNodePorts", "healthCheckNodePort"] {
        let is_used = match name {
            "externalTrafficPolicy" => has_ports,
            "healthCheckNodePort" => has_health_check(new),
            _ => new["spec"]["type"] == "LoadBalancer",
        };
        if !is_used && new["spec"].get(name) == old["spec"].get(name) {
            new["spec"].as_object_mut().into_iter().for_each(|spec| drop(spec.remove(name)));
        }
    }
}

/// Held from the allocation of addresses and ports until the service is stored, so that no two
/// services get the same.
pub(crate) fn allocation<'c>(cluster: &'c Cluster, kind: &Kind) -> Option<MutexGuard<'c, ()>> {
    (kind.kind == "Service" && kind.group.is_empty()).then(|| cluster.allocation.lock())
}

/// Allocates the node ports that a new or changed service needs, after checking those and the
/// address that it requests.
///
/// # Errors
///
/// The first one that is taken or not in its range.
pub(crate) fn allocate(write: &Write<'_>, service: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    let cluster = write.cluster;
    let invalid = |service: &Value, cause: Cause| write.invalid(service, vec![cause]);
    let name = (metadata::text(service, "namespace").to_owned(), metadata::text(service, "name").to_owned());
    if old.is_none() {
        check_address(cluster, service).map_err(|cause| invalid(service, cause))?;
    }
    if !has_node_ports(service) {
        return Ok(());
    }
    let others = all(cluster);
    let others = others
        .iter()
        .filter(|other| (other.key().namespace().unwrap_or_default(), other.key().name()) != (&*name.0, &*name.1));
    let mut taken: HashSet<i64> = others.flat_map(|other| node_ports(&other.to_value())).collect();
    let own: HashSet<i64> = old.into_iter().flat_map(node_ports).collect();
    give_health_check(cluster, service, old, &mut taken)?;
    let requested: Vec<(Value, i64)> =
        ports(service).iter().map(|port| (port["port"].clone(), node_port(port))).collect();
    let mut chosen: Vec<(Value, i64)> = Vec::new();
    for (at, (port, wanted)) in requested.iter().enumerate() {
        let shared = chosen.iter().find(|(other, _)| other == port).map(|(_, node_port)| *node_port);
        // Ports with the same number, such as those for TCP and UDP, share a node port.
        let later =
            requested[at..].iter().find(|(other, wanted)| other == port && *wanted != 0).map(|(_, wanted)| *wanted);
        let number = match (*wanted, shared, later) {
            (0, Some(shared), _) => shared,
            (0, None, None) if service["spec"]["allocateLoadBalancerNodePorts"] == false => continue,
            (0, None, None) => match free_port(cluster, &taken) {
                Some(number) => number,
                None => return Ok(()),
            },
            (0, None, Some(number)) | (number, ..) => {
                let problem = match shared == Some(number) || own.contains(&number) {
                    true => None,
                    false => port_problem(number, &taken),
                };
                if let Some(problem) = problem {
                    let cause = Cause::invalid(&format!("spec.ports[{at}].nodePort"), number, problem);
                    return Err(invalid(service, cause));
                }
                number
            }
        };
        taken.insert(number);
        chosen.push((port.clone(), number));
        service["spec"]["ports"][at]["nodePort"] = json!(number);
    }
    Ok(())
}

/// Allocates the port for health checks of a load balancer that leads only to local endpoints.
fn give_health_check(
    cluster: &Cluster,
    service: &mut Value,
    old: Option<&Value>,
    taken: &mut HashSet<i64>,
) -> Result<(), Status> {
    if !has_health_check(service) {
        return Ok(());
    }
    let number = match health_check(service) {
        0 => free_port(cluster, taken).unwrap_or(0),
        wanted if old.is_some_and(|old| health_check(old) == wanted) => wanted,
        wanted => match port_problem(wanted, taken) {
            Some(why) => {
                let why = format!("failed to allocate requested HealthCheck NodePort {wanted}: {why}");
                return Err(Status::internal_error(&why));
            }
            None => wanted,
        },
    };
    taken.insert(number);
    service["spec"]["healthCheckNodePort"] = json!(number);
    Ok(())
}

/// Whether the health of a service's nodes is checked on a port: it leads only to local endpoints.
fn has_health_check(service: &Value) -> bool {
    service["spec"]["type"] == "LoadBalancer" && service["spec"]["externalTrafficPolicy"] == "Local"
}

fn health_check(service: &Value) -> i64 {
    service["spec"]["healthCheckNodePort"].as_i64().unwrap_or(0)
}

/// Why a requested node port cannot be allocated.
fn port_problem(number: i64, taken: &HashSet<i64>) -> Option<String> {
    if !NODE_PORTS.contains(&number) {
        let (low, high) = (NODE_PORTS.start(), NODE_PORTS.end());
        return Some(format!("provided port is not in the valid range. The range of valid ports is {low}-{high}"));
    }
    taken.contains(&number).then(|| "provided port is already allocated".to_owned())
}

/// Checks the address that a new service requests.
fn check_address(cluster: &Cluster, service: &Value) -> Result<(), Cause> {
    let address = service["spec"]["clusterIP"].as_str().unwrap_or_default();
    let Ok(parsed) = address.parse::<IpAddr>() else { return Ok(()) };
    let problem = match parsed {
        IpAddr::V4(parsed) if parsed.octets().starts_with(&NETWORK) => match is_taken(&all(cluster), address) {
            true => "provided IP is already allocated",
            false => return Ok(()),
        },
        _ => "the provided network does not match the current range",
    };
    let shown = String::from_utf8_lossy(&json::encode_sorted(&service["spec"]["clusterIPs"])).into_owned();
    Err(Cause::invalid("spec.clusterIPs", shown, format!("failed to allocate IP {address}: {problem}")))
}

/// Whether the type of a service uses node ports.
fn has_node_ports(service: &Value) -> bool {
    matches!(service["spec"]["type"].as_str(), Some("NodePort" | "LoadBalancer"))
}

fn ports(service: &Value) -> &[Value] {
    service["spec"]["ports"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The node port of a port; 0 if it has none.
fn node_port(port: &Value) -> i64 {
    port["nodePort"].as_i64().unwrap_or(0)
}

fn node_ports(service: &Value) -> Vec<i64> {
    ports(service).iter().map(node_port).chain([health_check(service)]).filter(|port| *port != 0).collect()
}

/// A node port that no service uses.
fn free_port(cluster: &Cluster, taken: &HashSet<i64>) -> Option<i64> {
    let count = NODE_PORTS.end() - NODE_PORTS.start() + 1;
    let first = (cluster.rng.fraction() * count as f64) as i64;
    (0..count).map(|step| NODE_PORTS.start() + (first + step) % count).find(|port| !taken.contains(port))
}

/// All services.
fn all(cluster: &Cluster) -> Vec<Arc<Object>> {
    let table = GroupResource { group: "".into(), resource: "services".into() };
    cluster.storage.list_cached(&table, &KeyRange::everything()).objects
}

fn is_taken(services: &[Arc<Object>], address: &str) -> bool {
    let Some(kind) = Registry::new().find("", "v1", "services") else { return false };
    let Some(at) = kind.selectable_fields().iter().position(|field| field.name() == "spec.clusterIP") else {
        return false;
    };
    services.iter().any(|service| service.fields().get(at).is_some_and(|own| **own == *address))
}

/// A random address that no service uses.
fn free(cluster: &Cluster) -> Option<Ipv4Addr> {
    let services = all(cluster);
    (0..MAX_ATTEMPTS)
        .map(|_| {
            // Excludes the network and the broadcast address.
            let host = 1 + (cluster.rng.fraction() * 65_533.0) as u16;
            let [high, low] = host.to_be_bytes();
            Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low)
        })
        .find(|address| !is_taken(&services, &address.to_string()))
}
