//! Every example runs without a cluster and prints what it should.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs an example and returns its output.
fn run(example: &str) -> String {
    run_with(example, [])
}

fn run_with<const N: usize>(example: &str, arguments: [&Path; N]) -> String {
    let output = Command::new(binary(example)).args(arguments).output().unwrap();
    let (printed, complained) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{example} failed: {}\n{printed}\n{complained}", output.status);
    printed
}

/// Path of an example; `cargo test` builds them, `cargo test --test examples` does not.
fn binary(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().unwrap().parent().unwrap().join("examples");
    let binary = built.join(example).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(binary.exists(), "{} is missing: cargo build --package kube-informer --examples", binary.display());
    binary
}

/// Asserts that all these lines were printed, in this order.
#[track_caller]
fn assert_lines(printed: &str, lines: &[&str]) {
    let mut rest = printed.lines();
    for line in lines {
        assert!(rest.any(|printed| printed.trim() == *line), "{line:?} is missing, or in another place:\n{printed}");
    }
}

#[test]
fn pods_receives_changes_and_reads_without_the_server() {
    let printed = run("pods");
    assert!(printed.starts_with("200 pods after "), "{printed}");
    // A deleted pod first gets a deletion timestamp, which is an update.
    for (mark, times) in [('~', 4), ('+', 1), ('-', 1)] {
        assert_eq!(printed.lines().filter(|line| line.starts_with(mark)).count(), times, "{mark} in\n{printed}");
    }
    assert_lines(&printed, &["namespace              pods  ready"]);
}

#[test]
fn deployments_prints_what_happens_and_lists_one_namespace_by_number() {
    let printed = run("deployments");
    let lines = ["0 coredns", "1 metrics", "updated default/web, 0 -> 3 replicas", "deleted default/web"];
    assert_lines(&printed, &lines);
    assert_lines(&printed, &["added kube-system/coredns, 0 replicas", "2 deployments are left in the cache"]);
}

#[test]
fn several_kinds_has_one_watch_for_each_kind() {
    let printed = run("several_kinds");
    assert_lines(&printed, &["10 replica sets, 11 services", "40 nodes have pods", "3 watches, 3 requests"]);
}

#[test]
fn dynamic_kinds_finds_a_kind_that_comes_later_and_reads_it_in_three_ways() {
    let printed = run("dynamic_kinds");
    assert_lines(
        &printed,
        &[
            "asked for widgets: not there yet",
            "the server has no resource named \"widget\"",
            "now it is, with 2 objects",
            "default/left is red, size 7",
            "left has these fields: colour, note, size",
            "right has tier \"tin\", and nothing else was sent",
            "left: red -> green",
        ],
    );
}

#[test]
fn statefulsets_prints_replicas_and_leaves_out_what_the_list_options_do() {
    let printed = run("statefulsets");
    assert_lines(&printed, &["0 cache", "1 etcd", "~ etcd, 0 -> 3 replicas", "- cache"]);
    assert_lines(&printed, &["+ etcd, 0 replicas"]);
    assert!(!printed.contains("trial"), "{printed}");
}

#[test]
fn pod_queue_retries_what_failed_and_sees_what_is_gone() {
    let printed = run("pod_queue");
    assert_lines(&printed, &["byNode node-1: job, web", "byNode node-2: db"]);
    assert_lines(&printed, &["default/db: not ready, once more later", "default/db: on node-2"]);
    assert_lines(&printed, &["default/web: on node-1"]);
    assert_lines(&printed, &["default/job: gone"]);
}

#[test]
fn pods_by_ip_finds_none_one_and_many() {
    let printed = run("pods_by_ip");
    assert_lines(
        &printed,
        &[
            "5 pods have 5 addresses",
            "10.0.0.7 is default/web",
            "fd00::8 is default/db",
            "192.168.1.1 is shared by default/agent (host network) and default/proxy (host network)",
            "no pod has 10.9.9.9",
            "then 3 addresses",
        ],
    );
}

#[test]
fn get_list_watch_counts_what_each_costs() {
    let printed = run("get_list_watch");
    let requests = |what: &str| {
        let line = printed.lines().find(|line| line.starts_with(what)).unwrap();
        let mut columns = line.split_whitespace().rev();
        let (bytes, requests): (u64, u64) =
            (columns.next().unwrap().parse().unwrap(), columns.next().unwrap().parse().unwrap());
        (requests, bytes > 0)
    };
    assert_eq!(requests("list of 200 pods, 20 times"), (20, true));
    assert_eq!(requests("get of one pod, 20 times"), (20, true));
    assert_eq!(requests("watch, until something happens"), (2, true));
    assert_eq!(requests("informer, until it has everything"), (1, true));
    assert_eq!(requests("informer, 20 lists, 20 gets and a change"), (0, true));
    assert_lines(&printed, &["4040 pods came out of the cache."]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_example_works_on_the_cluster_that_a_kubeconfig_names() {
    let server = kube_embedded::Server::builder().tls().start().await.unwrap();
    server.load(kube_embedded::generate::Generator::new(3).pods(30)).unwrap();
    let kubeconfig = std::env::temp_dir().join(format!("kube-informer-examples-{}", std::process::id()));
    std::fs::write(&kubeconfig, server.kubeconfig()).unwrap();
    let ran = {
        let kubeconfig = kubeconfig.clone();
        tokio::task::spawn_blocking(move || run_with("get_list_watch", [Path::new("--kubeconfig"), &kubeconfig])).await
    };
    std::fs::remove_file(&kubeconfig).unwrap();
    let printed = ran.unwrap();
    assert!(printed.contains("list of 30 pods, 20 times"), "{printed}");
    assert_lines(&printed, &["620 pods came out of the cache."]);
    server.shutdown().await;
}
