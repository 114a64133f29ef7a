//! The manifests of the guide "Run it in production".

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube_controller::Manager;
use kube_controller::leadership::LeaderElection;
use kube_controller::recorder::{NewEvent, Recorder};
use kube_embedded::Server;
use kube_embedded::access::{Access, Rule};
use kube_informer::Factory;
use serde_json::{Value, json};

const GUIDE: &str = include_str!("../../docs/production.md");

/// The objects in the first YAML of the guide.
fn manifests() -> Vec<Value> {
    let yaml = GUIDE.split("```yaml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    serde_saphyr::from_str_multiple(yaml).unwrap()
}

/// The server's rules for a `Role` or `ClusterRole`.
fn rules(role: &Value) -> Vec<Rule> {
    let texts = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap_or_default() };
    let mut all = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        for (group, resource) in texts(&rule["apiGroups"])
            .iter()
            .flat_map(|group| texts(&rule["resources"]).into_iter().map(move |r| (group, r)))
        {
            let verbs = texts(&rule["verbs"]);
            let allowed = Rule::new().resource(group.clone(), &resource).verbs(verbs.iter().map(String::as_str));
            let allowed = match role["metadata"]["namespace"].as_str() {
                Some(namespace) => allowed.namespace(namespace),
                None => allowed,
            };
            let names = texts(&rule["resourceNames"]);
            if names.is_empty() {
                all.push(allowed);
            } else {
                all.extend(names.into_iter().map(|name| allowed.clone().name(name)));
            }
        }
    }
    all
}

fn add_namespaces(server: &Server) {
    for name in ["websites", "other"] {
        server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_accepts_them() {
    let server = crate::server().await;
    add_namespaces(&server);
    let manifests = manifests();
    assert!(manifests.len() > 5);
    for object in manifests {
        server.create(&object).unwrap_or_else(|status| panic!("{}: {}", object["kind"], status.message()));
    }
}

#[tokio::test(start_paused = true)]
async fn their_roles_suffice_for_the_election_and_for_events() {
    let manifests = manifests();
    let roles = manifests.iter().filter(|object| object["rules"].is_array());
    let access = roles.flat_map(rules).fold(Access::closed(), Access::allow);
    let server = Server::builder().in_process().seed(1).access(access).start().await.unwrap();
    add_namespaces(&server);
    let client = Client::new(server.service(), "websites");
    let factory = Factory::new(client.clone());
    let recorder = Recorder::new("websites");
    let events = recorder.clone();
    let election = LeaderElection::builder(client, "websites", "website-controller").build().unwrap();
    let manager = Manager::builder(&factory)
        .task("task", |_, stop| async move {
            for _ in 0..2 {
                let (namespace, kind) = (Some("other".to_owned()), Some("Website".to_owned()));
                let object =
                    ObjectReference { namespace, kind, name: Some("a".to_owned()), ..ObjectReference::default() };
                events.record(&object, NewEvent::normal("Done", "Do", "twice"));
            }
            stop.requested().await;
            Ok(())
        })
        .leader_election(election)
        .recorder(&recorder)
        .build()
        .unwrap();
    let lease =
        || server.objects("coordination.k8s.io/v1", "Lease").unwrap().namespace("websites").get("website-controller");
    let holder = || lease().map(|lease| lease["spec"]["holderIdentity"].clone()).unwrap_or_default();
    // Long enough for renewals.
    manager.run_until(tokio::time::sleep(std::time::Duration::from_secs(30))).await.unwrap();
    assert_eq!((holder(), recorder.figures().published), ("".into(), 2));
    let refused: Vec<_> = server.requests().into_iter().filter(|request| request.code == Some(403)).collect();
    assert!(refused.is_empty(), "{refused:?}");
}
