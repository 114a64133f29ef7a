//! kube-runtime's controller, driven by an informer.

#![cfg(feature = "kube-runtime")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::support::{client, put, remove, server};
use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::core::PartialObjectMeta;
use kube_embedded::Server;
use kube_informer::Informer;
use kube_runtime::controller::Action;
use kube_runtime::reflector::ObjectRef;
use kube_runtime::{Controller, watcher};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// A running controller of deployments, and the names it reconciles.
struct Reconciling {
    names: mpsc::UnboundedReceiver<String>,
    task: tokio::task::JoinHandle<()>,
}

impl Reconciling {
    fn start(controller: Controller<Deployment>) -> Self {
        let (sender, names) = mpsc::unbounded_channel();
        let reconcile = |deployment: Arc<Deployment>, names: Arc<mpsc::UnboundedSender<String>>| async move {
            names.send(deployment.metadata.name.clone().unwrap()).unwrap();
            Ok::<_, Infallible>(Action::await_change())
        };
        let run = controller.run(reconcile, |_, _, _| Action::await_change(), Arc::new(sender));
        let task = tokio::spawn(run.for_each(|outcome| async move {
            outcome.unwrap();
        }));
        Self { names, task }
    }

    async fn next(&mut self) -> String {
        let name = tokio::time::timeout(Duration::from_secs(60), self.names.recv()).await;
        name.expect("reconciled within a minute").unwrap()
    }

    async fn next_two(&mut self) -> [String; 2] {
        let mut names = [self.next().await, self.next().await];
        names.sort();
        names
    }

    async fn nothing(&mut self) {
        let name = tokio::time::timeout(Duration::from_secs(60), self.names.recv()).await;
        assert!(name.is_err(), "{name:?}");
    }
}

impl Drop for Reconciling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn deployment(server: &Server, name: &str) -> Value {
    let labels = json!({"app": name});
    server
        .create(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": labels}, "template": template(&labels)},
        }))
        .unwrap()
}

fn replica_set(name: &str, owner: &Value) -> Value {
    let labels = json!({"app": owner["metadata"]["name"]});
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": [owner_reference(owner)]},
        "spec": {"selector": {"matchLabels": labels}, "template": template(&labels)},
    })
}

fn owner_reference(owner: &Value) -> Value {
    let metadata = &owner["metadata"];
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "controller": true,
        "name": metadata["name"], "uid": metadata["uid"],
    })
}

fn template(labels: &Value) -> Value {
    json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]}})
}

fn controller(server: &Server) -> Controller<Deployment> {
    Controller::new(Api::all(client(server)), watcher::Config::default())
}

#[tokio::test(start_paused = true)]
async fn a_controller_reconciles_the_owner_of_an_informers_objects() {
    let server = server().await;
    let (web, dns) = (deployment(&server, "web"), deployment(&server, "dns"));
    let sets = Informer::<ReplicaSet>::builder(client(&server)).start();
    let owned = sets.subscribe().touched_objects();
    let mut reconciling = Reconciling::start(controller(&server).owns_stream(owned));
    assert_eq!(reconciling.next_two().await, ["dns", "web"]);

    let objects = server.objects("apps/v1", "ReplicaSet").unwrap().namespace("default");
    objects.create(&replica_set("web-1", &web)).unwrap();
    assert_eq!(reconciling.next().await, "web");
    objects.patch("web-1", &json!({"spec": {"replicas": 3}})).unwrap();
    assert_eq!(reconciling.next().await, "web");

    // When the owner changes, both owners are reconciled.
    let adopted = json!({"metadata": {"ownerReferences": [owner_reference(&dns)]}});
    objects.patch("web-1", &adopted).unwrap();
    assert_eq!(reconciling.next_two().await, ["dns", "web"]);
    objects.delete("web-1").unwrap();
    assert_eq!(reconciling.next().await, "dns");
    reconciling.nothing().await;

    let requests = server.requests();
    let watches = requests.iter().filter(|seen| seen.path.ends_with("/replicasets") && seen.method == "GET").count();
    assert_eq!(watches, 1, "one watch, which is the informer's: {requests:?}");
}

#[tokio::test(start_paused = true)]
async fn metadata_is_enough_to_find_an_owner() {
    let server = server().await;
    let web = deployment(&server, "web");
    let sets = Informer::<ReplicaSet>::builder(client(&server)).start();
    let owned = sets.view::<PartialObjectMeta<ReplicaSet>>().subscribe().applied_objects();
    let mut reconciling = Reconciling::start(controller(&server).owns_stream(owned));
    assert_eq!(reconciling.next().await, "web");

    server.create(&replica_set("web-1", &web)).unwrap();
    assert_eq!(reconciling.next().await, "web");
    server.objects("apps/v1", "ReplicaSet").unwrap().namespace("default").delete("web-1").unwrap();
    reconciling.nothing().await;
}

#[tokio::test(start_paused = true)]
async fn a_controller_reconciles_what_other_objects_are_mapped_to() {
    let server = server().await;
    deployment(&server, "web");
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    let named_by = |map: ConfigMap| {
        let name = map.data.and_then(|mut data| data.remove("value"));
        name.map(|name| ObjectRef::new(&name).within("default"))
    };
    let settings = maps.subscribe().touched_objects();
    let mut reconciling = Reconciling::start(controller(&server).watches_stream(settings, named_by));
    assert_eq!(reconciling.next().await, "web");

    put(&server, "default", "settings", "web");
    assert_eq!(reconciling.next().await, "web");
    remove(&server, "default", "settings");
    assert_eq!(reconciling.next().await, "web");
    reconciling.nothing().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_fit_delays_no_other() {
    let server = server().await;
    deployment(&server, "web");
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    // A type that only some objects fit.
    #[derive(Debug, Clone, serde::Deserialize)]
    struct Numbered {
        data: Data,
    }
    #[derive(Debug, Clone, serde::Deserialize)]
    struct Data {
        value: String,
        number: String,
    }
    let mut numbered = Box::pin(maps.view::<Numbered>().subscribe().touched_objects());
    put(&server, "default", "a", "web");
    server
        .create(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "default"},
            "data": {"value": "web", "number": "1"},
        }))
        .unwrap();
    let Numbered { data } = numbered.next().await.unwrap().unwrap();
    assert_eq!((&*data.value, &*data.number), ("web", "1"));
    maps.shutdown().await;
    assert!(numbered.next().await.is_none());
}
