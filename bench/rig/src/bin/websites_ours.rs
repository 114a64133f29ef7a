//! This project's controller of websites: `websites_ours URL`.

use std::future;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::Config;
use kube_controller::{Context, Controller, Error, Filter, Leadership, Outcome, Watch};
use kube_informer::{Factory, Obj};
use rig::figures_on_request::answer_figures;
use rig::websites::{MANAGER, WORKERS, Website, WebsiteStatus, deployment, service};
use serde::Deserialize;
use tokio::runtime::Runtime;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("the URL of the server?")?;
    let runtime = Runtime::new()?;
    let _entered = runtime.enter();
    let factory = Factory::new(kube_informer::client(Config::new(url.parse()?))?);
    let mut builder = Controller::builder_with(&factory, Watch::<Website>::kind().filter(Filter::generation()));
    builder.name(MANAGER).workers(WORKERS);
    builder.owns::<Deployment>();
    builder.owns::<Service>();
    let controller = builder.reconcile(reconcile);
    let monitor = controller.monitor();
    runtime.spawn(controller.run(Leadership::unelected(), future::pending()));
    answer_figures(|| monitor.figures().attempts.success)?;
    Ok(())
}

/// What is read of a deployment: a projection, as the guides recommend.
#[derive(Deserialize)]
struct Readiness {
    #[serde(default)]
    status: DeploymentReadiness,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct DeploymentReadiness {
    #[serde(default)]
    ready_replicas: i32,
}

async fn reconcile(context: Context, site: Obj<Website>) -> Result<Outcome, Error> {
    let (name, spec) = (site.name(), &site.get()?.spec);
    let child = context.apply::<Deployment>(&deployment(name, spec)).await?;
    context.apply::<Service>(&service(name)).await?;
    let status = WebsiteStatus {
        observed_generation: site.generation().unwrap_or(0),
        ready_replicas: child.view::<Readiness>().get()?.status.ready_replicas,
        url: format!("https://{}", spec.host),
    };
    context.apply_status(&status).await?;
    Ok(Outcome::Done)
}
