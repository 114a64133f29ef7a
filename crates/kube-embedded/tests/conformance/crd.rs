//! `CustomResourceDefinition`s and their custom resources.

use crate::harness::{Api, Case, case, failure, matches};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(
        a_definition_is_completed,
        "create: names and conversion defaulted, the version stored noted, no conditions yet"
    ),
    case!(
        a_definition_is_established,
        "soon: NamesAccepted and Established, names accepted, the kind served and discovered"
    ),
    case!(
        the_first_list_of_a_new_kind_may_have_to_wait,
        "the first list of a new kind: 200, or a 429 with Retry-After and soon 200"
    ),
    case!(a_new_kind_can_be_written_at_once, "a new kind: get, create and delete do not wait for its cache"),
    case!(definitions_are_validated, "a definition whose name, scope or schema is wrong is a 422"),
    case!(keys_of_custom_objects_are_sorted, "all keys sorted, items with kind, lists with an empty continue"),
    case!(custom_objects_name_their_kind, "create without kind, of another version or kind is refused"),
    case!(updates_of_custom_objects_require_a_version, "update without a version is a 422, of a missing object a 404"),
    case!(
        generation_of_custom_objects,
        "generation counts every change but that of metadata, and of status if it is a subresource"
    ),
    case!(
        status_of_custom_objects,
        "with the subresource: create and update drop status, /status ignores the rest, metadata too"
    ),
    case!(
        without_the_subresource_status_is_a_field,
        "without the subresource status is like any field and /status is a 404"
    ),
    case!(custom_objects_are_selected_by_their_fields, "selectableFields: selected by, others a 400"),
    case!(
        a_kind_has_many_versions,
        "every served version shows the same objects under its own apiVersion, the highest is preferred"
    ),
    case!(a_cluster_wide_kind_has_no_namespaces, "scope Cluster: no namespaced path"),
    case!(strategic_merge_is_not_for_custom_objects, "a strategic merge patch of a custom object is a 415"),
    case!(
        paths_of_custom_kinds_differ,
        "PUT of a collection 400, HEAD 200, POST across namespaces and unknown resources 404"
    ),
    case!(metadata_of_custom_objects_alone, "PartialObjectMetadata of custom objects has the key order of metadata"),
    case!(
        a_deleted_definition_takes_its_objects_along,
        "DELETE: finalizer, Terminating; watches get DELETED per object, then the end; then 404"
    ),
    case!(a_new_version_of_a_definition_is_served, "a version added by an update is served"),
    case!(
        a_changed_definition_ends_the_watches_of_its_kind,
        "a change of a definition's spec ends the watches of all versions, and their clients have to list again"
    ),
];

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

async fn a_definition_is_completed(api: Api) {
    let group = format!("{}.example.com", api.unique("group"));
    let path = format!("{DEFINITIONS}/gears.{group}");
    api.leave_to_clean_up(&path);
    let made = api.post(DEFINITIONS, gears(&group)).await;
    made.says(201, &format!("{{\"kind\":\"CustomResourceDefinition\",\"apiVersion\":\"apiextensions.k8s.io/v1\",\"metadata\":{{\"name\":\"gears.{group}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"generation\":1,\"creationTimestamp\":\"<time>\"}},\"spec\":{{\"group\":\"{group}\",\"names\":{{\"plural\":\"gears\",\"singular\":\"gear\",\"kind\":\"Gear\",\"listKind\":\"GearList\"}},\"scope\":\"Namespaced\",\"versions\":[{{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{{\"openAPIV3Schema\":{{\"type\":\"object\"}}}}}}],\"conversion\":{{\"strategy\":\"None\"}}}},\"status\":{{\"conditions\":null,\"acceptedNames\":{{\"plural\":\"\",\"kind\":\"\"}},\"storedVersions\":[\"v1\"]}}}}\n"));
}

async fn a_definition_is_established(api: Api) {
    let kind = api
        .definition(|body| {
            body["spec"]["names"]["shortNames"] = json!(["th"]);
            body["spec"]["names"]["categories"] = json!(["every"]);
        })
        .await;
    let definition = api.get(&kind.path).await;
    let text = definition.text();
    let status = &text[text.find("\"status\":{\"conditions\"").expect("a status")..];
    assert!(
        matches(
            "\"status\":{\"conditions\":[{\"type\":\"NamesAccepted\",\"status\":\"True\",\"lastTransitionTime\":\"<time>\",\"reason\":\"NoConflicts\",\"message\":\"no conflicts found\"},{\"type\":\"Established\",\"status\":\"True\",\"lastTransitionTime\":\"<time>\",\"reason\":\"InitialNamesAccepted\",\"message\":\"the initial names have been accepted\"}],\"acceptedNames\":{\"plural\":\"things\",\"singular\":\"thing\",\"shortNames\":[\"th\"],\"kind\":\"Thing\",\"listKind\":\"ThingList\",\"categories\":[\"every\"]},\"storedVersions\":[\"v1\"]}}\n",
            status
        ),
        "{status}"
    );
    let group = &kind.group;
    let path = format!("/apis/{group}/v1");
    let resources = api.eventually(&path, |answer| answer.code == 200).await;
    resources.says(200, &format!("{{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"{group}/v1\",\"resources\":[{{\"name\":\"things\",\"singularName\":\"thing\",\"namespaced\":true,\"kind\":\"Thing\",\"verbs\":[\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"create\",\"update\",\"watch\"],\"shortNames\":[\"th\"],\"categories\":[\"every\"],\"storageVersionHash\":\"<*>\"}}]}}\n"));
    api.eventually("/apis", |answer| answer.text().contains(&format!("\"name\":\"{group}\""))).await;
    api.eventually(&format!("/apis/{group}"), |answer| answer.code == 200).await.says(200, &format!("{{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"{group}\",\"versions\":[{{\"groupVersion\":\"{group}/v1\",\"version\":\"v1\"}}],\"preferredVersion\":{{\"groupVersion\":\"{group}/v1\",\"version\":\"v1\"}}}}\n"));
}

async fn the_first_list_of_a_new_kind_may_have_to_wait(api: Api) {
    let (path, _) = new_kind(&api).await;
    let first = api.get(&path).await;
    if first.code != 200 {
        first.says(
            429,
            &failure(
                r#""message":"storage is (re)initializing","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429"#,
            ),
        );
        assert_eq!(first.header("retry-after"), Some("1"));
    }
    api.eventually(&path, |answer| answer.code == 200).await;
}

async fn a_new_kind_can_be_written_at_once(api: Api) {
    let ns = api.namespace().await;
    let (path, group) = new_kind(&api).await;
    let path = path.replace("/gears", &format!("/namespaces/{}/gears", ns.name));
    api.get(&format!("{path}/a")).await.is(404);
    let body = json!({"apiVersion": format!("{group}/v1"), "kind": "Gear", "metadata": {"name": "a"}});
    api.post(&path, body).await.is(201);
    assert_eq!(api.get(&format!("{path}?limit=1")).await.is(200).names(), ["a"]);
    api.delete(&format!("{path}/a")).await.is(200);
}

async fn definitions_are_validated(api: Api) {
    let group = format!("{}.example.com", api.unique("bad"));
    let refused = async |change: fn(&mut Value), field: &str, reason: &str, why: &str| {
        let mut body = gears(&group);
        change(&mut body);
        let name = body["metadata"]["name"].as_str().unwrap();
        api.post(DEFINITIONS, &body).await.says(422, &failure(&format!(
            r#""message":"CustomResourceDefinition.apiextensions.k8s.io \"{name}\" is invalid: {field}: {why}","reason":"Invalid","details":{{"name":"{name}","group":"apiextensions.k8s.io","kind":"CustomResourceDefinition","causes":[{{"reason":"{reason}","message":"{why}","field":"{field}"}}]}},"code":422"#
        )));
    };
    refused(
        |body| body["metadata"]["name"] = json!("wrong.example.com"),
        "metadata.name",
        "FieldValueInvalid",
        r#"Invalid value: \"wrong.example.com\": must be spec.names.plural+\".\"+spec.group"#,
    )
    .await;
    refused(
        |body| body["spec"]["scope"] = json!("Bogus"),
        "spec.scope",
        "FieldValueNotSupported",
        r#"Unsupported value: \"Bogus\": supported values: \"Cluster\", \"Namespaced\""#,
    )
    .await;
    refused(
        |body| drop(body["spec"]["versions"][0].as_object_mut().unwrap().remove("schema")),
        "spec.versions[0].schema.openAPIV3Schema",
        "FieldValueRequired",
        "Required value",
    )
    .await;
}

async fn keys_of_custom_objects_are_sorted(api: Api) {
    let kind = api.definition(|_| {}).await;
    let ns = api.namespace().await;
    let path = kind.things(&ns);
    let rest =
        json!({"zebra": {"b": 1, "a": [true, null]}, "aardvark": "first", "spec": {"float": 1.5e30, "whole": 1.0}});
    let made = kind.create(&path, "a", rest).await;
    let object = format!(
        r#"{{"aardvark":"first","apiVersion":"{}/v1","kind":"Thing","metadata":{{"creationTimestamp":"<time>","generation":1,"name":"a","namespace":"{}","resourceVersion":"<n>","uid":"<uid>"}},"spec":{{"float":1.5e+30,"whole":1}},"zebra":{{"a":[true,null],"b":1}}}}"#,
        kind.group, ns.name
    );
    made.says(201, &format!("{object}\n"));
    api.get(&path).await.says(200, &format!(
        "{{\"apiVersion\":\"{}/v1\",\"items\":[{object}],\"kind\":\"ThingList\",\"metadata\":{{\"continue\":\"\",\"resourceVersion\":\"<n>\"}}}}\n",
        kind.group
    ));
    let mut watch = api.watch(&format!("{path}?watch=true")).await;
    watch.next().await.says(&format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"));
}

async fn custom_objects_name_their_kind(api: Api) {
    let kind = api.definition(|_| {}).await;
    let ns = api.namespace().await;
    let (path, group) = (kind.things(&ns), &kind.group);
    api.post(&path, r#"{"metadata":{"name":"a"}}"#).await.says(400, &failure(
        r#""message":"the object provided is unrecognized (must be of type Thing): Object 'Kind' is missing in '{\"metadata\":{\"name\":\"a\"}}' ({\"metadata\":{\"name\":\"a\"}})","reason":"BadRequest","code":400"#,
    ));
    let body = json!({"apiVersion": format!("{group}/v2"), "kind": "Thing", "metadata": {"name": "a"}});
    api.post(&path, body).await.says(400, &failure(&format!(
        r#""message":"the API version in the data ({group}/v2) does not match the expected API version ({group}/v1)","reason":"BadRequest","code":400"#
    )));
    let body = json!({"apiVersion": format!("{group}/v1"), "kind": "Other", "metadata": {"name": "a"}});
    api.post(&path, body).await.says(422, &failure(&format!(
        r#""message":"Other.{group} \"a\" is invalid: kind: Invalid value: \"Other\": must be Thing","reason":"Invalid","details":{{"name":"a","group":"{group}","kind":"Other","causes":[{{"reason":"FieldValueInvalid","message":"Invalid value: \"Other\": must be Thing","field":"kind"}}]}},"code":422"#
    )));
}

async fn updates_of_custom_objects_require_a_version(api: Api) {
    let kind = api.definition(|_| {}).await;
    let ns = api.namespace().await;
    let (path, group) = (kind.things(&ns), &kind.group);
    let missing = failure(&format!(
        r#""message":"things.{group} \"a\" not found","reason":"NotFound","details":{{"name":"a","group":"{group}","kind":"things"}},"code":404"#
    ));
    api.put(&format!("{path}/a"), kind.thing("a", Value::Null)).await.says(404, &missing);
    let made = kind.create(&path, "a", Value::Null).await;
    api.put(&format!("{path}/a"), kind.thing("a", json!({"spec": 1}))).await.says(422, &failure(&format!(
        r#""message":"things.{group} \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update","reason":"Invalid","details":{{"name":"a","group":"{group}","kind":"things","causes":[{{"reason":"FieldValueInvalid","message":"Invalid value: 0: must be specified for an update","field":"metadata.resourceVersion"}}]}},"code":422"#
    )));
    let mut body = made.json();
    body["spec"] = json!({"n": 1});
    api.put(&format!("{path}/a"), &body).await.is(200);
    api.put(&format!("{path}/a"), &body).await.is(409);
}

async fn generation_of_custom_objects(api: Api) {
    let ns = api.namespace().await;
    let kind = api.definition(|body| body["spec"]["versions"][0]["subresources"] = json!({"status": {}})).await;
    let path = kind.things(&ns);
    let made = kind.create(&path, "a", json!({"spec": {"n": 1}})).await;
    assert_eq!(made.json()["metadata"]["generation"], 1);
    let patch = async |sub: &str, patch: Value| {
        let answer = api.patch(&format!("{path}/a{sub}"), "merge-patch", patch).await;
        answer.is(200).json()["metadata"]["generation"].as_u64().unwrap()
    };
    assert_eq!(patch("", json!({"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}}})).await, 1);
    assert_eq!(patch("/status", json!({"status": {"n": 1}})).await, 1);
    assert_eq!(patch("", json!({"spec": {"n": 2}})).await, 2);
    assert_eq!(patch("", json!({"other": {"n": 2}})).await, 3);
    assert_eq!(patch("", json!({"metadata": {"generation": 50}})).await, 3);
}

async fn status_of_custom_objects(api: Api) {
    let ns = api.namespace().await;
    let kind = api.definition(|body| body["spec"]["versions"][0]["subresources"] = json!({"status": {}})).await;
    let path = kind.things(&ns);
    let made = kind.create(&path, "a", json!({"spec": {"n": 1}, "status": {"n": 1}})).await;
    assert_eq!(made.json().get("status"), None);
    let path = format!("{path}/a");
    let change = json!({"metadata": {"labels": {"l": "1"}}, "spec": {"n": 2}, "status": {"n": 2}});
    let main = api.patch(&path, "merge-patch", &change).await.is(200).json();
    assert_eq!((&main["spec"]["n"], main.get("status")), (&json!(2), None));
    let change = json!({"metadata": {"labels": {"l": "3"}}, "spec": {"n": 3}, "status": {"n": 3}});
    let status = api.patch(&format!("{path}/status"), "merge-patch", &change).await.is(200).json();
    assert_eq!((&status["spec"]["n"], &status["status"]["n"]), (&json!(2), &json!(3)));
    assert_eq!(status["metadata"]["labels"], json!({"l": "1"}));
    assert_eq!(api.get(&format!("{path}/status")).await.is(200).json(), status);
}

async fn without_the_subresource_status_is_a_field(api: Api) {
    let ns = api.namespace().await;
    let kind = api.definition(|_| {}).await;
    let path = kind.things(&ns);
    let made = kind.create(&path, "a", json!({"status": {"n": 1}})).await.json();
    assert_eq!(made["status"], json!({"n": 1}));
    let patched = api.patch(&format!("{path}/a"), "merge-patch", json!({"status": {"n": 2}})).await.is(200).json();
    assert_eq!((&patched["status"]["n"], &patched["metadata"]["generation"]), (&json!(2), &json!(2)));
    let group = &kind.group;
    for sub in ["status", "scale", "nope"] {
        api.get(&format!("{path}/a/{sub}")).await.says(404, &failure(&format!(
            r#""message":"things.{group} \"a\" not found","reason":"NotFound","details":{{"name":"a","group":"{group}","kind":"things"}},"code":404"#
        )));
    }
}

async fn custom_objects_are_selected_by_their_fields(api: Api) {
    let ns = api.namespace().await;
    let kind = api
        .definition(|body| {
            let version = &mut body["spec"]["versions"][0];
            version["selectableFields"] = json!([{"jsonPath": ".spec.color"}]);
            version["schema"]["openAPIV3Schema"] = json!({
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": {"color": {"type": "string"}}}},
            });
        })
        .await;
    let path = kind.things(&ns);
    for (name, color) in [("a", "red"), ("b", "blue")] {
        kind.create(&path, name, json!({"spec": {"color": color}})).await;
    }
    kind.create(&path, "c", Value::Null).await;
    for (selector, names) in [
        ("spec.color%3Dred", &["a"][..]),
        ("spec.color!%3Dred", &["b", "c"]),
        ("spec.color%3D", &["c"]),
        ("metadata.name%3Db%2Cspec.color%3Dblue", &["b"]),
    ] {
        assert_eq!(api.get(&format!("{path}?fieldSelector={selector}")).await.is(200).names(), names, "{selector}");
    }
    api.get(&format!("{path}?fieldSelector=spec.size%3D1"))
        .await
        .says(400, &failure(r#""message":"field label not supported: spec.size","reason":"BadRequest","code":400"#));
    let mut watch = api.watch(&format!("{path}?watch=true&fieldSelector=spec.color%3Dred")).await;
    watch.expect("ADDED", "a").await;
    api.patch(&format!("{path}/a"), "merge-patch", json!({"spec": {"color": "green"}})).await.is(200);
    assert_eq!(watch.expect("DELETED", "a").await.object()["spec"]["color"], "red");
}

async fn a_kind_has_many_versions(api: Api) {
    let ns = api.namespace().await;
    let kind = api
        .definition(|body| {
            let mut second = body["spec"]["versions"][0].clone();
            second["name"] = json!("v2beta1");
            second["storage"] = json!(false);
            let mut unserved = second.clone();
            unserved["name"] = json!("v3");
            unserved["served"] = json!(false);
            body["spec"]["versions"].as_array_mut().unwrap().extend([second, unserved]);
        })
        .await;
    let (path, group) = (kind.things(&ns), &kind.group);
    let other = path.replace("/v1/", "/v2beta1/");
    let made = kind.create(&path, "a", json!({"spec": {"n": 1}})).await;
    let seen = api.eventually(&format!("{other}/a"), |answer| answer.code == 200).await.json();
    assert_eq!((&seen["apiVersion"], &seen["spec"]), (&json!(format!("{group}/v2beta1")), &json!({"n": 1})));
    assert_eq!(seen["metadata"]["uid"], made.json()["metadata"]["uid"]);
    api.get(&path.replace("/v1/", "/v3/")).await.says(404, "404 page not found\n");
    let group_path = format!("/apis/{group}");
    api.eventually(&group_path, |answer| answer.code == 200).await.says(200, &format!("{{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"{group}\",\"versions\":[{{\"groupVersion\":\"{group}/v1\",\"version\":\"v1\"}},{{\"groupVersion\":\"{group}/v2beta1\",\"version\":\"v2beta1\"}}],\"preferredVersion\":{{\"groupVersion\":\"{group}/v1\",\"version\":\"v1\"}}}}\n"));
    let mut watch = api.eventually_watch(&format!("{other}?watch=true")).await;
    assert_eq!(watch.expect("ADDED", "a").await.object()["apiVersion"], format!("{group}/v2beta1"));
}

async fn a_cluster_wide_kind_has_no_namespaces(api: Api) {
    let ns = api.namespace().await;
    let kind = api.definition(|body| body["spec"]["scope"] = json!("Cluster")).await;
    let made = kind.create(&kind.all(), "a", Value::Null).await;
    assert_eq!(made.json()["metadata"].get("namespace"), None);
    api.get(&kind.things(&ns)).await.is(404);
    api.get(&format!("{}/a", kind.all())).await.is(200);
}

async fn strategic_merge_is_not_for_custom_objects(api: Api) {
    let ns = api.namespace().await;
    let kind = api.definition(|_| {}).await;
    kind.create(&kind.things(&ns), "a", Value::Null).await;
    for media in ["application/strategic-merge-patch+json", "application/json"] {
        let request = api.request("PATCH", &format!("{}/a", kind.things(&ns))).body(media, "{}");
        request.send().await.says(415, &failure(
            r#""message":"the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml","reason":"UnsupportedMediaType","code":415"#,
        ));
    }
}

async fn paths_of_custom_kinds_differ(api: Api) {
    let ns = api.namespace().await;
    let kind = api.definition(|_| {}).await;
    let path = kind.things(&ns);
    api.put(&path, kind.thing("a", Value::Null))
        .await
        .says(400, &failure(r#""message":"name must be provided","reason":"BadRequest","code":400"#));
    api.request("HEAD", &path).send().await.says(200, "");
    api.post(&kind.all(), kind.thing("a", Value::Null)).await.says(404, "404 page not found\n");
    api.get(&kind.all().replace("things", "others")).await.says(404, "404 page not found\n");
    api.get(&kind.all().replace("/v1/", "/v9/")).await.says(404, "404 page not found\n");
}

async fn metadata_of_custom_objects_alone(api: Api) {
    let ns = api.namespace().await;
    let kind = api.definition(|_| {}).await;
    kind.create(&kind.things(&ns), "a", json!({"spec": {"n": 1}})).await;
    let list = api
        .request("GET", &kind.things(&ns))
        .header("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
        .send()
        .await;
    list.says(200, &format!("{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":\"<n>\"}},\"items\":[{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"name\":\"a\",\"namespace\":\"{}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"generation\":1,\"creationTimestamp\":\"<time>\"}}}}]}}\n", ns.name));
}

async fn a_deleted_definition_takes_its_objects_along(api: Api) {
    let ns = api.namespace().await;
    let kind = api.definition(|_| {}).await;
    let path = kind.things(&ns);
    for name in ["a", "b"] {
        kind.create(&path, name, Value::Null).await;
    }
    let version = api.get(&kind.all()).await.version();
    let mut watch = api.watch(&format!("{}?watch=true&resourceVersion={version}", kind.all())).await;
    let deleted = api.delete(&kind.path).await.is(200).json();
    assert_eq!(deleted["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert!(deleted["metadata"]["deletionTimestamp"].is_string());
    let terminating = deleted["status"]["conditions"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&terminating["type"], &terminating["status"], &terminating["reason"]),
        (&json!("Terminating"), &json!("True"), &json!("InstanceDeletionPending"))
    );
    let events = watch.rest().await;
    let mut names: Vec<_> = events.iter().map(|event| (event.kind(), event.name())).collect();
    names.sort_unstable();
    assert_eq!(names, [("DELETED", "a"), ("DELETED", "b")]);
    api.eventually(&kind.path, |answer| answer.code == 404).await;
    api.eventually(&kind.all(), |answer| answer.code == 404).await.says(404, "404 page not found\n");
}

async fn a_new_version_of_a_definition_is_served(api: Api) {
    let ns = api.namespace().await;
    let kind = api.definition(|_| {}).await;
    let path = kind.things(&ns);
    kind.create(&path, "a", Value::Null).await;
    let mut versions = api.get(&kind.path).await.json()["spec"]["versions"].clone();
    let mut second = versions[0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    versions.as_array_mut().unwrap().push(second);
    let patched = api.patch(&kind.path, "merge-patch", json!({"spec": {"versions": versions}})).await;
    assert_eq!(patched.is(200).json()["metadata"]["generation"], 2);
    let other = path.replace("/v1/", "/v2/");
    let list = api.eventually(&other, |answer| answer.code == 200).await;
    assert_eq!(list.names(), ["a"]);
}

async fn a_changed_definition_ends_the_watches_of_its_kind(api: Api) {
    let ns = api.namespace().await;
    let kind = api
        .definition(|definition| {
            let versions = definition["spec"]["versions"].as_array_mut().unwrap();
            let mut second = versions[0].clone();
            second["name"] = json!("v2");
            second["storage"] = json!(false);
            versions.push(second);
        })
        .await;
    let (things, first, second) = (kind.things(&ns), kind.all(), kind.all().replace("/v1/", "/v2/"));
    kind.create(&things, "a", Value::Null).await;
    let version = api.get(&first).await.version();
    let mut watches = Vec::new();
    for path in [&first, &second] {
        watches.push(api.eventually_watch(&format!("{path}?watch=true&resourceVersion={version}")).await);
    }
    kind.create(&things, "b", Value::Null).await;
    let mut versions = api.get(&kind.path).await.json()["spec"]["versions"].clone();
    versions[1]["served"] = json!(false);
    api.patch(&kind.path, "merge-patch", json!({"spec": {"versions": versions}})).await.is(200);
    kind.create(&things, "c", Value::Null).await;
    for watch in &mut watches {
        // Until they end, a second later, they have all events.
        let events = watch.rest().await;
        let seen: Vec<_> = events.iter().map(|event| (event.kind(), event.name())).collect();
        assert_eq!(seen, [("ADDED", "b"), ("ADDED", "c")], "{}", watch.asked);
    }
    api.eventually(&second, |answer| answer.code == 404).await.says(404, "404 page not found\n");
    // What was before is forgotten: a client has to list again.
    let mut again = api.eventually_watch(&format!("{first}?watch=true&resourceVersion={version}")).await;
    assert_eq!(again.next().await.object()["reason"], "Expired");
    let current = api.get(&first).await;
    assert_eq!(current.names(), ["a", "b", "c"]);
    let mut on = api.watch(&format!("{first}?watch=true&resourceVersion={}", current.version())).await;
    kind.create(&things, "d", Value::Null).await;
    on.expect("ADDED", "d").await;
}

/// Defines a kind `Gear` that has not been read yet. Returns the path of the collection, and the
/// group.
async fn new_kind(api: &Api) -> (String, String) {
    let group = format!("{}.example.com", api.unique("group"));
    let definition = format!("{DEFINITIONS}/gears.{group}");
    api.leave_to_clean_up(&definition);
    api.post(DEFINITIONS, gears(&group)).await.is(201);
    let path = format!("/apis/{group}/v1/gears");
    // Any read of the kind itself initializes its watch cache; discovery does not.
    api.eventually(&format!("/apis/{group}/v1"), |answer| answer.code == 200).await;
    (path, group)
}

fn gears(group: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gears.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gears", "kind": "Gear"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    })
}
