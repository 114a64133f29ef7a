//! End-to-end tests of the `get` command.

use crate::support::pty::Live;
use crate::support::{Ran, Rig, Running, command, config_map};
use serde_json::{Value, json};

fn pod(name: &str, node: &str, ip: &str, app: &str, restarts: u64) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": app}, "creationTimestamp": "2020-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{app}-1"), "uid": "u"}]},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "containerStatuses": [{"name": "c", "ready": true, "restartCount": restarts, "image": "i", "imageID": "", "state": {"running": {}}}]},
    })
}

/// Three pods on two nodes.
fn rig() -> Rig {
    let rig = Rig::new();
    let pods = [
        pod("a", "node-1", "10.0.0.1", "web", 0),
        pod("b", "node-2", "10.0.0.2", "web", 7),
        pod("c", "node-1", "10.0.0.3", "db", 30),
    ];
    rig.server.load(pods).expect("loaded");
    rig
}

/// The first column of a table.
fn names(out: &str) -> Vec<&str> {
    out.lines().filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn a_table_has_kubectls_columns() {
    let rig = rig();
    let out = rig.run(&["get", "pods"]).succeeded().out;
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(lines[1][..4], ["a", "1/1", "Running", "0"]);
    assert_eq!(lines.len(), 4);

    let out = rig.run(&["get", "po", "b", "-o", "wide", "-A"]).succeeded().out;
    let lines: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][..2], ["NAMESPACE", "NAME"]);
    assert_eq!(lines[0][6..8], ["IP", "NODE"]);
    assert_eq!(lines[1][..2], ["default", "b"]);
    assert!(lines[1].contains(&"10.0.0.2") && lines[1].contains(&"node-2"), "{out}");

    assert_eq!(names(&rig.run(&["get", "pods", "--no-headers"]).succeeded().out), ["a", "b", "c"]);
}

#[test]
fn indexes_and_expressions_find_what_is_asked_for() {
    let rig = rig();
    let found = |args: &[&str]| {
        let ran = rig.run(&[&["get", "pods", "--no-headers"], args].concat()).succeeded();
        names(&ran.out).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found(&["--by", "node=node-1"]), ["a", "c"]);
    assert_eq!(found(&["--by", "ip=10.0.0.2"]), ["b"]);
    assert_eq!(found(&["--by", "owner=web-1"]), ["a", "b"]);
    assert_eq!(found(&["--by", "label:app=web", "--by", "node=node-1"]), ["a"]);
    assert_eq!(found(&["--by", "status.phase=Running", "--by", "spec.nodeName=node-2"]), ["b"]);
    assert_eq!(found(&["--where", "status.containerStatuses.exists(c, c.restartCount > 5)"]), ["b", "c"]);
    assert_eq!(found(&["--where", "metadata.labels.app == 'web' && spec.nodeName != 'node-1'"]), ["b"]);
    assert_eq!(found(&["-l", "app=db"]), ["c"]);
    assert_eq!(found(&["a", "c"]), ["a", "c"]);
    assert_eq!(found(&["--sort-by", ".status.containerStatuses[0].restartCount"]), ["a", "b", "c"]);
    assert_eq!(found(&["--sort-by", "{.spec.nodeName}"]), ["a", "c", "b"]);
}

fn deployment(name: &str, ready: Option<u64>) -> Value {
    let status = ready.map_or_else(|| json!({}), |ready| json!({"readyReplicas": ready}));
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}}, "status": status})
}

#[test]
fn the_expression_of_the_help_finds_a_deployment_without_ready_replicas() {
    let rig = Rig::new();
    let deployments = [("empty", None), ("full", Some(3)), ("half", Some(1))];
    rig.server.load(deployments.map(|(name, ready)| deployment(name, ready))).expect("loaded");
    let help = Ran::of(&mut command(&["get", "--help"])).succeeded().out;
    let example = help.lines().find(|line| line.contains("readyReplicas")).expect("an example");
    let expression = example.split('\'').nth(1).expect("an expression");
    let ran = rig.run(&["get", "deploy", "--no-headers", "--where", expression]).succeeded();
    assert_eq!((names(&ran.out), ran.err.as_str()), (vec!["empty", "half"], ""));
}

#[test]
fn objects_left_out_for_a_missing_field_are_counted() {
    let rig = Rig::new();
    let deployments = [("empty", None), ("full", Some(3)), ("half", Some(1))];
    rig.server.load(deployments.map(|(name, ready)| deployment(name, ready))).expect("loaded");
    let ran = rig.run(&["get", "deploy", "-o", "name", "--where", "status.readyReplicas < spec.replicas"]).succeeded();
    assert_eq!(ran.out, "deployment.apps/half\n");
    let expected = "! --where: 1 of 3 left out, because a field is missing; the first: default/empty has no field \"readyReplicas\". ";
    assert!(ran.err.starts_with(expected) && ran.err.lines().count() == 1, "{}", ran.err);
    let ran = rig.run(&["get", "deploy", "-o", "name", "--where", "has(statsu.phase)"]).succeeded();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", "! no deployment has \"statsu\"\n"));
    rig.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {"k": "aHVudGVyMg=="}}));
    let ran = rig.run(&["get", "secrets", "-o", "name", "--where", "data[data.k] == ''"]).succeeded();
    assert!(ran.err.contains("1 of 1 left out") && !ran.err.contains("aHVudGVyMg"), "{}", ran.err);
}

#[test]
fn a_path_at_which_no_object_has_a_value_is_named() {
    let rig = rig();
    let ran = rig.run(&["get", "pods", "-o", "name", "--sort-by", "{.spec.nodName}"]).succeeded();
    assert_eq!((ran.out.lines().count(), ran.err.as_str()), (3, "! no pod has a value at spec.nodName\n"));
    let ran = rig.run(&["get", "pods", "-o", "name", "--by", "status.phas=Running"]).succeeded();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", "! no pod has a value at status.phas\n"));
    let ran = rig.run(&["get", "pods", "-o", "name", "--by", "status.phase=Running", "--sort-by", "spec.nodeName"]);
    assert_eq!(ran.succeeded().err, "");
}

#[test]
fn whole_objects_come_as_json_and_yaml() {
    let rig = rig();
    let one: Value = serde_json::from_str(&rig.run(&["get", "pod", "a", "-o", "json"]).succeeded().out).unwrap();
    assert_eq!((&one["kind"], &one["metadata"]["name"]), (&json!("Pod"), &json!("a")));
    let all: Value = serde_json::from_str(&rig.run(&["get", "pods", "-o", "json"]).succeeded().out).unwrap();
    assert_eq!((&all["kind"], all["items"].as_array().map(Vec::len)), (&json!("List"), Some(3)));
    assert_eq!(all["items"][0]["kind"], "Pod");
    let yaml = rig.run(&["get", "pod", "a", "-o", "yaml"]).succeeded().out;
    assert!(yaml.contains("kind: Pod") && yaml.contains("podIP: \"10.0.0.1\""), "{yaml}");
    assert_eq!(rig.run(&["get", "pods", "-o", "name"]).succeeded().out, "pod/a\npod/b\npod/c\n");
    rig.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {"k": "aHVudGVyMg=="}}));
    assert!(!rig.run(&["get", "secret", "s", "-o", "yaml"]).succeeded().out.contains("aHVudGVyMg=="));
}

#[test]
fn managed_fields_are_shown_only_if_asked_for() {
    let rig = Rig::new();
    let mut pod = pod("a", "node-1", "10.0.0.1", "web", 0);
    pod["metadata"]["managedFields"] = json!([{"manager": "tester", "operation": "Update", "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}}}]);
    rig.server.load([pod]).expect("loaded");
    for args in [
        &["get", "pod", "a", "-o", "json"][..],
        &["get", "pods", "-o", "yaml"],
        &["watch", "pods", "-o", "json", "--until", "synced"],
        &["watch", "pods", "-o", "yaml", "--until", "synced", "--diff"],
    ] {
        assert!(!rig.run(args).succeeded().out.contains("managedFields"), "{args:?}");
        let args = [args, &["--show-managed-fields"]].concat();
        assert!(rig.run(&args).succeeded().out.contains("managedFields"), "{args:?}");
    }
}

#[test]
fn unknown_names_and_invalid_requests_are_reported() {
    let rig = rig();
    let ran = rig.run(&["get", "pods", "zebra"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(3), "error: pods \"zebra\" not found\n"));
    let ran = rig.run(&["get", "pods", "a", "zebra", "b", "yak", "-o", "name"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(3), "pod/a\npod/b\n"));
    assert_eq!(ran.err, "error: pods \"zebra\", \"yak\" not found\n");
    let ran = rig.run(&["get", "pods", "-n", "empty"]).succeeded();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", "nothing found in namespace empty\n"));
    assert_eq!(rig.run(&["get", "pods", "--where", "status.phase =="]).code, Some(2));
    let ran = rig.run(&["get", "pods", "--where", "metadata.name"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("not true or false"), "{}", ran.err);
}

#[test]
fn a_custom_kind_has_the_columns_its_definition_asks_for() {
    let rig = Rig::with(|builder| builder.first_access(kube_embedded::FirstAccess::Served));
    rig.create(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "additionalPrinterColumns": [
                    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}, {"name": "Color", "type": "string", "jsonPath": ".spec.color"}],
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }));
    rig.create(&json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}, "spec": {"size": 3}}));
    rig.create(&json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x", "namespace": "default"}, "spec": {"color": "red"}}));
    let expected = "NAME   SIZE   COLOR\nw      3\nx             red\n";
    assert_eq!(rig.run(&["get", "widgets"]).succeeded().out, expected);
}

#[test]
fn a_deleted_row_of_a_live_table_lingers() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    rig.config_map("b", "1");
    let url = rig.server.url();
    let mut live = Live::start(100, 20, &["get", "cm", "--watch", "--server", &url]);
    live.until(|lines| lines.iter().any(|line| line.starts_with("b ")));
    rig.server.objects("v1", "ConfigMap").unwrap().delete("a").unwrap();
    live.until(|lines| lines.iter().any(|line| line.starts_with("a ") && line.ends_with("(gone)")));
    live.until(|lines| !lines.iter().any(|line| line.starts_with("a ")));
    assert_eq!(live.interrupt(), Some(0));
}

#[test]
fn a_live_table_marks_what_changed() {
    let rig = rig();
    let url = rig.server.url();
    let mut live = Live::start(100, 20, &["get", "pods", "--watch", "--server", &url]);
    let row = |lines: &[String], name: &str| {
        lines.iter().find(|line| line.split_whitespace().next() == Some(name)).cloned().unwrap_or_default()
    };
    live.until(|lines| !row(lines, "c").is_empty());
    rig.server.update_status(&pod("a", "node-1", "10.0.0.1", "web", 4)).unwrap();
    live.until(|lines| row(lines, "a").split_whitespace().nth(3) == Some("4"));
    assert!(live.terminal.cells().iter().flatten().any(|cell| cell.colour.0 == 7), "{:#?}", live.terminal.lines());
    rig.server.load([pod("d", "node-1", "10.0.0.4", "db", 0)]).unwrap();
    live.until(|lines| !row(lines, "d").is_empty());
    assert!(live.terminal.is_alternate());
    assert_eq!(live.interrupt(), Some(0));
    assert!(!live.terminal.cursor_hidden() && !live.terminal.is_alternate());
    assert!(!row(&live.terminal.lines(), "d").is_empty(), "the last rows stay: {:#?}", live.terminal.lines());
}

#[test]
fn a_failure_ends_a_live_table_and_shows_the_cursor_again() {
    let rig = Rig::new();
    rig.config_map("a", "7");
    let url = rig.server.url();
    let mut live = Live::start(100, 20, &["get", "cm", "--watch", "--where", "int(data.k) > 5", "--server", &url]);
    live.until(|lines| lines.iter().any(|line| line.starts_with("a ")));
    rig.server.update(&config_map("a", "x")).unwrap();
    assert_eq!(live.end(), Some(2), "{:#?}", live.terminal.lines());
    assert!(!live.terminal.cursor_hidden());
}

#[test]
fn into_a_pipe_a_live_table_prints_what_changed() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let mut live = Running::start(&mut rig.command(&["get", "cm", "--watch"]));
    assert_eq!(live.line(), "NAME   DATA   AGE");
    assert!(live.line().starts_with("a      1      "));
    rig.config_map("b", "1");
    assert!(live.line().starts_with("b      1      "));
    rig.server.objects("v1", "ConfigMap").unwrap().delete("a").unwrap();
    let line = live.line();
    assert!(line.starts_with("a      1      ") && line.ends_with("(gone)"), "{line}");
    live.signal("INT");
    assert_eq!(live.end().0, Some(0));
}

#[test]
fn a_row_that_no_longer_matches_is_not_called_gone() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    rig.config_map("b", "1");
    let mut live =
        Running::start(&mut rig.command(&["get", "cm", "--watch", "--no-headers", "--where", "data.k == '1'"]));
    assert!(live.line().starts_with("a "));
    assert!(live.line().starts_with("b "));
    rig.server.update(&config_map("a", "2")).unwrap();
    let line = live.line();
    assert!(line.starts_with("a ") && line.ends_with("(no longer matches)"), "{line}");
    live.signal("INT");
    assert_eq!(live.end().0, Some(0));
}

#[test]
fn nothing_that_is_got_of_a_secret_gives_it_away() {
    let rig = Rig::new();
    let secret = |value: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "data": {"password": value},
            "metadata": {"name": "s", "namespace": "default",
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": format!("{{\"data\":\"{value}\"}}")}},
        })
    };
    const HIDDEN: &str = "aHVudGVyMg==";
    rig.create(&secret(HIDDEN));
    for args in [
        &["-o", "json"][..],
        &["-o", "yaml"],
        &["-o", "wide"],
        &["-o", "name"],
        &["s", "-o", "yaml"],
        &["--by", "data.password=aHVudGVyMg=="],
        &["--sort-by", ".data.password", "-o", "json"],
        &["--where", "data.password == 'aHVudGVyMg=='", "-o", "json"],
        &["--watch", "--for", "50ms", "-o", "wide"],
    ] {
        let ran = rig.run(&[&["get", "secrets"], args].concat()).succeeded();
        assert!(ran.out.contains('s') && !ran.out.contains(HIDDEN) && !ran.err.contains(HIDDEN), "{args:?}: {ran:#?}");
    }
    for expression in
        ["data.password", "data.password > 3", "data.password + 1", "data.password.size().x", "int(data.password) > 1"]
    {
        let ran = rig.run(&["get", "secrets", "--where", expression]);
        assert!(!ran.out.contains(HIDDEN) && !ran.err.contains(HIDDEN), "{expression}: {ran:#?}");
        let watched = rig.run(&["get", "secrets", "--watch", "--for", "50ms", "--where", expression]);
        assert!(!watched.out.contains(HIDDEN) && !watched.err.contains(HIDDEN), "{expression}: {watched:#?}");
    }
    let shown = rig.run(&["get", "secrets", "s", "-o", "json", "--show-secrets"]).succeeded();
    assert!(shown.out.contains(HIDDEN), "{shown:#?}");
}

#[test]
fn a_server_that_does_not_answer_in_time_is_given_up_if_a_time_was_given() {
    use kube_embedded::faults::{Fault, Rule};
    let rig = rig();
    rig.server.faults().inject(Rule::new(Fault::Delay(std::time::Duration::from_secs(3_600))).resource("", "pods"));
    let ran = rig.run(&["get", "pods", "--request-timeout", "100ms"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(5), ""), "{ran:#?}");
    assert!(ran.err.contains("no full answer within 100ms") && ran.err.contains("Is the server up"), "{}", ran.err);
}

#[test]
fn a_sync_that_takes_a_while_shows_how_far_it_is() {
    use kube_embedded::faults::{Fault, Rule};
    let rig = rig();
    rig.server.faults().inject(Rule::new(Fault::Delay(std::time::Duration::from_secs(3_600))).resource("", "pods"));
    let url = rig.server.url();
    let mut live = Live::start(100, 20, &["get", "pods", "--server", &url]);
    live.until(|lines| lines.iter().any(|line| line == "pods: 0 objects so far, 0/s"));
    assert_eq!(live.interrupt(), None, "no summary: a signal ends it as it ends any program");
}

#[test]
fn a_live_table_is_sorted_too_and_has_no_colours_where_none_are_wanted() {
    let rig = rig();
    let url = rig.server.url();
    let args = ["get", "pods", "--watch", "--server", &url, "--sort-by", "{.spec.nodeName}"];
    let mut live = Live::start_with(100, 20, &args, &[("NO_COLOR", "1")]);
    live.until(|lines| lines.iter().any(|line| line.starts_with("b ")));
    let lines = live.terminal.lines();
    assert_eq!(names(&lines.join("\n"))[..4], ["NAME", "a", "c", "b"]);
    // The selection is marked all the same.
    let is_plain = |colour: u32| matches!(colour, 0 | 7);
    assert!(live.terminal.cells().iter().flatten().all(|cell| is_plain(cell.colour.0)), "{:#?}", live.terminal.lines());
    assert_eq!(live.interrupt(), Some(0));
}
