//! The example `foo` beside client-go's sample-controller, which it follows: the same input, the
//! same restarts, the same objects in the end.

use std::path::Path;

use http::Request;
use serde_json::{Value, json};
use tokio::fs;

use super::objects::{Objects, Snapshot, said};
use super::restart_server;
use super::supervised::Supervised;
use crate::Error;
use crate::binaries;
use crate::built::Built;
use crate::control_plane::ControlPlane;
use crate::informer::{Playground, eventually};

/// Runs both, one after the other, and compares what they leave. Returns a summary.
pub(crate) async fn run(workspace: &Path, built: &Built, control_plane: &mut ControlPlane) -> Result<String, Error> {
    let programs = binaries::programs(workspace).await?;
    let playground = Playground::new(control_plane.target())?;
    let definition = fs::read_to_string(programs.samples.join("crd-status-subresource.yaml")).await?;
    define(&playground, definition).await?;
    let kubeconfig = control_plane.kubeconfig().display().to_string();

    let scene = Scene::new(&playground, "foo-go").await?;
    let arguments = vec!["-kubeconfig".to_owned(), kubeconfig.clone()];
    let go = Supervised::start("sample-controller", &programs.sample_controller, arguments)?;
    let (theirs, _) = scene.play(go, control_plane).await.map_err(|error| format!("sample-controller: {error}"))?;

    let scene = Scene::new(&playground, "foo-rust").await?;
    let rust = Supervised::start("foo", &built.foo, vec!["--kubeconfig".to_owned(), kubeconfig])?;
    let (ours, restarts) = scene.play(rust, control_plane).await.map_err(|error| format!("foo: {error}"))?;
    ours.must_equal(&theirs, "foo", "sample-controller")?;
    Ok(format!("{} objects and all events are those of sample-controller; {restarts} restarts each", ours.len()))
}

/// Creates the sample-controller's definition, which another step may have created.
async fn define(playground: &Playground, yaml: String) -> Result<(), Error> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = Request::post(path).header("content-type", "application/yaml").body(yaml.into_bytes())?;
    match playground.client.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        created => drop(created?),
    }
    let foos = Objects::new(playground, "default", FOOS);
    eventually("Foos are served", async || foos.all().await).await?;
    Ok(())
}

const FOOS: [&str; 4] = ["samplecontroller.k8s.io", "v1alpha1", "Foo", "foos"];

struct Scene {
    foos: Objects,
    deployments: Objects,
    events: Objects,
}

impl Scene {
    async fn new(playground: &Playground, stem: &str) -> Result<Self, Error> {
        let namespace = playground.namespace(stem).await?;
        Ok(Self {
            foos: Objects::new(playground, &namespace, FOOS),
            deployments: Objects::new(playground, &namespace, ["apps", "v1", "Deployment", "deployments"]),
            events: Objects::new(playground, &namespace, ["", "v1", "Event", "events"]),
        })
    }

    /// Writes the input, and disturbs the controller. Returns what is left, and the restarts.
    async fn play(
        &self,
        mut controller: Supervised,
        control_plane: &mut ControlPlane,
    ) -> Result<(Snapshot, usize), Error> {
        let Self { foos, deployments, events } = self;
        self.deployments.create(foreign("taken")).await?;
        for (name, spec) in [
            ("a", json!({"deploymentName": "a", "replicas": 1})),
            ("b", json!({"deploymentName": "b", "replicas": 2})),
            ("free", json!({"deploymentName": "free"})),
            ("taken", json!({"deploymentName": "taken", "replicas": 2})),
            ("nameless", json!({"replicas": 1})),
        ] {
            foos.create(foo(name, &spec)).await?;
        }
        controller.until("the first foos are synced", async || self.is_settled().await).await?;

        // While nobody runs.
        let meanwhile = async {
            foos.patch("a", json!({"spec": {"replicas": 3}})).await?;
            deployments.delete("b").await?;
            foos.create(foo("c", &json!({"deploymentName": "c", "replicas": 1}))).await?;
            deployments.report("free", json!({"replicas": 1, "readyReplicas": 1, "availableReplicas": 1})).await
        };
        controller.killed_during(meanwhile).await?;
        controller.until("the changes are caught up with", async || self.is_settled().await).await?;

        // The server goes, with and without a change that nobody has reacted to.
        restart_server(control_plane).await?;
        eventually("a change after the restart", async || {
            let patched = deployments.patch("a", json!({"spec": {"replicas": 5}})).await;
            patched.map_err(|error| error.to_string())
        })
        .await?;
        controller.until("a scaled deployment is scaled back", async || self.is_settled().await).await?;
        foos.patch("b", json!({"spec": {"replicas": 4}})).await?;
        restart_server(control_plane).await?;
        controller.until("a change before the restart arrives", async || self.is_settled().await).await?;

        // The controller is killed right after a change, and again while it reacts.
        foos.patch("free", json!({"spec": {"deploymentName": "renamed"}})).await?;
        controller.killed_during(async { foos.delete("c").await }).await?;
        foos.patch("a", json!({"spec": {"replicas": 2}})).await?;
        controller.killed_during(async { Ok(()) }).await?;
        controller.until("the last changes are caught up with", async || self.is_settled().await).await?;
        deployments.report("a", json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 2})).await?;
        controller.until("the last status is shown", async || self.is_settled().await).await?;
        let restarts = controller.restarts;
        controller.stop().await?;
        Ok((Snapshot::take(&[foos, deployments], events).await?, restarts))
    }

    /// Whether every foo has what it asks for, and an event about it.
    async fn is_settled(&self) -> Result<(), String> {
        let (foos, deployments) = (self.foos.all().await?, self.deployments.all().await?);
        let events: Vec<String> = self.events.all().await?.values().map(said).collect();
        for (name, object) in foos {
            let event = match &*name {
                "nameless" => continue,
                "taken" => "Foo taken: Warning ErrResourceExists",
                name => &format!("Foo {name}: Normal Synced"),
            };
            if !events.iter().any(|said| said.starts_with(event)) {
                return Err(format!("no event {event}"));
            }
            if name == "taken" {
                continue;
            }
            let made = object["spec"]["deploymentName"].as_str().and_then(|name| deployments.get(name));
            let Some(made) = made else { return Err(format!("{name} has no deployment")) };
            if object["spec"]["replicas"].is_number() && object["spec"]["replicas"] != made["spec"]["replicas"] {
                return Err(format!("the deployment of {name} has {} replicas", made["spec"]["replicas"]));
            }
            let available = |of: &Value| of["status"]["availableReplicas"].as_i64().unwrap_or_default();
            if object["status"].is_null() || available(&object) != available(made) {
                return Err(format!("{name} shows {}, and not {}", object["status"], available(made)));
            }
        }
        Ok(())
    }
}

fn foo(name: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A deployment that no foo owns.
fn foreign(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    })
}
