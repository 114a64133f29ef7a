//! A server, deployments with config maps as their children, and controllers that run in tests.

#![allow(dead_code, reason = "each test uses a part of this")]

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube_controller::{Controller, ControllerBuilder, Leadership, Monitor};
use kube_embedded::Server;
use kube_informer::{Factory, ObjectKey};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

pub(crate) async fn server() -> Arc<Server> {
    Arc::new(Server::builder().in_process().seed(1).start().await.unwrap())
}

pub(crate) fn client(server: &Server) -> Client {
    Client::new(server.service(), "default")
}

pub(crate) fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
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

/// A config map that a deployment controls.
pub(crate) fn owned_map(name: &str, owner: &Value) -> Value {
    let mut map = config_map(name);
    map["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "controller": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    }]);
    map
}

pub(crate) fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("default", name)
}

/// Changes the spec of a deployment.
pub(crate) fn scale(server: &Server, name: &str, replicas: i32) {
    let deployments = server.objects("apps/v1", "Deployment").unwrap();
    deployments.patch(name, &json!({"spec": {"replicas": replicas}})).unwrap();
}

/// A builder of a controller of deployments.
pub(crate) fn builder(client: Client) -> (Factory, ControllerBuilder<Deployment>) {
    let factory = Factory::new(client);
    let builder = Controller::builder::<Deployment>(&factory);
    (factory, builder)
}

/// A controller that runs until it is stopped.
pub(crate) struct Running {
    pub(crate) monitor: Monitor,
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(controller: Controller) -> Self {
        let (monitor, stop) = (controller.monitor(), Arc::new(Notify::new()));
        let stopped = Arc::clone(&stop);
        let run = controller.run(Leadership::unelected(), async move { stopped.notified().await });
        Self { monitor, stop, task: tokio::spawn(run) }
    }

    pub(crate) async fn stop(self) {
        self.stop.notify_one();
        self.task.await.unwrap();
    }

    pub(crate) fn abort(&self) {
        self.task.abort();
    }

    /// Completes when the figures pass a test.
    pub(crate) async fn until(&self, mut test: impl FnMut(&kube_controller::Figures) -> bool) {
        while !test(&self.monitor.figures()) {
            pause().await;
        }
    }
}

/// Lets a moment of paused time pass, in which all tasks run until they wait.
pub(crate) async fn pause() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Text that a reconciler reports, in order.
#[derive(Clone)]
pub(crate) struct Reports(mpsc::UnboundedSender<String>, Arc<Mutex<mpsc::UnboundedReceiver<String>>>);

impl Reports {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self(sender, Arc::new(Mutex::new(receiver)))
    }

    #[allow(clippy::needless_pass_by_value, reason = "callers make it for the report")]
    pub(crate) fn report(&self, text: impl ToString) {
        self.0.send(text.to_string()).unwrap();
    }

    /// The next report; time passes until there is one.
    pub(crate) async fn next(&self) -> String {
        loop {
            if let Ok(text) = self.1.lock().try_recv() {
                return text;
            }
            pause().await;
        }
    }

    /// Whatever is reported within this time.
    pub(crate) async fn within(&self, time: Duration) -> Vec<String> {
        tokio::time::sleep(time).await;
        let mut receiver = self.1.lock();
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }
}
