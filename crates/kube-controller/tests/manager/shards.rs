//! The manifests of the guide "Divide the objects between processes", and what a manager says of
//! its group.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube_controller::leadership::Clock;
use kube_controller::{Controller, Error, Manager, Outcome, ShardGroup};
use kube_embedded::Server;
use kube_informer::Factory;
use serde_json::json;

use crate::guide_manifests::{access, manifests};

const GUIDE: &str = include_str!("../../docs/shards.md");

#[tokio::test(start_paused = true)]
async fn the_server_accepts_them_and_their_roles_suffice() {
    let manifests = manifests(GUIDE);
    let server = Server::builder().in_process().seed(1).access(access(&manifests)).start().await.unwrap();
    server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "replicas"}})).unwrap();
    for object in &manifests {
        server.create(object).unwrap_or_else(|status| panic!("{}: {}", object["kind"], status.message()));
    }
    let client = Client::new(server.service(), "replicas");
    let group = |member| {
        let builder = ShardGroup::builder(client.clone(), "replicas", "replicas").member(member).clock(Clock::tokio());
        builder.build().unwrap()
    };
    let manager = |group: &ShardGroup| {
        let factory = Factory::new(client.clone());
        let builder = Controller::builder::<Deployment>(&factory);
        let controller = builder.reconcile(|_, _| std::future::ready(Ok::<_, Error>(Outcome::Done)));
        Manager::builder(&factory).controller(controller.sharded(group)).build().unwrap()
    };
    let seconds = std::time::Duration::from_secs;
    let (one, other) = (group("one"), group("other"));
    // The second one takes over what the first one releases.
    let first = manager(&one).run_until(tokio::time::sleep(seconds(20)));
    let second = manager(&other).run_until(async {
        tokio::time::sleep(seconds(30)).await;
        assert_eq!((one.figures().ranges_held, other.figures().ranges_held), (0, 64));
    });
    let (first, second) = tokio::join!(first, second);
    first.unwrap();
    second.unwrap();
    assert_eq!(other.figures().claimed, 64);
    let refused: Vec<_> = server.requests().into_iter().filter(|request| request.code == Some(403)).collect();
    assert!(refused.is_empty(), "{refused:?}");
}
