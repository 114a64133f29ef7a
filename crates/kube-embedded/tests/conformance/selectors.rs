//! Label and field selectors on lists. (Selectors on watches are tested in `watch`.)

use crate::harness::{Api, Case, case, failure};
use serde_json::json;

pub(crate) const CASES: &[Case] = &[
    case!(label_selectors_select, "=, ==, !=, in, notin, exists, !exists, gt, lt and commas"),
    case!(
        label_selectors_that_make_no_sense_are_refused,
        "a label selector that cannot be parsed is a 400 that says where"
    ),
    case!(labels_in_selectors_are_validated, "keys and values in a label selector must be legal"),
    case!(field_selectors_select, "=, ==, != and commas on metadata.name and metadata.namespace"),
    case!(field_selectors_that_make_no_sense_are_refused, "a field selector that cannot be parsed is a 400"),
    case!(unknown_fields_are_refused_in_each_kinds_own_words, "an unsupported field is a 400, worded per kind"),
    case!(pods_are_selected_by_node_and_phase, "pods: spec.nodeName, spec.restartPolicy, status.phase"),
    case!(secrets_are_selected_by_type, "secrets: type"),
    case!(namespaces_are_selected_by_phase, "namespaces: status.phase"),
    case!(selectors_apply_across_namespaces, "metadata.namespace and labels select across all namespaces"),
    case!(
        errors_of_selectors_are_the_same_on_watches,
        "a watch refuses a bad selector with the same 400, before the stream"
    ),
];

async fn label_selectors_select(api: Api) {
    let ns = api.namespace().await;
    for (name, labels) in [
        ("a", json!({"app": "x", "n": "1"})),
        ("b", json!({"app": "y", "n": "10"})),
        ("c", json!({"app": "", "example.com/part": "z"})),
        ("d", json!({})),
    ] {
        ns.create(json!({"metadata": {"name": name, "labels": labels}})).await;
    }
    for (selector, names) in [
        ("app=x", &["a"][..]),
        ("app==x", &["a"]),
        ("app!=x", &["b", "c", "d"]),
        ("app", &["a", "b", "c"]),
        ("!app", &["d"]),
        ("app=", &["c"]),
        ("app in (x, y)", &["a", "b"]),
        ("app in (x,)", &["a", "c"]),
        ("app in ()", &["c"]),
        ("app notin (x,y)", &["c", "d"]),
        ("n>1", &["b"]),
        ("n<10", &["a"]),
        ("app,n", &["a", "b"]),
        ("app=x,n=10", &[]),
        ("example.com/part=z", &["c"]),
        (" app = x ", &["a"]),
        ("", &["a", "b", "c", "d"]),
    ] {
        let list = api.get(&ns.path(&format!("configmaps?labelSelector={}", escape(selector)))).await;
        assert_eq!(list.is(200).names(), names, "{selector}");
    }
}

async fn label_selectors_that_make_no_sense_are_refused(api: Api) {
    let ns = api.namespace().await;
    for (selector, message) in [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a xor (b)", "unable to parse requirement: found 'xor', expected: in, notin, =, ==, !=, gt, lt"),
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a=b,=", "found '=', expected: identifier after ','"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a notin (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (
            "a>b",
            r#"unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"#,
        ),
    ] {
        refuses(&api, &ns.path(&format!("configmaps?labelSelector={}", escape(selector))), message).await;
    }
}

async fn labels_in_selectors_are_validated(api: Api) {
    let ns = api.namespace().await;
    for (selector, message) in [
        (
            "a=-b",
            r#"unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#,
        ),
        (
            "-a=b",
            r#"unable to parse requirement: \u003cnil\u003e: Invalid value: \"-a\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
        ),
    ] {
        refuses(&api, &ns.path(&format!("configmaps?labelSelector={}", escape(selector))), message).await;
    }
}

async fn field_selectors_select(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    let here = format!("metadata.namespace={}", ns.name);
    let both = format!("metadata.name=a,metadata.namespace={}", ns.name);
    for (selector, names) in [
        ("metadata.name=a", &["a"][..]),
        ("metadata.name==a", &["a"]),
        ("metadata.name!=a", &["b"]),
        ("metadata.name=a,metadata.name=b", &[]),
        ("metadata.name=a,", &["a"]),
        ("metadata.namespace=elsewhere", &[]),
        (&here, &["a", "b"]),
        (&both, &["a"]),
        ("", &["a", "b"]),
    ] {
        let list = api.get(&ns.path(&format!("configmaps?fieldSelector={}", escape(selector)))).await;
        assert_eq!(list.is(200).names(), names, "{selector}");
    }
}

async fn field_selectors_that_make_no_sense_are_refused(api: Api) {
    let ns = api.namespace().await;
    for (selector, message) in [
        ("x", "invalid selector: 'x'; can't understand 'x'"),
        ("metadata.name>a", r"invalid selector: 'metadata.name\u003ea'; can't understand 'metadata.name\u003ea'"),
        (r"metadata.name=a\", r"invalid field selector: invalid escape sequence: \\"),
        ("=x", r#"\"\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""#),
    ] {
        refuses(&api, &ns.path(&format!("configmaps?fieldSelector={}", escape(selector))), message).await;
    }
}

async fn unknown_fields_are_refused_in_each_kinds_own_words(api: Api) {
    let usual = r#"\"foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""#;
    for (path, message) in [
        ("/api/v1/configmaps", usual),
        ("/apis/apps/v1/deployments", usual),
        ("/api/v1/pods", "field label not supported: foo"),
        ("/api/v1/events", "field label not supported: foo"),
        ("/api/v1/secrets", "field label not supported: foo"),
        ("/api/v1/services", "field label not supported: foo"),
        ("/api/v1/nodes", "field label not supported: foo"),
        ("/api/v1/namespaces", "field label not supported: foo"),
        ("/apis/batch/v1/jobs", r#"field label \"foo\" not supported for Job"#),
        (
            "/apis/resource.k8s.io/v1/resourceslices",
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: foo",
        ),
    ] {
        refuses(&api, &format!("{path}?fieldSelector=foo%3Dbar"), message).await;
    }
    refuses(
        &api,
        "/api/v1/nodes?fieldSelector=metadata.namespace%3Dx",
        "field label not supported: metadata.namespace",
    )
    .await;
}

async fn pods_are_selected_by_node_and_phase(api: Api) {
    let ns = api.namespace().await;
    for (name, node, restart) in [("a", "n1", "Always"), ("b", "n2", "Never")] {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"nodeName": node, "restartPolicy": restart, "containers": [{"name": "c", "image": "i"}]},
        });
        api.post(&ns.path("pods"), pod).await.is(201);
    }
    for (selector, names) in [
        ("spec.nodeName=n1", &["a"][..]),
        ("spec.nodeName!=n1", &["b"]),
        ("spec.host=n2", &["b"]),
        ("spec.restartPolicy=Never", &["b"]),
        ("status.phase=Pending", &["a", "b"]),
        ("status.phase=Running", &[]),
        ("spec.schedulerName=other", &[]),
        ("spec.hostNetwork=false", &["a", "b"]),
        ("status.podIP=", &["a", "b"]),
    ] {
        let list = api.get(&ns.path(&format!("pods?fieldSelector={}", escape(selector)))).await;
        assert_eq!(list.is(200).names(), names, "{selector}");
    }
}

async fn secrets_are_selected_by_type(api: Api) {
    let ns = api.namespace().await;
    for (name, kind) in [("a", "Opaque"), ("b", "example.com/own")] {
        api.post(&ns.path("secrets"), json!({"metadata": {"name": name}, "type": kind})).await.is(201);
    }
    let list = api.get(&ns.path("secrets?fieldSelector=type%3DOpaque")).await;
    assert_eq!(list.is(200).names(), ["a"]);
}

async fn namespaces_are_selected_by_phase(api: Api) {
    let ns = api.namespace().await;
    let select = async |phase: &str| {
        let path = format!("/api/v1/namespaces?fieldSelector=status.phase%3D{phase}%2Cmetadata.name%3D{}", ns.name);
        api.get(&path).await.is(200).names().len()
    };
    assert_eq!((select("Active").await, select("Terminating").await), (1, 0));
    api.delete(&ns.path).await.is(200);
    assert_eq!((select("Active").await, select("Terminating").await), (0, 1));
}

async fn selectors_apply_across_namespaces(api: Api) {
    let (one, two) = (api.namespace_called("one").await, api.namespace_called("two").await);
    let label = api.unique("label");
    for ns in [&one, &two] {
        ns.create(json!({"metadata": {"name": "a", "labels": {"only": label}}})).await;
    }
    let list = api.get(&format!("/api/v1/configmaps?labelSelector=only%3D{label}")).await;
    assert_eq!(list.is(200).names(), ["a", "a"]);
    let list = api
        .get(&format!(
            "/api/v1/configmaps?labelSelector=only%3D{label}&fieldSelector=metadata.namespace%3D{}",
            two.name
        ))
        .await;
    assert_eq!(list.is(200).json()["items"][0]["metadata"]["namespace"], two.name);
    assert_eq!(list.names().len(), 1);
}

async fn errors_of_selectors_are_the_same_on_watches(api: Api) {
    let ns = api.namespace().await;
    refuses(
        &api,
        &ns.path("configmaps?watch=true&labelSelector=%3D"),
        "found '=', expected: !, identifier, or 'end of string'",
    )
    .await;
    refuses(&api, &ns.path("pods?watch=true&fieldSelector=foo%3Dbar"), "field label not supported: foo").await;
}

/// Asserts that the request returns 400 with this message (escaped as in JSON).
async fn refuses(api: &Api, path: &str, message: &str) {
    api.get(path).await.says(400, &failure(&format!(r#""message":"{message}","reason":"BadRequest","code":400"#)));
}

pub(crate) fn escape(selector: &str) -> String {
    selector.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
