use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use super::world::World;
use super::write::{Verb, Write};
use super::{Pretend, Size};
use crate::server::Server;

const SIZE: Size = Size { nodes: 4, pods: 60 };

/// Runs a world at this rate for some seconds, and then without new disturbances until it is
/// stable. Panics if the server rejects a write.
async fn lived(seed: u64, rate: f64, seconds: u64) -> Server {
    let server = Server::builder().in_process().start().await.unwrap();
    let mut world = World::new(seed, SIZE, rate);
    for object in world.populate().flatten().collect::<Vec<_>>() {
        let result = Write::new(Verb::Load(object)).apply(server.cluster(), 0);
        assert!(result.is_ok() || result.is_err_and(|status| status.code() == 409), "seed {seed}");
    }
    let run = |world: &mut World, from: u64, to: u64| {
        for tick in from * 20..to * 20 {
            for write in world.step(Duration::from_millis(tick * 50)) {
                let shown = format!("{write:.300?}");
                write.apply(server.cluster(), 0).unwrap_or_else(|status| panic!("seed {seed}: {status:?}: {shown}"));
            }
        }
    };
    run(&mut world, 0, seconds);
    world.set_rate(0.0);
    run(&mut world, seconds, seconds + 130);
    server
}

fn list(server: &Server, api_version: &str, kind: &str) -> Vec<Value> {
    server.objects(api_version, kind).unwrap().list()
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn what_a_deployment_says_of_its_pods_is_true_once_it_is_calm() {
    for seed in [1, 2] {
        let server = lived(seed, 60.0, 15).await;
        let mut ready: BTreeMap<String, i64> = BTreeMap::new();
        let mut addresses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let sets: BTreeMap<String, String> = list(&server, "apps/v1", "ReplicaSet")
            .iter()
            .map(|set| {
                (text(set, "/metadata/uid").to_owned(), text(set, "/metadata/ownerReferences/0/name").to_owned())
            })
            .collect();
        let nodes: BTreeSet<String> =
            list(&server, "v1", "Node").iter().map(|node| text(node, "/metadata/name").to_owned()).collect();
        for pod in list(&server, "v1", "Pod") {
            let owner = &sets[text(&pod, "/metadata/ownerReferences/0/uid")];
            assert_eq!(text(&pod, "/status/phase"), "Running", "seed {seed}: {}", text(&pod, "/metadata/name"));
            assert!(nodes.contains(text(&pod, "/spec/nodeName")), "seed {seed}: {}", text(&pod, "/metadata/name"));
            *ready.entry(owner.clone()).or_default() += 1;
            addresses.entry(owner.clone()).or_default().insert(text(&pod, "/status/podIP").to_owned());
        }
        for deployment in list(&server, "apps/v1", "Deployment") {
            let name = text(&deployment, "/metadata/name");
            let count = ready[name];
            assert_eq!(deployment["spec"]["replicas"], count, "seed {seed}: {name}");
            for key in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
                assert_eq!(deployment["status"][key], count, "seed {seed}: {name}: {key}");
            }
            assert_eq!(deployment["status"]["observedGeneration"], deployment["metadata"]["generation"], "{name}");
        }
        for slice in list(&server, "discovery.k8s.io/v1", "EndpointSlice") {
            let service = text(&slice, "/metadata/ownerReferences/0/name");
            let named: BTreeSet<String> = slice["endpoints"]
                .as_array()
                .unwrap()
                .iter()
                .map(|endpoint| {
                    assert_eq!(endpoint["conditions"]["ready"], true, "seed {seed}: {service}");
                    text(endpoint, "/addresses/0").to_owned()
                })
                .collect();
            assert_eq!(named, addresses[service], "seed {seed}: {service}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn everything_that_happens_in_a_cluster_happens() {
    let server = lived(3, 80.0, 40).await;
    let reasons: BTreeSet<String> =
        list(&server, "v1", "Event").iter().map(|event| text(event, "/reason").to_owned()).collect();
    let expected = ["BackOff", "Killing", "Pulling", "ScalingReplicaSet", "Scheduled", "Started", "SuccessfulCreate"];
    for reason in expected.into_iter().chain(["Unhealthy"]) {
        assert!(reasons.contains(reason), "{reason} is not among {reasons:?}");
    }
    let rolled_out = |set: &Value| text(set, "/metadata/annotations/deployment.kubernetes.io~1revision") == "8";
    assert!(list(&server, "apps/v1", "ReplicaSet").iter().any(rolled_out));
    assert_eq!(list(&server, "coordination.k8s.io/v1", "Lease").len(), 4);
}

#[test]
fn the_same_seed_makes_the_same_writes() {
    let story = |seed| {
        let mut world = World::new(seed, SIZE, 50.0);
        let first: Vec<Value> = world.populate().flatten().collect();
        (first, (0..200).flat_map(|tick| world.step(Duration::from_millis(tick * 50))).collect::<Vec<_>>())
    };
    assert!(story(5) == story(5));
    assert!(story(5).1 != story(6).1);
}

#[test]
fn it_writes_at_the_configured_rate_for_a_short_or_a_long_time() {
    for (seed, rate) in [(1, 5.0), (2, 20.0), (3, 80.0), (4, 300.0)] {
        let mut world = World::new(seed, Size::of_nodes(20), rate);
        drop(world.populate().collect::<Vec<_>>());
        let (mut ticks, mut writes) = (0, 0);
        for seconds in [3, 10, 40] {
            writes +=
                (ticks..seconds * 20).map(|tick| world.step(Duration::from_millis(tick * 50)).len()).sum::<usize>();
            ticks = seconds * 20;
            // Leases of twenty nodes every ten seconds, plus occasional node status updates.
            let (own, asked) = (writes as f64 - 2.1 * seconds as f64, rate * seconds as f64);
            // Actions that have started are completed.
            let fits = (0.75 * asked - 30.0..1.2 * asked + 30.0).contains(&own);
            assert!(fits, "seed {seed}: {own} writes instead of {asked} in {seconds} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_cluster_writes_nothing_more() {
    let server = Server::builder().in_process().start().await.unwrap();
    let cluster = Pretend::builder().size(SIZE).rate(40.0).start(&server).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(cluster.writes() > 100, "{}", cluster.writes());
    cluster.stop().await;
    let revision = server.revision();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_another_client_removes_is_replaced() {
    let server = Server::builder().in_process().start().await.unwrap();
    let cluster = Pretend::builder().size(SIZE).rate(40.0).start(&server).await.unwrap();
    for pod in list(&server, "v1", "Pod") {
        let pods = server.objects("v1", "Pod").unwrap().namespace(text(&pod, "/metadata/namespace"));
        pods.remove(text(&pod, "/metadata/name")).unwrap();
    }
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert!(server.objects("v1", "Pod").unwrap().len() > 40);
    cluster.stop().await;
}
