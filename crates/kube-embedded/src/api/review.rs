//! Reviews: resources that report the client's identity and permissions, or those of others. They
//! can only be created and are not stored.

use serde_json::{Value, json};

use super::access::{Access, Action, Attributes, User};
use super::tokens::ISSUER;
use crate::admission::ownership::{self, Author};
use crate::encoding::json::encode_as_is;
use crate::encoding::value::text;
use crate::http::service::ServerShared;
use crate::http::status::{Cause, Status};
use crate::kinds::Kind;

const AUTHORIZATION: &str = "authorization.k8s.io";

/// A review from a client.
pub(crate) struct Review<'r> {
    pub(crate) kind: &'r Kind,
    pub(crate) namespace: Option<&'r str>,
    /// Who asks.
    pub(crate) user: &'r User,
    /// The field manager.
    pub(crate) manager: &'r str,
    /// The decoded body.
    pub(crate) object: Value,
}

/// Evaluates a review, and returns it as JSON.
///
/// # Errors
///
/// 400 for a review without a token or in another namespace, 422 for an invalid review.
pub(crate) fn review(shared: &ServerShared, review: Review<'_>) -> Result<Vec<u8>, Status> {
    let Review { kind, namespace, user, manager, mut object } = review;
    let access = shared.access.read().clone();
    let time = shared.cluster.clock.seconds();
    match &*kind.kind {
        // The answers to these repeat nothing of the question.
        "SelfSubjectReview" => {
            object = json!({"metadata": {"creationTimestamp": time}, "status": {"userInfo": user.info()}});
        }
        "SelfSubjectRulesReview" => {
            object = json!({"metadata": {}, "spec": {}, "status": rules(&access, user)});
        }
        name => {
            // A review can be sent back with its status.
            object.as_object_mut().into_iter().for_each(|object| drop(object.remove("status")));
            ownership::create(kind, Author { manager, time: &time, part: None }, &mut object);
            let spec = &object["spec"];
            let status = match name {
                "TokenReview" => authenticated(shared, &access, spec)?,
                "SelfSubjectAccessReview" => verdict(&access, user, spec)?,
                _ => {
                    let there = namespace.unwrap_or_default();
                    if namespace.is_some() && spec["resourceAttributes"]["namespace"] != there {
                        let why = format!("spec.resourceAttributes.namespace must match namespace: {there}");
                        return Err(Status::bad_request(why));
                    }
                    verdict(&access, &subject(spec)?, spec)?
                }
            };
            object["status"] = status;
        }
    }
    Ok(encode_as_is(kind, &object))
}

/// The user of a token.
fn authenticated(shared: &ServerShared, access: &Access, spec: &Value) -> Result<Value, Status> {
    let token = text(&spec["token"]);
    if token.is_empty() {
        return Err(Status::bad_request("token is required for TokenReview in authentication"));
    }
    let wanted: Vec<&str> = spec["audiences"].as_array().into_iter().flatten().map(text).collect();
    let wanted = if wanted.is_empty() { vec![ISSUER] } else { wanted };
    let found = match shared.cluster.tokens.read(&shared.cluster, token, &wanted) {
        Some(read) => read.map(|identity| (identity.user, identity.audiences)),
        // Other tokens are for this server only.
        None => match access.user_of(token).filter(|_| wanted.contains(&ISSUER)) {
            Some(user) => Ok((user, vec![ISSUER.to_owned()])),
            None => Err("invalid bearer token".to_owned()),
        },
    };
    Ok(match found {
        Ok((user, audiences)) => json!({"authenticated": true, "user": user.info(), "audiences": audiences}),
        Err(why) => json!({"user": {}, "error": why}),
    })
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
