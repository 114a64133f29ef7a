//! Services: allocation of cluster IPs.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::kinds::{GroupResource, Registry};
use crate::storage::KeyRange;

/// Service network, 10.96.0.0/16.
const NETWORK: [u8; 2] = [10, 96];

/// Random addresses tried before the allocation gives up.
const MAX_ATTEMPTS: usize = 64;

/// The fields of a service's address.
const FIELDS: [&str; 4] = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"];

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

/// Keeps the old address in an update that omits it.
pub(crate) fn keep_address(new: &mut Value, old: &Value) {
    if new["spec"]["type"] == "ExternalName" || !new["spec"].is_object() {
        return;
    }
    for name in FIELDS {
        let missing = new["spec"].get(name).is_none_or(|value| value.is_null() || *value == "");
        if let Some(value) = old["spec"].get(name).filter(|_| missing) {
            new["spec"][name] = value.clone();
        }
    }
}

/// A random address that no service uses.
fn free(cluster: &Cluster) -> Option<Ipv4Addr> {
    let table = GroupResource { group: "".into(), resource: "services".into() };
    let kind = Registry::new().find("", "v1", "services")?;
    let at = kind.selectable_fields().iter().position(|field| field.name() == "spec.clusterIP")?;
    let services = cluster.storage.list_cached(&table, &KeyRange::everything()).objects;
    let is_taken =
        |address: &str| services.iter().any(|service| service.fields().get(at).is_some_and(|own| **own == *address));
    (0..MAX_ATTEMPTS)
        .map(|_| {
            // Excludes the network and the broadcast address.
            let host = 1 + (cluster.rng.fraction() * 65_533.0) as u16;
            let [high, low] = host.to_be_bytes();
            Ipv4Addr::new(NETWORK[0], NETWORK[1], high, low)
        })
        .find(|address| !is_taken(&address.to_string()))
}
