//! Access reviews: resources that report the client's identity and permissions. They can only be
//! created and are not stored.

use serde_json::{Value, json};

use super::access::{Access, Action, Attributes, User};
use crate::admission::decode;
use crate::encoding::json::{encode_metadata, encode_ordered, encode_sorted};
use crate::http::request::ResourcePath;
use crate::http::service::ServerShared;
use crate::http::status::{Cause, Status};

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Whether a path is that of a review.
pub(crate) fn is_review(path: &ResourcePath) -> bool {
    requested(path).is_some()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Review {
    SelfSubject,
    SelfSubjectAccess,
    SubjectAccess,
    LocalSubjectAccess,
    SelfSubjectRules,
}

fn requested(path: &ResourcePath) -> Option<Review> {
    let place = (&*path.group, &*path.version, &*path.resource, path.namespace.is_some());
    let whole = path.name.is_none() && path.subresource.is_none() && !path.watch_prefix;
    match place {
        _ if !whole => None,
        (AUTHENTICATION, "v1", "selfsubjectreviews", false) => Some(Review::SelfSubject),
        (AUTHORIZATION, "v1", "selfsubjectaccessreviews", false) => Some(Review::SelfSubjectAccess),
        (AUTHORIZATION, "v1", "subjectaccessreviews", false) => Some(Review::SubjectAccess),
        (AUTHORIZATION, "v1", "localsubjectaccessreviews", true) => Some(Review::LocalSubjectAccess),
        (AUTHORIZATION, "v1", "selfsubjectrulesreviews", false) => Some(Review::SelfSubjectRules),
        _ => None,
    }
}

/// The kind of a review.
pub(crate) fn kind(path: &ResourcePath) -> &'static str {
    match requested(path) {
        Some(Review::SelfSubject) => "SelfSubjectReview",
        Some(Review::SelfSubjectAccess) => "SelfSubjectAccessReview",
        Some(Review::SubjectAccess) => "SubjectAccessReview",
        Some(Review::LocalSubjectAccess) => "LocalSubjectAccessReview",
        Some(Review::SelfSubjectRules) => "SelfSubjectRulesReview",
        None => "",
    }
}

/// Evaluates a review.
///
/// # Errors
///
/// 400 for a malformed body, 422 for an invalid review.
pub(crate) fn review(shared: &ServerShared, path: &ResourcePath, user: &User, body: &[u8]) -> Result<Vec<u8>, Status> {
    let Some(requested) = requested(path) else { return Err(Status::unknown_resource()) };
    let (object, _) = decode::parse(body)
        .map_err(|why| Status::bad_request(format!("couldn't get version/kind; json parse error: {why}")))?;
    let access = shared.access.read().clone();
    let spec = &object["spec"];
    let mut metadata = json!({});
    if let Some(namespace) = &path.namespace {
        metadata["namespace"] = json!(namespace);
    }
    let (spec, status) = match requested {
        Review::SelfSubject => {
            metadata["creationTimestamp"] = json!(shared.cluster.clock.seconds());
            (None, json!({"userInfo": info(user)}))
        }
        Review::SelfSubjectAccess => (Some(spec), verdict(&access, user, spec)?),
        Review::SubjectAccess | Review::LocalSubjectAccess => {
            if requested == Review::LocalSubjectAccess
                && spec["resourceAttributes"]["namespace"] != metadata["namespace"]
            {
                let there = metadata["namespace"].as_str().unwrap_or_default();
                let why = format!("spec.resourceAttributes.namespace must match namespace: {there}");
                return Err(Status::bad_request(why));
            }
            (Some(spec), verdict(&access, &subject(spec)?, spec)?)
        }
        Review::SelfSubjectRules => (Some(&json!({})), rules(&access, user)),
    };
    let kind = kind(path);
    let mut out =
        format!(r#"{{"kind":"{kind}","apiVersion":"{}/{}","metadata":"#, path.group, path.version).into_bytes();
    out.extend_from_slice(&encode_metadata(&metadata));
    if let Some(spec) = spec {
        out.extend_from_slice(br#","spec":"#);
        out.extend_from_slice(encode_spec(spec).as_bytes());
    }
    out.extend_from_slice(br#","status":"#);
    out.extend_from_slice(encode_status(&status).as_bytes());
    out.push(b'}');
    Ok(out)
}

/// The identity of a user.
fn info(user: &User) -> Value {
    let mut info = json!({"username": user.name(), "uid": user.uid_text(), "groups": user.groups()});
    if !user.extras().is_empty() {
        info["extra"] = json!(user.extras());
    }
    info
}

/// The user that the review is about.
fn subject(spec: &Value) -> Result<User, Status> {
    let (name, groups) = (text(&spec["user"]), spec["groups"].as_array().map(Vec::as_slice).unwrap_or_default());
    if name.is_empty() && groups.is_empty() {
        return Err(invalid("spec.user", "\"\"", "at least one of user or group must be specified"));
    }
    Ok(groups.iter().map(text).fold(User::new(name), User::group))
}

fn verdict(access: &Access, user: &User, spec: &Value) -> Result<Value, Status> {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    if resource.is_object() == path.is_object() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        return Err(invalid("spec", "null", why));
    }
    if path.is_object() {
        return Ok(decided(
            access,
            &Attributes { user, action: Action::path(text(&path["verb"]), text(&path["path"])) },
        ));
    }
    let mut action = Action::on(text(&resource["group"]), text(&resource["resource"])).verb(text(&resource["verb"]));
    if !text(&resource["subresource"]).is_empty() {
        action = action.subresource(text(&resource["subresource"]));
    }
    if !text(&resource["namespace"]).is_empty() {
        action = action.namespace(text(&resource["namespace"]));
    }
    if !text(&resource["name"]).is_empty() {
        action = action.name(text(&resource["name"]));
    }
    Ok(decided(access, &Attributes { user, action }))
}

fn decided(access: &Access, attributes: &Attributes<'_>) -> Value {
    json!({"allowed": access.check(attributes).is_ok()})
}

/// The permissions of a user. Deny rules cannot be listed; they make the list incomplete.
fn rules(access: &Access, user: &User) -> Value {
    let (resources, paths, complete) = access.list(user);
    json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": !complete})
}

fn invalid(field: &str, value: &str, why: &str) -> Status {
    Status::invalid(AUTHORIZATION, "", "", vec![Cause::invalid(field, value, why)])
}

/// The spec in the order of its Go struct.
fn encode_spec(spec: &Value) -> String {
    let order = ["resourceAttributes", "nonResourceAttributes", "user", "groups", "extra", "uid"];
    let inner =
        ["namespace", "verb", "group", "version", "resource", "subresource", "name", "fieldSelector", "labelSelector"];
    let members: Vec<String> = order
        .into_iter()
        .filter(|part| !spec[*part].is_null())
        .map(|part| {
            let value = match part {
                "resourceAttributes" => ordered(&spec[part], &inner),
                "nonResourceAttributes" => ordered(&spec[part], &["path", "verb"]),
                _ => String::from_utf8_lossy(&encode_sorted(&spec[part])).into_owned(),
            };
            format!("\"{part}\":{value}")
        })
        .collect();
    format!("{{{}}}", members.join(","))
}

fn encode_status(status: &Value) -> String {
    let rule = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];
    let rules = |list: &Value| {
        let rules: Vec<String> = list.as_array().into_iter().flatten().map(|each| ordered(each, &rule)).collect();
        format!("[{}]", rules.join(","))
    };
    match status.get("resourceRules") {
        Some(resources) => format!(
            r#"{{"resourceRules":{},"nonResourceRules":{},"incomplete":{}}}"#,
            rules(resources),
            rules(&status["nonResourceRules"]),
            status["incomplete"]
        ),
        None => match status.get("userInfo") {
            Some(info) => format!(r#"{{"userInfo":{}}}"#, ordered(info, &["username", "uid", "groups", "extra"])),
            None => ordered(status, &["allowed"]),
        },
    }
}

/// The members that are present, in this order; empty strings are omitted.
fn ordered(value: &Value, order: &[&str]) -> String {
    let members: Vec<(&str, &Value)> = order
        .iter()
        .filter_map(|part| value.get(*part).filter(|value| *value != "").map(|value| (*part, value)))
        .collect();
    encode_ordered(&members)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
