//! The connection flags select the server and user as in kubectl.

use std::fs;

use crate::support::{Ran, Rig, command};
use kube_embedded::access::{Access, Rule, User};
use kube_embedded::{Server, Verb};

/// A server with access control: `admin` may do everything, `guest` may list and watch the config
/// maps of `default`, and the group `readers` may list and watch nodes.
fn guarded() -> Rig {
    Rig::with(|builder| {
        let access = Access::closed()
            .token("admin-token", User::new("admin").group("system:masters"))
            .token("guest-token", User::new("guest"))
            .allow(Rule::new().path("/api").path("/apis"))
            .allow(
                Rule::new()
                    .user("guest")
                    .verb(Verb::List)
                    .verb(Verb::Watch)
                    .resource("", "configmaps")
                    .namespace("default"),
            )
            .allow(Rule::new().group("readers").verb(Verb::List).verb(Verb::Watch).resource("", "nodes"));
        builder.access(access)
    })
}

/// Two servers, two users and three contexts.
fn kubeconfig(one: &Server, other: &Server) -> String {
    format!(
        "apiVersion: v1
kind: Config
current-context: admin
clusters:
- {{name: one, cluster: {{server: {one}}}}}
- {{name: other, cluster: {{server: {other}}}}}
users:
- {{name: admin, user: {{token: admin-token}}}}
- {{name: guest, user: {{token: guest-token}}}}
contexts:
- {{name: admin, context: {{cluster: one, user: admin, namespace: web}}}}
- {{name: guest, context: {{cluster: one, user: guest, namespace: default}}}}
- {{name: other, context: {{cluster: other, user: admin}}}}
",
        one = one.url(),
        other = other.url()
    )
}

#[test]
fn contexts_clusters_users_and_namespaces_are_chosen_as_with_kubectl() {
    let (one, other) = (guarded(), guarded());
    for (rig, namespace, name) in
        [(&one, "web", "a"), (&one, "default", "b"), (&other, "default", "c"), (&other, "web", "d")]
    {
        rig.server.load([serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})]).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, kubeconfig(&one.server, &other.server)).unwrap();
    let ran = |args: &[&str]| {
        let args = [&["get", "cm", "-o", "name"], args].concat();
        Ran::of(command(&args).env("KUBECONFIG", &file))
    };
    let output = |args: &[&str]| ran(args).succeeded().out.trim_end().replace("configmap/", "").replace('\n', " ");
    assert_eq!(output(&[]), "a");
    assert_eq!(output(&["--namespace", "default"]), "b");
    assert_eq!(output(&["-A"]), "b a");
    assert_eq!(output(&["--context", "guest"]), "b");
    assert_eq!(output(&["--context", "other"]), "c");
    assert_eq!(output(&["--cluster", "other"]), "d");
    assert_eq!(output(&["--context", "other", "--server", &one.server.url()]), "b");
    assert_eq!(ran(&["--user", "guest"]).code, Some(4));
    assert_eq!(output(&["--user", "guest", "-n", "default"]), "b");
    let unknown = ran(&["--user", "mallory"]);
    assert_eq!(unknown.code, Some(2), "{unknown:#?}");
    assert_eq!(unknown.err, "error: --user mallory: no such user in the kubeconfig; it has admin, guest\n");
    let ran = ran(&["--context", "nobody"]);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("nobody"), "{}", ran.err);
    // The flag takes precedence over the environment.
    let ran = Ran::of(command(&["get", "cm"]).env("KUBECONFIG", "/nonexistent").arg("--kubeconfig").arg(&file));
    ran.succeeded();
}

#[test]
fn files_of_the_environment_that_do_not_exist_are_left_out() {
    let rig = Rig::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let url = rig.server.url();
    fs::write(file("a"), "current-context: c\ncontexts: [{name: c, context: {cluster: s, namespace: web}}]\n").unwrap();
    fs::write(file("b"), format!("current-context: d\nclusters: [{{name: s, cluster: {{server: {url}}}}}]\n")).unwrap();
    rig.server
        .load([
            serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "web"}}),
        ])
        .unwrap();
    let list = std::env::join_paths([file("a"), file("missing"), file("b")]).unwrap();
    let ran = Ran::of(command(&["get", "cm", "-o", "name"]).env("KUBECONFIG", list)).succeeded();
    assert_eq!(ran.out, "configmap/a\n");
    let ran = Ran::of(command(&["get", "cm"]).env("KUBECONFIG", file("missing")));
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.err.contains("missing"), "{}", ran.err);
}

#[test]
fn another_user_is_impersonated_as_with_kubectl() {
    let rig = guarded();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(&file, kubeconfig(&rig.server, &rig.server)).unwrap();
    let ran = |args: &[&str]| Ran::of(command(args).arg("--kubeconfig").arg(&file));
    ran(&["get", "nodes"]).succeeded();
    let refused = ran(&["get", "nodes", "--as", "guest"]);
    assert_eq!(refused.code, Some(4), "{refused:#?}");
    assert!(refused.err.contains("User \"guest\" cannot list resource \"nodes\""), "{}", refused.err);
    ran(&["get", "nodes", "--as", "guest", "--as-group", "others", "--as-group", "readers"]).succeeded();
    ran(&["get", "cm", "-n", "default", "--as", "guest"]).succeeded();
}
