//! Patches: JSON patch, JSON merge patch and strategic merge patch.

use http::HeaderMap;
use json_patch::{Patch as JsonPatch, PatchOperation};
use serde_json::Value;

use super::update::{Facet, check_name, replace};
use crate::admission::decode::{self, Decoded};
use crate::admission::metadata;
use crate::admission::strategic;
use crate::api::write::Write;
use crate::encoding::yaml;
use crate::http::reply::Reply;
use crate::http::request_body::media_type;
use crate::http::status::{Details, Status};
use crate::kinds::{Kind, Schema};

/// The maximum number of operations of a JSON patch.
const MAX_OPERATIONS: usize = 10_000;

/// The maximum number of bytes that the copy operations of a JSON patch may add.
const MAX_COPIED_BYTES: usize = 3 * 1024 * 1024;

/// A parsed patch.
#[derive(Debug)]
pub(crate) enum Patch {
    Json(JsonPatch),
    Merge(Value),
    /// Built-in kinds only: lists are merged by the rules of their fields.
    Strategic(Value),
    /// A configuration for server-side apply.
    Apply(Value),
}

impl Patch {
    /// Parses a patch.
    ///
    /// # Errors
    ///
    /// 415 for a patch type that the kind or this server does not support, 400 and 413 for invalid
    /// patches.
    pub(crate) fn parse(kind: &Kind, headers: &HeaderMap, bytes: &[u8]) -> Result<Self, Status> {
        match media_type(headers) {
            Some("application/json-patch+json") => json_patch(bytes).map(Self::Json),
            Some("application/merge-patch+json") => merge_patch(bytes).map(Self::Merge),
            Some("application/strategic-merge-patch+json") if !kind.is_custom() => {
                strategic_patch(bytes).map(Self::Strategic)
            }
            Some("application/apply-patch+yaml") => configuration(bytes).map(Self::Apply),
            _ => Err(unsupported(kind)),
        }
    }

    /// Applies the patch to an object.
    pub(crate) fn apply(&self, kind: &Kind, object: &mut Value) -> Result<(), Status> {
        match self {
            Self::Strategic(patch) => {
                if let Schema::Typed(of) = kind.schema {
                    strategic::merge(object, patch.clone(), of).map_err(strategic::PatchError::into_status)?;
                }
            }
            Self::Merge(patch) | Self::Apply(patch) => json_patch::merge(object, patch),
            Self::Json(patch) => {
                let mut copied = 0;
                for operation in &patch.0 {
                    if let PatchOperation::Copy(copy) = operation {
                        copied += object.pointer(copy.from.as_str()).map_or(0, |value| value.to_string().len());
                        check_copied(copied)?;
                    }
                    if is_null_test_of_missing(operation, object) {
                        continue;
                    }
                    json_patch::patch(object, std::slice::from_ref(operation)).map_err(|_| not_applicable())?;
                }
            }
        }
        Ok(())
    }
}

/// Whether an operation tests for null where a field is missing, which Go treats as equal.
fn is_null_test_of_missing(operation: &PatchOperation, object: &Value) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let path = test.path.as_str();
    let Some((parent, _)) = path.rsplit_once('/') else { return false };
    test.value.is_null() && object.pointer(path).is_none() && object.pointer(parent).is_some_and(Value::is_object)
}

/// Patches an object.
///
/// # Errors
///
/// 404 if it does not exist, 422 if the patch cannot be applied, and all errors of an update.
pub(crate) fn patch(write: &Write<'_>, name: &str, patch: &Patch, facet: Facet) -> Result<Reply, Status> {
    let key = write.key(name);
    loop {
        let existing = write.find(&key).ok_or_else(|| write.not_found(name))?;
        let old = write.view.value(&existing);
        let mut patched = old.clone();
        patch.apply(write.kind(), &mut patched)?;
        let Decoded { object, warnings } =
            decode::conform_patched(write.kind(), patched, write.options.field_validation)?;
        check_type(write.kind(), &object)?;
        check_name(name, &object)?;
        if let Ok(reply) = replace(write, &existing, &old, object, facet)? {
            return Ok(reply.with_warnings(warnings));
        }
        // A concurrent write changed the object: apply the patch to the new state.
    }
}

/// A patch must not change the type of an object. For built-in kinds a changed type is silently
/// corrected.
fn check_type(kind: &Kind, object: &Value) -> Result<(), Status> {
    if !kind.is_custom() {
        return Ok(());
    }
    let version = object["apiVersion"].as_str().unwrap_or_default();
    if version != kind.api_version() {
        let expected = kind.api_version();
        let why =
            format!("the API version in the data ({version}) does not match the expected API version ({expected})");
        return Err(Status::bad_request(why));
    }
    let given = object["kind"].as_str().unwrap_or_default();
    if given != kind.kind {
        let cause = crate::http::status::Cause::invalid("kind", format!("{given:?}"), format!("must be {}", kind.kind));
        return Err(Status::invalid(&kind.group, &kind.kind, metadata::text(object, "name"), vec![cause]));
    }
    Ok(())
}

fn merge_patch(bytes: &[u8]) -> Result<Value, Status> {
    let (patch, _) = decode::parse(bytes).map_err(|_| Status::bad_request("invalid JSON patch"))?;
    if patch.is_object() { Ok(patch) } else { Err(undecodable(&patch, "map[string]interface {}")) }
}

/// Parses a configuration in YAML. Most clients send JSON, which is a subset.
fn configuration(bytes: &[u8]) -> Result<Value, Status> {
    let config = match decode::parse(bytes) {
        Ok((config, _)) => config,
        Err(_) => yaml::read(bytes).map_err(|why| Status::bad_request(format!("error encoding patch: {why}")))?,
    };
    let found = decode::name_of(&config);
    let why = || {
        format!(
            "error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {found} into Go value of \
             type map[string]interface {{}}"
        )
    };
    if config.is_object() { Ok(config) } else { Err(Status::bad_request(why())) }
}

fn strategic_patch(bytes: &[u8]) -> Result<Value, Status> {
    let (patch, _) = decode::parse(bytes).map_err(|_| Status::bad_request("invalid JSON patch"))?;
    let found = decode::name_of(&patch);
    let why = || format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
    if patch.is_object() { Ok(patch) } else { Err(Status::bad_request(why())) }
}

fn json_patch(bytes: &[u8]) -> Result<JsonPatch, Status> {
    let (operations, _) = decode::parse(bytes).map_err(|_| Status::bad_request("invalid JSON patch"))?;
    let operations = match operations {
        Value::Array(operations) => operations,
        other => return Err(undecodable(&other, "[]handlers.jsonPatchOp")),
    };
    if operations.len() > MAX_OPERATIONS {
        let message = format!(
            "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(Status::new(413, "RequestEntityTooLarge", message));
    }
    let read: Result<Vec<PatchOperation>, _> = operations.into_iter().map(serde_json::from_value).collect();
    // An invalid operation gets the same error as one that cannot be applied.
    read.map(JsonPatch).map_err(|_| not_applicable())
}

fn not_applicable() -> Status {
    let message = "the server rejected our request due to an error in our request";
    Status::new(422, "Invalid", message).with_details(Details::default())
}

/// Limits the bytes that one patch may copy, because copies of copies can grow
/// without bound.
fn check_copied(bytes: usize) -> Result<(), Status> {
    if bytes <= MAX_COPIED_BYTES {
        return Ok(());
    }
    let message = format!(
        "Request entity too large: Unable to complete the copy, the accumulated size increase of copy is {bytes}, exceeding the \
         limit {MAX_COPIED_BYTES}"
    );
    Err(Status::new(413, "RequestEntityTooLarge", message))
}

fn undecodable(patch: &Value, go_type: &str) -> Status {
    let found = decode::name_of(patch);
    Status::bad_request(format!("error decoding patch: json: cannot unmarshal {found} into Go value of type {go_type}"))
}

fn unsupported(kind: &Kind) -> Status {
    if kind.is_custom() {
        let message = "the body of the request was in an unknown format - accepted media types include: \
                       application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
        return Status::new(415, "UnsupportedMediaType", message);
    }
    Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with_details(Details::default())
}
