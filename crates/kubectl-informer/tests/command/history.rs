//! What happened: `watch --since`, recordings, and their replay by `watch`, `top` and `apiserver`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::pty::Live;
use crate::support::{Ran, Rig, Running, command, config_map};
use serde_json::{Value, json};
use tempfile::TempDir;

fn managed(mut object: Value, manager: &str, time: &str, fields: &Value) -> Value {
    object["metadata"]["managedFields"] = json!([{"manager": manager, "operation": "Update", "apiVersion": "v1",
        "time": time, "fieldsType": "FieldsV1", "fieldsV1": fields}]);
    object
}

#[test]
fn since_shows_what_managed_fields_tell_of_the_time_before() {
    let rig = Rig::new();
    let now = jiff::Timestamp::now();
    let ago = |seconds: i64| {
        let at = now.checked_sub(jiff::SignedDuration::from_secs(seconds)).unwrap();
        format!("{}Z", &at.to_string()[..19])
    };
    let created = |name: &str, time: &str| {
        let mut map = config_map(name, "1");
        map["metadata"]["creationTimestamp"] = json!(time);
        map
    };
    let fields = json!({"f:data": {"f:k": {}}});
    rig.server
        .load([
            managed(created("old", &ago(90_000)), "editor", &ago(600), &fields),
            managed(created("older", &ago(90_000)), "editor", &ago(80_000), &fields),
            created("young", &ago(60)),
        ])
        .unwrap();
    let mut watch = rig.spawn(&["watch", "cm", "--since", "1h", "--until", "count=1"]);
    assert_eq!(watch.line(), format!("{} ~ configmap default/old  data.k  (editor)", ago(600)));
    assert_eq!(watch.line(), format!("{} + configmap default/young  created", ago(60)));
    rig.server.update(&config_map("young", "2")).unwrap();
    assert_eq!(watch.line(), "~ configmap default/young  data.k 1→2");
    assert_eq!(watch.end().0, Some(0));
}

/// Records two config maps and a secret, of which one is changed twice and the other deleted.
fn record() -> (Rig, TempDir, PathBuf) {
    let rig = Rig::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("incident.jsonl");
    let fields = || json!({"f:data": {"f:k": {}}});
    rig.config_map("a", "1");
    rig.config_map("b", "1");
    rig.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": {"k": "aHVudGVyMg=="}}));
    let mut watch = rig.spawn(&["watch", "cm,secrets", "--record", file.to_str().unwrap(), "--until", "count=6"]);
    for _ in 0..3 {
        watch.line();
    }
    let time = "2026-01-01T00:00:00Z";
    rig.server.update(&managed(config_map("a", "2"), "editor", time, &fields())).unwrap();
    watch.line();
    rig.server.update(&managed(config_map("a", "3"), "robot", time, &fields())).unwrap();
    watch.line();
    rig.server.objects("v1", "ConfigMap").unwrap().delete("b").unwrap();
    watch.line();
    assert_eq!(watch.end().0, Some(0));
    (rig, folder, file)
}

/// Runs the command without any server.
fn offline(args: &[&str]) -> Ran {
    Ran::of(&mut command(args))
}

#[test]
fn a_recording_is_read_again_without_a_server() {
    let (_rig, _folder, file) = record();
    let path = file.to_str().unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).unwrap().contains("aHVudGVyMg"), "the data of a Secret is not kept");

    let all = offline(&["watch", "cm", "--replay", path]).succeeded();
    let expected = "\
+ configmap default/a
+ configmap default/b
~ configmap default/a  data.k 1→2
~ configmap default/a  data.k 2→3
- configmap default/b
";
    assert_eq!(all.out, expected);
    assert!(all.err.ends_with("; from a recording\n"), "{}", all.err);
    let one = offline(&["watch", "cm/a", "--replay", path, "--diff", "--no-initial"]).succeeded();
    let fields = "\
~ configmap default/a  data.k 1→2
    data.k: 1 → 2  (editor)
~ configmap default/a  data.k 2→3
    data.k: 2 → 3  (robot)
";
    assert_eq!(one.out, fields);
    // The states at earlier times.
    let states = offline(&["watch", "cm/a", "--replay", path, "-o", "json"]).succeeded();
    let values: Vec<String> = states
        .out
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["object"]["data"]["k"].to_string())
        .collect();
    assert_eq!(values, [r#""1""#, r#""2""#, r#""3""#]);
    let found = |args: &[&str]| offline(&[&["watch", "--replay", path, "-o", "name"], args].concat()).succeeded().out;
    assert_eq!(found(&["all", "--only", "deleted"]), "configmap/b\n");
    assert_eq!(found(&["cm", "--where", "data.k == '3'"]), "configmap/a\n");
    assert_eq!(found(&["cm", "-n", "elsewhere"]), "");
    assert_eq!(found(&["cm", "--since", "100d", "--until", "count=1"]), "configmap/a\n");
}

#[test]
fn a_file_that_exists_is_readable_by_its_owner_only_before_anything_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r");
    fs::write(&file, "of before").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let rig = Rig::new();
    rig.config_map("a", "1");
    let ran = rig.run(&["watch", "cm", "--record", file.to_str().unwrap(), "--until", "synced"]).succeeded();
    assert_eq!(ran.out, "+ configmap default/a\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).unwrap().contains("of before"));
}

#[test]
fn since_is_counted_from_the_end_of_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r");
    let kind = r#"{"version":"v1","kind":"ConfigMap","plural":"configmaps","namespaced":true,"shortNames":["cm"]}"#;
    let line = |time: &str, kind_of: &str, value: u32| {
        format!(
            r#"{{"time":"2020-01-01T{time}Z","type":"{kind_of}","kind":{kind},"object":{{"metadata":{{"name":"a","namespace":"n"}},"data":{{"k":"{value}"}}}}}}"#
        )
    };
    let lines = [
        r#"{"recording":"kubectl-informer","format":1}"#.to_owned(),
        line("10:00:00", "ADDED", 1),
        line("10:20:00", "MODIFIED", 2),
        line("10:30:00", "MODIFIED", 3),
        // Not written to its end, as after a crash.
        r#"{"time":"2020-01-01T10:31:00Z","type":"MOD"#.to_owned(),
    ];
    fs::write(&file, lines.join("\n")).unwrap();
    let path = file.to_str().unwrap();
    let ran = offline(&["watch", "cm", "--replay", path, "--since", "10m", "--timestamps"]).succeeded();
    assert_eq!(
        ran.out,
        "2020-01-01T10:20:00Z ~ configmap n/a  data.k 1→2\n2020-01-01T10:30:00Z ~ configmap n/a  data.k 2→3\n"
    );
}

#[test]
fn what_is_no_recording_is_named() {
    let (_rig, folder, file) = record();
    let path = file.to_str().unwrap();
    let wrong = folder.path().join("wrong");
    fs::write(&wrong, "{}\n").unwrap();
    let broken = folder.path().join("broken");
    fs::write(&broken, format!("{}{{\"time\":1}}\n", fs::read_to_string(&file).unwrap())).unwrap();
    for (args, code, message) in [
        (&["watch", "cm", "--replay", wrong.to_str().unwrap()][..], 2, "wrong: not a recording of kubectl-informer"),
        (&["watch", "cm", "--replay", broken.to_str().unwrap()], 2, "broken: line 8: "),
        (&["watch", "cm", "--replay", "/nonexistent/r"], 2, "--replay /nonexistent/r: "),
        (&["watch", "pods", "--replay", path], 3, "the recording has no \"pods\"; it has "),
        (&["apiserver", "--replay", "/nonexistent/r"], 2, "--replay /nonexistent/r: "),
        (&["watch", "cm", "--record", "x", "--replay", path], 2, "cannot be used with"),
    ] {
        let ran = offline(args);
        assert!(ran.code == Some(code) && ran.err.contains(message), "{args:?}: {ran:#?}");
    }
    let rig = Rig::new();
    let ran = rig.run(&["watch", "cm", "--record", "/nonexistent/r"]);
    assert!(ran.code == Some(2) && ran.err.contains("--record /nonexistent/r: "), "{ran:#?}");
}

/// The embedded server with a recording; waits until it serves.
fn serve(folder: &Path, args: &[&str]) -> (Running, String) {
    let kubeconfig = folder.join("replayed");
    let mut command = command(&["apiserver", "--write-kubeconfig"]);
    let mut running = Running::start(command.arg(&kubeconfig).args(args));
    let line = running.error_line();
    assert!(line.starts_with("serving on "), "{line}");
    (running, kubeconfig.to_str().unwrap().to_owned())
}

#[test]
fn a_recording_is_served_as_it_was_at_its_end_or_before() {
    let (_rig, folder, file) = record();
    let path = file.to_str().unwrap();
    let values = |kubeconfig: &str| {
        let template = "-ojsonpath={range .items[*]}{.metadata.name}={.data.k} {end}";
        offline(&["get", "cm", "-n", "default", "--kubeconfig", kubeconfig, template]).succeeded().out
    };
    let (server, kubeconfig) = serve(folder.path(), &["--replay", path]);
    assert_eq!(values(&kubeconfig), "a=3 ");
    server.signal("TERM");
    assert_eq!(server.end().0, Some(0));
    let (server, kubeconfig) = serve(folder.path(), &["--replay", path, "--before-end", "1h"]);
    assert_eq!(values(&kubeconfig), "a=1 b=1 ");
    server.signal("TERM");
    assert_eq!(server.end().0, Some(0));
    let (server, kubeconfig) = serve(folder.path(), &["--replay", path, "--speed", "1000"]);
    let watch = offline(&[
        "watch",
        "cm",
        "-n",
        "default",
        "--kubeconfig",
        &kubeconfig,
        "--where",
        "data.k == '3'",
        "--until",
        "count=1",
        "-o",
        "name",
    ]);
    assert_eq!(watch.succeeded().out, "configmap/a\n");
    server.signal("TERM");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn top_ends_with_the_reason_when_a_recording_cannot_be_played() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r");
    let line = |second: u32, initial: bool, kind: &str, plural: &str| {
        format!(
            r#"{{"time":"2020-01-01T10:00:0{second}Z","type":"ADDED","initial":{initial},"kind":{{"version":"v1","kind":"{kind}","plural":"{plural}","namespaced":true}},"object":{{"metadata":{{"name":"a","namespace":"n"}}}}}}"#
        )
    };
    let lines = [
        r#"{"recording":"kubectl-informer","format":1}"#.to_owned(),
        line(0, true, "ConfigMap", "configmaps"),
        // The core group takes no further kinds.
        line(1, false, "Ghost", "ghosts"),
    ];
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let mut live = Live::start(160, 30, &["top", "cm", "-A", "--for", "1m", "--replay", file.to_str().unwrap()]);
    assert_eq!(live.end(), Some(1));
    let lines = live.terminal.lines();
    assert!(lines.iter().any(|line| line.contains("replaying CustomResourceDefinition ghosts")), "{lines:#?}");
}

#[test]
fn top_plays_a_recording() {
    let (_rig, _folder, file) = record();
    let mut live = Live::start(100, 30, &["top", "cm", "-A", "--replay", file.to_str().unwrap()]);
    live.until(|lines| lines[0].contains("incident.jsonl") && lines.iter().any(|line| line.contains("data.k: 2 → 3")));
    live.until(|lines| lines.iter().any(|line| line.contains("- configmap default/b")));
    live.keys("q");
    assert_eq!(live.end(), Some(0));
}
