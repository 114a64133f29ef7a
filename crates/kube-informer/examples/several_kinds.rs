//! Replica sets, services and pods from one factory: one watch per kind, however many informers are
//! created, also for another view of the pods.
//!
//! ```text
//! cargo run -p kube-informer --example several_kinds                 # an API server in the process
//! cargo run -p kube-informer --example several_kinds -- --kubeconfig # a real cluster
//! ```

mod support;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::core::ApiResource;
use kube_embedded::generate::Generator;
use kube_informer::object::Owner;
use kube_informer::{Factory, Index, Keep, Kind, Obj, Uid};
use serde::Deserialize;
use support::Cluster;

/// The fields of a pod that counting by node needs. Read from the same cache.
#[derive(Deserialize)]
struct PodNode {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

impl Kind for PodNode {
    fn resource() -> ApiResource {
        Pod::resource()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::from_args([]).await?;
    if let Some(server) = cluster.server() {
        let all = Generator::new(1);
        server.load((0..10).flat_map(|nth| [all.replica_set(nth), all.service(nth)]))?;
        server.load(all.pods(64))?;
    }

    let factory = Factory::builder(cluster.client())
        .defaults(|all| all.drop_managed_fields().resync(Duration::from_secs(600)))
        .kind::<Service>(|services| services.keep(Keep::Plain))
        .build()?;
    // Each part of a program gets the informers it needs, independently of the others.
    let (sets, services) = (factory.informer::<ReplicaSet>(), factory.informer::<Service>());
    let pods_by_owner = factory.informer::<Pod>().index(owner);
    let pods_by_node: Index<PodNode, String> =
        factory.informer::<PodNode>().index(|pod| pod.get().ok().and_then(|pod| pod.spec.node_name.clone()));
    factory.start();
    factory.synced().await?;

    println!("{} replica sets, {} services", sets.lister().len(), services.lister().len());
    let owned: BTreeMap<String, usize> = sets
        .lister()
        .sorted()
        .iter()
        .filter_map(|set| Some((set.key().to_string(), pods_by_owner.count(set.uid()?))))
        .collect();
    let most = owned.iter().max_by_key(|(_, pods)| **pods);
    if let Some((set, pods)) = most {
        println!("most pods of one replica set: {pods}, of {set}");
    }
    println!("{} nodes have pods", pods_by_node.values().len());
    if let Some(server) = cluster.server() {
        println!("{} watches, {} requests", server.watches().len(), server.request_count());
    }
    factory.shutdown().await;
    Ok(())
}

/// The uid of the replica set that controls a pod.
fn owner(pod: &Obj<Pod>) -> Option<Uid> {
    pod.controller().filter(Owner::is::<ReplicaSet>).map(|owner| owner.uid())
}
