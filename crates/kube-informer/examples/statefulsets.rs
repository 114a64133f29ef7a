//! Watches stateful sets with custom list options: in the cluster this runs in, else in the one of
//! a kubeconfig.
//!
//! ```text
//! cargo run -p kube-informer --example statefulsets                  # an API server in the process
//! cargo run -p kube-informer --example statefulsets -- --kubeconfig  # a real cluster, unless this already runs in one
//! ```

mod support;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Config;
use kube_embedded::Server;
use kube_informer::{Event, Factory, Obj, Origin};
use serde_json::{Value, json};
use support::Cluster;
use tokio::sync::Notify;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = cluster().await?;
    let factory = Factory::builder(cluster.client())
        .defaults(|all| all.resync(Duration::from_secs(30)))
        .sources(|source| source.tweak(|parameters| parameters.set("labelSelector", "tier!=scratch")))
        .build()?;
    let sets = factory.informer::<StatefulSet>();

    let deleted = Arc::new(Notify::new());
    let on_deleted = Arc::clone(&deleted);
    let printer = sets.on_event(move |event| {
        print(&event);
        if event.is_deleted() {
            on_deleted.notify_one();
        }
    });
    factory.start();
    printer.synced().await?;
    for (number, set) in sets.lister().namespace("kube-system").sorted().iter().enumerate() {
        println!("{number} {}", set.name());
    }

    if let Some(server) = cluster.server() {
        change(server)?;
        deleted.notified().await;
    }
    cluster.watch_until_ctrl_c().await?;
    factory.shutdown().await;
    Ok(())
}

/// Uses the in-cluster configuration if there is one, else the command line.
async fn cluster() -> Result<Cluster, Box<dyn Error>> {
    match Config::incluster() {
        Ok(config) => Cluster::real(config),
        Err(_) => {
            let sets =
                [("kube-system", "etcd", "data"), ("kube-system", "cache", "data"), ("default", "trial", "scratch")];
            Cluster::from_args(sets.map(|(namespace, name, tier)| stateful_set(namespace, name, tier))).await
        }
    }
}

fn print(event: &Event<StatefulSet>) {
    match event {
        Event::Updated { origin: Origin::Resync, .. } => {}
        Event::Added { object, .. } => println!("+ {}, {} replicas", object.name(), replicas(object)),
        Event::Updated { old, new, .. } => {
            println!("~ {}, {} -> {} replicas", new.name(), replicas(old), replicas(new));
        }
        Event::Deleted { last, .. } => println!("- {}", last.name()),
    }
}

/// Number of replicas, from the status.
fn replicas(set: &Obj<StatefulSet>) -> i32 {
    set.get().ok().and_then(|set| set.status.as_ref()).map_or(0, |status| status.replicas)
}

/// Changes the embedded cluster.
fn change(server: &Server) -> Result<(), Box<dyn Error>> {
    let sets = server.objects("apps/v1", "StatefulSet")?;
    sets.namespace("default").patch_status("trial", &json!({"status": {"replicas": 1}}))?;
    let sets = server.objects("apps/v1", "StatefulSet")?.namespace("kube-system");
    sets.patch_status("etcd", &json!({"status": {"replicas": 3}}))?;
    sets.delete("cache")?;
    Ok(())
}

fn stateful_set(namespace: &str, name: &str, tier: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": namespace, "labels": {"tier": tier}},
        "spec": {
            "serviceName": name, "replicas": 3, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": name, "image": name}]}},
        },
    })
}
