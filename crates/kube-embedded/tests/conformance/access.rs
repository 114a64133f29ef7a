//! Authentication and authorization, and the responses to rejected requests.

use crate::harness::{Answer, Api, Case, case, failure};
use serde_json::json;

pub(crate) const CASES: &[Case] = &[
    case!(an_unknown_token_is_unauthorized, "an unknown token is a 401, on any path"),
    case!(without_a_token_one_is_anonymous, "no token: system:anonymous, forbidden but for the version and the probes"),
    case!(
        each_verb_is_forbidden_by_its_name,
        "the 403 names verb, resource, group and namespace; list, watch and deletecollection are distinct"
    ),
    case!(forbidden_at_the_cluster_scope, "without a namespace the 403 says: at the cluster scope"),
    case!(forbidden_in_a_group, "the 403 of another group names it, and the subresource"),
    case!(forbidden_paths, "a path that is no resource is forbidden by its path"),
    case!(access_comes_before_existence, "what does not exist is forbidden all the same"),
    case!(everybody_with_a_token_may_discover, "discovery and version are open to any user"),
];

async fn an_unknown_token_is_unauthorized(api: Api) {
    let refusal = failure(r#""message":"Unauthorized","reason":"Unauthorized","code":401"#);
    for path in ["/api/v1/namespaces/default/configmaps", "/version", "/api", "/nothing/here"] {
        let answer = api.request("GET", path).token(Some("unknown-token")).send().await;
        answer.says(401, &refusal);
        assert_eq!(answer.header("x-kubernetes-pf-flowschema-uid"), None);
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
}

async fn without_a_token_one_is_anonymous(api: Api) {
    let get = async |path: &str| api.request("GET", path).token(None).send().await;
    get("/version").await.is(200);
    for path in ["/livez", "/readyz", "/healthz"] {
        get(path).await.says(200, "ok");
    }
    let answer = api
        .request("GET", "/api/v1/namespaces/default/configmaps")
        .header("accept", "application/json")
        .token(None)
        .send()
        .await;
    answer.says(403, &forbidden(
        "configmaps is forbidden: User \\\"system:anonymous\\\" cannot list resource \\\"configmaps\\\" in API group \\\"\\\" in the namespace \\\"default\\\"",
        r#"{"kind":"configmaps"}"#,
    ));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    let answer = api.request("GET", "/api").header("accept", "application/json").token(None).send().await;
    answer.says(403, &forbidden("forbidden: User \\\"system:anonymous\\\" cannot get path \\\"/api\\\"", "{}"));
}

async fn each_verb_is_forbidden_by_its_name(api: Api) {
    let body = json!({"metadata": {"name": "a"}});
    for (method, path, verb) in [
        ("GET", "configmaps/a", "get"),
        ("GET", "configmaps", "list"),
        ("GET", "configmaps?watch=true", "watch"),
        ("POST", "configmaps", "create"),
        ("PUT", "configmaps/a", "update"),
        ("PATCH", "configmaps/a", "patch"),
        ("DELETE", "configmaps/a", "delete"),
        ("DELETE", "configmaps", "deletecollection"),
    ] {
        let answer = api
            .request(method, &format!("/api/v1/namespaces/default/{path}"))
            .token(Some(api.nobody_token()))
            .body("application/json", &body)
            .send()
            .await;
        let (name, details) = if path.contains('/') {
            ("configmaps \\\"a\\\"", r#"{"name":"a","kind":"configmaps"}"#)
        } else {
            ("configmaps", r#"{"kind":"configmaps"}"#)
        };
        answer.says(403, &forbidden(
            &format!("{name} is forbidden: User \\\"nobody\\\" cannot {verb} resource \\\"configmaps\\\" in API group \\\"\\\" in the namespace \\\"default\\\""),
            details,
        ));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}

async fn forbidden_at_the_cluster_scope(api: Api) {
    for kind in ["configmaps", "nodes"] {
        as_nobody(&api, &format!("/api/v1/{kind}")).await.says(403, &forbidden(
            &format!("{kind} is forbidden: User \\\"nobody\\\" cannot list resource \\\"{kind}\\\" in API group \\\"\\\" at the cluster scope"),
            &format!(r#"{{"kind":"{kind}"}}"#),
        ));
    }
    as_nobody(&api, "/api/v1/namespaces/default").await.says(403, &forbidden(
        "namespaces \\\"default\\\" is forbidden: User \\\"nobody\\\" cannot get resource \\\"namespaces\\\" in API group \\\"\\\" in the namespace \\\"default\\\"",
        r#"{"name":"default","kind":"namespaces"}"#,
    ));
}

async fn forbidden_in_a_group(api: Api) {
    as_nobody(&api, "/apis/apps/v1/namespaces/default/deployments").await.says(403, &forbidden(
        "deployments.apps is forbidden: User \\\"nobody\\\" cannot list resource \\\"deployments\\\" in API group \\\"apps\\\" in the namespace \\\"default\\\"",
        r#"{"group":"apps","kind":"deployments"}"#,
    ));
    as_nobody(&api, "/apis/apps/v1/namespaces/default/deployments/x/status").await.says(403, &forbidden(
        "deployments.apps \\\"x\\\" is forbidden: User \\\"nobody\\\" cannot get resource \\\"deployments/status\\\" in API group \\\"apps\\\" in the namespace \\\"default\\\"",
        r#"{"name":"x","group":"apps","kind":"deployments"}"#,
    ));
}

async fn forbidden_paths(api: Api) {
    for path in ["/metrics", "/"] {
        as_nobody(&api, path)
            .await
            .says(403, &forbidden(&format!("forbidden: User \\\"nobody\\\" cannot get path \\\"{path}\\\""), "{}"));
    }
}

async fn access_comes_before_existence(api: Api) {
    as_nobody(&api, "/apis/nope.example.com/v1/things").await.says(403, &forbidden(
        "things.nope.example.com is forbidden: User \\\"nobody\\\" cannot list resource \\\"things\\\" in API group \\\"nope.example.com\\\" at the cluster scope",
        r#"{"group":"nope.example.com","kind":"things"}"#,
    ));
    as_nobody(&api, "/api/v1/namespaces/default/nope").await.says(403, &forbidden(
        "nope is forbidden: User \\\"nobody\\\" cannot list resource \\\"nope\\\" in API group \\\"\\\" in the namespace \\\"default\\\"",
        r#"{"kind":"nope"}"#,
    ));
}

async fn everybody_with_a_token_may_discover(api: Api) {
    for path in ["/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/livez", "/readyz", "/healthz"]
    {
        as_nobody(&api, path).await.is(200);
    }
}

async fn as_nobody(api: &Api, path: &str) -> Answer {
    api.request("GET", path).token(Some(api.nobody_token())).send().await
}

fn forbidden(message: &str, details: &str) -> String {
    failure(&format!(r#""message":"{message}","reason":"Forbidden","details":{details},"code":403"#))
}
