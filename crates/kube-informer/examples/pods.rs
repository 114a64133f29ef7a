//! Watches the pods of an embedded, generated cluster, prints their changes and reads from the
//! cache.
//!
//! ```text
//! cargo run -p kube-informer --example pods
//! ```
//!
//! Needs no cluster: the API server runs in the process. For a real cluster, replace the client by
//! `Client::try_default().await?`; the rest stays the same.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams};
use kube_embedded::Server;
use kube_embedded::generate::Generator;
use kube_informer::{Event, Index, Informer, Obj, Origin, Version};
use tokio::sync::Notify;

const PODS: u64 = 200;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (cluster, server) = (Generator::new(1), Server::builder().in_process().start().await?);
    server.load(cluster.pods(PODS))?;
    let client = Client::new(server.service(), "default");

    // An informer lists once, then watches. Handlers and indexes may be added before or after it is
    // started.
    let pods = Informer::<Pod>::builder(client.clone()).drop_managed_fields().resync(Duration::from_secs(600)).build();
    let by_ip: Index<Pod, IpAddr> = pods.index(ip);
    let deletion = Arc::new(Notify::new());
    let on_deleted = Arc::clone(&deletion);
    let printer = pods.on_event(move |event| {
        print(&event);
        if event.is_deleted() {
            on_deleted.notify_one();
        }
    });
    let start = Instant::now();
    pods.start();
    printer.synced().await?;
    println!(
        "{} pods after {:.0?}, none of them printed: they were there before.",
        pods.lister().len(),
        start.elapsed()
    );

    // Changes in the cluster are delivered to handlers.
    let mut last = None;
    for nth in 0..3 {
        let mut pod = server.objects("v1", "Pod")?.list().swap_remove(nth);
        cluster.advance(&mut pod, 1);
        last = server.update_status(&pod)?["metadata"]["resourceVersion"].as_str().map(Version::new);
    }
    let new_pod = cluster.pod(PODS).to_value();
    server.load([new_pod])?;
    let deleted_pod = pods.lister().sorted().swap_remove(7);
    let namespace = Api::<Pod>::namespaced(client, deleted_pod.namespace().unwrap_or_default());
    namespace.delete(deleted_pod.name(), &DeleteParams::default().grace_period(0)).await?;

    // A writer can wait until the cache contains its write.
    if let Some(version) = last {
        pods.wait_for(version).await?;
    }
    pods.wait_until(deleted_pod.key().clone(), |pod| pod.is_none()).await?;
    deletion.notified().await;

    // Reads never reach the server. Metadata is always decoded; a body is decoded when it is read.
    let lister = pods.lister();
    let requests = server.request_count();
    println!("\nnamespace              pods  ready");
    let mut namespaces: Vec<_> =
        cluster.namespaces().map(|namespace| lister.namespace(namespace.name()).list()).collect();
    namespaces.sort_by_key(|pods| std::cmp::Reverse(pods.len()));
    for pods in namespaces.iter().take(5) {
        let ready = pods.iter().filter(|pod| is_ready(pod)).count();
        println!("{:<20} {:>6} {ready:>6}", pods[0].namespace().unwrap_or_default(), pods.len());
    }
    if let Some(ip) = by_ip.values().first() {
        println!("\n{ip} is {}", by_ip.get(ip)[0].key());
    }
    assert_eq!(server.request_count(), requests, "all of this came out of the cache");

    pods.shutdown().await;
    Ok(())
}

fn print(event: &Event<Pod>) {
    match event {
        Event::Added { origin: Origin::Initial, .. } => {}
        Event::Added { object, .. } => println!("+ {}", object.key()),
        Event::Updated { old, new, .. } => println!("~ {} {} -> {}", new.key(), old.version(), new.version()),
        Event::Deleted { last, .. } => println!("- {}", last.key()),
    }
}

fn ip(pod: &Obj<Pod>) -> Option<IpAddr> {
    pod.get().ok()?.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}

fn is_ready(pod: &Obj<Pod>) -> bool {
    let conditions = pod.get().ok().and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
}
