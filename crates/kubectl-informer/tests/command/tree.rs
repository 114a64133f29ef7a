//! End-to-end tests of the `tree` command.

use crate::support::pty::Live;
use crate::support::{Rig, Running};
use kube_embedded::Verb;
use kube_embedded::access::{Access, Rule};
use serde_json::{Value, json};

/// An object with an owner.
fn owned(api_version: &str, kind: &str, name: &str, owner: Option<(&str, &Value)>, rest: Value) -> Value {
    let mut object = rest;
    object["apiVersion"] = json!(api_version);
    object["kind"] = json!(kind);
    let owners = owner.map(|(api_version, owner)| {
        json!([{"apiVersion": api_version, "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": true}])
    });
    object["metadata"] =
        json!({"name": name, "namespace": "default", "labels": {"app": "web"}, "ownerReferences": owners});
    object
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
}

fn pod(name: &str, set: &Value, is_ready: bool) -> Value {
    let (ready, state) = match is_ready {
        true => ("True", json!({"running": {}})),
        false => ("False", json!({"waiting": {"reason": "CrashLoopBackOff"}})),
    };
    let status = json!({
        "phase": "Running", "conditions": [{"type": "Ready", "status": ready}],
        "containerStatuses": [{"name": "c", "ready": is_ready, "restartCount": 0, "image": "i", "imageID": "", "state": state}],
    });
    owned(
        "v1",
        "Pod",
        name,
        Some(("apps/v1", set)),
        json!({"spec": {"containers": [{"name": "c", "image": "i"}]}, "status": status}),
    )
}

/// A deployment of two ready replicas of three, with an old replica set.
pub(crate) fn load(rig: &Rig) {
    let load = |object: Value| {
        rig.server.load([object.clone()]).expect("loaded");
        let objects = rig.server.objects(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        objects.unwrap().namespace("default").get(object["metadata"]["name"].as_str().unwrap()).expect("stored")
    };
    let selector = json!({"matchLabels": {"app": "web"}});
    let spec = |replicas: u64| json!({"replicas": replicas, "selector": selector, "template": template()});
    let deployment =
        load(owned("apps/v1", "Deployment", "web", None, json!({"spec": spec(3), "status": {"readyReplicas": 2}})));
    let owner = Some(("apps/v1", &deployment));
    let set = load(owned(
        "apps/v1",
        "ReplicaSet",
        "web-2",
        owner,
        json!({"spec": spec(3), "status": {"replicas": 3, "readyReplicas": 2}}),
    ));
    load(owned("apps/v1", "ReplicaSet", "web-1", owner, json!({"spec": spec(0), "status": {"replicas": 0}})));
    load(pod("web-2-a", &set, true));
    load(pod("web-2-b", &set, true));
    load(pod("web-2-c", &set, false));
}

#[test]
fn owners_and_children_are_shown_with_their_readiness() {
    let rig = Rig::new();
    load(&rig);
    let whole = "\
deployment/web  2/3 ready
├─ replicaset/web-1  0/0 ready
└─ replicaset/web-2  2/3 ready
   ├─ pod/web-2-a  Running 1/1
   ├─ pod/web-2-b  Running 1/1
   └─ pod/web-2-c  CrashLoopBackOff 0/1
";
    assert_eq!(rig.run(&["tree", "deploy/web"]).succeeded().out, whole);
    assert_eq!(rig.run(&["tree", "deployments", "web"]).succeeded().out, whole);
    let branch = "deployment/web  2/3 ready\n└─ replicaset/web-2  2/3 ready\n   └─ pod/web-2-c  CrashLoopBackOff 0/1\n";
    assert_eq!(rig.run(&["tree", "po/web-2-c"]).succeeded().out, branch);
    let coloured = rig.run(&["tree", "po/web-2-c", "--color", "always"]).succeeded().out;
    assert!(coloured.contains("\x1b[33mCrashLoopBackOff 0/1\x1b[0m"), "{coloured:?}");
}

#[test]
fn what_is_missing_or_ambiguous_is_named() {
    let rig = Rig::new();
    load(&rig);
    for (args, code, message) in [
        (&["deploy/nix"][..], 3, "error: deployments.apps \"nix\" not found\n"),
        (&["deploy"], 2, "error: deploy: name one object, as in tree deploy/web\n"),
        (
            &["deploy/web", "po/web-2-a"],
            2,
            "error: deploy/web po/web-2-a: tree shows one object, as in tree deploy/web\n",
        ),
    ] {
        let ran = rig.run(&[&["tree"], args].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(code), message), "{args:?}");
    }
    let ran = rig.run(&["tree", "nix/web"]);
    assert!(ran.code == Some(3) && ran.err.contains("no resource named \"nix\""), "{ran:#?}");
}

#[test]
fn kinds_that_may_not_be_listed_are_counted() {
    let rig = Rig::with(|builder| {
        let rule = || Rule::new().verb(Verb::Get).verb(Verb::List);
        let kinds = rule().resource("apps", "replicasets").resource("", "pods");
        let paths = Rule::new().path("/api").path("/apis");
        builder.access(Access::closed().allow(paths).allow(kinds))
    });
    load(&rig);
    let ran = rig.run(&["tree", "po/web-2-a"]).succeeded();
    assert!(ran.out.starts_with("deployment/web  not found\n└─ replicaset/web-2  "), "{ran:#?}");
    assert!(
        ran.err.starts_with("! ")
            && ran.err.contains(" kinds cannot be listed: ")
            && ran.err.contains("deployments.apps"),
        "{ran:#?}"
    );
}

#[test]
fn it_is_followed_live() {
    let rig = Rig::new();
    load(&rig);
    let url = rig.server.url();
    let mut live = Live::start(80, 12, &["tree", "deploy/web", "--watch", "--server", &url]);
    live.until_shown("└─ pod/web-2-c  CrashLoopBackOff 0/1");
    live.until_shown("connected");
    let set = rig.server.objects("apps/v1", "ReplicaSet").unwrap().namespace("default").get("web-2").unwrap();
    rig.server.update_status(&pod("web-2-c", &set, true)).unwrap();
    live.until_shown("└─ pod/web-2-c  Running 1/1");
    rig.server.load([pod("web-2-d", &set, false)]).unwrap();
    live.until_shown("└─ pod/web-2-d  CrashLoopBackOff 0/1");
    rig.server.objects("apps/v1", "Deployment").unwrap().delete("web").unwrap();
    live.until_shown("deployment/web is gone");
    assert_eq!(live.interrupt(), Some(0));
    assert!(!live.terminal.is_alternate() && !live.terminal.cursor_hidden());
}

#[test]
fn kinds_that_are_usually_owned_are_followed_before_there_are_any() {
    let rig = Rig::new();
    let spec = json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template()});
    rig.server.load([owned("apps/v1", "Deployment", "web", None, json!({"spec": spec}))]).unwrap();
    let mut tree = Running::start(&mut rig.command(&["tree", "deploy/web", "--watch"]));
    assert_eq!(tree.line(), "deployment/web  0/1 ready");
    assert_eq!(tree.line(), "");
    let deployment = rig.server.objects("apps/v1", "Deployment").unwrap().namespace("default").get("web").unwrap();
    rig.server
        .load([owned("apps/v1", "ReplicaSet", "web-1", Some(("apps/v1", &deployment)), json!({"spec": spec}))])
        .unwrap();
    assert_eq!(tree.line(), "deployment/web  0/1 ready");
    assert_eq!(tree.line(), "└─ replicaset/web-1  0/1 ready");
    tree.signal("INT");
    assert_eq!(tree.end().0, Some(0));
}
