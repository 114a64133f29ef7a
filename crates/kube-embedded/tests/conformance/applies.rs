//! managedFields and server-side apply.

use crate::harness::{Api, Case, case, failure};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(
        fields_belong_to_the_manager_that_set_them,
        "managedFields after creates, updates, patches, scales and applies of several managers, step by step"
    ),
    case!(
        what_kubectl_applied_may_become_the_servers_task,
        "managers that applied on the client's side, none at all, rewritten by hand, of another version, step by step"
    ),
    case!(versions_of_a_custom_kind_have_managers_in_common, "a field changed in another version changes hands too"),
    case!(conflicts_name_fields_and_managers, "a 409 names every field and who owns it; force takes them"),
    case!(what_changes_nothing_leaves_no_trace, "an apply or a write that changes nothing keeps the version"),
    case!(who_changes_nothing_has_no_time, "an apply that changes no value is noted without a time"),
    case!(an_object_with_nothing_to_own_has_no_managers, "no labels, no data: no managedFields"),
    case!(
        an_update_that_names_no_managers_keeps_them,
        "an update without managedFields keeps every manager; an empty list, or an empty entry in it, removes all"
    ),
    case!(the_sender_is_the_manager, "without fieldManager the User-Agent up to its slash is"),
];

/// Results recorded from kube-apiserver for each step: first the schema of the custom resource,
/// then `{"method", "path", "type", "body", "code"}` with a message, or with the object and its
/// managers. `NS` stands for the namespace, `GROUP` for the group.
async fn fields_belong_to_the_manager_that_set_them(api: Api) {
    let ns = api.namespace().await;
    let mut lines = include_str!("applies.jsonl").lines();
    let head: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    let kind = api
        .definition(|body| {
            body["spec"]["versions"][0]["schema"] = head["schema"].clone();
            body["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        })
        .await;
    follow(&api, lines, &ns.name, &kind.group).await;
}

async fn what_kubectl_applied_may_become_the_servers_task(api: Api) {
    let ns = api.namespace().await;
    follow(&api, include_str!("migrations.jsonl").lines(), &ns.name, "").await;
}

async fn versions_of_a_custom_kind_have_managers_in_common(api: Api) {
    let ns = api.namespace().await;
    let kind = api
        .definition(|body| {
            let mut second = body["spec"]["versions"][0].clone();
            second["name"] = json!("v2");
            second["storage"] = json!(false);
            body["spec"]["versions"].as_array_mut().unwrap().push(second);
        })
        .await;
    let second = kind.things(&ns).replace("/v1/", "/v2/");
    api.eventually(&second, |answer| answer.code == 200).await;
    let (first, second) = (format!("{}/a", kind.things(&ns)), format!("{second}/a"));
    let made = kind.thing("a", json!({"spec": {"x": 1, "y": 1}}));
    api.post(&format!("{}?fieldManager=m1", kind.things(&ns)), made).await.is(201);
    api.patch(&format!("{second}?fieldManager=m2"), "merge-patch", json!({"spec": {"x": 2}})).await.is(200);
    let shown = api.get(&first).await.is(200).json();
    let entries = shown["metadata"]["managedFields"].as_array().unwrap();
    let owners: Vec<_> = entries
        .iter()
        .map(|entry| (entry["manager"].as_str().unwrap(), entry["fieldsV1"]["f:spec"].to_string()))
        .collect();
    assert_eq!(owners, [("m1", r#"{".":{},"f:y":{}}"#.to_owned()), ("m2", r#"{"f:x":{}}"#.to_owned())]);
    let config = json!({
        "apiVersion": format!("{}/v1", kind.group), "kind": "Thing", "metadata": {"name": "a"}, "spec": {"x": 3},
    });
    let refused = api
        .request("PATCH", &format!("{first}?fieldManager=m3"))
        .body("application/apply-patch+yaml", config)
        .send()
        .await;
    let message = format!("Apply failed with 1 conflict: conflict with \"m2\" using {}/v2: .spec.x", kind.group);
    assert_eq!(refused.is(409).json()["message"], message);
}

/// Executes every step and compares the result with the recorded one.
async fn follow(api: &Api, lines: impl Iterator<Item = &str>, namespace: &str, group: &str) {
    for line in lines {
        let step: Value = serde_json::from_str(&line.replace("NS", namespace).replace("GROUP", group)).unwrap();
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

/// The managers of an object without their times, sorted.
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
    // kube-apiserver reports the managers in any order.
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

async fn who_changes_nothing_has_no_time(api: Api) {
    let ns = api.namespace().await;
    ns.create(json!({"metadata": {"name": "a"}, "data": {"k": "1"}})).await;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}});
    let request = api.request("PATCH", &ns.path("configmaps/a?fieldManager=m"));
    let shared = request.body("application/apply-patch+yaml", config).send().await.is(200).json();
    let entries = shared["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["manager"], entries[0].get("time")), (2, &json!("m"), None));
    assert!(entries[1]["time"].is_string());
}

async fn an_object_with_nothing_to_own_has_no_managers(api: Api) {
    let ns = api.namespace().await;
    assert_eq!(ns.configmap("a").await.json()["metadata"].get("managedFields"), None);
}

async fn an_update_that_names_no_managers_keeps_them(api: Api) {
    let ns = api.namespace().await;
    let apply = api.request("PATCH", &ns.path("configmaps/a?fieldManager=m1"));
    apply.body("application/apply-patch+yaml", config(&json!({"k": "1"}))).send().await.is(201);
    let update = ns.path("configmaps/a?fieldManager=m2");
    let made = api.patch(&update, "merge-patch", json!({"data": {"l": "1"}})).await.is(200).json();
    let before = managers(&made);
    assert_eq!(before.len(), 2);

    // As a client sends an object that it has read without its managers.
    let mut sent = made.clone();
    sent["metadata"].as_object_mut().unwrap().remove("managedFields");
    let unchanged = api.put(&update, &sent).await.is(200).json();
    assert_eq!(
        (&unchanged["metadata"]["resourceVersion"], managers(&unchanged)),
        (&made["metadata"]["resourceVersion"], before.clone())
    );

    sent["data"]["l"] = json!("2");
    let changed = api.put(&update, &sent).await.is(200).json();
    assert_eq!((&changed["data"], managers(&changed)), (&json!({"k": "1", "l": "2"}), before.clone()));

    sent["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    sent["metadata"]["managedFields"] = Value::Null;
    assert_eq!(managers(&api.put(&update, &sent).await.is(200).json()), before);
    for nothing in [json!([]), json!([{}])] {
        let owned = api.request("PATCH", &ns.path("configmaps/a?fieldManager=m1&force=true"));
        let owned = owned.body("application/apply-patch+yaml", config(&json!({"k": "1"}))).send().await.is(200).json();
        assert!(!managers(&owned).is_empty(), "{owned}");
        sent["metadata"]["managedFields"] = nothing;
        let removed = api.put(&update, &sent).await.is(200).json();
        assert_eq!(removed["metadata"].get("managedFields"), None);
    }
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
        // The server reads the clock twice, so the seconds can differ.
        let (time, created) = (entry["time"].as_str(), made["metadata"]["creationTimestamp"].as_str());
        assert!(time.is_some() && time <= created, "{time:?} is not before {created:?}");
    }
}
