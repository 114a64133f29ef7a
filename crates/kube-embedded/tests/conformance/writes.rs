//! Creates and updates, and the metadata that the server sets.

use crate::harness::{Api, Case, Namespace, case, configmap, failure};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(
        a_created_object_is_completed,
        "create: 201; uid, version, time and namespace are the server's, kind may be missing"
    ),
    case!(
        what_only_the_server_sets_is_dropped,
        "create drops uid, selfLink, times of creation and deletion; keeps a generation where none is kept"
    ),
    case!(a_body_without_a_content_type_is_json, "no Content-Type is JSON"),
    case!(a_version_on_create_is_refused_with_500, "create with a resourceVersion is a 500; \"\" and \"0\" are fine"),
    case!(names_are_taken_once, "create of a name that is taken is a 409"),
    case!(a_name_is_required, "create without name and generateName is a 422"),
    case!(names_are_validated, "create of an illegal name is a 422"),
    case!(labels_are_validated, "create with an illegal label key is a 422"),
    case!(names_are_generated, "generateName: five letters without vowels are appended, the base cut to 58"),
    case!(the_namespace_must_fit_the_path, "another namespace in the body is a 400, on create and update"),
    case!(the_name_must_fit_the_path, "update: another name in the body, or none, is a 400"),
    case!(bodies_that_are_no_objects_are_refused, "a body that is no JSON, or no object, is a 400 that shows it"),
    case!(bodies_of_wrong_types_are_refused, "a field of a wrong type is a 400 that names it"),
    case!(null_is_an_empty_object, "a body of null is an object without anything"),
    case!(owners_are_validated, "owners need apiVersion, kind, name and uid, and are no events"),
    case!(bodies_of_other_kinds_are_refused, "another kind or version in the body is a 400"),
    case!(bodies_have_a_limit, "a body of more than 3 MiB is a 413"),
    case!(updates_replace_the_whole_object, "update: what is not sent is gone"),
    case!(
        updates_from_an_old_version_conflict,
        "update with another version is a 409; \"\" and \"0\" are unconditional"
    ),
    case!(updates_with_an_unparsable_version_fail, "update with an unparsable version is a 500"),
    case!(updates_of_another_uid_conflict, "update with another uid is a 409 that shows both"),
    case!(updates_of_missing_objects_are_404, "update of a missing object is a 404"),
    case!(some_kinds_are_created_by_updates, "update of a missing lease creates it: 201"),
    case!(some_kinds_require_a_version, "update of a lease without a version is a 422"),
    case!(
        deletion_is_not_set_by_updates,
        "setting deletionTimestamp is a 422; creationTimestamp and generation are ignored"
    ),
    case!(
        generation_counts_changes_of_the_spec,
        "generation: 1, more with a change of the spec (Deployments: and annotations), not of labels"
    ),
    case!(status_is_written_through_its_subresource, "the main path ignores status, /status ignores spec"),
    case!(status_is_dropped_on_create, "create drops the status"),
    case!(dry_runs_change_nothing, "dryRun=All: the same answers, no version on creates, nothing stored"),
    case!(other_dry_runs_are_refused, "dryRun with another value is a 422 of the verb's options"),
    case!(
        defaults_are_filled_in,
        "create fills in defaults: a secret's type, a pod's policies, a deployment's replicas"
    ),
    case!(
        fields_are_warned_of_in_order,
        "unknown and duplicate fields: warnings in the order of the body; of custom resources the duplicates first"
    ),
    case!(secrets_take_plain_strings, "stringData of a secret is stored as data in base64"),
];

async fn a_created_object_is_completed(api: Api) {
    let ns = api.namespace().await;
    for body in
        [configmap("a"), json!({"metadata": {"name": "b"}}), json!({"metadata": {"name": "c", "namespace": ns.name}})]
    {
        let name = &body["metadata"]["name"].as_str().unwrap();
        ns.create(body.clone()).await.says(
            201,
            &format!(
                "{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"{name}\",\"namespace\":\"{}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\"}}}}\n",
                ns.name
            ),
        );
    }
}

async fn what_only_the_server_sets_is_dropped(api: Api) {
    let ns = api.namespace().await;
    let made = ns.create(json!({"metadata": {
        "name": "a", "resourceVersion": "0", "uid": "mine", "selfLink": "/x", "generation": 77,
        "creationTimestamp": "2000-01-01T00:00:00Z", "deletionTimestamp": "2000-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5,
    }}))
    .await;
    // What is dropped belongs to no manager.
    assert_eq!(made.json()["metadata"].get("managedFields"), None);
    made.says(201, &format!("{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"a\",\"namespace\":\"{}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"generation\":77,\"creationTimestamp\":\"<time>\"}}}}\n", ns.name));
    assert!(!api.get(&ns.path("configmaps/a")).await.text().contains("2000-01-01"));
}

async fn a_body_without_a_content_type_is_json(api: Api) {
    let ns = api.namespace().await;
    api.request("POST", &ns.path("configmaps")).bare_body(configmap("a").to_string()).send().await.is(201);
}

async fn a_version_on_create_is_refused_with_500(api: Api) {
    let ns = api.namespace().await;
    let body = |version: &str| json!({"metadata": {"name": format!("a{version}"), "resourceVersion": version}});
    api.post(&ns.path("configmaps"), body("5"))
        .await
        .says(500, &failure(r#""message":"resourceVersion should not be set on objects to be created","code":500"#));
    for version in ["", "0"] {
        api.post(&ns.path("configmaps"), body(version)).await.is(201);
    }
}

async fn names_are_taken_once(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    api.post(&ns.path("configmaps"), configmap("a")).await.says(409, &failure(
        r#""message":"configmaps \"a\" already exists","reason":"AlreadyExists","details":{"name":"a","kind":"configmaps"},"code":409"#,
    ));
}

async fn a_name_is_required(api: Api) {
    let ns = api.namespace().await;
    for body in [json!({}), json!({"metadata": {}}), json!({"metadata": {"name": ""}}), json!({"metadata": null})] {
        api.post(&ns.path("configmaps"), body).await.says(422, &failure(
            r#""message":"ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required","reason":"Invalid","details":{"kind":"ConfigMap","causes":[{"reason":"FieldValueRequired","message":"Required value: name or generateName is required","field":"metadata.name"}]},"code":422"#,
        ));
    }
}

async fn names_are_validated(api: Api) {
    let ns = api.namespace().await;
    let rule = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    for name in ["Bad_Name", "a/b", "-a"] {
        api.post(&ns.path("configmaps"), configmap(name)).await.says(
            422,
            &invalid(name, &[("FieldValueInvalid", "metadata.name", &format!(r#"Invalid value: \"{name}\": {rule}"#))]),
        );
    }
    let long = "a".repeat(254);
    api.post(&ns.path("configmaps"), configmap(&long)).await.says(
        422,
        &invalid(
            &long,
            &[(
                "FieldValueInvalid",
                "metadata.name",
                &format!(r#"Invalid value: \"{long}\": must be no more than 253 characters"#),
            )],
        ),
    );
}

async fn labels_are_validated(api: Api) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "a", "labels": {"a b": "c"}}});
    api.post(&ns.path("configmaps"), body).await.says(422, &invalid("a", &[(
        "FieldValueInvalid",
        "metadata.labels",
        r#"Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
    )]));
}

async fn names_are_generated(api: Api) {
    let ns = api.namespace().await;
    let long = "a".repeat(80);
    for base in ["gen-", &long] {
        let made = ns.create(json!({"metadata": {"generateName": base}})).await.json();
        let name = made["metadata"]["name"].as_str().unwrap();
        let suffix = name.strip_prefix(&base[..base.len().min(58)]).unwrap();
        assert!(suffix.len() == 5 && suffix.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c)), "{name}");
        assert_eq!(made["metadata"]["generateName"], *base);
    }
}

async fn the_namespace_must_fit_the_path(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let body = json!({"metadata": {"name": "a", "namespace": "other"}});
    let refusal = failure(
        r#""message":"the namespace of the provided object does not match the namespace sent on the request","reason":"BadRequest","code":400"#,
    );
    api.post(&ns.path("configmaps"), &body).await.says(400, &refusal);
    api.put(&ns.path("configmaps/a"), &body).await.says(400, &refusal);
}

async fn the_name_must_fit_the_path(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let refusal = |message: &str| failure(&format!(r#""message":"{message}","reason":"BadRequest","code":400"#));
    api.put(&ns.path("configmaps/a"), configmap("b"))
        .await
        .says(400, &refusal("the name of the object (b) does not match the name on the URL (a)"));
    api.put(&ns.path("configmaps/a"), json!({}))
        .await
        .says(400, &refusal("the name of the object (a based on URL) was undeterminable: name must be provided"));
}

async fn bodies_that_are_no_objects_are_refused(api: Api) {
    let ns = api.namespace().await;
    let of_type = r#"Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"#;
    for (body, why) in [
        ("{", "unexpected end of JSON input ({)".to_owned()),
        ("", r"unexpected end of JSON input (\u003cempty\u003e)".to_owned()),
        ("[]", format!("json: cannot unmarshal array into {of_type} (5b5d)")),
        ("\"x\"", format!("json: cannot unmarshal string into {of_type} (227822)")),
    ] {
        api.post(&ns.path("configmaps"), body).await.says(400, &failure(&format!(
            r#""message":"the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: {why}","reason":"BadRequest","code":400"#
        )));
    }
}

async fn bodies_of_wrong_types_are_refused(api: Api) {
    let ns = api.namespace().await;
    for (body, why) in [
        (json!({"metadata": {"name": 5}}), "number into Go struct field ObjectMeta.metadata.name of type string"),
        (
            json!({"metadata": {"name": "a"}, "data": {"k": 1}}),
            "number into Go struct field ConfigMap.data of type string",
        ),
    ] {
        api.post(&ns.path("configmaps"), body).await.says(400, &failure(&format!(
            r#""message":"ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal {why}","reason":"BadRequest","code":400"#
        )));
    }
}

async fn bodies_of_other_kinds_are_refused(api: Api) {
    let ns = api.namespace().await;
    for (kind, version, why) in [
        ("Secret", "v1", r"converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        (
            "ConfigMap",
            "v2",
            r#"no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:<n>\""#,
        ),
    ] {
        let body = json!({"kind": kind, "apiVersion": version, "metadata": {"name": "a"}});
        api.post(&ns.path("configmaps"), body).await.says(400, &failure(&format!(
            r#""message":"{kind} in version \"{version}\" cannot be handled as a ConfigMap: {why}","reason":"BadRequest","code":400"#
        )));
    }
}

async fn bodies_have_a_limit(api: Api) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "x".repeat(3 * 1024 * 1024)}});
    api.post(&ns.path("configmaps"), body).await.says(
        413,
        &failure(
            r#""message":"Request entity too large: limit is 3145728","reason":"RequestEntityTooLarge","code":413"#,
        ),
    );
}

async fn null_is_an_empty_object(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    api.post(&ns.path("configmaps"), "null").await.is(422);
    api.put(&ns.path("configmaps/a"), "null").await.says(
        400,
        &failure(
            r#""message":"the name of the object (a based on URL) was undeterminable: name must be provided","reason":"BadRequest","code":400"#,
        ),
    );
}

async fn owners_are_validated(api: Api) {
    let ns = api.namespace().await;
    let owners = json!([
        {},
        {"apiVersion": "/", "kind": "K", "name": "n", "uid": "u"},
        {"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"},
    ]);
    let empty = "Required value: must not be empty";
    let refused = api.post(&ns.path("configmaps"), json!({"metadata": {"name": "a", "ownerReferences": owners}})).await;
    refused.says(
        422,
        &invalid(
            "a",
            &[
                ("FieldValueRequired", "metadata.ownerReferences[0].apiVersion", empty),
                ("FieldValueRequired", "metadata.ownerReferences[0].kind", empty),
                ("FieldValueRequired", "metadata.ownerReferences[0].name", empty),
                ("FieldValueRequired", "metadata.ownerReferences[0].uid", empty),
                (
                    "FieldValueInvalid",
                    "metadata.ownerReferences[1].apiVersion",
                    r#"Invalid value: \"/\": must be \u003cgroup\u003e/\u003cversion\u003e or \u003cversion\u003e"#,
                ),
                (
                    "FieldValueInvalid",
                    "metadata.ownerReferences[2]",
                    r#"Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"n\",\"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner"#,
                ),
            ],
        ),
    );
}

async fn updates_replace_the_whole_object(api: Api) {
    let ns = api.namespace().await;
    let made = ns.create(json!({"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"k": "v"}})).await;
    let put = api.put(&ns.path("configmaps/a"), json!({"metadata": {"name": "a"}, "data": {"other": "w"}})).await;
    put.says(200, &format!("{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"a\",\"namespace\":\"{}\",\"uid\":\"{}\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\"}},\"data\":{{\"other\":\"w\"}}}}\n", ns.name, made.uid()));
    assert!(put.version() > made.version());
    assert_eq!(api.get(&ns.path("configmaps/a")).await.json(), put.json());
}

async fn updates_from_an_old_version_conflict(api: Api) {
    let ns = api.namespace().await;
    let first = ns.configmap("a").await.version().to_string();
    let last = ns.change("a", "1").await.version().to_string();
    let put = async |version: &str| {
        let body =
            json!({"metadata": {"name": "a", "resourceVersion": version}, "data": {"by": format!("put {version}")}});
        api.put(&ns.path("configmaps/a"), body).await
    };
    put(&first).await.says(409, &failure(
        r#""message":"Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again","reason":"Conflict","details":{"name":"a","kind":"configmaps"},"code":409"#,
    ));
    for version in [last.as_str(), "", "0"] {
        put(version).await.is(200);
    }
}

async fn updates_with_an_unparsable_version_fail(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let body = json!({"metadata": {"name": "a", "resourceVersion": "abc"}});
    api.put(&ns.path("configmaps/a"), body)
        .await
        .says(500, &failure(r#""message":"strconv.ParseUint: parsing \"abc\": invalid syntax","code":500"#));
}

async fn updates_of_another_uid_conflict(api: Api) {
    let ns = api.namespace().await;
    let uid = ns.configmap("a").await.uid();
    let body = json!({"metadata": {"name": "a", "uid": "other"}});
    api.put(&ns.path("configmaps/a"), body).await.says(409, &failure(&format!(
        r#""message":"Operation cannot be fulfilled on configmaps \"a\": StorageError: invalid object, Code: 4, Key: /registry/configmaps/{}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: {uid}","reason":"Conflict","details":{{"name":"a","kind":"configmaps"}},"code":409"#,
        ns.name
    )));
}

async fn updates_of_missing_objects_are_404(api: Api) {
    let ns = api.namespace().await;
    for body in [
        configmap("a"),
        json!({"metadata": {"name": "a", "resourceVersion": "5"}}),
        json!({"metadata": {"name": "a", "uid": "other"}}),
    ] {
        api.put(&ns.path("configmaps/a"), body).await.says(404, &Namespace::no_configmap("a"));
    }
}

async fn some_kinds_are_created_by_updates(api: Api) {
    let ns = api.namespace().await;
    let path = ns.group_path("coordination.k8s.io/v1", "leases/a");
    api.put(&path, json!({"metadata": {"name": "a"}})).await.says(201, &format!("{{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{{\"name\":\"a\",\"namespace\":\"{}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\"}},\"spec\":{{}}}}\n", ns.name));
    api.delete(&path).await.is(200);
}

async fn some_kinds_require_a_version(api: Api) {
    let ns = api.namespace().await;
    let path = ns.group_path("coordination.k8s.io/v1", "leases/a");
    let made = api.put(&path, json!({"metadata": {"name": "a"}})).await;
    let body =
        |version: &str| json!({"metadata": {"name": "a", "resourceVersion": version}, "spec": {"leaseTransitions": 1}});
    api.put(&path, body("")).await.says(422, &failure(
        r#""message":"leases.coordination.k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update","reason":"Invalid","details":{"name":"a","group":"coordination.k8s.io","kind":"leases","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: 0: must be specified for an update","field":"metadata.resourceVersion"}]},"code":422"#,
    ));
    api.put(&path, body(&made.version().to_string())).await.is(200);
    api.delete(&path).await.is(200);
}

async fn deletion_is_not_set_by_updates(api: Api) {
    let ns = api.namespace().await;
    let made = ns.configmap("a").await;
    let body = json!({"metadata": {"name": "a", "deletionTimestamp": "2000-01-01T00:00:00Z"}});
    api.put(&ns.path("configmaps/a"), body).await.says(
        422,
        &invalid(
            "a",
            &[(
                "FieldValueInvalid",
                "metadata.deletionTimestamp",
                r#"Invalid value: \"2000-01-01T00:00:00Z\": field is immutable"#,
            )],
        ),
    );
    let body = json!({"metadata": {"name": "a", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 5}});
    api.put(&ns.path("configmaps/a"), body).await.says(200, &made.text());
}

async fn generation_counts_changes_of_the_spec(api: Api) {
    let ns = api.namespace().await;
    let path = ns.group_path("apps/v1", "deployments");
    let made = api.post(&path, deployment()).await;
    assert_eq!(generation(&made.is(201).json()), 1);
    for (patch, expected) in [
        (json!({"spec": {"replicas": 3}}), 2),
        (json!({"metadata": {"labels": {"l": "1"}}}), 2),
        (json!({"metadata": {"annotations": {"a": "1"}}}), 3),
        (json!({"status": {"replicas": 9}}), 3),
        (json!({"metadata": {"generation": 50}}), 3),
        (json!({"spec": {"replicas": 3}}), 3),
    ] {
        let answer = api.patch(&format!("{path}/a"), "merge-patch", &patch).await;
        assert_eq!(generation(&answer.is(200).json()), expected, "after {patch}");
    }
    api.delete(&format!("{path}/a")).await.is(200);
}

async fn status_is_written_through_its_subresource(api: Api) {
    let ns = api.namespace().await;
    let path = ns.group_path("apps/v1", "deployments");
    api.post(&path, deployment()).await.is(201);
    let path = format!("{path}/a");
    let main = api.patch(&path, "merge-patch", json!({"spec": {"replicas": 3}, "status": {"replicas": 9}})).await;
    assert_eq!((&main.is(200).json()["spec"]["replicas"], &main.json()["status"]), (&json!(3), &json!({})));
    let change = json!({"metadata": {"labels": {"l": "1"}}, "spec": {"replicas": 7}, "status": {"replicas": 9}});
    let status = api.patch(&format!("{path}/status"), "merge-patch", change).await.is(200).json();
    assert_eq!((&status["spec"]["replicas"], &status["status"]), (&json!(3), &json!({"replicas": 9})));
    assert_eq!(status["metadata"].get("labels"), None);
    assert_eq!(generation(&status), 2);
    assert_eq!(api.get(&format!("{path}/status")).await.json(), status);
    let mut put = status.clone();
    put["status"] = json!({"replicas": 10});
    put["spec"]["replicas"] = json!(5);
    let put = api.put(&format!("{path}/status"), put).await.is(200).json();
    assert_eq!((&put["spec"]["replicas"], &put["status"]["replicas"]), (&json!(3), &json!(10)));
    api.delete(&path).await.is(200);
}

async fn status_is_dropped_on_create(api: Api) {
    let ns = api.namespace().await;
    let path = ns.group_path("apps/v1", "deployments");
    let mut body = deployment();
    body["status"] = json!({"replicas": 5});
    assert_eq!(api.post(&path, body).await.is(201).json()["status"], json!({}));
    api.delete(&format!("{path}/a")).await.is(200);
}

async fn dry_runs_change_nothing(api: Api) {
    let ns = api.namespace().await;
    let made = ns.configmap("a").await;
    let dry = api.post(&ns.path("configmaps?dryRun=All"), configmap("b")).await;
    dry.says(201, &format!("{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"b\",\"namespace\":\"{}\",\"uid\":\"<uid>\",\"creationTimestamp\":\"<time>\"}}}}\n", ns.name));
    api.get(&ns.path("configmaps/b")).await.is(404);
    api.post(&ns.path("configmaps?dryRun=All"), configmap("a")).await.is(409);
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let put = api.put(&ns.path("configmaps/a?dryRun=All"), &body).await;
    assert_eq!((put.is(200).version(), &put.json()["data"]), (made.version(), &body["data"]));
    let patch = api.patch(&ns.path("configmaps/a?dryRun=All"), "merge-patch", &body).await;
    assert_eq!((patch.is(200).version(), &patch.json()["data"]), (made.version(), &body["data"]));
    api.delete(&ns.path("configmaps/a?dryRun=All")).await.is(200);
    api.delete(&ns.path("configmaps?dryRun=All")).await.is(200);
    api.get(&ns.path("configmaps/a")).await.says(200, &made.text());
}

async fn other_dry_runs_are_refused(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    for (method, path, options) in [
        ("POST", "configmaps", "CreateOptions"),
        ("PUT", "configmaps/a", "UpdateOptions"),
        ("PATCH", "configmaps/a", "PatchOptions"),
        ("DELETE", "configmaps/a", "DeleteOptions"),
    ] {
        for value in ["Foo", ""] {
            let request = api.request(method, &ns.path(&format!("{path}?dryRun={value}")));
            let request = match method {
                "DELETE" => request,
                "PATCH" => request.body("application/merge-patch+json", json!({})),
                _ => request.body("application/json", configmap("a")),
            };
            request.send().await.says(422, &failure(&format!(
                r#""message":"{options}.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"{value}\"]: supported values: \"All\"","reason":"Invalid","details":{{"group":"meta.k8s.io","kind":"{options}","causes":[{{"reason":"FieldValueNotSupported","message":"Unsupported value: [\"{value}\"]: supported values: \"All\"","field":"dryRun"}}]}},"code":422"#
            )));
        }
    }
}

async fn secrets_take_plain_strings(api: Api) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "a"}, "stringData": {"k": "plain"}, "data": {"b": "Ynl0ZXM="}});
    let made = api.post(&ns.path("secrets"), body).await.is(201).json();
    assert_eq!(made["data"], json!({"k": "cGxhaW4=", "b": "Ynl0ZXM="}));
    assert_eq!(made.get("stringData"), None);
}

async fn defaults_are_filled_in(api: Api) {
    let ns = api.namespace().await;
    let secret = api.post(&ns.path("secrets"), json!({"metadata": {"name": "a"}})).await.is(201).json();
    assert_eq!(secret["type"], "Opaque");
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let pod = api.post(&ns.path("pods"), pod).await.is(201).json();
    assert_eq!(
        (&pod["spec"]["restartPolicy"], &pod["spec"]["schedulerName"], &pod["spec"]["dnsPolicy"]),
        (&json!("Always"), &json!("default-scheduler"), &json!("ClusterFirst"))
    );
    let path = ns.group_path("apps/v1", "deployments");
    let deployment = api.post(&path, deployment()).await.is(201).json();
    assert_eq!((&deployment["spec"]["replicas"], &deployment["spec"]["revisionHistoryLimit"]), (&json!(1), &json!(10)));
    assert_eq!(deployment["spec"]["strategy"]["type"], "RollingUpdate");
    api.delete(&format!("{path}/a")).await.is(200);
}

/// The 422 response for a config map; each cause has a reason, a field and a message (escaped as in
/// JSON).
fn invalid(name: &str, causes: &[(&str, &str, &str)]) -> String {
    let all: Vec<_> = causes.iter().map(|(_, field, message)| format!("{field}: {message}")).collect();
    let all = if let [one] = &all[..] { one.clone() } else { format!("[{}]", all.join(", ")) };
    let causes: Vec<_> = causes
        .iter()
        .map(|(reason, field, message)| format!(r#"{{"reason":"{reason}","message":"{message}","field":"{field}"}}"#))
        .collect();
    failure(&format!(
        r#""message":"ConfigMap \"{name}\" is invalid: {all}","reason":"Invalid","details":{{"name":"{name}","kind":"ConfigMap","causes":[{}]}},"code":422"#,
        causes.join(",")
    ))
}

fn deployment() -> Value {
    json!({
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    })
}

fn generation(object: &Value) -> u64 {
    object["metadata"]["generation"].as_u64().expect("a generation")
}

async fn fields_are_warned_of_in_order(api: Api) {
    let ns = api.namespace().await;
    let warnings = async |path: &str, body: String| {
        let answer = api.post(path, body).await;
        let said = answer.is(201).headers.get_all("warning");
        said.iter().map(|warning| warning.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let duplicate = r#"299 - "duplicate field \"data.a\"""#;
    let unknown = r#"299 - "unknown field \"bogus\"""#;
    let configmaps = ns.path("configmaps");
    let body = r#"{"metadata":{"name":"a"},"data":{"a":"1","a":"2"},"bogus":{"x":1,"x":2},"bogus":2}"#;
    assert_eq!(warnings(&configmaps, body.to_owned()).await, [duplicate, unknown]);
    let body = r#"{"bogus":1,"data":{"a":"1","a":"2","a":"3"},"metadata":{"name":"b"}}"#;
    assert_eq!(warnings(&configmaps, body.to_owned()).await, [unknown, duplicate]);

    let kind = api
        .definition(|body| {
            let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
            body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
                json!({"type": "object", "properties": {"spec": spec}});
        })
        .await;
    let body = format!(
        r#"{{"apiVersion":"{}/v1","kind":"Thing","bogus":1,"metadata":{{"name":"a"}},"spec":{{"size":1,"size":2}}}}"#,
        kind.group
    );
    let expected = [r#"299 - "duplicate field \"spec.size\"""#, unknown];
    assert_eq!(warnings(&kind.things(&ns), body).await, expected);
}
