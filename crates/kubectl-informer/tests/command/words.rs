//! Words: help, messages, errors with the server, file or command, and progress.

use std::fs;
use std::io::{BufRead as _, BufReader};

use crate::support::pty::Live;
use crate::support::{Ran, Rig, Running, command};
use kube_embedded::access::{Access, Rule as AccessRule};
use kube_embedded::faults::{Fault, Rule};

const COMMANDS: [&str; 7] = ["demo", "watch", "get", "top", "tree", "apiserver", "completions"];

fn helps() -> Vec<(String, String)> {
    let all = std::iter::once("").chain(COMMANDS);
    all.map(|name| {
        let args: Vec<&str> = [name, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        (name.to_owned(), Ran::of(&mut command(&args)).succeeded().out)
    })
    .collect()
}

#[test]
fn help_is_in_natural_english_and_fits() {
    let unnatural = [
        "HELD",
        "AS DECODED",
        "together",
        "span of time",
        "from then on",
        "is no list",
        "as kubectl has it",
        "to ask",
        "heard",
        "whoever",
    ];
    for (name, help) in helps() {
        for words in unnatural {
            assert!(!help.contains(words), "{name}: {words:?}: {help}");
        }
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line:?}");
            // An example that is broken into two lines cannot be copied.
            let is_broken = line.trim_start().starts_with("kubectl-informer ") && line.matches('\'').count() % 2 == 1;
            assert!(!is_broken, "{name}: {line:?}");
        }
    }
}

#[test]
fn exit_codes_are_documented() {
    let help = Ran::of(&mut command(&["--help"])).succeeded().out;
    let (_, codes) = help.split_once("Exit codes:\n").expect("they are there");
    let codes: Vec<&str> = codes.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(codes, ["0", "1", "2", "3", "4", "5"]);
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    assert!(codes.iter().all(|code| readme.contains(&format!("\n| {code} | "))), "{readme}");
}

#[test]
fn wrong_values_are_explained() {
    for (args, message) in [
        (&["demo", "--for", "soon"][..], "\"soon\" is not a duration; write 10s, 5m, 1h30m or 250ms"),
        (&["watch", "pods", "--until", "tomorrow"], "expected synced, count=N or for=TIME"),
        (&["get", "pods", "--by", "node"], "expected WHAT=VALUE, as in node=node-1"),
        (&["get", "pods", "-o", "xml"], "expected one of table, wide, json, yaml, name, jsonpath=, custom-columns="),
        (&["top"], "top needs a terminal; use watch for a file or a pipe"),
        (&["apiserver", "--token-auth-file", "/nonexistent/tokens"], "--token-auth-file /nonexistent/tokens: "),
        (&["apiserver", "--load", "/nonexistent/manifests"], "/nonexistent/manifests: "),
    ] {
        let ran = Ran::of(&mut command(args));
        assert!(ran.code == Some(2) && ran.err.contains(message), "{args:?}: {ran:#?}");
    }
}

#[test]
fn errors_name_the_server() {
    let dead = "http://127.0.0.1:1";
    let paths = || AccessRule::new().path("/api").path("/apis");
    let closed = Rig::with(|builder| builder.access(Access::closed().allow(paths())));
    let url = closed.server.url();
    for args in [&["get", "cm"][..], &["watch", "cm"], &["tree", "cm/a"], &["get", "cm", "--watch"]] {
        let ran = Ran::of(command(args).args(["--server", dead]));
        assert!(
            ran.code == Some(5) && ran.err.contains(dead) && ran.err.contains("Is the server up"),
            "{args:?}: {ran:#?}"
        );
        let ran = closed.run(args);
        assert!(ran.code == Some(4) && ran.err.contains(&format!("configmaps at {url}")), "{args:?}: {ran:#?}");
        assert!(
            ran.err.contains("cannot list resource") && ran.err.contains("kubectl auth can-i list configmaps"),
            "{ran:#?}"
        );
    }
    let mut live = Live::start(120, 24, &["top", "cm", "--server", dead]);
    assert_eq!(live.end(), Some(5));
    assert!(live.terminal.lines().iter().any(|line| line.contains(dead)), "{:#?}", live.terminal);
}

#[test]
fn errors_name_the_file_and_the_command() {
    let rig = Rig::new();
    let folder = tempfile::tempdir().unwrap();
    let get = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        (
            Ran::of(command(&["get", "cm", "--kubeconfig"]).arg(&file)),
            Ran::of(command(&["get", "cm"]).env("KUBECONFIG", &file)),
        )
    };
    let (by_flag, by_variable) = get("broken.yaml", "clusters: [");
    for ran in [by_flag, by_variable] {
        assert!(ran.code == Some(2) && ran.err.contains("broken.yaml"), "{ran:#?}");
    }
    let kubeconfig = |command: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{{name: c, context: {{cluster: s, user: u}}}}]\n\
             clusters: [{{name: s, cluster: {{server: {}}}}}]\nusers: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, {command}}}}}}}]\n",
            rig.server.url()
        )
    };
    for (command, message) in [
        ("command: no-such-helper", "the credential command \"no-such-helper\" of the kubeconfig cannot be run: "),
        (
            "command: sh, args: [-c, 'echo hunter2; exit 3']",
            "the credential command \"sh\" of the kubeconfig failed with exit status: 3",
        ),
        (
            "command: echo, args: [hunter2]",
            "the credential command \"echo\" of the kubeconfig did not print an ExecCredential",
        ),
    ] {
        let (ran, _) = get("exec.yaml", &kubeconfig(command));
        assert!(ran.code == Some(2) && ran.err.contains(message) && ran.err.contains(&rig.server.url()), "{ran:#?}");
        assert!(!ran.err.contains("hunter2"), "the output may hold a token: {ran:#?}");
    }
}

#[test]
fn what_takes_long_says_what_it_is() {
    let rig = Rig::new();
    rig.server.faults().inject(Rule::new(Fault::Delay(std::time::Duration::from_secs(3_600))));
    let url = rig.server.url();
    for args in [&["get", "cm"][..], &["watch", "cm"], &["tree", "cm/a"], &["top"]] {
        let mut live = Live::start(120, 10, &[args, &["--server", &url]].concat());
        live.until_shown(&format!("API discovery at {url} … 1 s"));
        live.interrupt();
    }
}

#[test]
fn a_tree_that_takes_long_says_how_far_it_is() {
    let rig = Rig::new();
    rig.config_map("a", "1");
    rig.server.faults().inject(Rule::new(Fault::Delay(std::time::Duration::from_secs(3_600))).resource("", "pods"));
    let url = rig.server.url();
    let mut live = Live::start(120, 10, &["tree", "cm/a", "--server", &url]);
    live.until(|lines| lines.iter().any(|line| line.contains(" kinds listed … ")));
    live.interrupt();
}

#[test]
fn a_server_that_others_can_reach_says_so() {
    let mut command = command(&["apiserver", "--bind-address", "0.0.0.0", "--no-authentication"]);
    let mut running = Running::start(&mut command);
    let mut lines = BufReader::new(running.child.stderr.take().unwrap()).lines().map(|line| line.unwrap());
    let serving = lines.find(|line| line.starts_with("serving on ")).expect("it serves");
    let port: String = serving.rsplit(':').next().unwrap().chars().take_while(char::is_ascii_digit).collect();
    let warning = lines.next().expect("a warning");
    assert_eq!(
        warning,
        format!(
            "! other machines can reach the server: it listens on every address of this machine, port {port}; anyone can read and change everything"
        )
    );
    running.signal("TERM");
    assert_eq!(running.end().0, Some(0));
}
