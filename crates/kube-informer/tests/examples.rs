//! Every example runs without a cluster and says what it is to say.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::path::PathBuf;
use std::process::Command;

/// Runs an example to its end and returns what it printed.
fn run(example: &str) -> String {
    let output = Command::new(binary(example)).output().unwrap();
    let (printed, complained) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{example} failed: {}\n{printed}\n{complained}", output.status);
    printed
}

/// `cargo test` builds the examples beside the tests; `cargo test --test examples` alone does not.
fn binary(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().unwrap().parent().unwrap().join("examples");
    let binary = built.join(example).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(binary.exists(), "{} is missing: cargo build --package kube-informer --examples", binary.display());
    binary
}

/// Fails unless all of these lines were printed, in this order.
#[track_caller]
fn assert_lines(printed: &str, lines: &[&str]) {
    let mut rest = printed.lines();
    for line in lines {
        assert!(rest.any(|printed| printed.trim() == *line), "{line:?} is missing, or in another place:\n{printed}");
    }
}

#[test]
fn pods_hears_of_changes_and_reads_without_the_server() {
    let printed = run("pods");
    assert!(printed.starts_with("200 pods after "), "{printed}");
    // A pod that is deleted is first marked so, which is an update.
    for (mark, times) in [('~', 4), ('+', 1), ('-', 1)] {
        assert_eq!(printed.lines().filter(|line| line.starts_with(mark)).count(), times, "{mark} in\n{printed}");
    }
    assert_lines(&printed, &["namespace              pods  ready"]);
}
