//! End-to-end tests of the `apiserver` command.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{Ran, Running, command};

/// A running server that has written its kubeconfig.
struct Serving {
    running: Running,
    kubeconfig: String,
    _directory: tempfile::TempDir,
}

impl Serving {
    /// Starts the server and waits until it reports on standard error that it is serving.
    fn start(args: &[&str], files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in files {
            fs::write(directory.path().join(name), text).expect("written");
        }
        let kubeconfig = directory.path().join("kubeconfig");
        let mut command = command(&["apiserver", "--write-kubeconfig"]);
        command.arg(&kubeconfig).args(args).current_dir(directory.path());
        let mut running = Running::start(&mut command);
        let message = running.error_line();
        assert!(message.starts_with("serving on http"), "{message}");
        let kubeconfig = kubeconfig.to_str().expect("UTF-8").to_owned();
        Self { running, kubeconfig, _directory: directory }
    }

    fn run(&self, args: &[&str]) -> Ran {
        Ran::of(command(args).args(["--kubeconfig", &self.kubeconfig]))
    }

    #[track_caller]
    fn stop(self, signal: &str) {
        self.running.signal(signal);
        let (code, err) = self.running.end();
        assert_eq!(code, Some(0), "{err}");
    }
}

#[test]
fn manifests_are_there_from_the_start() {
    let files = [
        (
            "b.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: web}\n---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n",
        ),
        (
            "c.json",
            r#"{"kind": "List", "apiVersion": "v1", "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}]}"#,
        ),
        (
            "z.yml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: widgets, kind: Widget}\n  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]\n",
        ),
        ("ignored.txt", "not a manifest"),
    ];
    let serving = Serving::start(&["--load", "."], &files);
    let ran = serving.run(&["watch", "cm,secret", "-A", "--until", "synced"]).succeeded();
    assert_eq!(ran.sorted(), ["+ configmap web/a", "+ secret    default/s"]);
    serving.stop("TERM");
}

#[test]
fn a_pretended_cluster_lives_there() {
    let serving = Serving::start(&["--pretend", "--size", "1", "--rate", "50"], &[]);
    let ran = serving.run(&["watch", "nodes", "--until", "synced", "-o", "name"]).succeeded();
    assert_eq!(ran.out.lines().count(), 1, "{ran:#?}");
    let ran = serving.run(&["watch", "pods", "-A", "--no-initial", "--until", "count=1"]).succeeded();
    assert!(ran.out.starts_with(['+', '~', '-']), "{ran:#?}");
    serving.stop("INT");
}

#[test]
fn tokens_decide_who_may_do_what_and_it_speaks_tls_then() {
    let tokens = "admin-token,admin,1,\"system:masters\"\nalice-token,alice,2\n";
    let args = ["--token-auth-file", "tokens.csv", "--allow", "alice list,watch pods default"];
    let serving = Serving::start(&args, &[("tokens.csv", tokens)]);
    let kubeconfig = fs::read_to_string(&serving.kubeconfig).unwrap();
    assert!(kubeconfig.contains("server: https://") && kubeconfig.contains("admin-token"), "{kubeconfig}");
    serving.run(&["watch", "nodes", "--until", "synced"]).succeeded();

    let alice = Path::new(&serving.kubeconfig).with_file_name("alice");
    fs::write(&alice, kubeconfig.replace("admin-token", "alice-token")).unwrap();
    let as_alice = |args: &[&str]| Ran::of(command(args).arg("--kubeconfig").arg(&alice));
    as_alice(&["watch", "pods", "--until", "synced"]).succeeded();
    let ran = as_alice(&["watch", "nodes", "--until", "synced"]);
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    assert!(ran.err.contains(r#"User "alice" cannot list resource "nodes""#), "{}", ran.err);

    let stranger = Path::new(&serving.kubeconfig).with_file_name("stranger");
    fs::write(&stranger, kubeconfig.replace("admin-token", "wrong")).unwrap();
    let ran = Ran::of(command(&["watch", "pods"]).arg("--kubeconfig").arg(&stranger));
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    assert!(ran.err.contains("401"), "{}", ran.err);
    serving.stop("TERM");
}

#[test]
fn other_machines_are_served_with_tokens_or_on_explicit_request_only() {
    for address in ["0.0.0.0", "::"] {
        let ran = Ran::of(&mut command(&["apiserver", "--bind-address", address]));
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        let advice = "add --token-auth-file FILE, or --no-authentication if that is intended";
        assert!(ran.err.contains(&format!("--bind-address {address}: ")) && ran.err.contains(advice), "{}", ran.err);
    }
    let serving = Serving::start(&["--bind-address", "0.0.0.0", "--no-authentication"], &[]);
    serving.run(&["watch", "nodes", "--until", "synced"]).succeeded();
    serving.stop("TERM");
}

#[test]
fn without_a_file_the_kubeconfig_is_printed() {
    let mut running = Running::start(&mut command(&["apiserver", "--port", "0"]));
    assert_eq!(running.line(), "apiVersion: v1");
    running.signal("TERM");
    assert_eq!(running.end().0, Some(0));
}

#[test]
fn the_kubeconfig_is_readable_by_its_owner_only_and_nothing_else_is_left() {
    let serving = Serving::start(&[], &[]);
    let file = Path::new(&serving.kubeconfig);
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    serving.stop("TERM");

    // A directory cannot be replaced by a file.
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("kubeconfig/full")).unwrap();
    let ran = Ran::of(command(&["apiserver", "--write-kubeconfig", "kubeconfig"]).current_dir(folder.path()));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.err.contains("--write-kubeconfig kubeconfig: "), "{}", ran.err);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn what_cannot_be_loaded_is_named() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.yaml"), "apiVersion: v1\nkind: Nonsense\nmetadata: {name: x}\n").unwrap();
    let ran = Ran::of(command(&["apiserver", "--load"]).arg(directory.path()));
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.err.contains("loading Nonsense x: "), "{}", ran.err);
    let ran = Ran::of(&mut command(&["apiserver", "--load", "/nonexistent"]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
}

#[test]
fn completions_are_there_for_the_usual_shells_and_for_kubectl() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = Ran::of(&mut command(&["completions", shell])).succeeded();
        assert!(ran.out.contains("kubectl-informer"), "{shell}");
    }
    let ran = Ran::of(&mut command(&["completions", "--kubectl"])).succeeded();
    assert!(ran.out.starts_with("#!/bin/sh\n") && ran.out.contains("--words \"$@\""), "{}", ran.out);
    let ran = Ran::of(&mut command(&["completions", "--words", "wa"])).succeeded();
    assert_eq!(ran.out, "watch\tPrint additions, updates and deletions as they happen\n:4\n");
}
