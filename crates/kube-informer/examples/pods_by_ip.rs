//! Finds pods by IP address: an index with a function, which may return several values per object.
//!
//! ```text
//! cargo run -p kube-informer --example pods_by_ip                  # an API server in the process
//! cargo run -p kube-informer --example pods_by_ip -- --kubeconfig  # a real cluster
//! ```

mod support;

use std::error::Error;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::{Index, Informer, Obj};
use serde_json::{Value, json};
use support::Cluster;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::from_args([]).await?;
    if let Some(server) = cluster.server() {
        server.load([
            pod("web", false, &["10.0.0.7", "fd00::7"]),
            pod("db", false, &["10.0.0.8", "fd00::8"]),
            pod("proxy", true, &["192.168.1.1"]),
            pod("agent", true, &["192.168.1.1"]),
            pod("pending", false, &[]),
        ])?;
    }

    let pods = Informer::<Pod>::builder(cluster.client()).drop_managed_fields().build();
    let by_ip: Index<Pod, IpAddr> = pods.index(ips);
    pods.start();
    pods.synced().await?;

    println!("{} pods have {} addresses", pods.lister().len(), by_ip.values().len());
    for address in ["10.0.0.7", "fd00::8", "192.168.1.1", "10.9.9.9"] {
        let address: IpAddr = address.parse()?;
        let found = by_ip.get(&address);
        let mut names: Vec<String> = found.iter().map(described).collect();
        names.sort();
        match names.as_slice() {
            [] => println!("no pod has {address}"),
            [one] => println!("{address} is {one}"),
            many => println!("{address} is shared by {}", many.join(" and ")),
        }
    }

    // The index follows the cache: a deleted pod is removed from it.
    if let Some(server) = cluster.server() {
        let web = pods.lister().sorted().into_iter().find(|pod| pod.name() == "web").ok_or("no pod web")?;
        server.objects("v1", "Pod")?.namespace("default").delete("web")?;
        pods.wait_until(web.key().clone(), |pod| pod.is_none()).await?;
        println!("then {} addresses", by_ip.values().len());
    }
    pods.shutdown().await;
    Ok(())
}

/// All IP addresses of a pod. A pod without any is not in the index.
fn ips(pod: &Obj<Pod>) -> Vec<IpAddr> {
    let status = pod.get().ok().and_then(|pod| pod.status.as_ref());
    let all = status.and_then(|status| status.pod_ips.as_ref()).into_iter().flatten();
    all.filter_map(|address| address.ip.parse().ok()).collect()
}

fn described(pod: &Obj<Pod>) -> String {
    let host_network = pod.get().ok().and_then(|pod| pod.spec.as_ref()?.host_network).unwrap_or_default();
    if host_network { format!("{} (host network)", pod.key()) } else { pod.key().to_string() }
}

fn pod(name: &str, host_network: bool, ips: &[&str]) -> Value {
    let all: Vec<Value> = ips.iter().map(|ip| json!({"ip": ip})).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "hostNetwork": host_network, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": name, "image": name}],
        },
        "status": {"podIP": ips.first(), "podIPs": all},
    })
}
