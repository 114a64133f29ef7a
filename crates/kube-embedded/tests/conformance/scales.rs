//! The scale subresource.

use crate::harness::{Api, Case, Namespace, case, failure};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(every_workload_has_a_scale, "GET …/scale: replicas wanted and there, and the selector written out"),
    case!(a_scale_is_changed_by_put_and_patch, "PUT and PATCH of …/scale change the object and count a generation"),
    case!(a_scale_that_makes_no_sense_is_refused, "a negative number is a 422, another version a 409, no name a 400"),
    case!(
        a_scale_is_applied,
        "apply to …/scale: the manager owns the replicas, others conflict, force takes them, a manager is required"
    ),
    case!(definitions_may_have_a_scale, "a custom kind with paths for it has a scale"),
];

async fn deployment(api: &Api, ns: &Namespace) -> String {
    let body = json!({"metadata": {"name": "d"}, "spec": {
        "replicas": 2, "selector": {"matchLabels": {"app": "x"}},
        "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }});
    api.post(&ns.group_path("apps/v1", "deployments"), body).await.is(201);
    ns.group_path("apps/v1", "deployments/d")
}

fn scale(ns: &Namespace, name: &str, spec: &str, status: &str) -> String {
    format!(
        "{{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{{\"name\":\"{name}\",\"namespace\":\"{}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\"}},\"spec\":{spec},\"status\":{status}}}\n",
        ns.name
    )
}

async fn every_workload_has_a_scale(api: Api) {
    let ns = api.namespace().await;
    let path = deployment(&api, &ns).await;
    let expected = scale(&ns, "d", r#"{"replicas":2}"#, r#"{"replicas":0,"selector":"app=x"}"#);
    api.get(&format!("{path}/scale")).await.says(200, &expected);
    let table =
        api.request("GET", &format!("{path}/scale")).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = table.send().await.is(200).json();
    let columns: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(columns, ["Name", "Desired", "Available", "Age"]);
    assert_eq!(table["rows"][0]["cells"].as_array().unwrap()[..3], [json!("d"), json!(2), json!(0)]);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let old = json!({"metadata": {"name": "r"}, "spec": {"replicas": 0, "selector": {"a": "b"}, "template": template}});
    api.post(&ns.path("replicationcontrollers"), old).await.is(201);
    let expected = scale(&ns, "r", "{}", r#"{"replicas":0,"selector":"a=b"}"#);
    api.get(&ns.path("replicationcontrollers/r/scale")).await.says(200, &expected);
    api.get(&ns.group_path("apps/v1", "deployments/none/scale")).await.is(404);
    api.get(&ns.path("configmaps/none/scale")).await.is(404);
}

async fn a_scale_is_changed_by_put_and_patch(api: Api) {
    let ns = api.namespace().await;
    let path = deployment(&api, &ns).await;
    let expected = |replicas: u32| {
        scale(&ns, "d", &format!(r#"{{"replicas":{replicas}}}"#), r#"{"replicas":0,"selector":"app=x"}"#)
    };
    let patch = json!({"spec": {"replicas": 4}});
    api.patch(&format!("{path}/scale"), "merge-patch", &patch).await.says(200, &expected(4));
    let body = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": ns.name},
        "spec": {"replicas": 5},
    });
    api.put(&format!("{path}/scale"), body).await.says(200, &expected(5));
    let changed = api.get(&path).await.json();
    assert_eq!((&changed["spec"]["replicas"], &changed["metadata"]["generation"]), (&json!(5), &json!(3)));
}

async fn a_scale_that_makes_no_sense_is_refused(api: Api) {
    let ns = api.namespace().await;
    let path = deployment(&api, &ns).await + "/scale";
    let body = |metadata: Value, replicas: i32| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}});
    api.put(&path, body(json!({"name": "d", "namespace": ns.name}), -1)).await.says(422, &failure(
        r#""message":"Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0","reason":"Invalid","details":{"name":"d","group":"autoscaling","kind":"Scale","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: -1: must be greater than or equal to 0","field":"spec.replicas"}]},"code":422"#,
    ));
    let other = json!({"name": "d", "namespace": ns.name, "resourceVersion": "1"});
    api.put(&path, body(other, 1)).await.says(409, &failure(
        r#""message":"Operation cannot be fulfilled on deployments.apps \"d\": the object has been modified; please apply your changes to the latest version and try again","reason":"Conflict","details":{"name":"d","group":"apps","kind":"deployments"},"code":409"#,
    ));
    api.put(&path, body(json!({}), 1)).await.says(400, &failure(
        r#""message":"the name of the object (d based on URL) was undeterminable: name must be provided","reason":"BadRequest","code":400"#,
    ));
}

async fn a_scale_is_applied(api: Api) {
    let ns = api.namespace().await;
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let config = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template},
    });
    let path = ns.group_path("apps/v1", "deployments/d");
    let apply = async |path: &str, query: &str, body: &Value| {
        api.request("PATCH", &format!("{path}?{query}")).body("application/apply-patch+yaml", body).send().await
    };
    apply(&path, "fieldManager=m1", &config).await.is(201);
    let scaled = |replicas: u32| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": replicas}});
    let shown = |replicas: u32| {
        scale(&ns, "d", &format!(r#"{{"replicas":{replicas}}}"#), r#"{"replicas":0,"selector":"app=x"}"#)
    };
    let scale_path = format!("{path}/scale");
    apply(&scale_path, "fieldManager=", &scaled(3)).await.says(422, &failure(
        r#""message":"PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch","reason":"Invalid","details":{"group":"meta.k8s.io","kind":"PatchOptions","causes":[{"reason":"FieldValueRequired","message":"Required value: is required for apply patch","field":"fieldManager"}]},"code":422"#,
    ));
    apply(&scale_path, "fieldManager=m2", &scaled(3)).await.says(409, &failure(
        r#""message":"Apply failed with 1 conflict: conflict with \"m1\": .spec.replicas","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"m1\"","field":".spec.replicas"}]},"code":409"#,
    ));
    // The same number is no conflict: both own it.
    apply(&scale_path, "fieldManager=m2", &scaled(2)).await.says(200, &shown(2));
    assert_eq!(owners(&api, &path).await, ["m1 Apply", "m2 Apply scale"]);
    apply(&scale_path, "fieldManager=m2&force=true", &scaled(3)).await.says(200, &shown(3));
    assert_eq!(owners(&api, &path).await, ["m2 Apply scale"]);
    apply(&scale_path, "fieldManager=m2", &scaled(4)).await.says(200, &shown(4));
    apply(&path, "fieldManager=m1", &config).await.says(409, &failure(
        r#""message":"Apply failed with 1 conflict: conflict with \"m2\" with subresource \"scale\": .spec.replicas","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"m2\" with subresource \"scale\"","field":".spec.replicas"}]},"code":409"#,
    ));
    // A change takes the replicas from the one who applied them.
    let patch = json!({"spec": {"replicas": 5}});
    api.patch(&format!("{scale_path}?fieldManager=m3"), "merge-patch", patch).await.says(200, &shown(5));
    assert_eq!(owners(&api, &path).await, ["m3 Update scale"]);
    let missing = ns.group_path("apps/v1", "deployments/none/scale");
    let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 1}});
    apply(&missing, "fieldManager=m2", &body).await.says(404, &failure(
        r#""message":"deployments.apps \"none\" not found","reason":"NotFound","details":{"name":"none","group":"apps","kind":"deployments"},"code":404"#,
    ));
}

/// The managers that own the replicas, each with its operation and its subresource.
async fn owners(api: &Api, path: &str) -> Vec<String> {
    let object = api.get(path).await.json();
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let mut owners: Vec<String> = entries
        .iter()
        .filter(|entry| !entry["fieldsV1"]["f:spec"]["f:replicas"].is_null())
        .map(|entry| {
            let text = |part: &str| entry[part].as_str().unwrap_or_default();
            format!("{} {} {}", text("manager"), text("operation"), text("subresource")).trim().to_owned()
        })
        .collect();
    owners.sort();
    owners
}

async fn definitions_may_have_a_scale(api: Api) {
    let ns = api.namespace().await;
    let kind = api
        .definition(|body| {
            let version = &mut body["spec"]["versions"][0];
            version["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] = json!(true);
            version["subresources"] = json!({"scale": {
                "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector",
            }});
        })
        .await;
    let things = kind.things(&ns);
    kind.create(&things, "a", json!({"spec": {"size": 3}, "status": {"size": 1, "selector": "a=b"}})).await.is(201);
    let expected =
        |replicas: u32| scale(&ns, "a", &format!(r#"{{"replicas":{replicas}}}"#), r#"{"replicas":1,"selector":"a=b"}"#);
    api.get(&format!("{things}/a/scale")).await.says(200, &expected(3));
    let patch = json!({"spec": {"replicas": 4}});
    api.patch(&format!("{things}/a/scale"), "merge-patch", patch).await.says(200, &expected(4));
    assert_eq!(api.get(&format!("{things}/a")).await.json()["spec"]["size"], 4);
    // The path in a conflict is that of the scale.
    let apply = async |query: &str, replicas: u32| {
        let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}, "spec": {"replicas": replicas}});
        let request = api.request("PATCH", &format!("{things}/a/scale?{query}"));
        request.body("application/apply-patch+yaml", body).send().await
    };
    let refused = apply("fieldManager=m1", 6).await;
    assert_eq!(refused.is(409).json()["details"]["causes"][0]["field"], ".spec.replicas");
    // kube-apiserver 1.37 cannot do it without a conflict either.
    apply("fieldManager=m1&force=true", 6).await.says(500, &failure(
        r#""message":"failed to convert new object (/a; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1","code":500"#,
    ));
}
