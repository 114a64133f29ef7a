//! Reading and writing objects without HTTP.

use crate::support::{Client, server, types};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::Server;
use kube_embedded::generate::Generator;
use serde_json::json;

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test(start_paused = true)]
async fn clients_see_what_is_written_directly() {
    let server = server().await;
    let client = Client::of(&server);
    let start = server.revision();
    let objects = server.objects("v1", "ConfigMap").unwrap();
    let mut made = objects.create(&json!({"metadata": {"name": "a"}, "data": {"k": "1"}})).unwrap();
    assert_eq!(client.get(&format!("{CONFIGMAPS}/a")).await.expect(200).json(), made);
    made["data"]["k"] = json!("2");
    objects.update(&made).unwrap();
    assert_eq!(objects.update(&made).unwrap_err().code(), 409);
    objects.patch("a", &json!({"data": {"k": null, "l": "3"}})).unwrap();
    assert_eq!(objects.get("a").unwrap()["data"], json!({"l": "3"}));
    objects.delete("a").unwrap();
    assert_eq!(objects.get("a").unwrap_err().code(), 404);
    assert_eq!(types(&client.events(CONFIGMAPS, start).await), ["ADDED", "MODIFIED", "MODIFIED", "DELETED"]);
}

#[tokio::test]
async fn an_object_goes_where_it_says_it_belongs() {
    let server = server().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "web"}});
    server.create(&namespace).unwrap();
    let pod = |name: &str, namespace: &str| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}});
    server.create(&pod("a", "web")).unwrap();
    server.create(&pod("b", "default")).unwrap();
    assert_eq!(server.create(&pod("c", "nowhere")).unwrap_err().message(), "namespaces \"nowhere\" not found");
    let pods = server.objects("v1", "Pod").unwrap();
    assert_eq!((pods.len(), pods.list().len()), (2, 2));
    let web = pods.namespace("web");
    assert_eq!(web.len(), 1);
    assert_eq!(web.get("a").unwrap()["metadata"]["namespace"], "web");
    assert_eq!(server.objects("v1", "Nothing").unwrap_err().code(), 404);
}

#[tokio::test]
async fn typed_objects_are_taken() {
    let server = server().await;
    let mut object = ConfigMap::default();
    object.metadata.name = Some("typed".into());
    let made: ConfigMap = serde_json::from_value(server.create(&object).unwrap()).unwrap();
    assert!(made.metadata.uid.is_some());
}

#[tokio::test]
async fn a_status_is_written_apart_from_the_rest() {
    let server = server().await;
    let pods = server.objects("v1", "Pod").unwrap();
    let mut pod = pods.create(&json!({"metadata": {"name": "a"}, "status": {"podIP": "10.0.0.1"}})).unwrap();
    assert_eq!(pod["status"]["phase"], "Pending");
    assert!(pod["status"].get("podIP").is_none());
    pod["status"]["phase"] = json!("Running");
    assert_eq!(pods.update_status(&pod).unwrap()["status"]["phase"], "Running");
    assert_eq!(
        pods.patch_status("a", &json!({"status": {"podIP": "10.0.0.1"}})).unwrap()["status"]["podIP"],
        "10.0.0.1"
    );
    let maps = server.objects("v1", "ConfigMap").unwrap();
    assert_eq!(maps.update_status(&json!({"metadata": {"name": "a"}})).unwrap_err().code(), 404);
}

#[tokio::test]
async fn a_load_takes_objects_as_they_are() {
    let server = Server::builder().in_process().start().await.unwrap();
    let pods = (0..100).map(|i| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("p{i}"), "namespace": "loaded", "uid": format!("uid-{i}"), "resourceVersion": "77"},
            "status": {"phase": "Running"}
        })
    });
    assert_eq!(server.load(pods).unwrap(), 100);
    let pods = server.objects("v1", "Pod").unwrap().namespace("loaded");
    assert_eq!(pods.len(), 100);
    let pod = pods.get("p7").unwrap();
    assert_eq!((&pod["metadata"]["uid"], &pod["status"]["phase"]), (&json!("uid-7"), &json!("Running")));
    assert_eq!(pods.delete_all().unwrap(), 100);
    assert_eq!(server.load([json!({"kind": "Pod"})]).unwrap_err().code(), 404);
}

#[tokio::test]
async fn a_load_takes_what_the_generator_makes() {
    let server = Server::builder().in_process().start().await.unwrap();
    let cluster = Generator::new(7);
    let pods: Vec<_> = cluster.pods(10).collect();
    assert_eq!(server.load(&pods).unwrap(), 10);
    assert_eq!(server.load([cluster.service(1), cluster.replica_set(1)]).unwrap(), 2);
    let loaded = server.objects("v1", "Pod").unwrap().namespace(pods[3].namespace().unwrap());
    let loaded = loaded.get(pods[3].name()).unwrap();
    assert_eq!(loaded["metadata"]["uid"], pods[3].to_value()["metadata"]["uid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_many_threads_all_land() {
    let server = server().await;
    let objects = server.objects("v1", "ConfigMap").unwrap();
    objects.create(&json!({"metadata": {"name": "shared"}})).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let objects = &objects;
            scope.spawn(move || {
                for i in 0..25 {
                    objects.patch("shared", &json!({"data": {format!("k{thread}-{i}"): "v"}})).unwrap();
                    objects.create(&json!({"metadata": {"generateName": "g-"}})).unwrap();
                }
            });
        }
    });
    assert_eq!(objects.get("shared").unwrap()["data"].as_object().unwrap().len(), 200);
    assert_eq!(objects.len(), 201);
}
