//! A controller of websites with kube-runtime: `websites_kube_runtime URL`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::{Action, Config as ControllerConfig};
use kube::runtime::{Controller, PredicateConfig, WatchStreamExt, predicates, reflector, watcher};
use kube::{Api, Client, Config, Resource, ResourceExt};
use rig::figures_on_request::answer_figures;
use rig::websites::{MANAGER, WORKERS, Website, WebsiteStatus, deployment, service, status};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

static DONE: AtomicU64 = AtomicU64::new(0);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("the URL of the server?")?;
    let runtime = Runtime::new()?;
    let _entered = runtime.enter();
    let client = Client::try_from(Config::new(url.parse()?))?;
    let (sites, writer) = reflector::store::<Website>();
    let events = watcher(Api::all(client.clone()), watcher::Config::default()).default_backoff().reflect(writer);
    let changed = events.applied_objects().predicate_filter(predicates::generation, PredicateConfig::default());
    let controller = Controller::for_stream(changed, sites)
        .owns(Api::<Deployment>::all(client.clone()), watcher::Config::default())
        .owns(Api::<Service>::all(client.clone()), watcher::Config::default())
        .with_config(ControllerConfig::default().concurrency(u16::try_from(WORKERS)?));
    let again = |_: Arc<Website>, error: &kube::Error, _: Arc<Client>| {
        eprintln!("kube-runtime: {error}");
        Action::requeue(Duration::from_secs(1))
    };
    let running = controller.run(reconcile, again, Arc::new(client));
    runtime.spawn(running.for_each(|_| std::future::ready(())));
    answer_figures(|| DONE.load(Ordering::Relaxed))?;
    Ok(())
}

async fn reconcile(site: Arc<Website>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let (name, generation) = (site.name_any(), site.meta().generation.unwrap_or(0));
    let child: Deployment = apply(&client, &site, deployment(&name, &site.spec)).await?;
    let _: Service = apply(&client, &site, service(&name)).await?;
    let status: WebsiteStatus = status(&site.spec, generation, &child);
    let sites = Api::<Website>::namespaced((*client).clone(), &site.namespace().unwrap_or_default());
    let applied = json!({
        "apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": name, "uid": site.uid()},
        "status": status,
    });
    sites.patch_status(&name, &forced(), &Patch::Apply(&applied)).await?;
    DONE.fetch_add(1, Ordering::Relaxed);
    Ok(Action::await_change())
}

async fn apply<K>(client: &Client, site: &Website, mut child: Value) -> Result<K, kube::Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Serialize,
{
    child["metadata"]["ownerReferences"] = json!([site.controller_owner_ref(&())]);
    let children = Api::<K>::namespaced(client.clone(), &site.namespace().unwrap_or_default());
    children.patch(&site.name_any(), &forced(), &Patch::Apply(&child)).await
}

fn forced() -> PatchParams {
    PatchParams::apply(MANAGER).force()
}
