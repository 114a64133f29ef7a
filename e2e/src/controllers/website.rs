//! The example `website`: undisturbed, and with the controller and the server killed. Both runs
//! leave the same objects.

use serde_json::{Value, json};

use super::objects::{Objects, Snapshot, said};
use super::restart_server;
use super::supervised::Supervised;
use crate::Error;
use crate::built::Built;
use crate::control_plane::ControlPlane;
use crate::informer::{Playground, eventually};

/// Runs both and compares what they leave. Returns a summary.
pub(crate) async fn run(built: &Built, control_plane: &mut ControlPlane) -> Result<String, Error> {
    let playground = Playground::new(control_plane.target())?;
    let arguments = vec!["--kubeconfig".to_owned(), control_plane.kubeconfig().display().to_string()];
    let start = || Supervised::start("website", &built.website, arguments.clone());

    let scene = Scene::new(&playground, "website-calm").await?;
    let (calm, _) = scene.play(start()?, None).await.map_err(|error| format!("undisturbed: {error}"))?;
    // Their hosts are free for the second run.
    for name in scene.sites.all().await?.into_keys() {
        scene.sites.delete(&name).await?;
    }
    let scene = Scene::new(&playground, "website-killed").await?;
    let (disturbed, restarts) =
        scene.play(start()?, Some(control_plane)).await.map_err(|error| format!("disturbed: {error}"))?;
    disturbed.must_equal(&calm, "disturbed", "undisturbed")?;
    Ok(format!("{} objects and all events are those of a calm run; {restarts} restarts", calm.len()))
}

struct Scene {
    sites: Objects,
    deployments: Objects,
    services: Objects,
    events: Objects,
}

impl Scene {
    async fn new(playground: &Playground, stem: &str) -> Result<Self, Error> {
        let namespace = playground.namespace(stem).await?;
        let within = |kind| Objects::new(playground, &namespace, kind);
        Ok(Self {
            sites: within(["example.com", "v1", "Website", "websites"]),
            deployments: within(["apps", "v1", "Deployment", "deployments"]),
            services: within(["", "v1", "Service", "services"]),
            events: within(["", "v1", "Event", "events"]),
        })
    }

    /// Writes the input; with a control plane, the controller and the server are killed. Returns
    /// what is left, and the restarts of the controller.
    async fn play(
        &self,
        mut operator: Supervised,
        mut disturbed: Option<&mut ControlPlane>,
    ) -> Result<(Snapshot, usize), Error> {
        let Self { sites, deployments, services, events } = self;
        operator.until("websites are served", async || sites.all().await.map(drop)).await?;
        for (name, replicas) in [("blog", 2), ("shop", 1), ("old", 1)] {
            sites.create(site(name, replicas)).await?;
        }
        operator.until("the first sites are there", async || self.is_settled().await).await?;

        let changes = async {
            sites.patch("blog", json!({"spec": {"image": "site:2"}})).await?;
            sites.delete("old").await?;
            sites.create(site("new", 3)).await?;
            services.delete("shop").await
        };
        match &disturbed {
            Some(_) => operator.killed_during(changes).await?,
            None => changes.await?,
        }
        operator.until("the changes are caught up with", async || self.is_settled().await).await?;

        for (name, replicas) in [("blog", 2), ("shop", 1), ("new", 3)] {
            // What it reports is about the generation that there is.
            let all = deployments.all().await?;
            let generation = all.get(name).map(|made| made["metadata"]["generation"].clone());
            let status = json!({"observedGeneration": generation, "replicas": replicas, "readyReplicas": replicas});
            deployments.report(name, status).await?;
        }
        if let Some(control_plane) = &mut disturbed {
            restart_server(control_plane).await?;
        }
        operator.until("all sites are ready", async || self.are_ready(&["blog", "new", "shop"]).await).await?;

        // Somebody else changes what belongs to a site.
        eventually("a foreign change", async || {
            let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "other"}]}}}});
            deployments.patch("blog", image).await.map_err(|error| error.to_string())
        })
        .await?;
        if let Some(control_plane) = &mut disturbed {
            restart_server(control_plane).await?;
        }
        operator.until("a foreign change is undone", async || self.is_settled().await).await?;
        if disturbed.is_some() {
            sites.patch("shop", json!({"spec": {"replicas": 4}})).await?;
            operator.killed_during(async { Ok(()) }).await?;
        } else {
            sites.patch("shop", json!({"spec": {"replicas": 4}})).await?;
        }
        operator.until("the last change is caught up with", async || self.is_settled().await).await?;
        let restarts = operator.restarts;
        operator.stop().await?;
        Ok((Snapshot::take(&[sites, deployments, services], events).await?, restarts))
    }

    /// Whether every site has what it asks for, and says so.
    async fn is_settled(&self) -> Result<(), String> {
        let (deployments, services) = (self.deployments.all().await?, self.services.all().await?);
        for (name, site) in self.sites.all().await? {
            if !site["metadata"]["deletionTimestamp"].is_null() {
                return Err(format!("{name} is not cleaned up"));
            }
            let (Some(made), true) = (deployments.get(&name), services.contains_key(&name)) else {
                return Err(format!("{name} has no deployment or no service"));
            };
            let template = &made["spec"]["template"]["spec"]["containers"][0];
            if made["spec"]["replicas"] != site["spec"]["replicas"] || template["image"] != site["spec"]["image"] {
                return Err(format!("the deployment of {name} is another"));
            }
            // What is reported of an older generation does not count.
            let number = |value: &Value| value.as_i64().unwrap_or_default();
            let is_current = number(&made["status"]["observedGeneration"]) >= number(&made["metadata"]["generation"]);
            let reported = if is_current { number(&made["status"]["readyReplicas"]) } else { 0 };
            if site["status"]["readyReplicas"] != reported {
                return Err(format!("{name} shows {}, and not {reported}", site["status"]["readyReplicas"]));
            }
            let ready = &site["status"]["conditions"][0];
            if ready["observedGeneration"] != site["metadata"]["generation"] {
                return Err(format!("{name} is in generation {}: {ready}", site["metadata"]["generation"]));
            }
        }
        Ok(())
    }

    async fn are_ready(&self, names: &[&str]) -> Result<(), String> {
        self.is_settled().await?;
        let sites = self.sites.all().await?;
        let events: Vec<String> = self.events.all().await?.values().map(said).collect();
        for name in names {
            let ready = sites.get(*name).map(|site| &site["status"]["conditions"][0]["status"]);
            if ready.is_none_or(|status| status != "True") {
                return Err(format!("{name} is not ready: {ready:?}"));
            }
            if !events.iter().any(|said| said.starts_with(&format!("Website {name}: Normal Serving"))) {
                return Err(format!("no event says that {name} is ready: {events:?}"));
            }
        }
        Ok(())
    }
}

fn site(name: &str, replicas: u32) -> Value {
    let host = format!("{name}.example.com");
    json!({"metadata": {"name": name}, "spec": {"image": "site:1", "host": host, "replicas": replicas}})
}
