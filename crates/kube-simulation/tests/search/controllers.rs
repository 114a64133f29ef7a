//! The examples of kube-controller, and the same controllers on kube-runtime, are searched.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, CustomResourceExt as _, Resource as _, ResourceExt as _};
use kube_controller::{Manager, Recorder};
use kube_informer::Factory;
use kube_runtime::controller::Action;
use kube_runtime::{Controller, watcher};
use kube_simulation::{FaultClass, Report, Simulation};
use serde_json::{Value, json};

use crate::foo::{self, Foo};
use crate::website::{self, Website};
use crate::zoo_search::setting;

/// A Foo that is created, scaled and deleted.
fn foos(simulation: Simulation) -> Simulation {
    const VERSION: &str = "samplecontroller.k8s.io/v1alpha1";
    let foo = json!({
        "apiVersion": VERSION, "kind": "Foo", "metadata": {"name": "a", "namespace": "default"},
        "spec": {"deploymentName": "web", "replicas": 1},
    });
    simulation
        .object(&Foo::crd())
        .create(&foo)
        .until_quiet()
        .change(VERSION, "Foo", "a", &json!({"spec": {"replicas": 3}}))
        .until_quiet()
        .delete(VERSION, "Foo", "a")
        .until_quiet()
}

/// A website that is created, changed, and deleted while another is created.
fn websites(simulation: Simulation) -> Simulation {
    const VERSION: &str = "example.com/v1";
    let site = |name: &str| {
        json!({
            "apiVersion": VERSION, "kind": "Website", "metadata": {"name": name, "namespace": "default"},
            "spec": {"image": "web:1", "host": format!("{name}.example.com"), "replicas": 2},
        })
    };
    simulation
        .object(&Website::crd())
        .create(&site("blog"))
        .until_quiet()
        .change(VERSION, "Website", "blog", &json!({"spec": {"image": "web:2"}}))
        .until_quiet()
        .delete(VERSION, "Website", "blog")
        .create(&site("shop"))
        .until_quiet()
}

/// No deployment belongs to anything but one object.
fn one_owner(state: &kube_simulation::State) -> Result<(), String> {
    let owners = |object: &Value| object["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len);
    match state.objects("apps/v1", "Deployment").find(|object| owners(object) != 1) {
        Some(found) => Err(format!("{} has {} owners", found["metadata"]["name"], owners(found))),
        None => Ok(()),
    }
}

pub(crate) fn foo_simulation() -> Simulation {
    foos(Simulation::new(async |client: Client| {
        let factory = Factory::new(client);
        let recorder = Recorder::new("sample-controller");
        let manager = Manager::builder(&factory).controller(foo::controller(&factory, &recorder)).recorder(&recorder);
        manager.build().unwrap().run_until(std::future::pending()).await
    }))
}

pub(crate) fn website_simulation() -> Simulation {
    websites(Simulation::new(async |client: Client| {
        let manager = website::manager(&client, website::Dns::default()).unwrap();
        manager.run_until(std::future::pending()).await
    }))
}

fn forced() -> PatchParams {
    PatchParams::apply("example").force()
}

fn again<K>(_: Arc<K>, error: &kube::Error, _: Arc<Client>) -> Action {
    tracing::warn!(%error, "reconciliation failed");
    Action::requeue(Duration::from_secs(1))
}

fn deployment(name: &str, image: &str, replicas: Option<i32>) -> Value {
    let labels = BTreeMap::from([("app", name)]);
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": image}]}},
        },
    })
}

async fn reconcile_foo(foo: Arc<Foo>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let spec = serde_json::to_value(&foo.spec).unwrap();
    let name = spec["deploymentName"].as_str().unwrap_or_default();
    let mut child = deployment(name, "nginx:latest", spec["replicas"].as_i64().map(|replicas| replicas as i32));
    child["metadata"]["ownerReferences"] = json!([foo.controller_owner_ref(&())]);
    let deployments = Api::<Deployment>::default_namespaced((*client).clone());
    let made = deployments.patch(name, &forced(), &Patch::Apply(&child)).await?;
    let available = made.status.and_then(|status| status.available_replicas).unwrap_or(0);
    let status = json!({"status": {"availableReplicas": available}});
    let foos = Api::<Foo>::default_namespaced((*client).clone());
    foos.patch_status(&foo.name_any(), &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(Action::await_change())
}

async fn reconcile_website(site: Arc<Website>, client: Arc<Client>) -> Result<Action, kube::Error> {
    let name = site.name_any();
    let spec = serde_json::to_value(&site.spec).unwrap();
    let mut child = deployment(&name, spec["image"].as_str().unwrap_or_default(), Some(2));
    child["metadata"]["ownerReferences"] = json!([site.controller_owner_ref(&())]);
    Api::<Deployment>::default_namespaced((*client).clone()).patch(&name, &forced(), &Patch::Apply(&child)).await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "ownerReferences": [site.controller_owner_ref(&())]},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "protocol": "TCP"}]},
    });
    Api::<Service>::default_namespaced((*client).clone()).patch(&name, &forced(), &Patch::Apply(&service)).await?;
    let status = json!({"status": {"readyReplicas": 0, "conditions": []}});
    let sites = Api::<Website>::default_namespaced((*client).clone());
    sites.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    Ok(Action::await_change())
}

pub(crate) fn foo_on_kube_runtime(config: watcher::Config) -> Simulation {
    foos(Simulation::new(move |client: Client| foos_on_kube_runtime(client, config.clone())))
}

async fn foos_on_kube_runtime(client: Client, config: watcher::Config) {
    let controller = Controller::new(Api::<Foo>::all(client.clone()), config.clone())
        .owns(Api::<Deployment>::all(client.clone()), config);
    controller.run(reconcile_foo, again, Arc::new(client)).for_each(async |_| ()).await;
}

pub(crate) fn website_on_kube_runtime() -> Simulation {
    websites(Simulation::new(async |client: Client| {
        let controller = Controller::new(Api::<Website>::all(client.clone()), watcher::Config::default())
            .owns(Api::<Deployment>::all(client.clone()), watcher::Config::default())
            .owns(Api::<Service>::all(client.clone()), watcher::Config::default());
        controller.run(reconcile_website, again, Arc::new(client)).for_each(async |_| ()).await;
    }))
}

/// Searches with as many plans and seeds as the environment says.
fn search(simulation: &Simulation) -> Vec<Report> {
    let (seeds, budget) = (setting("KUBE_SIMULATION_SEEDS", 1), setting("KUBE_SIMULATION_PLANS", 40));
    let simulation = simulation.clone().budget(budget as usize).settle(Duration::from_secs(180));
    let simulation = simulation.invariant("a deployment has one owner", one_owner);
    (1..=seeds).map(|seed| simulation.clone().seed(seed).search()).collect()
}

#[test]
fn foo_raises_no_alarm() {
    search(&foo_simulation()).iter().for_each(Report::expect_no_findings);
}

/// The watch of deployments is back before that of foos.
#[test]
fn no_deployment_is_made_for_a_foo_that_was_deleted_while_the_controller_was_disconnected() {
    let seen = Mutex::new(HashSet::new());
    let simulation = foo_simulation().settle(Duration::from_secs(180));
    let simulation = simulation.invariant("a deployment is made for a foo that exists", move |state| {
        let foos = || state.objects("samplecontroller.k8s.io/v1alpha1", "Foo");
        for deployment in state.objects("apps/v1", "Deployment").map(|object| &object["metadata"]) {
            let owner = &deployment["ownerReferences"][0]["uid"];
            let is_owned = foos().any(|foo| foo["metadata"]["uid"] == *owner);
            if !is_owned && !seen.lock().unwrap().contains(&deployment["uid"]) {
                return Err(format!("{} is new, and its owner is gone", deployment["name"]));
            }
            seen.lock().unwrap().insert(deployment["uid"].clone());
        }
        Ok(())
    });
    simulation.replay("seed=1 + disconnected@steps 4..=4").unwrap().expect_no_findings();
}

#[test]
fn website_raises_no_alarm() {
    search(&website_simulation()).iter().for_each(Report::expect_no_findings);
}

#[test]
fn foo_on_kube_runtime_raises_no_alarm() {
    search(&foo_on_kube_runtime(watcher::Config::default())).iter().for_each(Report::expect_no_findings);
}

#[test]
fn foo_on_kube_runtime_raises_no_alarm_with_views_that_are_behind() {
    // Its watches begin with the initial events of any version.
    let streaming = watcher::Config::default().streaming_lists();
    let reports = search(&foo_on_kube_runtime(streaming).classes([FaultClass::Stale]));
    reports.iter().for_each(Report::expect_no_findings);
    assert!(reports.iter().all(|report| report.to_string().contains("stale-restart")), "views are behind");
}

#[test]
fn website_on_kube_runtime_raises_no_alarm() {
    search(&website_on_kube_runtime()).iter().for_each(Report::expect_no_findings);
}
