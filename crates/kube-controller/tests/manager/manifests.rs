//! The manifests of the guide "Run it in production".

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube_controller::Manager;
use kube_controller::leadership::LeaderElection;
use kube_controller::recorder::{NewEvent, Recorder};
use kube_embedded::Server;
use kube_informer::Factory;
use serde_json::json;

use crate::guide_manifests::{access, manifests};

const GUIDE: &str = include_str!("../../docs/production.md");

fn add_namespaces(server: &Server) {
    for name in ["websites", "other"] {
        server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_accepts_them() {
    let server = crate::server().await;
    add_namespaces(&server);
    let manifests = manifests(GUIDE);
    assert!(manifests.len() > 5);
    for object in manifests {
        server.create(&object).unwrap_or_else(|status| panic!("{}: {}", object["kind"], status.message()));
    }
}

#[tokio::test(start_paused = true)]
async fn their_roles_suffice_for_the_election_and_for_events() {
    let server = Server::builder().in_process().seed(1).access(access(&manifests(GUIDE))).start().await.unwrap();
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
