//! Namespaces: their lifecycle, and their effect on the objects in them.

use crate::harness::{Api, Case, case, configmap, failure};
use serde_json::json;

pub(crate) const CASES: &[Case] = &[
    case!(the_creator_owns_the_label, "managedFields of a new namespace: its creator owns the label with its name"),
    case!(a_namespace_is_completed, "create: label kubernetes.io/metadata.name, finalizer kubernetes, phase Active"),
    case!(names_of_namespaces_are_labels, "a name with dots or capitals is a 422"),
    case!(
        a_missing_namespace_holds_nothing,
        "create in a missing namespace is a 404 of the namespace; lists are empty, gets 404"
    ),
    case!(
        a_deleted_namespace_terminates,
        "DELETE: 200, phase Terminating, MODIFIED; it stays until finalized, then DELETED"
    ),
    case!(
        a_terminating_namespace_takes_nothing_new,
        "creates in a terminating namespace are a 403; updates and deletes work"
    ),
    case!(
        finalizers_of_the_spec_are_written_by_finalize,
        "spec.finalizers: kubernetes is added, only /finalize changes them"
    ),
    case!(some_namespaces_stay, "default, kube-system and kube-public cannot be deleted"),
];

async fn a_namespace_is_completed(api: Api) {
    let ns = api.namespace().await;
    let name = &ns.name;
    api.get(&ns.path).await.says(200, &format!("{{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"{name}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\",\"labels\":{{\"kubernetes.io/metadata.name\":\"{name}\"}}}},\"spec\":{{\"finalizers\":[\"kubernetes\"]}},\"status\":{{\"phase\":\"Active\"}}}}\n"));
}

async fn names_of_namespaces_are_labels(api: Api) {
    for (name, why) in [
        ("a.b", "must not contain dots"),
        (
            "Bad_Name",
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ),
    ] {
        let why = format!(r#"Invalid value: \"{name}\": {why}"#);
        api.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await.says(422, &failure(&format!(
            r#""message":"Namespace \"{name}\" is invalid: metadata.name: {why}","reason":"Invalid","details":{{"name":"{name}","kind":"Namespace","causes":[{{"reason":"FieldValueInvalid","message":"{why}","field":"metadata.name"}}]}},"code":422"#
        )));
    }
}

async fn a_missing_namespace_holds_nothing(api: Api) {
    let name = api.unique("missing");
    let path = format!("/api/v1/namespaces/{name}/configmaps");
    let refusal = failure(&format!(
        r#""message":"namespaces \"{name}\" not found","reason":"NotFound","details":{{"name":"{name}","kind":"namespaces"}},"code":404"#
    ));
    api.post(&path, configmap("a")).await.says(404, &refusal);
    api.get(&path).await.says(
        200,
        "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"<n>\"},\"items\":[]}\n",
    );
    api.get(&format!("{path}/a")).await.is(404);
    api.watch(&format!("{path}?watch=true&timeoutSeconds=1")).await.end().await;
}

async fn a_deleted_namespace_terminates(api: Api) {
    let ns = api.namespace().await;
    let start = api.get(&ns.path).await.version();
    let path =
        format!("/api/v1/namespaces?watch=true&fieldSelector=metadata.name%3D{}&resourceVersion={start}", ns.name);
    let mut watch = api.watch(&path).await;
    let deleted = api.delete(&ns.path).await;
    deleted.says(200, &format!("{{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"{name}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\",\"deletionTimestamp\":\"<time>\",\"labels\":{{\"kubernetes.io/metadata.name\":\"{name}\"}}}},\"spec\":{{\"finalizers\":[\"kubernetes\"]}},\"status\":{{\"phase\":\"Terminating\"}}}}\n", name = ns.name));
    assert_eq!(watch.expect("MODIFIED", &ns.name).await.object(), &deleted.json());
    assert_eq!(api.delete(&ns.path).await.is(200).version(), deleted.version());
    let body = json!({"metadata": {"name": ns.name}, "spec": {"finalizers": []}});
    let finalized = api.put(&format!("{}/finalize", ns.path), body).await;
    assert_eq!((finalized.is(200).version(), &finalized.json()["spec"]), (deleted.version(), &json!({})));
    assert!(watch.expect("DELETED", &ns.name).await.version() > deleted.version());
    api.get(&ns.path).await.is(404);
}

async fn a_terminating_namespace_takes_nothing_new(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    api.delete(&ns.path).await.is(200);
    let refusal = |resource: &str, name: &str, group: &str| {
        let (kind, ns) = (resource.split('.').next().unwrap(), &ns.name);
        failure(&format!(
            r#""message":"{resource} \"{name}\" is forbidden: unable to create new content in namespace {ns} because it is being terminated","reason":"Forbidden","details":{{"name":"{name}",{group}"kind":"{kind}","causes":[{{"reason":"NamespaceTerminating","message":"namespace {ns} is being terminated","field":"metadata.namespace"}}]}},"code":403"#
        ))
    };
    api.post(&ns.path("configmaps"), configmap("new")).await.says(403, &refusal("configmaps", "new", ""));
    api.post(&ns.path("configmaps"), json!({"metadata": {"generateName": "new-"}}))
        .await
        .says(403, &refusal("configmaps", "new-", ""));
    api.put(&ns.group_path("coordination.k8s.io/v1", "leases/l"), json!({"metadata": {"name": "l"}}))
        .await
        .says(403, &refusal("leases.coordination.k8s.io", "l", r#""group":"coordination.k8s.io","#));
    ns.change("a", "1").await;
    api.delete(&ns.path("configmaps/b")).await.is(200);
}

async fn finalizers_of_the_spec_are_written_by_finalize(api: Api) {
    let name = api.unique("kept");
    let path = format!("/api/v1/namespaces/{name}");
    api.leave_to_clean_up(&path);
    let body = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": "x", "a": "b"}},
        "spec": {"finalizers": ["example.com/keep"]},
        "status": {"phase": "Terminating"},
    });
    let made = api.post("/api/v1/namespaces", body).await.is(201).json();
    assert_eq!(made["metadata"]["labels"], json!({"kubernetes.io/metadata.name": name, "a": "b"}));
    assert_eq!(made["spec"]["finalizers"], json!(["example.com/keep", "kubernetes"]));
    assert_eq!(made["status"]["phase"], "Active");
    let patch = json!({"spec": {"finalizers": []}, "status": {"phase": "Terminating"}});
    let patched = api.patch(&path, "merge-patch", patch).await.is(200).json();
    assert_eq!(patched["spec"]["finalizers"], made["spec"]["finalizers"]);
    assert_eq!(patched["status"]["phase"], "Active");
    api.delete(&path).await.is(200);
    let finalize = async |finalizers| {
        let body = json!({"metadata": {"name": name}, "spec": {"finalizers": finalizers}});
        api.put(&format!("{path}/finalize"), body).await.is(200).json()
    };
    assert_eq!(finalize(json!(["example.com/keep"])).await["spec"]["finalizers"], json!(["example.com/keep"]));
    api.get(&path).await.is(200);
    finalize(json!([])).await;
    api.get(&path).await.is(404);
}

async fn some_namespaces_stay(api: Api) {
    for name in ["default", "kube-system", "kube-public"] {
        let refused = api.delete(&format!("/api/v1/namespaces/{name}")).await;
        // This header is set only if authorization rejects the request.
        assert_eq!(refused.header("x-content-type-options"), None);
        refused.says(403, &failure(&format!(
            r#""message":"namespaces \"{name}\" is forbidden: this namespace may not be deleted","reason":"Forbidden","details":{{"name":"{name}","kind":"namespaces"}},"code":403"#
        )));
    }
}

async fn the_creator_owns_the_label(api: Api) {
    let ns = api.namespace().await;
    let entries = api.get(&ns.path).await.is(200).json()["metadata"]["managedFields"].clone();
    assert_eq!(entries.as_array().map(Vec::len), Some(1), "{entries}");
    let labels = json!({".": {}, "f:kubernetes.io/metadata.name": {}});
    assert_eq!(entries[0]["fieldsV1"], json!({"f:metadata": {"f:labels": labels}}));
    assert_eq!((&entries[0]["manager"], &entries[0]["operation"]), (&json!("conformance"), &json!("Update")));
    let initial = api.get("/api/v1/namespaces/default").await.is(200).json();
    let entry = &initial["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["fieldsV1"]["f:metadata"]["f:labels"]), (&json!("kube-apiserver"), &labels));
}
