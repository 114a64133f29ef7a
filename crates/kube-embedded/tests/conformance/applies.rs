//! Who owns which field, and server-side apply.

use crate::harness::{Api, Case, case, failure};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(
        fields_belong_to_whoever_set_them,
        "managedFields after creates, updates, patches, scales and applies of several managers, step by step"
    ),
    case!(conflicts_name_fields_and_managers, "a 409 names every field and who owns it; force takes them"),
    case!(what_changes_nothing_leaves_no_trace, "an apply or a write that changes nothing keeps the version"),
    case!(an_object_with_nothing_to_own_has_no_managers, "no labels, no data: no managedFields"),
    case!(the_sender_is_the_manager, "without fieldManager the User-Agent up to its slash is"),
];

/// What a real server made of each step: first the schema of the custom kind, then `{"method", "path", "type", "body",
/// "code"}` with a message, or with the object and its managers. `NS` stands for the namespace, `GROUP` for the group.
async fn fields_belong_to_whoever_set_them(api: Api) {
    let ns = api.namespace().await;
    let mut lines = include_str!("applies.jsonl").lines();
    let head: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let kind = api
        .definition(|body| {
            body["spec"]["versions"][0]["schema"] = head["schema"].clone();
            body["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        })
        .await;
    for line in lines {
        let step: Value = serde_json::from_str(&line.replace("NS", &ns.name).replace("GROUP", &kind.group)).unwrap();
        let text = |part: &str| step[part].as_str().unwrap_or_default();
        let mut request = api.request(text("method"), text("path"));
        if !step["body"].is_null() {
            request = request.body(text("type"), &step["body"]);
        }
        let answer = request.send().await;
        let context = format!("{} {} {}", text("method"), text("path"), step["body"]);
        assert_eq!(answer.code, step["code"], "{context}\n{}", answer.text());
        let found = answer.json();
        if let Some(message) = step["message"].as_str() {
            assert_eq!(found["message"], message, "{context}");
            continue;
        }
        if step["managers"].is_null() {
            continue;
        }
        assert_eq!(managers(&found), managers(&json!({"metadata": {"managedFields": step["managers"]}})), "{context}");
        for (part, value) in step["object"].as_object().unwrap() {
            assert_eq!(&found[part], value, "{context}");
        }
        for part in ["labels", "annotations", "finalizers", "generation"] {
            assert_eq!(found["metadata"][part], step["metadata"][part], "{part}: {context}");
        }
    }
}

/// The managers of an object without their times, in some order.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let mut entries: Vec<String> = entries
        .into_iter()
        .map(|mut entry| {
            entry.as_object_mut().unwrap().remove("time");
            entry.to_string()
        })
        .collect();
    entries.sort();
    entries
}

fn config(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

async fn conflicts_name_fields_and_managers(api: Api) {
    let ns = api.namespace().await;
    let apply = async |manager: &str, data: Value| {
        let path = ns.path(&format!("configmaps/a?fieldManager={manager}"));
        api.request("PATCH", &path).body("application/apply-patch+yaml", config(&data)).send().await
    };
    apply("m1", json!({"j": "1", "k": "1"})).await.is(201);
    apply("m2", json!({"k": "2"})).await.says(409, &failure(
        r#""message":"Apply failed with 1 conflict: conflict with \"m1\": .data.k","reason":"Conflict","details":{"causes":[{"reason":"FieldManagerConflict","message":"conflict with \"m1\"","field":".data.k"}]},"code":409"#,
    ));
    api.patch(&ns.path("configmaps/a?fieldManager=upd"), "merge-patch", json!({"data": {"l": "1"}})).await.is(200);
    let refused = apply("m2", json!({"j": "2", "k": "2", "l": "2"})).await.is(409).json();
    assert_eq!(
        refused["message"],
        "Apply failed with 3 conflicts: conflicts with \"m1\":\n- .data.j\n- .data.k\nconflicts with \"upd\" using v1:\n- .data.l"
    );
    // The real server tells its managers in any order.
    let causes = refused["details"]["causes"].as_array().unwrap();
    for (manager, field) in [("\"m1\"", ".data.j"), ("\"m1\"", ".data.k"), ("\"upd\" using v1", ".data.l")] {
        let message = format!("conflict with {manager}");
        let cause = json!({"reason": "FieldManagerConflict", "message": message, "field": field});
        assert!(causes.contains(&cause), "{cause} is not among {causes:?}");
    }
    let forced = apply("m2&force=true", json!({"j": "2", "k": "2"})).await;
    assert_eq!(forced.is(200).json()["data"], json!({"j": "2", "k": "2", "l": "1"}));
}

async fn what_changes_nothing_leaves_no_trace(api: Api) {
    let ns = api.namespace().await;
    let path = ns.path("configmaps/a?fieldManager=m1");
    let apply = async |path: &str| {
        api.request("PATCH", path).body("application/apply-patch+yaml", config(&json!({"k": "1"}))).send().await
    };
    let made = apply(&path).await;
    made.is(201);
    assert_eq!(apply(&path).await.is(200).text(), made.text());
    let put = api.put(&ns.path("configmaps/a?fieldManager=m3"), made.text()).await;
    assert_eq!(put.is(200).text(), made.text());
    assert!(apply(&ns.path("configmaps/a?fieldManager=m2")).await.is(200).version() > made.version());
}

async fn an_object_with_nothing_to_own_has_no_managers(api: Api) {
    let ns = api.namespace().await;
    assert_eq!(ns.configmap("a").await.json()["metadata"].get("managedFields"), None);
}

async fn the_sender_is_the_manager(api: Api) {
    let ns = api.namespace().await;
    for (agent, manager) in [("tool/1.2 (linux)", "tool"), ("plain", "plain")] {
        let body = json!({"metadata": {"generateName": "a-"}, "data": {"k": "v"}});
        let request = api.request("POST", &ns.path("configmaps")).header("user-agent", agent);
        let made = request.body("application/json", body).send().await.is(201).json();
        let entry = &made["metadata"]["managedFields"][0];
        assert_eq!((&entry["manager"], &entry["operation"]), (&json!(manager), &json!("Update")));
        assert_eq!(entry["fieldsV1"], json!({"f:data": {".": {}, "f:k": {}}, "f:metadata": {"f:generateName": {}}}));
        assert_eq!((&entry["apiVersion"], &entry["fieldsType"]), (&json!("v1"), &json!("FieldsV1")));
        // The server reads its clock twice, and a second may end in between.
        let (time, created) = (entry["time"].as_str(), made["metadata"]["creationTimestamp"].as_str());
        assert!(time.is_some() && time <= created, "{time:?} is not before {created:?}");
    }
}
