//! A whole operator: every `Website` gets a deployment, a service and a DNS entry, which is removed
//! before the website goes; its status says whether it is ready.
//!
//! `cargo run -p kube-controller --example website` shows it on an API server in the process; with
//! `-- --kubeconfig` it runs on a real cluster.

mod support;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Client, CustomResource, CustomResourceExt};
use kube_controller::conditions::{self, NewCondition};
use kube_controller::leadership::LeaderElection;
use kube_controller::recorder::{NewEvent, reference_to};
use kube_controller::{Context, Controller, Error, Manager, Outcome, Recorder};
use kube_informer::{Factory, Obj};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;
pub(crate) use support::website::{Dns, demonstrate};
pub(crate) use support::{Cluster, Result};

#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Debug, Clone)]
#[kube(group = "example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
pub(crate) struct WebsiteSpec {
    image: String,
    host: String,
    replicas: i32,
}

#[derive(Serialize, Deserialize, JsonSchema, Debug, Clone, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebsiteStatus {
    ready_replicas: i32,
    #[schemars(schema_with = "list_of_conditions")]
    conditions: Vec<Condition>,
}

fn list_of_conditions(_: &mut SchemaGenerator) -> Schema {
    let text = json!({"type": "string"});
    json_schema!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {"type": "object", "required": ["type", "status"], "properties": {
            "type": text, "status": text, "reason": text, "message": text,
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64"},
        }},
    })
}

#[derive(Clone)]
struct Websites {
    recorder: Recorder,
    dns: Dns,
}

impl Websites {
    async fn reconcile(self, ctx: Context, site: Obj<Website>) -> Result<Outcome, Error> {
        let (name, Website { spec, status, .. }) = (site.name(), site.get()?);
        let labels = json!({"website": name});
        let container =
            json!({"name": "web", "image": spec.image, "ports": [{"containerPort": 80, "protocol": "TCP"}]});
        let deployment = json!({
            "metadata": {"name": name},
            "spec": {
                "replicas": spec.replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        });
        let deployment = ctx.apply::<Deployment>(&deployment).await?;
        let ports = json!([{"name": "http", "port": 80, "protocol": "TCP"}]);
        ctx.apply::<Service>(&json!({"metadata": {"name": name}, "spec": {"selector": labels, "ports": ports}}))
            .await?;
        self.dns.set(&spec.host, ctx.key()).await?;

        // What is reported of an older generation says nothing about this one.
        let reported = deployment.get()?.status.as_ref().filter(|of| of.observed_generation >= deployment.generation());
        let ready = reported.and_then(|status| status.ready_replicas).unwrap_or_default();
        let (is_ready, message) = (ready >= spec.replicas, format!("{ready} of {} pods are ready", spec.replicas));
        let condition = if is_ready { NewCondition::is_true } else { NewCondition::is_false };
        let condition = condition("Ready", if is_ready { "Serving" } else { "Starting" }, &message);
        let mut status = status.clone().unwrap_or_default();
        let was_ready = conditions::is_true(&status.conditions, "Ready");
        condition.observed_generation(site.generation()).set(&mut status.conditions);
        status.ready_replicas = ready;
        ctx.apply_status(&status).await?;
        if is_ready && !was_ready {
            self.recorder.record(&reference_to(&site), NewEvent::normal("Serving", "Publish", message));
        }
        Ok(Outcome::Done)
    }

    async fn clean_up(self, ctx: Context, site: Obj<Website>) -> Result<Outcome, Error> {
        self.dns.remove(&site.get()?.spec.host, ctx.key()).await;
        Ok(Outcome::Done)
    }
}

pub(crate) fn manager(client: &Client, dns: Dns) -> Result<Manager> {
    let (factory, recorder) = (Factory::new(client.clone()), Recorder::new("websites"));
    let mut builder = Controller::builder::<Website>(&factory);
    builder.labels([("app.kubernetes.io/managed-by", "websites")]);
    builder.owns::<Deployment>();
    builder.owns::<Service>();
    let websites = Websites { recorder: recorder.clone(), dns };
    let cleaning = websites.clone();
    builder.finalizer("example.com/dns", move |ctx, site| cleaning.clone().clean_up(ctx, site));
    let controller = builder.reconcile(move |ctx, site| websites.clone().reconcile(ctx, site));
    let election = LeaderElection::builder(client.clone(), client.default_namespace(), "websites").build()?;
    let manager = Manager::builder(&factory).controller(controller).leader_election(election).recorder(&recorder);
    Ok(manager.build()?)
}

#[tokio::main]
async fn main() -> Result<()> {
    let cluster = Cluster::from_args().await?;
    cluster.define(&Website::crd()).await?;
    cluster.run(manager(&cluster.client(), Dns::default())?, demonstrate).await
}
