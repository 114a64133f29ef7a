//! End-to-end tests of the `watch` command.

use crate::support::{Rig, Running, config_map};
use kube_embedded::Verb;
use kube_embedded::access::{Access, Rule as AccessRule};
use kube_embedded::faults::{Fault, Rule};
use serde_json::{Value, json};

#[test]
fn existing_objects_are_printed_and_then_changes() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let mut watch = rig.spawn(&["watch", "configmaps", "--until", "count=4"]);
    assert_eq!(watch.line(), "+ configmap default/a");
    rig.server.update(&config_map("a", "2")).unwrap();
    assert_eq!(watch.line(), "~ configmap default/a  data.k 1→2");
    rig.config_map("b", "1");
    assert_eq!(watch.line(), "+ configmap default/b");
    rig.server.objects("v1", "ConfigMap").unwrap().delete("a").unwrap();
    assert_eq!(watch.line(), "- configmap default/a");
    let (code, err) = watch.end();
    assert_eq!(code, Some(0), "{err}");
    assert!(err.starts_with("2 added, 1 updated, 1 deleted in "), "{err}");
    assert!(err.trim_end().ends_with("1 object in the cache"), "{err}");
}

#[test]
fn several_kinds_by_short_names_and_definitions_too() {
    let rig = Rig::with(|builder| builder.first_access(kube_embedded::FirstAccess::Served));
    rig.config_map("a", "1");
    rig.create(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wi"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    }));
    rig.create(
        &json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "default"}}),
    );
    let ran = rig.run(&["watch", "cm,wi", "ns", "-A", "--until", "synced"]).succeeded();
    assert_eq!(
        ran.sorted(),
        [
            "+ configmap default/a",
            "+ namespace default  Active",
            "+ namespace kube-node-lease  Active",
            "+ namespace kube-public  Active",
            "+ namespace kube-system  Active",
            "+ widget    default/w",
        ]
    );
}

#[test]
fn every_format_shows_the_same_events() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let output = |form: &str| rig.run(&["watch", "cm", "-o", form, "--until", "synced"]).succeeded().out;
    assert_eq!(output("name"), "configmap/a\n");
    let event: Value = serde_json::from_str(&output("json")).unwrap();
    assert_eq!((&event["type"], &event["object"]["data"]["k"]), (&json!("ADDED"), &json!("1")));
    assert_eq!(event["object"]["kind"], "ConfigMap");
    let yaml = output("yaml");
    assert!(yaml.starts_with("---\n") && yaml.contains("type: ADDED") && yaml.contains("kind: ConfigMap"), "{yaml}");
    let wide = output("wide");
    assert!(wide.contains("+ configmap default/a @") && wide.trim_end().ends_with(" initial"), "{wide}");
}

#[test]
fn a_diff_shows_old_and_new_and_who_wrote_it() {
    let rig = Rig::new();
    let map = |value: &str, manager: &str| {
        let mut map = config_map("a", value);
        map["metadata"]["managedFields"] = json!([{
            "manager": manager, "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:k": {}}},
        }]);
        map
    };
    rig.create(&map("1", "tester"));
    let mut watch = rig.spawn(&["watch", "cm", "--diff", "--until", "count=2"]);
    assert_eq!(watch.line(), "+ configmap default/a");
    rig.server.update(&map("2", "editor")).unwrap();
    assert_eq!(watch.line(), "~ configmap default/a  data.k 1→2");
    assert_eq!(watch.line(), "    data.k: 1 → 2  (editor)");
    assert_eq!(watch.end().0, Some(0));
}

#[test]
fn a_diff_shows_values_of_any_length_in_full() {
    let rig = Rig::new();
    let (old, new) = (format!("{}old", "x".repeat(100)), format!("{}new\n", "x".repeat(100)));
    rig.config_map("a", &old);
    let mut watch = rig.spawn(&["watch", "cm", "--diff", "--until", "count=2"]);
    assert_eq!(watch.line(), "+ configmap default/a");
    rig.server.update(&config_map("a", &new)).unwrap();
    assert_eq!(watch.line(), "~ configmap default/a  data.k …xxxxxxxxold→…xxxxxxxxnew\\n");
    let fields = watch.line();
    let expected = format!("    data.k: {old} → {}\\n", new.trim_end());
    assert!(fields.starts_with(&expected), "{fields}");
    assert_eq!(watch.end().0, Some(0));
}

#[test]
fn a_secret_is_not_shown_by_default() {
    let rig = Rig::new();
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {"password": value}});
    rig.create(&secret("aHVudGVyMg=="));
    let output = |args: &[&str]| {
        rig.run(&[&["watch", "secrets", "--until", "synced", "-o", "json"], args].concat()).succeeded().out
    };
    assert!(!output(&[]).contains("aHVudGVyMg=="));
    assert!(output(&["--show-secrets"]).contains("aHVudGVyMg=="));
    let mut watch = rig.spawn(&["watch", "secrets", "--diff", "--until", "count=3"]);
    assert_eq!(watch.line(), "+ secret default/s");
    rig.server.update(&secret("b3RoZXI=")).unwrap();
    assert_eq!(watch.line(), "~ secret default/s  data.password ***");
    assert_eq!(watch.line(), "    data.password: *** → ***");
    let mut renamed = secret("b3RoZXI=");
    renamed["data"] = json!({"other": "b3RoZXI="});
    rig.server.update(&renamed).unwrap();
    assert_eq!(watch.line(), "~ secret default/s  data.other ***, data.password ***");
    assert_eq!(watch.line(), "    data.other: ∅ → ***");
    assert_eq!(watch.line(), "    data.password: *** → ∅");
    assert_eq!(watch.end().0, Some(0));
}

#[test]
fn only_selected_objects_are_printed() {
    let rig = Rig::new();
    for (name, app) in [("a", "web"), ("b", "web"), ("c", "db")] {
        let mut map = config_map(name, "1");
        map["metadata"]["labels"] = json!({"app": app});
        rig.create(&map);
    }
    let named = |args: &[&str]| {
        let ran = rig.run(&[&["watch", "cm", "--until", "synced", "-o", "name"], args].concat()).succeeded();
        ran.sorted().iter().map(|line| (*line).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(named(&["-l", "app=web"]), ["configmap/a", "configmap/b"]);
    assert_eq!(named(&["--field-selector", "metadata.name=c"]), ["configmap/c"]);
    assert_eq!(named(&["-n", "kube-system"]), Vec::<String>::new());
    assert_eq!(named(&["--only", "deleted"]), Vec::<String>::new());
    assert_eq!(named(&["--no-initial"]), Vec::<String>::new());
}

#[test]
fn a_lost_server_is_reported_and_so_is_its_return() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let mut watch = rig.spawn(&["watch", "cm", "--until", "count=2"]);
    assert_eq!(watch.line(), "+ configmap default/a");
    rig.runtime.block_on(rig.server.refuse());
    rig.server.cut();
    rig.config_map("b", "1");
    let mut err = std::io::BufReader::new(watch.child.stderr.take().unwrap());
    let mut said = String::new();
    std::io::BufRead::read_line(&mut err, &mut said).unwrap();
    assert!(said.starts_with("! configmaps: ") && said.contains("retrying in"), "{said}");
    rig.runtime.block_on(rig.server.accept());
    assert_eq!(watch.line(), "+ configmap default/b");
    assert_eq!(watch.end().0, Some(0));
}

#[test]
fn a_dead_server_is_not_reported_as_connected_again_by_retries() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let mut watch = rig.spawn(&["watch", "cm", "--until", "count=2"]);
    assert_eq!(watch.line(), "+ configmap default/a");
    let dead = rig.server.faults().inject(Rule::new(Fault::Disconnect));
    rig.server.cut();
    while dead.count() < 4 {
        std::thread::yield_now();
    }
    dead.remove();
    let mut err = std::io::BufReader::new(watch.child.stderr.take().unwrap());
    let mut lines = Vec::new();
    while !lines.last().is_some_and(|line: &String| line.contains("connected again after ")) {
        let mut line = String::new();
        assert_ne!(std::io::BufRead::read_line(&mut err, &mut line).unwrap(), 0, "{lines:?}");
        lines.push(line);
    }
    lines.pop();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("; retrying")), "{lines:?}");
    assert!(lines.len() <= 2, "each cause once: {lines:?}");
    rig.config_map("b", "1");
    assert_eq!(watch.line(), "+ configmap default/b");
    assert_eq!(watch.end().0, Some(0));
}

#[test]
fn a_missing_permission_to_watch_is_reported_once_though_lists_succeed() {
    let access = |with: Option<Verb>| {
        let rule = AccessRule::new().verb(Verb::List).verb(Verb::Get).resource("", "configmaps");
        let rule = with.into_iter().fold(rule, AccessRule::verb);
        Access::closed().allow(AccessRule::new().path("/api").path("/apis")).allow(rule)
    };
    let rig = Rig::with(|builder| builder.access(access(None)));
    rig.config_map("a", "1");
    let mut watch = rig.spawn(&["watch", "cm", "--until", "count=3"]);
    assert_eq!(watch.line(), "+ configmap default/a");
    let mut err = std::io::BufReader::new(watch.child.stderr.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut err, &mut line).unwrap();
        line
    };
    assert!(line().contains("403 Forbidden"));
    // Listed again, though the watch is still refused.
    rig.config_map("b", "1");
    assert_eq!(watch.line(), "+ configmap default/b");
    rig.server.set_access(access(Some(Verb::Watch)));
    assert!(line().starts_with("! configmaps: connected again after "));
    rig.config_map("c", "1");
    assert_eq!(watch.line(), "+ configmap default/c");
    assert_eq!(watch.end().0, Some(0));
}

#[test]
fn a_request_that_the_server_rejects_ends_it_with_the_servers_words() {
    let rig = Rig::new();
    for args in [&["watch", "cm"][..], &["get", "cm"], &["get", "cm", "-w"]] {
        let ran = rig.run(&[args, &["--field-selector", "data.k=1"]].concat());
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert!(ran.err.contains("\"data.k\" is not a known field selector"), "{}", ran.err);
    }
}

#[test]
fn a_signal_ends_it_cleanly_with_a_summary() {
    for signal in ["INT", "TERM"] {
        let rig = Rig::new();
        rig.config_map("a", "1");
        let mut watch = rig.spawn(&["watch", "cm"]);
        assert_eq!(watch.line(), "+ configmap default/a");
        watch.signal(signal);
        let (code, err) = watch.end();
        assert_eq!(code, Some(0), "{signal}: {err}");
        assert!(err.contains("1 added, 0 updated, 0 deleted"), "{signal}: {err}");
    }
}

#[test]
fn a_closed_output_is_no_failure() {
    let rig = Rig::new();
    for number in 0..2_000 {
        rig.config_map(&format!("some-config-map-with-a-long-name-{number:04}"), "1");
    }
    let mut command = rig.command(&["watch", "cm", "-o", "json", "--until", "synced"]);
    let mut watch = Running::start(&mut command);
    watch.line();
    let err = watch.hang_up();
    assert_eq!(err.0, Some(0), "{}", err.1);
    assert!(!err.1.contains("panicked") && !err.1.contains("error"), "{}", err.1);
}

#[test]
fn a_closed_standard_error_is_no_failure() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = rig.command(&["watch", "cm", "--until", "count=2"]);
    let mut child = command.stdout(writer.try_clone().unwrap()).stderr(writer).spawn().unwrap();
    // The `Command` keeps the write ends of the pipe open.
    drop(command);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(reader));
    assert_eq!(lines.next().unwrap().unwrap(), "+ configmap default/a");
    drop(lines);
    rig.config_map("b", "1");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn it_ends_after_the_time_it_was_given() {
    let rig = Rig::new();
    let ran = rig.run(&["watch", "cm", "--until", "for=50ms"]).succeeded();
    assert_eq!(ran.out, "");
}

#[test]
fn everything_is_printed_again_at_the_resync_interval() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    let ran = rig.run(&["watch", "cm", "--resync", "20ms", "--until", "count=3"]).succeeded();
    assert_eq!(ran.out, "+ configmap default/a\n~ configmap default/a  (resync)\n~ configmap default/a  (resync)\n");
}

#[test]
fn only_the_selected_types_of_events_are_printed() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    rig.config_map("b", "1");
    let mut all = rig.spawn(&["watch", "cm"]);
    let mut some = rig.spawn(&["watch", "cm", "--only", "added,deleted", "--no-initial", "--until", "count=2"]);
    // After these two lines both initial lists exist; the second command's watch is awaited at the
    // server.
    all.line();
    all.line();
    while rig.server.watches().len() < 2 {
        std::thread::yield_now();
    }
    rig.server.update(&config_map("a", "2")).unwrap();
    rig.server.objects("v1", "ConfigMap").unwrap().delete("a").unwrap();
    rig.config_map("c", "1");
    assert_eq!((some.line(), some.line()), ("- configmap default/a".to_owned(), "+ configmap default/c".to_owned()));
    assert_eq!(some.end().0, Some(0));
    all.signal("INT");
    assert_eq!(all.end().0, Some(0));
}
