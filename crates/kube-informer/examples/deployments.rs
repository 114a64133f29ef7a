//! Watches deployments through a factory: prints a line for each that is added, updated or deleted,
//! with its replicas before and after; then a numbered list of those in `kube-system`, from the
//! cache.
//!
//! ```text
//! cargo run -p kube-informer --example deployments                 # an API server in the process
//! cargo run -p kube-informer --example deployments -- --kubeconfig # a real cluster, until Ctrl-C
//! ```

mod support;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube_embedded::Server;
use kube_informer::{Event, Factory, Obj, Origin};
use serde_json::{Value, json};
use support::Cluster;
use tokio::sync::Notify;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let objects =
        [deployment("kube-system", "coredns"), deployment("kube-system", "metrics"), deployment("default", "web")];
    let cluster = Cluster::from_args(objects).await?;

    // Every 30 seconds a resync delivers every object again, from the cache.
    let factory = Factory::builder(cluster.client()).defaults(|all| all.resync(Duration::from_secs(30))).build()?;
    let deployments = factory.informer::<Deployment>();
    let deleted = Arc::new(Notify::new());
    let on_deleted = Arc::clone(&deleted);
    let printer = deployments.on_event(move |event| match &event {
        Event::Added { object, .. } => println!("added {}, {} replicas", object.key(), replicas(object)),
        Event::Updated { new, origin: Origin::Resync, .. } => println!("still there: {}", new.key()),
        Event::Updated { old, new, .. } => {
            println!("updated {}, {} -> {} replicas", new.key(), replicas(old), replicas(new));
        }
        Event::Deleted { last, .. } => {
            println!("deleted {}", last.key());
            on_deleted.notify_one();
        }
    });
    factory.start();
    printer.synced().await?; // the cache is complete and the printer has received all of it

    let lister = deployments.lister();
    for (nth, deployment) in lister.namespace("kube-system").sorted().iter().enumerate() {
        println!("{nth} {}", deployment.name());
    }

    if let Some(server) = cluster.server() {
        change(server)?;
        deleted.notified().await;
    }
    cluster.watch_until_ctrl_c().await?;
    factory.shutdown().await;
    println!("{} deployments are left in the cache", lister.len());
    Ok(())
}

fn replicas(deployment: &Obj<Deployment>) -> i32 {
    let deployment = deployment.get().ok();
    deployment.and_then(|deployment| deployment.status.as_ref()?.replicas).unwrap_or_default()
}

/// Changes the embedded cluster.
fn change(server: &Server) -> Result<(), Box<dyn Error>> {
    let deployments = server.objects("apps/v1", "Deployment")?.namespace("default");
    deployments.patch_status("web", &json!({"status": {"replicas": 3}}))?;
    deployments.delete("web")?;
    Ok(())
}

fn deployment(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": name, "image": name}]},
            },
        },
    })
}
