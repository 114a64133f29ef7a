//! JSON patches, merge patches and strategic merge patches.

use crate::harness::{Api, Case, Namespace, case, failure};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(merge_patches_merge, "merge patch: what is null goes, the rest is merged; 200 with a new version"),
    case!(json_patches_follow_their_operations, "JSON patch: test, add, replace, remove, copy, move"),
    case!(
        json_patches_that_cannot_be_applied_are_422,
        "JSON patch: a failing test, a missing path, an unknown operation"
    ),
    case!(patches_that_make_no_sense_are_400, "a patch that is no JSON, or of the wrong shape, is a 400"),
    case!(
        what_is_not_there_tests_as_null,
        "JSON patch: a test for null holds of a field that is missing, which is how finalizers are added"
    ),
    case!(json_patches_have_a_limit, "more than 10000 operations are a 413"),
    case!(patches_cannot_rename, "a patch of name or namespace is a 400, of the uid a 422"),
    case!(patches_may_require_a_version, "a patch that sets another resourceVersion is a 409"),
    case!(patches_cannot_touch_what_the_server_sets, "patching times or generation is ignored"),
    case!(patches_of_missing_objects_are_404, "a patch of a missing object is a 404"),
    case!(patches_must_leave_a_legal_object, "a patch whose result does not fit the type is a 422 that shows it"),
    case!(other_kinds_of_patches_are_415, "a patch of another media type is a 415"),
    case!(
        strategic_patches_merge_lists_as_their_fields_say,
        "strategic merge patch: merge keys, directives, orders, and what makes no sense"
    ),
    case!(force_is_only_for_apply, "force with a plain patch is a 422"),
];

async fn merge_patches_merge(api: Api) {
    let ns = api.namespace().await;
    let made = ns.create(json!({"metadata": {"name": "a", "labels": {"x": "1", "y": "2"}}, "data": {"k": "v"}})).await;
    let patch = json!({"metadata": {"labels": {"x": null, "z": "3"}}, "data": {"l": "w"}});
    let patched = api.patch(&ns.path("configmaps/a"), "merge-patch", patch).await;
    assert!(patched.is(200).version() > made.version());
    assert_eq!(patched.json()["metadata"]["labels"], json!({"y": "2", "z": "3"}));
    assert_eq!(patched.json()["data"], json!({"k": "v", "l": "w"}));
    let patched = api.patch(&ns.path("configmaps/a"), "merge-patch", json!({"data": null})).await;
    assert_eq!(patched.is(200).json().get("data"), None);
}

async fn json_patches_follow_their_operations(api: Api) {
    let ns = api.namespace().await;
    ns.create(json!({"metadata": {"name": "a"}, "data": {"k": "v", "old": "o"}})).await;
    let patch = json!([
        {"op": "test", "path": "/data/k", "value": "v"},
        {"op": "add", "path": "/data/a~1b", "value": "slash"},
        {"op": "replace", "path": "/data/k", "value": "w"},
        {"op": "copy", "from": "/data/k", "path": "/data/copied"},
        {"op": "move", "from": "/data/old", "path": "/data/moved"},
        {"op": "remove", "path": "/data/a~1b"},
        {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}},
    ]);
    let patched = api.patch(&ns.path("configmaps/a"), "json-patch", patch).await.is(200).json();
    assert_eq!(patched["data"], json!({"k": "w", "copied": "w", "moved": "o"}));
    assert_eq!(patched["metadata"]["labels"], json!({"l": "1"}));
}

async fn json_patches_that_cannot_be_applied_are_422(api: Api) {
    let ns = api.namespace().await;
    ns.create(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    for operation in [
        json!({"op": "test", "path": "/data/k", "value": "other"}),
        json!({"op": "remove", "path": "/data/missing"}),
        json!({"op": "replace", "path": "/missing/at/all", "value": "x"}),
        json!({"op": "bogus", "path": "/data/k"}),
    ] {
        api.patch(&ns.path("configmaps/a"), "json-patch", json!([operation])).await.says(422, &failure(
            r#""message":"the server rejected our request due to an error in our request","reason":"Invalid","details":{},"code":422"#,
        ));
    }
}

async fn patches_that_make_no_sense_are_400(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    for (kind, body, message) in [
        (
            "json-patch",
            r#"{"a":1}"#,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        ("json-patch", "x", "invalid JSON patch"),
        ("merge-patch", "x", "invalid JSON patch"),
        ("merge-patch", "", "invalid JSON patch"),
        (
            "merge-patch",
            "5",
            "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}",
        ),
        (
            "merge-patch",
            "[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
    ] {
        api.patch(&ns.path("configmaps/a"), kind, body)
            .await
            .says(400, &failure(&format!(r#""message":"{message}","reason":"BadRequest","code":400"#)));
    }
}

async fn what_is_not_there_tests_as_null(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let add = json!([
        {"op": "test", "path": "/metadata/finalizers", "value": null},
        {"op": "add", "path": "/metadata/finalizers", "value": ["example.com/f"]},
    ]);
    let added = api.patch(&ns.path("configmaps/a"), "json-patch", &add).await.is(200).json();
    assert_eq!(added["metadata"]["finalizers"], json!(["example.com/f"]));
    api.patch(&ns.path("configmaps/a"), "json-patch", &add).await.is(422);
    for path in ["/nothing/here", "/data/k/deeper", "/metadata/finalizers/7"] {
        let test = json!([{"op": "test", "path": path, "value": null}]);
        api.patch(&ns.path("configmaps/a"), "json-patch", test).await.is(422);
    }
    let remove = json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": "example.com/f"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    api.patch(&ns.path("configmaps/a"), "json-patch", remove).await.is(200);
}

async fn json_patches_have_a_limit(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let operation = json!({"op": "test", "path": "/kind", "value": "ConfigMap"});
    api.patch(&ns.path("configmaps/a"), "json-patch", json!(vec![operation; 10_001])).await.says(413, &failure(
        r#""message":"Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001","reason":"RequestEntityTooLarge","code":413"#,
    ));
}

async fn patches_cannot_rename(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    for (metadata, message) in [
        (json!({"name": "other"}), "the name of the object (other) does not match the name on the URL (a)"),
        (
            json!({"namespace": "other"}),
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
    ] {
        api.patch(&ns.path("configmaps/a"), "merge-patch", json!({"metadata": metadata}))
            .await
            .says(400, &failure(&format!(r#""message":"{message}","reason":"BadRequest","code":400"#)));
    }
    api.patch(&ns.path("configmaps/a"), "merge-patch", json!({"metadata": {"uid": "1"}})).await.says(422, &failure(
        r#""message":"ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"1\": field is immutable","reason":"Invalid","details":{"name":"a","kind":"ConfigMap","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"1\": field is immutable","field":"metadata.uid"}]},"code":422"#,
    ));
}

async fn patches_may_require_a_version(api: Api) {
    let ns = api.namespace().await;
    let first = ns.configmap("a").await.version().to_string();
    let last = ns.change("a", "1").await.version().to_string();
    let patch = |version: &str| json!({"metadata": {"resourceVersion": version}, "data": {"k": version}});
    api.patch(&ns.path("configmaps/a"), "merge-patch", patch(&first)).await.says(409, &failure(
        r#""message":"Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again","reason":"Conflict","details":{"name":"a","kind":"configmaps"},"code":409"#,
    ));
    api.patch(&ns.path("configmaps/a"), "merge-patch", patch(&last)).await.is(200);
}

async fn patches_cannot_touch_what_the_server_sets(api: Api) {
    let ns = api.namespace().await;
    let made = ns.configmap("a").await;
    let patch = json!({"metadata": {"deletionTimestamp": null, "creationTimestamp": null, "generation": 9}});
    api.patch(&ns.path("configmaps/a"), "merge-patch", patch).await.says(200, &made.text());
}

async fn patches_of_missing_objects_are_404(api: Api) {
    let ns = api.namespace().await;
    api.patch(&ns.path("configmaps/a"), "merge-patch", json!({})).await.says(404, &Namespace::no_configmap("a"));
    api.patch(&ns.path("configmaps/a"), "json-patch", json!([])).await.says(404, &Namespace::no_configmap("a"));
}

async fn patches_must_leave_a_legal_object(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let answer = api.patch(&ns.path("configmaps/a"), "merge-patch", json!({"data": {"k": 1}})).await;
    let why = r#"json: cannot unmarshal number into Go struct field ConfigMap.data of type string"#;
    answer.says(422, &failure(&format!(
        r#""message":" \"\" is invalid: patch: Invalid value: \"{{<*>}}\": {why}","reason":"Invalid","details":{{"causes":[{{"reason":"FieldValueInvalid","message":"Invalid value: \"{{<*>}}\": {why}","field":"patch"}}]}},"code":422"#
    )));
}

async fn other_kinds_of_patches_are_415(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    for kind in ["application/json", "text/plain", "application/apply-patch+cbor"] {
        api.request("PATCH", &ns.path("configmaps/a")).body(kind, "{}").send().await.says(
            415,
            &failure(
                r#""message":"415: Unsupported Media Type","reason":"UnsupportedMediaType","details":{},"code":415"#,
            ),
        );
    }
}

/// Results recorded from kube-apiserver for each patch: first the object, then `{"patch", "code",
/// "metadata", "spec"}` or a message.
async fn strategic_patches_merge_lists_as_their_fields_say(api: Api) {
    let ns = api.namespace().await;
    let deployments = ns.group_path("apps/v1", "deployments");
    let mut lines = include_str!("strategic.jsonl").lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut object = lines.next().unwrap();
    for (at, recorded) in lines.enumerate() {
        let name = format!("d{at}");
        object["metadata"]["name"] = json!(name);
        api.post(&deployments, &object).await.is(201);
        let patch = recorded["patch"].to_string().replace("\"d\"", &format!("\"{name}\""));
        let path = format!("{deployments}/{name}");
        let patched = api.patch(&path, "strategic-merge-patch", patch).await;
        assert_eq!(patched.code, recorded["code"], "{} {}", recorded["patch"], patched.text());
        let patched = patched.json();
        match recorded["message"].as_str() {
            Some(message) => assert_eq!(patched["message"], message, "{}", recorded["patch"]),
            None => {
                assert_eq!(patched["spec"], recorded["spec"], "{}", recorded["patch"]);
                for part in ["labels", "finalizers"] {
                    assert_eq!(patched["metadata"][part], recorded["metadata"][part], "{}", recorded["patch"]);
                }
            }
        }
        api.patch(&path, "merge-patch", json!({"metadata": {"finalizers": null}})).await.is(200);
    }
}

async fn force_is_only_for_apply(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    api.patch(&ns.path("configmaps/a?force=true"), "merge-patch", json!({})).await.says(422, &failure(
        r#""message":"PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch","reason":"Invalid","details":{"group":"meta.k8s.io","kind":"PatchOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: may not be specified for non-apply patch","field":"force"}]},"code":422"#,
    ));
}
