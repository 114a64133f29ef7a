//! Subresources whose bodies are of another kind than the object.
//!
//! Those that change a part of the object are updates, see `verbs/update` and `admission/parts`.

pub(crate) mod binding;
pub(crate) mod eviction;
pub(crate) mod scale;
pub(crate) mod token;

use serde_json::Value;

use super::write::Write;
use crate::admission::decode::Decoded;
use crate::controllers::namespaces;
use crate::http::reply::{Content, Reply};
use crate::http::status::Status;
use crate::kinds::Part;
use crate::webhooks::{Operation, Stage};

/// Creates a subresource of the object with this name.
///
/// # Errors
///
/// Those of the subresource, and 405 for one that cannot be created.
pub(crate) fn create(write: &Write<'_>, part: Part, name: &str, decoded: Decoded) -> Result<Reply, Status> {
    let Decoded { mut object, warnings } = decoded;
    namespaces::admit(write, name)?;
    write.place(&mut object)?;
    if let Some(changed) = write.pass((Stage::Mutation, Operation::Create), &object, &Value::Null)? {
        object = changed;
    }
    let reply = match part {
        Part::Binding => binding::bind(write, name, &object),
        Part::Eviction => eviction::evict(write, name, &object),
        Part::Token => token::issue(write, name, object),
        _ => Err(Status::method_not_allowed()),
    };
    reply.map(|reply| reply.with_warnings(warnings))
}

/// Passes a body through the validating webhooks.
fn validate(write: &Write<'_>, body: &Value) -> Result<(), Status> {
    write.pass((Stage::Validation, Operation::Create), body, &Value::Null).map(drop)
}

/// The reply without an object.
fn done() -> Reply {
    let status = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}"#;
    Reply::new(201, Content::Document(status.to_vec()))
}
