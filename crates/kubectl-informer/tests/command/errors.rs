//! Failures print advice and return distinct exit codes.

use crate::support::{Ran, Rig, command};

#[test]
fn without_a_cluster_there_is_a_hint_at_the_demo() {
    let ran = Ran::of(&mut command(&["watch", "pods"]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("--kubeconfig FILE or --server URL"), "{}", ran.err);
    assert!(ran.err.contains("kubectl-informer demo"), "{}", ran.err);
}

#[test]
fn an_unknown_kind_brings_up_the_nearest_one() {
    let ran = Rig::new().run(&["watch", "deploymets"]);
    assert_eq!(ran.code, Some(3), "{ran:#?}");
    assert_eq!(ran.err, "error: the server has no resource named \"deploymets\"; did you mean deployments.apps?\n");
}

#[test]
fn a_server_that_does_not_answer_is_distinguished_from_one_that_refuses() {
    let ran = Ran::of(&mut command(&["watch", "pods", "--server", "http://127.0.0.1:1"]));
    assert_eq!(ran.code, Some(5), "{ran:#?}");
    assert!(ran.err.contains("Is the server up"), "{}", ran.err);

    let ran = Rig::closed().run(&["watch", "pods"]);
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    assert!(ran.err.contains("forbidden"), "{}", ran.err);
}

#[test]
fn a_forbidden_kind_says_which_verb_on_what_is_missing() {
    use kube_embedded::access::{Access, Rule};
    let rig = Rig::with(|builder| builder.access(Access::closed().allow(Rule::new().path("/api").path("/apis"))));
    let ran = rig.run(&["watch", "pods"]);
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    assert!(ran.err.contains("cannot "), "{}", ran.err);
    assert!(ran.err.contains("kubectl auth can-i list pods"), "{}", ran.err);
}

#[test]
fn a_wrong_command_line_is_a_usage_error() {
    for args in [
        &["watch"][..],
        &["watch", "pods", "--until", "tomorrow"],
        &["watch", "pods", "--until", "count=0"],
        &["watch", "pods", "-l", "a in ("],
        &["demo", "--size", "0"],
        &["demo", "--for", "soon"],
        &["watch", "pods", "-A", "-n", "x"],
        &["get", "pods", "-n", "two words"],
        &["apiserver", "--allow", "alice get pods"],
    ] {
        let ran = Ran::of(&mut command(args));
        assert_eq!(ran.code, Some(2), "{args:?}: {ran:#?}");
    }
}

#[test]
fn a_kubeconfig_that_cannot_be_used_is_named() {
    let ran = Ran::of(&mut command(&["watch", "pods", "--kubeconfig", "/nonexistent/config"]));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("/nonexistent/config"), "{}", ran.err);
}

#[test]
fn every_command_has_examples() {
    for name in ["demo", "watch", "get", "top", "tree", "apiserver", "completions"] {
        let ran = Ran::of(&mut command(&[name, "--help"])).succeeded();
        assert!(ran.out.contains("Examples:"), "{name}");
    }
    let ran = Ran::of(&mut command(&["--help"])).succeeded();
    assert!(ran.out.contains("Exit codes:"), "{}", ran.out);
}
