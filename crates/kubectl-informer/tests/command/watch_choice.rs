//! What `watch` shows: single objects, queries, times, without noise, of several kinds.

use crate::support::{Rig, Running, config_map};
use kube_embedded::Verb;
use kube_embedded::access::{Access, Rule};
use serde_json::{Value, json};

#[test]
fn single_objects_are_watched_by_name() {
    let rig = Rig::new();
    for name in ["a", "b", "c"] {
        rig.config_map(name, "1");
    }
    let mut watch = rig.spawn(&["watch", "cm/a", "cm/c", "--until", "count=4"]);
    let mut first = [watch.line(), watch.line()];
    first.sort();
    assert_eq!(first, ["+ configmap default/a", "+ configmap default/c"]);
    rig.server.update(&config_map("b", "2")).unwrap();
    rig.server.update(&config_map("c", "2")).unwrap();
    assert_eq!(watch.line(), "~ configmap default/c  data.k 1→2");
    rig.server.objects("v1", "ConfigMap").unwrap().delete("a").unwrap();
    assert_eq!(watch.line(), "- configmap default/a");
    assert_eq!(watch.end().0, Some(0));
    // Of a single name, the server sends nothing else.
    rig.server.forget_requests();
    let ran = rig.run(&["watch", "cm/b", "--until", "synced", "-o", "name"]).succeeded();
    assert_eq!(ran.out, "configmap/b\n");
    let requests = rig.server.requests();
    let maps = requests.iter().find(|request| request.path.ends_with("/configmaps")).unwrap();
    assert!(maps.query.contains("metadata.name"), "{maps:?}");
}

#[test]
fn objects_enter_and_leave_what_is_asked_for() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    rig.config_map("b", "2");
    let mut watch = rig.spawn(&["watch", "cm", "--where", "data.k == '1'", "--until", "count=3"]);
    assert_eq!(watch.line(), "+ configmap default/a");
    rig.server.update(&config_map("b", "1")).unwrap();
    assert_eq!(watch.line(), "+ configmap default/b");
    rig.server.update(&config_map("a", "3")).unwrap();
    assert_eq!(watch.line(), "- configmap default/a  (no longer matches)");
    assert_eq!(watch.end().0, Some(0));
    let named =
        |args: &[&str]| rig.run(&[&["watch", "cm", "--until", "synced", "-o", "name"], args].concat()).succeeded();
    assert_eq!(named(&["--by", "data.k=3"]).out, "configmap/a\n");
    assert_eq!(named(&["--where", "data.k == '1'", "--where", "metadata.name == 'b'"]).out, "configmap/b\n");
    let ran = named(&["--where", "data.no == '1'"]);
    assert!(ran.err.starts_with("! --where: 2 of 2 left out, because a field is missing; "), "{ran:#?}");
}

#[test]
fn lines_begin_with_the_time_if_that_is_asked_for() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let ran = rig.run(&["watch", "cm", "--timestamps", "--until", "synced"]).succeeded();
    let (time, rest) = ran.out.split_once(' ').unwrap();
    assert_eq!(rest, "+ configmap default/a\n");
    time.parse::<jiff::Timestamp>().expect("a time");
}

fn node(heartbeat: &str, transition: &str, ready: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
        "status": {"conditions": [{"type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat, "lastTransitionTime": transition}]}})
}

#[test]
fn heartbeats_and_renewed_leases_are_muted_unless_all_changes_are_asked_for() {
    let (one, two) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    let lease = |time: &str| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l", "namespace": "default"},
            "spec": {"holderIdentity": "a", "renewTime": time}})
    };
    let rig = Rig::new();
    rig.server.load([node(one, one, "True"), lease("2026-01-01T00:00:00.000000Z")]).unwrap();
    let mut quiet = rig.spawn(&["watch", "nodes,leases", "--diff", "--until", "count=3"]);
    let mut all = rig.spawn(&["watch", "nodes,leases", "--diff", "--all-changes", "--until", "count=5"]);
    for watch in [&mut quiet, &mut all] {
        let mut first = [watch.line(), watch.line()];
        first.sort();
        assert_eq!(first, ["+ lease default/l", "+ node  n  Ready=True"]);
    }
    let leases = rig.server.objects("coordination.k8s.io/v1", "Lease").unwrap();
    let mut renewed = leases.get("l").unwrap();
    renewed["spec"]["renewTime"] = json!("2026-01-02T00:00:00.000000Z");
    rig.server.update(&renewed).unwrap();
    assert_eq!(all.line(), "~ lease default/l  renewTime renewed");
    assert!(all.line().starts_with("    spec.renewTime: 2026-01-01"));
    rig.server.update_status(&node(two, one, "True")).unwrap();
    assert_eq!(all.line(), "~ node  n  Ready.lastHeartbeatTime renewed");
    assert!(all.line().starts_with("    status.conditions[Ready].lastHeartbeatTime: 2026-01-01"));
    rig.server.update_status(&node(two, two, "False")).unwrap();
    for watch in [&mut quiet, &mut all] {
        assert_eq!(watch.line(), "~ node  n  Ready True→False");
    }
    let (code, fields, err) = quiet.read_to_end();
    assert_eq!((code, fields.len()), (Some(0), 1), "{fields:?}");
    assert!(fields[0].starts_with("    status.conditions[Ready].status: True → False"), "{fields:?}");
    assert!(err.contains("; 2 updates of times and generations only not shown (see --all-changes)"), "{err}");
    let (code, fields, _) = all.read_to_end();
    assert_eq!((code, fields.len()), (Some(0), 2), "{fields:?}");
}

/// Config maps may be listed and watched, secrets not.
fn guarded() -> Rig {
    Rig::with(|builder| {
        let paths = Rule::new().path("/api").path("/apis");
        let maps = Rule::new().verb(Verb::List).verb(Verb::Watch).verb(Verb::Get).resource("", "configmaps");
        builder.access(Access::closed().allow(paths).allow(maps))
    })
}

#[test]
fn a_forbidden_kind_does_not_end_a_watch_of_several() {
    let rig = guarded();
    rig.config_map("a", "1");
    let mut watch = rig.spawn(&["watch", "secrets,cm"]);
    assert_eq!(watch.line(), "+ configmap default/a");
    let err = std::io::BufReader::new(watch.child.stderr.take().unwrap());
    let mut said = std::io::BufRead::lines(err).map(|line| line.unwrap());
    let said = said.find(|line| line.contains("; still watching the other kinds")).expect("it is said");
    assert!(said.starts_with(&format!("! secrets at {}", rig.server.url())), "{said}");
    assert!(said.contains("cannot list resource"), "{said}");
    rig.config_map("b", "1");
    assert_eq!(watch.line(), "+ configmap default/b");
    watch.signal("INT");
    assert_eq!(watch.end().0, Some(0));

    let ran = rig.run(&["watch", "secrets,cm", "--until", "synced", "-o", "name"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(4), "configmap/a\nconfigmap/b\n"), "{ran:#?}");
    let ran = rig.run(&["watch", "secrets"]);
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    let ran = rig.run(&["get", "secrets,cm", "-o", "name"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(4), "configmap/a\nconfigmap/b\n"), "{ran:#?}");
}

#[test]
fn an_interrupt_leaves_no_file() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let folder = tempfile::tempdir().unwrap();
    for args in [&["watch", "cm"][..], &["get", "cm", "--watch"], &["tree", "cm/a", "--watch"]] {
        let mut running = Running::start(rig.command(args).current_dir(folder.path()).env("TMPDIR", folder.path()));
        running.line();
        running.signal("INT");
        assert_eq!(running.end().0, Some(0), "{args:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{args:?}");
    }
}
