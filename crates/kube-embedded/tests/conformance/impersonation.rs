//! Impersonation: acting as another user, with the permission for each property of that user.

use crate::harness::{Answer, Api, Case, IMPERSONATOR_MAY, Request, case, failure};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

pub(crate) const CASES: &[Case] = &[
    case!(every_property_is_taken_over, "name, uid, groups and extra fields are those of the headers"),
    case!(
        users_have_the_groups_of_their_kind,
        "service accounts and anonymous users are in their groups, others in system:authenticated"
    ),
    case!(nodes_are_in_their_group, "an impersonated node is in system:nodes"),
    case!(properties_need_a_user, "a uid, a group or an extra field without a user is a 400"),
    case!(
        each_property_needs_its_permission,
        "one missing permission is a 403 that names it; all permissions of one mode are enough"
    ),
];

const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const SCOPES: &str = "impersonate-extra-example.com%2fscopes";

async fn every_property_is_taken_over(api: Api) {
    let said = who(&api, &[(USER, "ann"), (UID, "u-1"), (GROUP, "dev"), (GROUP, "ops"), (SCOPES, "view")]).await;
    assert_eq!(
        said,
        json!({
            "username": "ann", "uid": "u-1", "groups": ["dev", "ops", "system:authenticated"],
            "extra": {"example.com/scopes": ["view"]},
        })
    );
    // Bytes beyond ASCII, which are legal in headers.
    assert_eq!(who(&api, &[(USER, "böb")]).await["username"], "böb");
    // An empty name is none.
    assert_eq!(who(&api, &[(USER, "")]).await["username"], "admin");
}

async fn users_have_the_groups_of_their_kind(api: Api) {
    let groups = async |user: &str| who(&api, &[(USER, user)]).await["groups"].clone();
    assert_eq!(groups("ann").await, json!(["system:authenticated"]));
    assert_eq!(
        groups("system:serviceaccount:default:robot").await,
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    // What looks like a service account but is none.
    assert_eq!(groups("system:serviceaccount:default").await, json!(["system:authenticated"]));
    for headers in
        [&[(USER, "system:anonymous")] as &[(&str, &str)], &[(USER, "ann"), (GROUP, "system:unauthenticated")]]
    {
        let answer = ask(api.request("POST", SELF), headers).await;
        let user = headers[0].1;
        answer.says(403, &refusal(
            &format!(r#"selfsubjectreviews.authentication.k8s.io is forbidden: User "{user}" cannot create resource "selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope"#),
            r#"{"group":"authentication.k8s.io","kind":"selfsubjectreviews"}"#,
        ));
    }
}

async fn nodes_are_in_their_group(api: Api) {
    let said = who(&api, &[(USER, "system:node:n-1")]).await;
    assert_eq!(said["groups"], json!(["system:nodes", "system:authenticated"]));
    let said = who(&api, &[(USER, "system:node:N_1")]).await;
    assert_eq!(said["groups"], json!(["system:authenticated"]));
}

async fn properties_need_a_user(api: Api) {
    for (header, shown) in [
        ((UID, "u-1"), r#"UID:"u-1", Groups:[]string(nil), Extra:map[string][]string(nil)"#),
        ((GROUP, "g"), r#"UID:"", Groups:[]string{"g"}, Extra:map[string][]string(nil)"#),
        (
            (SCOPES, "view"),
            r#"UID:"", Groups:[]string(nil), Extra:map[string][]string{"example.com/scopes":[]string{"view"}}"#,
        ),
    ] {
        let answer = ask(api.request("POST", SELF), &[header]).await;
        let shown = shown.replace('"', "\\\"");
        answer.says(400, &failure(&format!(
            r#""message":"requested \u0026user.DefaultInfo{{Name:\"\", {shown}}} without impersonating a user name","reason":"BadRequest","code":400"#
        )));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("x-kubernetes-pf-flowschema-uid"), None);
    }
}

/// A refusal: the user, the header besides, and the refused resource with its message.
type Refused<'r> = (&'r str, Option<(&'r str, &'r str)>, &'r str, &'r str);

async fn each_property_needs_its_permission(api: Api) {
    grant(&api).await;
    let group = r#"in API group "authentication.k8s.io" at the cluster scope"#;
    let refused: [Refused<'_>; 9] = [
        ("eve", None, r#"users "eve""#, r#"impersonate:user-info resource "users""#),
        ("ann", Some((UID, "u-2")), r#"uids "u-2""#, r#"impersonate:user-info resource "uids""#),
        ("ann", Some((GROUP, "ops")), r#"groups "ops""#, r#"impersonate:user-info resource "groups""#),
        (
            "ann",
            Some((GROUP, "system:masters")),
            r#"groups "system:masters""#,
            "impersonate:user-info resource \"groups\": impersonating the system:masters group is not allowed",
        ),
        (
            "ann",
            Some((GROUP, "")),
            "groups",
            "impersonate:user-info resource \"groups\": impersonating the empty string group is not allowed",
        ),
        (
            "ann",
            Some((SCOPES, "edit")),
            r#"userextras "edit""#,
            r#"impersonate:user-info resource "userextras/example.com/scopes""#,
        ),
        (
            "ann",
            Some(("impersonate-extra-scopes", "edit")),
            "userextras",
            "impersonate:user-info resource \"userextras\": impersonating an invalid key in extra is not allowed: \
             extra.key: Invalid value: \"scopes\": must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
        (
            "system:serviceaccount:default:other",
            None,
            "selfsubjectreviews",
            r#"impersonate-on:serviceaccount:create resource "selfsubjectreviews""#,
        ),
        (
            "system:node:n-1",
            None,
            "selfsubjectreviews",
            r#"impersonate-on:arbitrary-node:create resource "selfsubjectreviews""#,
        ),
    ];
    for (user, besides, what, why) in refused {
        let headers: Vec<_> = std::iter::once((USER, user)).chain(besides).collect();
        let (resource, name) = what.split_once(' ').unwrap_or((what, ""));
        let subject = format!("{resource}.authentication.k8s.io {name}");
        // The reason follows the place.
        let (action, reason) = match why.split_once(": imp") {
            Some((action, reason)) => (action, format!(": imp{reason}")),
            None => (why, String::new()),
        };
        let message = format!("{} is forbidden: User \"impersonator\" cannot {action} {group}{reason}", subject.trim());
        let name = name.trim_matches('"');
        let name = if name.is_empty() { String::new() } else { format!(r#""name":"{name}","#) };
        let details = format!(r#"{{{name}"group":"authentication.k8s.io","kind":"{resource}"}}"#);
        let answer = ask(as_impersonator(&api, "POST", SELF), &headers).await;
        answer.says(403, &refusal(&message, &details));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("x-kubernetes-pf-flowschema-uid"), None);
    }
    ask(as_impersonator(&api, "GET", "/api/v1/namespaces"), &[(USER, "ann")]).await.says(403, &refusal(
        r#"namespaces is forbidden: User "impersonator" cannot impersonate-on:user-info:list resource "namespaces" in API group "" at the cluster scope"#,
        r#"{"kind":"namespaces"}"#,
    ));
    ask(as_impersonator(&api, "GET", "/version"), &[(USER, "ann")]).await.says(
        403,
        &refusal(r#"forbidden: User "impersonator" cannot impersonate-on:user-info:get path "/version""#, "{}"),
    );

    // All permissions of the legacy mode.
    let bob = [(USER, "bob"), (GROUP, "dev"), ("impersonate-extra-scopes", "view")];
    let said = who_as(as_impersonator(&api, "POST", SELF), &bob).await;
    let expected = json!({"username": "bob", "groups": ["dev", "system:authenticated"], "extra": {"scopes": ["view"]}});
    assert_eq!(said, expected);
    let robot = [(USER, "system:serviceaccount:default:robot")];
    let said = who_as(as_impersonator(&api, "POST", SELF), &robot).await;
    assert_eq!(
        said["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    // All permissions of a constrained mode. Last, because the real server tries first what
    // succeeded last, and reports its refusals.
    let ann = [(USER, "ann"), (UID, "u-1"), (GROUP, "dev"), (SCOPES, "view")];
    let said = who_as(as_impersonator(&api, "POST", SELF), &ann).await;
    assert_eq!(
        said,
        json!({
            "username": "ann", "uid": "u-1", "groups": ["dev", "system:authenticated"],
            "extra": {"example.com/scopes": ["view"]},
        })
    );
}

/// Grants the user `impersonator` its permissions, and waits until they are in effect.
async fn grant(api: &Api) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let name = api.unique("impersonator");
    let rules: Vec<Value> = IMPERSONATOR_MAY
        .iter()
        .map(|(verb, group, resource, name)| {
            let mut rule = json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]});
            if !name.is_empty() {
                rule["resourceNames"] = json!([name]);
            }
            rule
        })
        .collect();
    api.leave_to_clean_up(&format!("{rbac}/clusterroles/{name}"));
    api.post(&format!("{rbac}/clusterroles"), json!({"metadata": {"name": name}, "rules": rules})).await.is(201);
    api.leave_to_clean_up(&format!("{rbac}/clusterrolebindings/{name}"));
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "impersonator"}],
    });
    api.post(&format!("{rbac}/clusterrolebindings"), binding).await.is(201);
    let attributes = json!({"verb": "impersonate", "resource": "users", "name": "bob"});
    let review = json!({"spec": {"user": "impersonator", "resourceAttributes": attributes}});
    let deadline = Instant::now() + Duration::from_secs(10);
    while api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", &review).await.is(201).json()["status"]["allowed"]
        != true
    {
        assert!(Instant::now() < deadline, "the role is still not in effect");
        sleep(Duration::from_millis(20)).await;
    }
}

fn as_impersonator<'a>(api: &'a Api, method: &str, path: &str) -> Request<'a> {
    api.request(method, path).token(Some(api.impersonator_token()))
}

/// The user that a review of the admin's own identity reports.
async fn who(api: &Api, headers: &[(&str, &str)]) -> Value {
    who_as(api.request("POST", SELF), headers).await
}

async fn who_as(request: Request<'_>, headers: &[(&str, &str)]) -> Value {
    ask(request, headers).await.is(201).json()["status"]["userInfo"].clone()
}

/// Sends a request with these headers; one that creates is a review of the own identity.
async fn ask(request: Request<'_>, headers: &[(&str, &str)]) -> Answer {
    let request = headers.iter().fold(request, |request, (name, value)| request.another_header(name, value));
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    request.header("accept", "application/json").body("application/json", body).send().await
}

fn refusal(message: &str, details: &str) -> String {
    let message = message.replace('"', "\\\"");
    failure(&format!(r#""message":"{message}","reason":"Forbidden","details":{details},"code":403"#))
}
