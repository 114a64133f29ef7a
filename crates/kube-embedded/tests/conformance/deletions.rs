//! delete and deletecollection, finalizers, grace periods and preconditions.

use crate::harness::{Api, Case, Namespace, case, configmap, failure};
use serde_json::json;

pub(crate) const CASES: &[Case] = &[
    case!(
        a_deletion_answers_with_a_status,
        "DELETE of most kinds: 200 and a Success Status with name, group, kind and uid"
    ),
    case!(a_pod_answers_with_itself, "DELETE of a pod without a node: gone at once, 200 and the pod"),
    case!(
        a_scheduled_pod_has_grace,
        "DELETE of a pod with a node: it stays, deletionTimestamp in 30 s; with grace 0 it goes"
    ),
    case!(a_missing_object_is_404, "DELETE of a missing object is a 404"),
    case!(
        finalizers_hold_the_object,
        "DELETE with finalizers: 200 and the object, deletionTimestamp set, MODIFIED; again: the same version"
    ),
    case!(
        the_last_finalizer_lets_go,
        "removing the last finalizer: 200 with the old version, DELETED with the last stored state"
    ),
    case!(no_finalizer_comes_late, "adding a finalizer while being deleted is a 422"),
    case!(a_name_is_taken_until_it_is_gone, "create of an object being deleted is a 409 that says so"),
    case!(finalizers_are_qualified, "a finalizer without a domain is a 422"),
    case!(deletion_counts_as_a_generation, "a DELETE that leaves the object adds 1 to its generation"),
    case!(preconditions_are_checked, "preconditions on version and uid: 409 that shows both"),
    case!(propagation_policies_are_finalizers, "Foreground and Orphan become finalizers, the last policy wins"),
    case!(unknown_propagation_is_refused, "an unknown propagationPolicy is a 422, in body and query"),
    case!(orphaning_twice_is_refused, "orphanDependents with propagationPolicy is a 422"),
    case!(jobs_orphan_by_default, "DELETE of a job without a policy leaves it with the finalizer orphan"),
    case!(bodies_that_are_no_options_are_refused, "DELETE with a body that is no DeleteOptions is a 400"),
    case!(collections_are_deleted, "deletecollection: 200 and the list as it was, selectors and limit honoured"),
    case!(a_deleted_collection_makes_one_event_per_object, "deletecollection: one DELETED per object"),
];

async fn a_deletion_answers_with_a_status(api: Api) {
    let ns = api.namespace().await;
    let uid = ns.configmap("a").await.uid();
    api.delete(&ns.path("configmaps/a"))
        .await
        .says(200, &success(&format!(r#"{{"name":"a","kind":"configmaps","uid":"{uid}"}}"#)));
    api.get(&ns.path("configmaps/a")).await.says(404, &Namespace::no_configmap("a"));
    let lease = ns.group_path("coordination.k8s.io/v1", "leases");
    let uid = api.post(&lease, json!({"metadata": {"name": "a"}})).await.uid();
    api.delete(&format!("{lease}/a"))
        .await
        .says(200, &success(&format!(r#"{{"name":"a","group":"coordination.k8s.io","kind":"leases","uid":"{uid}"}}"#)));
}

async fn a_pod_answers_with_itself(api: Api) {
    let ns = api.namespace().await;
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let uid = api.post(&ns.path("pods"), pod).await.uid();
    let deleted = api.delete(&ns.path("pods/a")).await;
    assert_eq!((deleted.is(200).uid(), &deleted.json()["kind"]), (uid, &json!("Pod")));
    assert_eq!(deleted.json()["metadata"]["deletionGracePeriodSeconds"], 0);
    api.get(&ns.path("pods/a")).await.is(404);
}

async fn a_scheduled_pod_has_grace(api: Api) {
    let ns = api.namespace().await;
    let pod =
        json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let made = api.post(&ns.path("pods"), pod).await;
    let deleted = api.delete(&ns.path("pods/a")).await;
    assert!(deleted.is(200).version() > made.is(201).version());
    let metadata = &deleted.json()["metadata"];
    assert_eq!((&metadata["deletionGracePeriodSeconds"], &metadata["generation"]), (&json!(30), &json!(2)));
    assert!(metadata["deletionTimestamp"].as_str().unwrap() > metadata["creationTimestamp"].as_str().unwrap());
    assert_eq!(api.get(&ns.path("pods/a")).await.json(), deleted.json());
    let mut watch = api.watch(&ns.path(&format!("pods?watch=true&resourceVersion={}", deleted.version()))).await;
    assert_eq!(api.delete(&ns.path("pods/a?gracePeriodSeconds=0")).await.is(200).json()["kind"], "Pod");
    while watch.next().await.kind() != "DELETED" {}
    api.get(&ns.path("pods/a")).await.is(404);
}

async fn a_missing_object_is_404(api: Api) {
    let ns = api.namespace().await;
    api.delete(&ns.path("configmaps/a")).await.says(404, &Namespace::no_configmap("a"));
}

async fn finalizers_hold_the_object(api: Api) {
    let ns = api.namespace().await;
    let made =
        ns.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/one", "example.com/two"]}})).await;
    let mut watch = api.watch(&ns.path(&format!("configmaps?watch=true&resourceVersion={}", made.version()))).await;
    let deleted = api.delete(&ns.path("configmaps/a")).await;
    deleted.says(200, &format!("{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"a\",\"namespace\":\"{}\",\"uid\":\"{}\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\",\"deletionTimestamp\":\"<time>\",\"deletionGracePeriodSeconds\":0,\"finalizers\":[\"example.com/one\",\"example.com/two\"]}}}}\n", ns.name, made.uid()));
    assert!(deleted.version() > made.version());
    assert_eq!(watch.expect("MODIFIED", "a").await.object(), &deleted.json());
    let again = api.delete(&ns.path("configmaps/a")).await;
    assert_eq!(again.is(200).json(), deleted.json());
    free(&api, &ns).await;
    watch.expect("DELETED", "a").await;
}

async fn the_last_finalizer_lets_go(api: Api) {
    let ns = api.namespace().await;
    ns.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/one", "example.com/two"]}})).await;
    api.delete(&ns.path("configmaps/a")).await.is(200);
    let path = ns.path("configmaps/a");
    let one = api.patch(&path, "merge-patch", json!({"metadata": {"finalizers": ["example.com/two"]}})).await;
    let mut watch =
        api.watch(&ns.path(&format!("configmaps?watch=true&resourceVersion={}", one.is(200).version()))).await;
    let none = api.patch(&path, "merge-patch", json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(none.is(200).version(), one.version());
    assert_eq!(none.json()["metadata"].get("finalizers"), None);
    let gone = watch.expect("DELETED", "a").await;
    assert!(gone.version() > one.version());
    assert_eq!(gone.object()["metadata"]["finalizers"], json!(["example.com/two"]));
    api.get(&path).await.is(404);
}

async fn no_finalizer_comes_late(api: Api) {
    let ns = api.namespace().await;
    ns.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/one"]}})).await;
    api.delete(&ns.path("configmaps/a")).await.is(200);
    let patch = json!({"metadata": {"finalizers": ["example.com/one", "example.com/new"]}});
    let why = r#"Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/new\"}"#;
    api.patch(&ns.path("configmaps/a"), "merge-patch", patch).await.says(422, &failure(&format!(
        r#""message":"ConfigMap \"a\" is invalid: metadata.finalizers: {why}","reason":"Invalid","details":{{"name":"a","kind":"ConfigMap","causes":[{{"reason":"FieldValueForbidden","message":"{why}","field":"metadata.finalizers"}}]}},"code":422"#
    )));
    free(&api, &ns).await;
}

async fn a_name_is_taken_until_it_is_gone(api: Api) {
    let ns = api.namespace().await;
    ns.create(json!({"metadata": {"name": "a", "finalizers": ["example.com/one"]}})).await;
    api.delete(&ns.path("configmaps/a")).await.is(200);
    api.post(&ns.path("configmaps"), configmap("a")).await.says(409, &failure(
        r#""message":"object is being deleted: configmaps \"a\" already exists","reason":"AlreadyExists","details":{"name":"a","kind":"configmaps"},"code":409"#,
    ));
    free(&api, &ns).await;
    ns.configmap("a").await;
}

async fn finalizers_are_qualified(api: Api) {
    let ns = api.namespace().await;
    let why = r#"Invalid value: \"bad\": name is neither a standard finalizer name nor is it fully qualified"#;
    api.post(&ns.path("configmaps"), json!({"metadata": {"name": "a", "finalizers": ["bad"]}})).await.says(422, &failure(&format!(
        r#""message":"ConfigMap \"a\" is invalid: metadata.finalizers[0]: {why}","reason":"Invalid","details":{{"name":"a","kind":"ConfigMap","causes":[{{"reason":"FieldValueInvalid","message":"{why}","field":"metadata.finalizers[0]"}}]}},"code":422"#
    )));
}

async fn deletion_counts_as_a_generation(api: Api) {
    let ns = api.namespace().await;
    let path = ns.group_path("networking.k8s.io/v1", "networkpolicies");
    let body = json!({"metadata": {"name": "a", "finalizers": ["example.com/one"]}, "spec": {"podSelector": {}}});
    assert_eq!(api.post(&path, body).await.is(201).json()["metadata"]["generation"], 1);
    let path = format!("{path}/a");
    assert_eq!(api.delete(&path).await.is(200).json()["metadata"]["generation"], 2);
    api.patch(&path, "merge-patch", json!({"metadata": {"finalizers": null}})).await.is(200);
}

async fn preconditions_are_checked(api: Api) {
    let ns = api.namespace().await;
    let made = ns.configmap("a").await;
    let (uid, version) = (made.uid(), made.version());
    let delete = async |preconditions| {
        let body = json!({"preconditions": preconditions});
        api.request("DELETE", &ns.path("configmaps/a")).body("application/json", body).send().await
    };
    let conflict = |why: &str| {
        failure(&format!(
            r#""message":"Operation cannot be fulfilled on ConfigMap \"a\": {why}","reason":"Conflict","details":{{"name":"a","kind":"ConfigMap"}},"code":409"#
        ))
    };
    delete(json!({"resourceVersion": "1"})).await.says(409, &conflict(&format!(
        "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({version}). The object might have been modified"
    )));
    delete(json!({"uid": "x"})).await.says(409, &conflict(&format!(
        "the UID in the precondition (x) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
    )));
    delete(json!({"uid": uid, "resourceVersion": version.to_string()})).await.is(200);
}

async fn propagation_policies_are_finalizers(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let delete = async |policy: &str| api.delete(&ns.path(&format!("configmaps/a?propagationPolicy={policy}"))).await;
    for (policy, finalizer) in [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")] {
        let answer = delete(policy).await.is(200).json();
        assert_eq!(answer["metadata"]["finalizers"], json!([finalizer]), "{policy}");
    }
    assert_eq!(delete("Background").await.is(200).json()["status"], "Success");
    api.get(&ns.path("configmaps/a")).await.is(404);
}

async fn unknown_propagation_is_refused(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let why = r#"Unsupported value: \"Foo\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""#;
    let refusal = invalid_options("FieldValueNotSupported", why);
    api.delete(&ns.path("configmaps/a?propagationPolicy=Foo")).await.says(422, &refusal);
    let body = json!({"propagationPolicy": "Foo"});
    api.request("DELETE", &ns.path("configmaps/a")).body("application/json", body).send().await.says(422, &refusal);
}

async fn orphaning_twice_is_refused(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let body = json!({"orphanDependents": true, "propagationPolicy": "Orphan"});
    api.request("DELETE", &ns.path("configmaps/a")).body("application/json", body).send().await.says(
        422,
        &invalid_options(
            "FieldValueInvalid",
            r#"Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both set"#,
        ),
    );
}

async fn jobs_orphan_by_default(api: Api) {
    let ns = api.namespace().await;
    let path = ns.group_path("batch/v1", "jobs");
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    api.post(&path, json!({"metadata": {"name": "a"}, "spec": {"template": template}})).await.is(201);
    let path = format!("{path}/a");
    assert_eq!(api.delete(&path).await.is(200).json()["metadata"]["finalizers"], json!(["orphan"]));
    api.delete(&format!("{path}?propagationPolicy=Background")).await.is(200);
    api.get(&path).await.is(404);
}

async fn bodies_that_are_no_options_are_refused(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    for (body, why) in [
        (
            r#"{"dryRun":"All"}"#,
            "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string",
        ),
        (
            r#"{"preconditions":5}"#,
            "json: cannot unmarshal number into Go struct field DeleteOptions.preconditions of type v1.Preconditions",
        ),
        (
            "[]",
            r#"couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"#,
        ),
        (
            "garbage",
            "couldn't get version/kind; json parse error: invalid character 'g' looking for beginning of value",
        ),
        (
            r#"{"kind":"ConfigMap","apiVersion":"v1"}"#,
            r#"no kind \"ConfigMap\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:<n>\""#,
        ),
    ] {
        let answer = api.request("DELETE", &ns.path("configmaps/a")).body("application/json", body).send().await;
        answer.says(400, &failure(&format!(r#""message":"{why}","reason":"BadRequest","code":400"#)));
    }
    for body in [r#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":-5}"#] {
        api.request("DELETE", &ns.path("configmaps/a")).body("application/json", body).send().await.is(200);
    }
}

async fn collections_are_deleted(api: Api) {
    let ns = api.namespace().await;
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y")] {
        ns.create(json!({"metadata": {"name": name, "labels": {"app": app}}})).await;
    }
    let before = ns.version().await;
    let selected = api.delete(&ns.path("configmaps?labelSelector=app%3Dx")).await;
    assert_eq!(selected.is(200).names(), ["a", "c"]);
    assert_eq!(selected.json()["kind"], "ConfigMapList");
    assert!(selected.version() >= before);
    assert_eq!(selected.json()["items"][0]["metadata"].get("deletionTimestamp"), None);
    assert_eq!(api.get(&ns.path("configmaps")).await.names(), ["b", "d"]);
    let limited = api.delete(&ns.path("configmaps?limit=1")).await;
    assert_eq!((limited.is(200).names(), limited.token().is_some()), (vec!["b".to_owned()], true));
    assert_eq!(api.get(&ns.path("configmaps")).await.names(), ["d"]);
    assert_eq!(api.delete(&ns.path("configmaps")).await.is(200).names(), ["d"]);
    assert!(api.delete(&ns.path("configmaps")).await.is(200).names().is_empty());
}

async fn a_deleted_collection_makes_one_event_per_object(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    let start = ns.version().await;
    let mut watch = api.watch(&ns.path(&format!("configmaps?watch=true&resourceVersion={start}"))).await;
    api.delete(&ns.path("configmaps")).await.is(200);
    let (one, two) = (watch.next().await, watch.next().await);
    assert!(one.kind() == "DELETED" && two.kind() == "DELETED" && one.version() < two.version());
    let mut names = [one.name(), two.name()];
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
}

/// Removes the finalizers of the config map `a`.
async fn free(api: &Api, ns: &Namespace) {
    api.patch(&ns.path("configmaps/a"), "merge-patch", json!({"metadata": {"finalizers": null}})).await.is(200);
}

fn success(details: &str) -> String {
    format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Success\",\"details\":{details}}}\n"
    )
}

fn invalid_options(reason: &str, why: &str) -> String {
    failure(&format!(
        r#""message":"DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: {why}","reason":"Invalid","details":{{"group":"meta.k8s.io","kind":"DeleteOptions","causes":[{{"reason":"{reason}","message":"{why}","field":"propagationPolicy"}}]}},"code":422"#
    ))
}
