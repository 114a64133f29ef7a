//! What people are used to from kubectl: flags, names and formats of `get`.

use std::fs;

use crate::support::{Ran, Rig, command};
use kube_embedded::access::{Access, User};
use kube_embedded::{FirstAccess, Server};
use serde_json::{Value, json};

/// A config map, a service, a deployment with its pods, and a config map elsewhere.
fn rig() -> Rig {
    let rig = Rig::with(|builder| builder.first_access(FirstAccess::Served));
    let meta = |name: &str, labels: Value| json!({"name": name, "namespace": "default", "labels": labels});
    let pod = |name: &str, phase: &str, memory: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": meta(name, json!({"app": "web", "tier": name})),
            "spec": {"nodeName": "node-1", "containers": [{"name": "c", "image": "i:1", "resources": {"requests": {"memory": memory}}}]},
            "status": {"phase": phase},
        })
    };
    let objects = [
        pod("one", "Running", "64Mi"),
        pod("two", "Pending", "2Gi"),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("a", json!({})), "data": {"k": "v"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b", "namespace": "kube-system"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("front", json!({})), "spec": {"ports": [{"port": 80}], "clusterIP": "10.0.0.9"}}),
    ];
    rig.server.load(objects).expect("loaded");
    rig
}

fn out(rig: &Rig, args: &[&str]) -> String {
    rig.run(&[&["get"], args].concat()).succeeded().out
}

#[test]
fn flags_may_stand_before_the_subcommand_and_those_after_it_win() {
    let rig = rig();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, rig.server.kubeconfig()).unwrap();
    let file = file.to_str().unwrap();
    let ran = |args: &[&str]| Ran::of(&mut command(args)).succeeded().out;
    assert_eq!(ran(&["-n", "kube-system", "--kubeconfig", file, "get", "cm", "-o", "name"]), "configmap/b\n");
    assert_eq!(ran(&["-n", "x", "--kubeconfig", file, "get", "cm", "-n", "default", "-o", "name"]), "configmap/a\n");
    let kubeconfig: Value = serde_saphyr::from_str(&rig.server.kubeconfig()).unwrap();
    let context = kubeconfig["current-context"].as_str().unwrap();
    let args = ["--context", context, "--kubeconfig", file, "watch", "cm", "--until", "synced", "-o", "name"];
    assert_eq!(ran(&args), "configmap/a\n");
    let wrong = Ran::of(&mut command(&["--context", "nobody", "--kubeconfig", file, "get", "cm"]));
    assert_eq!(wrong.code, Some(2), "{wrong:#?}");
}

#[test]
fn several_kinds_are_printed_one_after_the_other_with_their_kind() {
    let rig = rig();
    let tables = out(&rig, &["cm,svc"]);
    let (maps, services) = tables.split_once("\n\n").expect("an empty line between the tables");
    assert!(maps.starts_with("NAME ") && maps.contains("\nconfigmap/a "), "{tables}");
    assert!(services.starts_with("NAME ") && services.contains("\nservice/front "), "{tables}");
    assert_eq!(out(&rig, &["cm,svc", "-o", "name"]), "configmap/a\nservice/front\nservice/kubernetes\n");
    let list: Value = serde_json::from_str(&out(&rig, &["cm,svc", "-o", "json"])).unwrap();
    assert_eq!((&list["kind"], &list["items"][1]["kind"]), (&json!("List"), &json!("Service")));

    let all = out(&rig, &["all"]);
    assert!(all.contains("pod/one ") && all.contains("service/front ") && !all.contains("configmap/"), "{all}");
    let kinds = rig.run(&["get", "nodes,cm", "--no-headers"]).succeeded();
    assert!(kinds.out.starts_with("configmap/a "), "an empty kind prints nothing: {kinds:#?}");
}

#[test]
fn objects_are_named_as_in_kubectl() {
    let rig = rig();
    assert_eq!(out(&rig, &["po/one", "-o", "name"]), "pod/one\n");
    assert_eq!(out(&rig, &["po/two", "svc/front", "-o", "name"]), "pod/two\nservice/front\n");
    assert_eq!(out(&rig, &["pods", "two", "one", "-o", "name"]), "pod/two\npod/one\n");
    let one: Value = serde_json::from_str(&out(&rig, &["pod/one", "-o", "json"])).unwrap();
    assert_eq!(one["kind"], "Pod", "a single object is no list");
    let table = out(&rig, &["pod/one"]);
    assert!(table.contains("\none "), "a single kind has no prefix: {table}");
    for (args, code, message) in [
        (&["po/one", "svc"][..], 2, "error: svc: with KIND/NAME, every argument has to be of that form\n"),
        (&["po/"], 2, "error: po/: write KIND/NAME\n"),
        (&["po/one", "po/nix"], 3, "error: pods \"nix\" not found\n"),
    ] {
        let ran = rig.run(&[&["get"], args].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(code), message), "{args:?}: {ran:#?}");
    }
}

#[test]
fn labels_are_columns() {
    let rig = rig();
    let table = out(&rig, &["pods", "-L", "app,tier"]);
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0][5..], ["APP", "TIER"]);
    assert_eq!(lines[1][5..], ["web", "one"]);
    let table = out(&rig, &["pods", "--show-labels"]);
    assert!(table.lines().next().unwrap().ends_with(" LABELS") && table.contains(" app=web,tier=one\n"), "{table}");
    assert!(out(&rig, &["cm", "--show-labels"]).ends_with(" <none>\n"));
}

#[test]
fn templates_and_columns_are_kubectls() {
    let rig = rig();
    for (args, expected) in [
        (&["pods", "-o", "jsonpath={.items[*].metadata.name}"][..], "one two"),
        (
            &["pods", "-o", "jsonpath={range .items[*]}{.metadata.name}{'\\t'}{.status.phase}{'\\n'}{end}"],
            "one\tRunning\ntwo\tPending\n",
        ),
        (&["pods", "-o", "jsonpath={.items[?(@.status.phase=='Pending')].metadata.name}"], "two"),
        (&["pod", "one", "-o", "jsonpath={.spec.containers[0].image}"], "i:1"),
        (
            &["pods", "-o", "custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image,NO:.spec.no"],
            "NAME   IMAGES   NO\none    i:1      <none>\ntwo    i:1      <none>\n",
        ),
        (&["pods", "-o", "custom-columns=NAME:.metadata.name", "--no-headers"], "one\ntwo\n"),
    ] {
        assert_eq!(out(&rig, args), expected, "{args:?}");
    }
    for wrong in ["jsonpath={.a", "custom-columns=NAME", "go-template={{.a}}", "jsonpath="] {
        let ran = rig.run(&["get", "pods", "-o", wrong]);
        assert_eq!(ran.code, Some(2), "{wrong}: {ran:#?}");
    }
}

#[test]
fn what_does_not_exist_may_be_ignored() {
    let rig = rig();
    let ran = rig.run(&["get", "pods", "nix", "--ignore-not-found"]).succeeded();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    let ran = rig.run(&["get", "pods", "nix", "one", "--ignore-not-found", "-o", "name"]).succeeded();
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("pod/one\n", ""));
}

#[test]
fn kinds_are_shown_and_chunks_have_the_size_that_is_asked_for() {
    let rig = rig();
    assert!(out(&rig, &["cm", "--show-kind"]).contains("\nconfigmap/a "));
    let limits = |args: &[&str]| {
        rig.server.forget_requests();
        out(&rig, args);
        let requests = rig.server.requests();
        requests
            .iter()
            .filter(|request| request.path.ends_with("/pods"))
            .map(|request| request.query.clone())
            .collect::<Vec<_>>()
    };
    let small = limits(&["pods", "--chunk-size", "1"]);
    assert!(small.len() == 2 && small.iter().all(|query| query.contains("limit=1")), "{small:?}");
    let default = limits(&["pods"]);
    assert!(default.len() == 1 && default[0].contains("limit=500"), "{default:?}");
    assert_eq!(limits(&["pods", "--chunk-size", "0"]).len(), 1);
}

#[test]
fn conditions_add_up_and_know_times_and_quantities() {
    let rig = rig();
    let found = |conditions: &[&str]| {
        let flags = conditions.iter().flat_map(|condition| ["--where", *condition]);
        out(&rig, &["pods", "-o", "name"].into_iter().chain(flags).collect::<Vec<_>>())
    };
    assert_eq!(found(&["status.phase == 'Running'"]), "pod/one\n");
    assert_eq!(found(&["status.phase == 'Running'", "metadata.name == 'two'"]), "");
    assert_eq!(found(&["quantity(spec.containers[0].resources.requests.memory) > quantity('1Gi')"]), "pod/two\n");
    assert_eq!(found(&["now - timestamp(metadata.creationTimestamp) < duration('24h')"]), "pod/one\npod/two\n");
    assert_eq!(found(&["now - timestamp(metadata.creationTimestamp) > duration('24h')"]), "");
}

fn guarded() -> (Server, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let access = Access::closed().token("secret-token", User::new("admin").group("system:masters"));
    let server = runtime.block_on(Server::builder().tls().access(access).start()).unwrap();
    (server, runtime)
}

#[test]
fn a_server_is_trusted_by_its_authority_or_blindly_and_gets_a_token() {
    let (server, _runtime) = guarded();
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("ca.crt");
    fs::write(&authority, server.certificate_authority().expect("TLS")).unwrap();
    let url = server.url();
    let get = |args: &[&str]| {
        let args = [&["get", "ns", "default", "-o", "name", "--server", &url], args].concat();
        Ran::of(&mut command(&args))
    };
    let authority = authority.to_str().unwrap();
    let trusted = get(&["--certificate-authority", authority, "--token", "secret-token"]).succeeded();
    assert_eq!(trusted.out, "namespace/default\n");
    let blind = get(&["--insecure-skip-tls-verify", "--token", "secret-token"]).succeeded();
    assert_eq!(blind.out, "namespace/default\n");

    let unknown = get(&["--token", "secret-token"]);
    assert_eq!(unknown.code, Some(5), "{unknown:#?}");
    assert!(unknown.err.contains("certificate") && unknown.err.contains(&url), "{}", unknown.err);
    let stranger = get(&["--insecure-skip-tls-verify", "--token", "wrong-token"]);
    assert_eq!(stranger.code, Some(4), "{stranger:#?}");
    assert!(stranger.err.contains("401") && !stranger.err.contains("wrong-token"), "{}", stranger.err);
    let missing = get(&["--certificate-authority", "/nonexistent/ca.crt"]);
    assert_eq!(missing.code, Some(2), "{missing:#?}");
    assert!(missing.err.contains("/nonexistent/ca.crt"), "{}", missing.err);

    let logged = get(&["--insecure-skip-tls-verify", "--token", "secret-token", "-v=6"]).succeeded();
    let request = logged.err.lines().find(|line| line.contains("/api/v1/namespaces")).expect("a request");
    assert!(
        request.starts_with(&format!("GET {}", url.trim_end_matches('/'))) && request.contains("200 OK in "),
        "{request}"
    );
    assert!(!logged.err.contains("secret-token"), "{}", logged.err);
}

#[test]
fn tables_are_coloured_where_that_is_wanted() {
    let rig = rig();
    let coloured = out(&rig, &["pods", "--color", "always"]);
    assert!(coloured.contains("\x1b[32mRunning\x1b[0m") && coloured.contains("\x1b[33mPending\x1b[0m"), "{coloured:?}");
    assert!(!out(&rig, &["pods"]).contains('\x1b'), "a pipe has no colours");
    let url = rig.server.url();
    let mut live = crate::support::pty::Live::start(100, 20, &["get", "pods", "--server", &url]);
    assert_eq!(live.end(), Some(0));
    assert!(live.terminal.cells().iter().flatten().any(|cell| cell.colour.0 == 32), "{:#?}", live.terminal);
}
