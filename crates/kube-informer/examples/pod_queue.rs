//! A minimal controller: an informer with one handler, a queue of keys, and a worker that reads
//! from the cache.
//!
//! ```text
//! cargo run -p kube-informer --example pod_queue                  # an API server in the process
//! cargo run -p kube-informer --example pod_queue -- --kubeconfig  # the pods of `default` in a real cluster
//! ```

mod support;

use std::error::Error;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::workqueue::RateLimit;
use kube_informer::{FieldSelector, Index, Informer, Lister, Obj, ObjectKey, WorkQueue};
use serde_json::{Value, json};
use support::Cluster;
use tokio::sync::watch;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::from_args([pod("web", "node-1"), pod("db", "node-2"), pod("job", "node-1")]).await?;
    let pods = Informer::<Pod>::builder(cluster.client())
        .namespace("default")
        .fields(FieldSelector::everything())
        .drop_managed_fields()
        .build();
    let by_node: Index<Pod, String> = pods.index(node);

    // The key is enough, also of a deleted pod: the worker looks up the pod in the cache.
    let queue = WorkQueue::<ObjectKey>::new(RateLimit::default());
    let feed = pods.on_event(queue.enqueue());
    pods.start();
    feed.synced().await?;
    let (done, mut progress) = watch::channel(0);
    let worker = tokio::spawn(work(queue.clone(), pods.lister(), done));

    let mut nodes = by_node.values();
    nodes.sort();
    for node in nodes {
        let mut names: Vec<String> = by_node.get(&node).iter().map(|pod| pod.name().to_owned()).collect();
        names.sort();
        println!("byNode {node}: {}", names.join(", "));
    }

    if let Some(server) = cluster.server() {
        progress.wait_for(|done| *done == 3).await?;
        server.objects("v1", "Pod")?.namespace("default").delete("job")?;
        progress.wait_for(|done| *done == 4).await?;
    }
    cluster.watch_until_ctrl_c().await?;
    queue.drain().await; // finishes the items that are ready
    worker.await?;
    pods.shutdown().await;
    Ok(())
}

/// Several workers could run concurrently: the queue gives a key to one worker at a time.
async fn work(queue: WorkQueue<ObjectKey>, pods: Lister<Pod>, done: watch::Sender<usize>) {
    while let Some(item) = queue.next().await {
        match reconcile(&pods, &item, item.attempts()) {
            Ok(outcome) => {
                println!("{}: {outcome}", *item);
                item.forget();
                done.send_modify(|done| *done += 1);
            }
            Err(problem) => {
                println!("{}: {problem}, once more later", *item);
                item.retry();
            }
        }
    }
}

/// Reconciles one pod. Simulates a failure: the first attempt for `db` is not ready.
fn reconcile(pods: &Lister<Pod>, key: &ObjectKey, attempts: u32) -> Result<String, &'static str> {
    let Some(pod) = pods.get(key) else { return Ok("gone".to_owned()) };
    if pod.name() == "db" && attempts == 0 {
        return Err("not ready");
    }
    Ok(format!("on {}", node(&pod).as_deref().unwrap_or("no node")))
}

fn node(pod: &Obj<Pod>) -> Option<String> {
    pod.get().ok()?.spec.as_ref()?.node_name.clone()
}

fn pod(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [{"name": name, "image": name}],
        },
    })
}
