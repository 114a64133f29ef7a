//! `serviceaccounts/token`: issues a token of a service account.

use serde_json::{Value, json};

use super::validate;
use crate::admission::metadata;
use crate::api::tokens::{ISSUER, find};
use crate::api::write::Write;
use crate::clock::Clock;
use crate::encoding::json::encode_as_is;
use crate::http::reply::{Content, Reply};
use crate::http::status::{Cause, Status};
use crate::kinds::Part;

const AUTHENTICATION: &str = "authentication.k8s.io";

/// The limits of a token's lifetime.
const LIFETIME: std::ops::RangeInclusive<i64> = 600..=1 << 32;

/// Issues a token.
///
/// # Errors
///
/// 400 and 409 for an object that the token cannot be bound to, 404, 422 for an invalid request.
pub(crate) fn issue(write: &Write<'_>, name: &str, mut request: Value) -> Result<Reply, Status> {
    let invalid = |name: &str, cause| Status::invalid(AUTHENTICATION, "TokenRequest", name, vec![cause]);
    let given = metadata::text(&request, "name").to_owned();
    if !given.is_empty() && given != name {
        let why = "must match the service account name if specified";
        return Err(invalid(name, Cause::invalid("metadata.name", format!("{given:?}"), why)));
    }
    let account = write.find(&write.key(name)).ok_or_else(|| write.not_found(name))?;
    let account = write.view.value(&account);
    let uid = metadata::text(&account, "uid");
    let expected = metadata::text(&request, "uid").to_owned();
    if !expected.is_empty() && expected != uid {
        let why =
            format!("the UID in the token request ({expected}) does not match the UID of the service account ({uid})");
        return Err(Status::conflict(AUTHENTICATION, "TokenRequest", name, &why));
    }
    let now = write.cluster.clock.now();
    metadata::set(&mut request, "name", name);
    metadata::set(&mut request, "uid", uid);
    metadata::set(&mut request, "creationTimestamp", Clock::in_seconds(now));
    metadata::remove(&mut request, "managedFields");
    if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
        request["spec"]["audiences"] = json!([ISSUER]);
    }
    let seconds = request["spec"]["expirationSeconds"].as_i64().unwrap_or(3600);
    request["spec"]["expirationSeconds"] = json!(seconds);
    if !LIFETIME.contains(&seconds) {
        let why = match seconds < *LIFETIME.start() {
            true => "may not specify a duration less than 10 minutes",
            false => "may not specify a duration larger than 2^32 seconds",
        };
        return Err(invalid("", Cause::invalid("spec.expirationSeconds", seconds, why)));
    }
    validate(write, &request)?;
    let mut scope = json!({
        "namespace": write.namespace.unwrap_or_default(), "serviceaccount": {"name": name, "uid": uid},
    });
    if request["spec"]["boundObjectRef"].is_object() {
        bind(write, name, &request["spec"]["boundObjectRef"], &mut scope)?;
    }
    let end = now.as_second().saturating_add(seconds);
    let claims = json!({
        "aud": request["spec"]["audiences"], "exp": end, "iat": now.as_second(), "nbf": now.as_second(),
        "jti": write.cluster.rng.uid(), "kubernetes.io": scope,
        "sub": format!("system:serviceaccount:{}:{name}", write.namespace.unwrap_or_default()),
    });
    let token = write.cluster.tokens.sign(claims);
    let token = token.ok_or_else(|| Status::internal_error("failed to generate token: no random numbers"))?;
    let expiration = jiff::Timestamp::from_second(end).unwrap_or(now);
    request["status"] = json!({"token": token, "expirationTimestamp": Clock::in_seconds(expiration)});
    let kind = Part::Token.body().ok_or_else(Status::unknown_resource)?;
    Ok(Reply::new(201, Content::Document(encode_as_is(kind, &request))))
}

/// Adds the object that a token is bound to, which must exist, to the claims.
fn bind(write: &Write<'_>, account: &str, reference: &Value, scope: &mut Value) -> Result<(), Status> {
    let text = |part: &str| reference[part].as_str().unwrap_or_default();
    let (version, kind, name) = (text("apiVersion"), text("kind"), text("name"));
    let (plural, namespace) = match (version.contains('/'), kind) {
        (false, "Pod") => ("pods", write.namespace),
        (false, "Secret") => ("secrets", write.namespace),
        (false, "Node") => ("nodes", None),
        _ => {
            let group = version.split_once('/').map_or_else(|| format!("/{version}"), |_| version.to_owned());
            return Err(Status::bad_request(format!("cannot bind token to object of type {group}, Kind={kind}")));
        }
    };
    let object = find(write.cluster, plural, namespace, name).ok_or_else(|| Status::not_found("", plural, name))?;
    let described =
        |object: &Value| json!({"name": metadata::text(object, "name"), "uid": metadata::text(object, "uid")});
    if kind == "Pod" {
        if object["spec"]["serviceAccountName"] != account {
            let why = format!(
                "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
            );
            return Err(Status::bad_request(why));
        }
        let node = object["spec"]["nodeName"].as_str().unwrap_or_default();
        if !node.is_empty() {
            scope["node"] =
                find(write.cluster, "nodes", None, node).map_or_else(|| json!({"name": node}), |node| described(&node));
        }
    }
    let (expected, found) = (text("uid"), metadata::text(&object, "uid"));
    if !expected.is_empty() && expected != found {
        let why = format!(
            "the UID in the bound object reference ({expected}) does not match the UID in record. \
             The object might have been deleted and then recreated"
        );
        return Err(Status::conflict("", kind, name, &why));
    }
    scope[kind.to_lowercase()] = described(&object);
    Ok(())
}
