//! Completions, driven through a real bash on a pseudo-terminal, and as kubectl calls plugins.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::hostile_server::HostileServer;
use crate::support::pty::Live;
use crate::support::{Ran, Rig, command};
use serde_json::json;
use tempfile::TempDir;

/// A server with config maps and a deployment, and a kubeconfig for it.
fn rig() -> (Rig, TempDir) {
    let rig = Rig::new();
    for (name, namespace) in [("alpha", "default"), ("beta", "default"), ("gamma", "kube-system")] {
        rig.create(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"size": "1"},
            "metadata": {"name": name, "namespace": namespace, "labels": {"tier": "gold", "example.com/team": "a"}},
        }));
    }
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: \"arn:aws:prod\"\nclusters:\n- {{name: one, cluster: {{server: {}}}}}\n\
         users: [{{name: admin, user: {{}}}}]\ncontexts:\n\
         - {{name: \"arn:aws:prod\", context: {{cluster: one, user: admin}}}}\n- {{name: staging, context: {{cluster: one, user: admin}}}}\n",
        rig.server.url()
    );
    fs::write(folder.path().join("config"), kubeconfig).unwrap();
    (rig, folder)
}

/// An interactive bash with the completions.
struct Shell {
    live: Live,
    /// The number of completed lines.
    count: usize,
}

impl Shell {
    fn start(folder: &Path) -> Self {
        let script = Ran::of(&mut command(&["completions", "bash"])).succeeded().out;
        let file = folder.join("completions.bash");
        fs::write(&file, script).unwrap();
        let kubeconfig = folder.join("config");
        let variables = [("KUBECONFIG", kubeconfig.to_str().unwrap()), ("PS1", "$ "), ("INPUTRC", "/dev/null")];
        let mut live = Live::start_program(160, 50, "bash", &["--norc", "--noprofile", "-i"], &variables);
        live.until_shown("$");
        live.keys(&format!("source {}; bind 'set show-all-if-ambiguous on'; clear; echo ready\n", file.display()));
        // Before the prompt is there, the terminal echoes what is typed, and bash does not read it.
        live.until(|lines| lines.windows(2).any(|pair| pair[0] == "ready" && pair[1].trim_end() == "$"));
        Self { live, count: 0 }
    }

    /// Types a command line, Tab and a mark. Waits for the completed line.
    #[track_caller]
    fn completes(&mut self, typed: &str, expected: &str) {
        self.count += 1;
        let mark = format!("#{}", self.count);
        self.live.keys(&format!("\x15{typed}\t{mark}"));
        self.live.until_shown(&mark);
        let lines = self.live.terminal.lines();
        let last = lines.iter().rfind(|line| line.ends_with(&mark)).expect("it is shown");
        assert_eq!(*last, format!("$ {expected}{mark}"), "{typed:?}: {lines:#?}");
    }

    /// Types a command line and Tab. Waits until all candidates are shown.
    #[track_caller]
    fn offers(&mut self, typed: &str, expected: &[&str]) {
        self.live.keys(&format!("\x15clear\n{typed}\t"));
        self.live.until(|lines| {
            let shown = lines.join(" ");
            expected.iter().all(|candidate| shown.split_whitespace().any(|word| word == *candidate))
        });
    }
}

fn has_bash() -> bool {
    let is_there = Command::new("bash").arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("SKIPPED: there is no bash on this machine, so its completions are not tested");
    }
    is_there
}

#[test]
fn bash_completes_commands_flags_kinds_names_namespaces_contexts_and_columns() {
    if !has_bash() {
        return;
    }
    let (_rig, folder) = rig();
    let mut shell = Shell::start(folder.path());
    for (typed, completed) in [
        ("kubectl-informer wa", "kubectl-informer watch "),
        ("kubectl-informer watch --no-in", "kubectl-informer watch --no-initial "),
        ("kubectl-informer -n kube-system get configm", "kubectl-informer -n kube-system get configmaps "),
        ("kubectl-informer get configm", "kubectl-informer get configmaps "),
        ("kubectl-informer get deployments,configm", "kubectl-informer get deployments,configmaps "),
        ("kubectl-informer get configmaps al", "kubectl-informer get configmaps alpha "),
        ("kubectl-informer get configmaps alpha be", "kubectl-informer get configmaps alpha beta "),
        ("kubectl-informer get -n kube-system configmaps ga", "kubectl-informer get -n kube-system configmaps gamma "),
        ("kubectl-informer watch cm/be", "kubectl-informer watch cm/beta "),
        ("kubectl-informer tree configmaps/al", "kubectl-informer tree configmaps/alpha "),
        ("kubectl-informer get cm -n kube-no", "kubectl-informer get cm -n kube-node-lease "),
        ("kubectl-informer get cm --namespace=kube-no", "kubectl-informer get cm --namespace=kube-node-lease "),
        ("kubectl-informer top --context st", "kubectl-informer top --context staging "),
        ("kubectl-informer top --context arn:aws:p", "kubectl-informer top --context arn:aws:prod "),
        (
            "kubectl-informer get cm --sort-by=.metadata.creat",
            "kubectl-informer get cm --sort-by=.metadata.creationTimestamp ",
        ),
        ("kubectl-informer get cm --sort-by .data.s", "kubectl-informer get cm --sort-by .data.size "),
        ("kubectl-informer get cm -L ti", "kubectl-informer get cm -L tier "),
        ("kubectl-informer get cm --by data.s", "kubectl-informer get cm --by data.size="),
        ("kubectl-informer get cm --by label:t", "kubectl-informer get cm --by label:tier="),
        ("kubectl-informer get cm -o jsonp", "kubectl-informer get cm -o jsonpath="),
        (
            "kubectl-informer get cm -o custom-columns=NAME:.metadata.name,SIZE:.da",
            "kubectl-informer get cm -o custom-columns=NAME:.metadata.name,SIZE:.data.size ",
        ),
    ] {
        shell.completes(typed, completed);
    }
    shell.offers("kubectl-informer get configmaps ", &["alpha", "beta"]);
    shell.offers("kubectl-informer ", &["apiserver", "completions", "demo", "get", "top", "tree", "watch"]);
}

#[test]
fn kubectl_gets_candidates_from_the_program_on_the_path() {
    let (_rig, folder) = rig();
    let script = Ran::of(&mut command(&["completions", "--kubectl"])).succeeded().out;
    let file = folder.path().join("kubectl_complete-informer");
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_kubectl-informer"));
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let ask = |words: &[&str]| {
        let mut command = Command::new(&file);
        command.args(words).env("PATH", &path).env("KUBECONFIG", folder.path().join("config"));
        Ran::of(&mut command).succeeded().out
    };
    assert_eq!(ask(&["get", "configm"]), "configmaps\n:4\n");
    assert_eq!(ask(&["get", "configmaps", ""]), "alpha\nbeta\n:4\n");
    assert_eq!(ask(&["get", "configmaps", "-n", "kube-s"]), "kube-system\n:4\n");
    assert_eq!(ask(&["watch", "--context", "arn:"]), "arn:aws:prod\n:4\n");
    assert_eq!(ask(&["get", "configmaps", "--by", "label:ti"]), "label:tier=\n:6\n");
}

#[test]
fn a_server_that_cannot_be_reached_or_is_hostile_gives_no_candidates() {
    let complete = |server: &str, words: &[&str]| {
        Ran::of(&mut command(&[&["completions", "--words", "--server", server][..], words].concat())).succeeded().out
    };
    assert_eq!(complete("http://127.0.0.1:1", &["get", "configm"]), ":4\n");
    let server = HostileServer::start();
    assert_eq!(complete(server.url(), &["get", "pods", ""]), ":4\n");
    assert_eq!(complete(server.url(), &["get", "pods", "-L", ""]), ":4\n");
    assert!(!complete(server.url(), &["get", ""]).contains("unusable"));
}
