//! What client-go's sample-controller does: every `Foo` owns a deployment with its number of
//! replicas, and shows how many of them are available. A deployment of others is left alone.
//!
//! ```text
//! cargo run -p kube-controller --example foo                  # an API server in the process
//! cargo run -p kube-controller --example foo -- --kubeconfig  # a real cluster
//! ```

#![allow(clippy::disallowed_names, reason = "the kind has this name")]

mod support;

use k8s_openapi::api::apps::v1::Deployment;
use kube::{CustomResource, CustomResourceExt};
use kube_controller::recorder::{NewEvent, reference_to};
use kube_controller::{Context, Controller, Error, Manager, Outcome, Owned, Recorder};
use kube_embedded::Server;
use kube_informer::{Factory, Obj};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
pub(crate) use support::{Cluster, Result};

#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone)]
#[kube(group = "samplecontroller.k8s.io", version = "v1alpha1", kind = "Foo", namespaced, status = "FooStatus")]
#[kube(annotation("api-approved.kubernetes.io", "unapproved, experimental-only"))]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooSpec {
    deployment_name: Option<String>,
    replicas: Option<i32>,
}

#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FooStatus {
    available_replicas: i32,
}

#[derive(Clone)]
struct Foos {
    deployments: Owned<Deployment>,
    recorder: Recorder,
}

impl Foos {
    async fn reconcile(self, ctx: Context, foo: Obj<Foo>) -> Result<Outcome, Error> {
        let spec = &foo.get()?.spec;
        let Some(name) = spec.deployment_name.as_deref().filter(|name| !name.is_empty()) else {
            return Err(Error::terminal("spec.deploymentName is missing"));
        };
        let deployment = match ctx.get(&self.deployments, name) {
            // Not applied: if the cache is behind, a deployment of others has this name already.
            None => ctx.create::<Deployment>(&deployment(&foo, name, spec.replicas)).await?,
            Some(found) if found.controller().map(|owner| owner.uid()) != foo.uid().cloned() => {
                let message = format!("Resource {name:?} already exists and is not managed by Foo");
                self.recorder.record(&reference_to(&foo), NewEvent::warning("ErrResourceExists", "Sync", &*message));
                return Err(Error::new(message));
            }
            Some(found) if spec.replicas.is_some() && found.get()?.spec.replicas != spec.replicas => {
                ctx.apply::<Deployment>(&deployment(&foo, name, spec.replicas)).await?
            }
            Some(found) => found,
        };
        let status = deployment.get()?.status.as_ref();
        let available = status.and_then(|status| status.available_replicas).unwrap_or_default();
        ctx.apply_status(&FooStatus { available_replicas: available }).await?;
        self.recorder.record(&reference_to(&foo), NewEvent::normal("Synced", "Sync", "Foo synced successfully"));
        Ok(Outcome::Done)
    }
}

/// The deployment of a foo. The owner is added when it is written.
fn deployment(foo: &Obj<Foo>, name: &str, replicas: Option<i32>) -> Value {
    let labels = json!({"app": "nginx", "controller": foo.name()});
    let mut deployment = json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "nginx", "image": "nginx:latest"}]},
            },
        },
    });
    if let Some(replicas) = replicas {
        deployment["spec"]["replicas"] = replicas.into();
    }
    deployment
}

pub(crate) fn controller(factory: &Factory, recorder: &Recorder) -> Controller {
    let mut builder = Controller::builder::<Foo>(factory);
    builder.name("sample-controller");
    let foos = Foos { deployments: builder.owns(), recorder: recorder.clone() };
    builder.reconcile(move |ctx, foo| foos.clone().reconcile(ctx, foo))
}

pub(crate) async fn run(cluster: &Cluster) -> Result<()> {
    cluster.define(&Foo::crd()).await?;
    let factory = Factory::new(cluster.client());
    let recorder = Recorder::new("sample-controller");
    let manager = Manager::builder(&factory).controller(controller(&factory, &recorder)).recorder(&recorder);
    cluster.run(manager.build()?, demonstrate).await
}

/// Creates a foo, scales it, and reports available replicas in the place of a cluster.
async fn demonstrate(server: &Server) -> Result<()> {
    let foo = |name: &str, replicas: i32| {
        json!({
            "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"deploymentName": name, "replicas": replicas},
        })
    };
    server.create(&foo("example-foo", 1))?;
    let (foos, deployments) =
        (server.objects("samplecontroller.k8s.io/v1alpha1", "Foo")?, server.objects("apps/v1", "Deployment")?);
    let has = |replicas: i32| {
        let made = deployments.get("example-foo");
        made.is_ok_and(|made| made["spec"]["replicas"] == replicas)
    };
    server.until(|_| has(1)).await;
    println!("example-foo has a deployment");
    foos.patch("example-foo", &json!({"spec": {"replicas": 3}}))?;
    server.until(|_| has(3)).await;
    println!("the deployment is scaled to 3");
    deployments
        .patch_status("example-foo", &json!({"status": {"replicas": 3, "readyReplicas": 2, "availableReplicas": 2}}))?;
    server.until(|_| foos.get("example-foo").is_ok_and(|foo| foo["status"]["availableReplicas"] == 2)).await;
    println!("example-foo shows 2 available replicas");
    let mut taken = deployment(&Obj::from_json(foo("other", 1).to_string())?, "taken", Some(1));
    (taken["apiVersion"], taken["kind"]) = ("apps/v1".into(), "Deployment".into());
    server.create(&taken)?;
    server.create(&foo("taken", 7))?;
    let events = server.objects("events.k8s.io/v1", "Event")?;
    let is_refused = |event: &Value| event["reason"] == "ErrResourceExists";
    server.until(|_| events.list().iter().any(is_refused)).await;
    println!("the deployment \"taken\" of others is left alone");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    run(&Cluster::from_args().await?).await
}
