//! A reconciler that creates a child under a name that the server chooses, if it reads none: the
//! one that reads what is behind its own writes creates two.
//!
//! `KUBE_CONTROLLER_SEEDS` sets the number of seeds: `just read-your-writes` runs 1,000.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};
use kube::{Resource, ResourceExt};
use kube_controller::{Controller, Error, Outcome};
use kube_embedded::Server;
use kube_informer::Factory;
use kube_runtime::controller::Action;
use kube_runtime::{WatchStreamExt, reflector, watcher};
use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::sleep;

use crate::chaos::Chaos;
use crate::support::{Running, deployment, scale};

const PARENTS: u64 = 3;

fn seeds() -> u64 {
    std::env::var("KUBE_CONTROLLER_SEEDS").map_or(40, |seeds| seeds.parse().unwrap())
}

/// Runs one history: how many children does each parent have in the end?
fn children(seed: u64, start: impl AsyncFnOnce(&Server, &Chaos) -> Box<dyn FnOnce()>) -> BTreeMap<String, usize> {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let server = Server::builder().in_process().seed(seed).start().await.unwrap();
        for parent in 0..PARENTS {
            server.create(&deployment(&format!("parent-{parent}"))).unwrap();
        }
        let chaos = Chaos::new(seed);
        let stop = start(&server, &chaos).await;
        for replicas in 2..40 {
            sleep(Duration::from_millis(chaos.up_to(4_000))).await;
            scale(&server, &format!("parent-{}", chaos.up_to(PARENTS - 1)), replicas);
        }
        sleep(Duration::from_secs(1_200)).await;
        stop();
        let mut children = BTreeMap::new();
        for map in server.objects("v1", "ConfigMap").unwrap().list() {
            let owner = map["metadata"]["ownerReferences"][0]["name"].as_str().unwrap().to_owned();
            *children.entry(owner).or_default() += 1;
        }
        children
    })
}

async fn ours(server: &Server, chaos: &Chaos) -> Box<dyn FnOnce()> {
    let seed = chaos.up_to(u64::MAX - 1);
    let factory = Factory::builder(chaos.client(server)).defaults(move |all| all.seed(seed)).build().unwrap();
    let mut builder = Controller::builder::<Deployment>(&factory);
    let maps = builder.owns::<ConfigMap>();
    let running = Running::start(builder.reconcile(move |context, _| {
        let maps = maps.clone();
        async move {
            if context.owned(&maps).is_empty() {
                context.create::<ConfigMap>(&json!({"metadata": {"generateName": "child-"}})).await?;
            }
            Ok::<_, Error>(Outcome::Done)
        }
    }));
    Box::new(move || {
        running.abort();
        drop(factory);
    })
}

struct Data {
    maps: reflector::Store<ConfigMap>,
    client: kube::Client,
}

async fn reconcile(parent: Arc<Deployment>, data: Arc<Data>) -> Result<Action, kube::Error> {
    let is_child = |map: &Arc<ConfigMap>| {
        map.owner_references().iter().any(|owner| Some(&owner.uid) == parent.meta().uid.as_ref())
    };
    if !data.maps.state().iter().any(is_child) {
        let mut map = ConfigMap::default();
        map.metadata.generate_name = Some("child-".to_owned());
        map.metadata.owner_references = Some(vec![parent.controller_owner_ref(&()).unwrap()]);
        Api::default_namespaced(data.client.clone()).create(&PostParams::default(), &map).await?;
    }
    Ok(Action::await_change())
}

async fn kube_runtime(server: &Server, chaos: &Chaos) -> Box<dyn FnOnce()> {
    let client = chaos.client(server);
    let (maps, writer) = reflector::store();
    let children = watcher(Api::<ConfigMap>::all(client.clone()), watcher::Config::default());
    let children = children.default_backoff().reflect(writer).touched_objects();
    let parents = Api::<Deployment>::all(client.clone());
    let data = Arc::new(Data { maps, client });
    let controller = kube_runtime::Controller::new(parents, watcher::Config::default()).owns_stream(children);
    let running = controller.run(reconcile, |_, _, _| Action::requeue(Duration::from_secs(1)), data);
    let task = tokio::spawn(running.for_each(|_| std::future::ready(())));
    Box::new(move || task.abort())
}

#[test]
fn no_seed_creates_a_second_child() {
    for seed in 0..seeds() {
        let children = children(seed, ours);
        let is_right = children.len() as u64 == PARENTS && children.values().all(|count| *count == 1);
        assert!(is_right, "seed {seed}: {children:?}");
    }
}

#[test]
fn some_seeds_create_a_second_child_with_the_controller_of_kube_runtime() {
    let doubles: Vec<u64> =
        (0..seeds().min(40)).filter(|seed| children(*seed, kube_runtime).values().any(|count| *count > 1)).collect();
    println!("a second child was created with the seeds {doubles:?}");
    assert!(!doubles.is_empty());
}
