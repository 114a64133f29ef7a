use serde_json::json;

use super::super::Registry;
use super::*;

fn pruned(plural: &str, mut object: Value) -> Value {
    let kind = Registry::new().find("", "v1", plural).unwrap();
    prune(&kind, &mut object).unwrap();
    object
}

fn unknown(plural: &str, mut object: Value) -> Vec<String> {
    let kind = Registry::new().find("", "v1", plural).unwrap();
    prune(&kind, &mut object).unwrap().iter().map(ToString::to_string).collect()
}

fn problem(plural: &str, mut object: Value) -> String {
    let kind = Registry::new().find("", "v1", plural).unwrap();
    prune(&kind, &mut object).unwrap_err().to_string()
}

#[test]
fn unknown_fields_are_removed_and_reported_by_their_path() {
    let pod = json!({
        "bogus": 1,
        "metadata": {"foo": {}, "labels": {"any": "key"}},
        "spec": {"containers": [{"name": "a"}, {"name": "b", "foo": 1}], "volumes": [{"name": "v", "emptyDir": {"x": 1}}]}
    });
    let mut dropped = unknown("pods", pod.clone());
    dropped.sort();
    assert_eq!(
        dropped,
        [
            r#"unknown field "bogus""#,
            r#"unknown field "metadata.foo""#,
            r#"unknown field "spec.containers[1].foo""#,
            r#"unknown field "spec.volumes[0].emptyDir.x""#
        ]
    );
    let kept = pruned("pods", pod);
    assert_eq!(kept["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
    assert_eq!(kept["metadata"], json!({"labels": {"any": "key"}}));
}

#[test]
fn a_value_of_the_wrong_type_is_reported_as_go_reports_it() {
    let cases = [
        (json!({"metadata": {"name": 5}}), "number into Go struct field ObjectMeta.metadata.name of type string"),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            json!({"metadata": {"labels": []}}),
            "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (json!({"metadata": {"uid": true}}), "bool into Go struct field ObjectMeta.metadata.uid of type types.UID"),
        (
            json!({"metadata": {"generation": 1.5}}),
            "number 1.5 into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (json!({"metadata": "x"}), "string into Go struct field Pod.metadata of type v1.ObjectMeta"),
        (
            json!({"metadata": {"finalizers": [{}]}}),
            "object into Go struct field ObjectMeta.metadata.finalizers of type string",
        ),
        (
            json!({"spec": {"containers": {}}}),
            "object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            json!({"spec": {"containers": [{"ports": [{"containerPort": "80"}]}]}}),
            "string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
        ),
        (
            json!({"spec": {"priority": 3_000_000_000_u64}}),
            "number 3000000000 into Go struct field PodSpec.spec.priority of type int32",
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(problem("pods", object), format!("json: cannot unmarshal {expected}"));
    }
    assert_eq!(problem("pods", json!([])), "json: cannot unmarshal array into Go value of type v1.Pod");
}

#[test]
fn bytes_times_and_quantities_must_be_what_they_say() {
    assert_eq!(problem("secrets", json!({"data": {"a": "??"}})), "illegal base64 data at input byte 0");
    assert_eq!(
        problem("pods", json!({"metadata": {"creationTimestamp": "today"}})),
        r#"parsing time "today" as "2006-01-02T15:04:05Z07:00": cannot parse "today" as "2006""#
    );
    let quota = json!({"spec": {"hard": {"cpu": "many"}}});
    assert!(problem("resourcequotas", quota).starts_with("quantities must match the regular expression"));
}

#[test]
fn what_go_leaves_out_when_empty_is_left_out() {
    let object = json!({
        "metadata": {"name": "x", "labels": {}, "annotations": null, "finalizers": [], "creationTimestamp": null, "generation": 0},
        "spec": {"hostNetwork": false, "nodeName": "", "containers": [], "priority": 0, "volumes": [{"name": "v", "emptyDir": {}}]}
    });
    let expected = json!({
        "kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"},
        "spec": {"containers": null, "priority": 0, "volumes": [{"name": "v", "emptyDir": {}}]}, "status": {}
    });
    assert_eq!(pruned("pods", object), expected);
}

#[test]
fn what_go_always_writes_is_there() {
    assert_eq!(pruned("services", json!({}))["status"], json!({"loadBalancer": {}}));
    let condition = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let expected = json!([{"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null}]);
    assert_eq!(pruned("pods", condition)["status"]["conditions"], expected);
    let kind = Registry::new().find("rbac.authorization.k8s.io", "v1", "clusterroles").unwrap();
    let mut role = json!({"metadata": {"name": "r"}, "rules": []});
    prune(&kind, &mut role).unwrap();
    assert_eq!(role["rules"], Value::Null);
}

#[test]
fn times_and_quantities_get_the_spelling_they_are_stored_in() {
    let pod = json!({
        "metadata": {"creationTimestamp": "2026-01-01T02:00:00.5+02:00"},
        "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}, "requests": {"cpu": "0.5"}}}]}
    });
    let pod = pruned("pods", pod);
    assert_eq!(pod["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    let resources = json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}});
    assert_eq!(pod["spec"]["containers"][0]["resources"], resources);
    let event = pruned("events", json!({"eventTime": "2026-01-01T00:00:00.123456Z"}));
    assert_eq!(event["eventTime"], "2026-01-01T00:00:00.123456Z");
}

#[test]
fn schemas_of_definitions_may_be_lists_booleans_or_strings_where_json_schema_says_so() {
    let kind = Registry::new().find("apiextensions.k8s.io", "v1", "customresourcedefinitions").unwrap();
    let schema = json!({
        "type": "object", "additionalProperties": true, "items": [{"type": "string"}],
        "dependencies": {"a": ["b"], "c": {"type": "object"}}, "default": {"any": [1, null]},
        "properties": {"x": {"additionalProperties": {"type": "string", "bogus": 1}}}
    });
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let mut crd = json!({"metadata": {"name": "x"}, "spec": {"group": "g", "versions": [version]}});
    let dropped = prune(&kind, &mut crd).unwrap();
    assert_eq!(
        dropped[0].to_string(),
        r#"unknown field "spec.versions[0].schema.openAPIV3Schema.properties.x.additionalProperties.bogus""#
    );
    let kept = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(kept["default"], json!({"any": [1, null]}));
    assert_eq!(kept["dependencies"]["a"], json!(["b"]));
}
