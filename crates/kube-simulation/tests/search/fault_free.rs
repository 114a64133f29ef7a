//! Without faults nobody can tell the two twins of the zoo apart.

use std::time::Duration;

use kube::Client;
use kube_embedded::{FirstAccess, Server};
use serde_json::{Value, json};

use crate::zoo::{Exhibit, Step, Variant, definition, exhibits};

const QUIET: Duration = Duration::from_secs(60);

fn api_version(kind: &str) -> &'static str {
    if kind == "Thing" { "zoo.example.com/v1" } else { "v1" }
}

/// The data of each object at the end, and what became of generated names.
async fn end_of(exhibit: &Exhibit, variant: Variant) -> Vec<Value> {
    let server = Server::builder().in_process().seed(5).garbage_collection().first_access(FirstAccess::Served);
    let server = server.start().await.unwrap();
    server.create(&definition()).unwrap();
    let controller = tokio::task::LocalSet::new();
    let client = Client::new(server.service(), "default");
    controller.spawn_local((exhibit.run)(client, variant));
    let steps = async {
        for step in (exhibit.workload)() {
            match step {
                Step::Create(object) => drop(server.create(&object).unwrap()),
                Step::Patch(kind, name, patch) => {
                    drop(server.objects(api_version(kind), kind).unwrap().patch(name, &patch).unwrap());
                }
                Step::Delete(kind, name) => server.objects(api_version(kind), kind).unwrap().delete(name).unwrap(),
                Step::Quiet => tokio::time::sleep(QUIET).await,
            }
        }
        let before = server.revision();
        tokio::time::sleep(QUIET).await;
        let is_settled = server.revision() <= before + 2;
        assert!(is_settled, "{}, {variant:?}: it does not come to rest", exhibit.name);
        let things = server.objects("zoo.example.com/v1", "Thing").unwrap().list();
        let maps = server.objects("v1", "ConfigMap").unwrap().list();
        let phase = |thing: &Value| json!([thing["metadata"]["name"], thing["status"]["phase"]]);
        let mut ends: Vec<_> = things.iter().map(phase).collect();
        ends.extend(maps.iter().map(|map| map["data"].clone()));
        ends
    };
    controller.run_until(steps).await
}

#[tokio::test(start_paused = true)]
async fn the_twins_of_the_zoo_do_the_same_without_faults() {
    assert!(exhibits().count() >= 16);
    for exhibit in exhibits() {
        assert!(!exhibit.bug.is_empty() && !exhibit.found_by.is_empty(), "{}", exhibit.name);
        let buggy = end_of(exhibit, Variant::Buggy).await;
        let correct = end_of(exhibit, Variant::Correct).await;
        assert_eq!(buggy, correct, "{}", exhibit.name);
    }
}
