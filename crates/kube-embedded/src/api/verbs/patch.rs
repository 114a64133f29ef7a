//! Patches: JSON patch, JSON merge patch and strategic merge patch.

use http::HeaderMap;
use json_patch::{Patch as JsonPatch, PatchOperation};
use serde_json::Value;

use super::update::{check_name, replace};
use crate::admission::decode::{self, Decoded};
use crate::admission::metadata;
use crate::admission::strategic;
use crate::api::write::Write;
use crate::encoding::depth::{MAX_DEPTH, TOO_DEEP, depth, is_too_deep};
use crate::encoding::value::type_name;
use crate::encoding::yaml;
use crate::http::reply::Reply;
use crate::http::request_body::media_type;
use crate::http::status::{Details, Status};
use crate::kinds::{Kind, Part, Schema};

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
    ///
    /// # Errors
    ///
    /// 413 and 422 for a patch that cannot be applied, or that nests values too deep.
    pub(crate) fn apply(&self, kind: &Kind, object: &mut Value) -> Result<(), Status> {
        match self {
            Self::Strategic(patch) | Self::Merge(patch) | Self::Apply(patch) if is_too_deep(patch) => {
                return Err(decode::invalid_patch(object, TOO_DEEP));
            }
            Self::Strategic(patch) => {
                if let Schema::Typed(of) = kind.schema {
                    strategic::merge(object, patch.clone(), of).map_err(strategic::PatchError::into_status)?;
                }
            }
            Self::Merge(patch) | Self::Apply(patch) => json_patch::merge(object, patch),
            Self::Json(patch) => apply_json(patch, object).map_err(|refused| match refused {
                Unpatched::Refused(status) => status,
                Unpatched::Failed(_) => not_applicable(),
            })?,
        }
        Ok(())
    }
}

/// Why a JSON patch was not applied.
#[derive(Debug)]
pub(crate) enum Unpatched {
    /// It copies too much, or nests values too deep.
    Refused(Status),
    /// An operation does not fit the object.
    Failed(json_patch::PatchError),
}

/// Applies a JSON patch of a client or a webhook.
pub(crate) fn apply_json(patch: &JsonPatch, object: &mut Value) -> Result<(), Unpatched> {
    let mut copied = 0;
    for operation in &patch.0 {
        // Before the operation: a few copies of copies could nest the object deeper than the stack
        // permits, even to drop it.
        if depth_after(operation, object) > MAX_DEPTH {
            return Err(Unpatched::Refused(decode::invalid_patch(object, TOO_DEEP)));
        }
        if let PatchOperation::Copy(copy) = operation {
            copied += object.pointer(copy.from.as_str()).map_or(0, |value| value.to_string().len());
            check_copied(copied).map_err(Unpatched::Refused)?;
        }
        if is_null_test_of_missing(operation, object) {
            continue;
        }
        json_patch::patch(object, std::slice::from_ref(operation)).map_err(Unpatched::Failed)?;
    }
    Ok(())
}

/// The depth of what an operation puts into an object, at the place where it puts it.
fn depth_after(operation: &PatchOperation, object: &Value) -> usize {
    let (path, put) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Copy(copy) => (&copy.path, object.pointer(copy.from.as_str())),
        PatchOperation::Move(from) => (&from.path, object.pointer(from.from.as_str())),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return 0,
    };
    path.count() + put.map_or(0, depth)
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
pub(crate) fn patch(write: &Write<'_>, name: &str, patch: &Patch, part: Option<Part>) -> Result<Reply, Status> {
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
        if let Ok(reply) = replace(write, &existing, &old, object, part)? {
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
    if is_too_deep(&config) {
        return Err(Status::bad_request(format!("error decoding patch: {TOO_DEEP}")));
    }
    let found = type_name(&config);
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
    let found = type_name(&patch);
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
    let found = type_name(patch);
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

#[cfg(test)]
mod fuzz {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;
    use crate::api::write_options::FieldValidation;
    use crate::fuzzing::{Source, fuzz, recorded};
    use crate::kinds::Registry;

    const MEDIA: [&str; 4] = ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"];

    /// An object whose `data` takes any value, so that its kind does not limit its depth.
    fn revision() -> (std::sync::Arc<Kind>, Value) {
        let kind = Registry::new().find("apps", "v1", "controllerrevisions").expect("a built-in kind");
        let object = json!({"metadata": {"name": "a"}, "revision": 1, "data": {"a": {"b": [0]}}});
        (kind, object)
    }

    fn parse(kind: &Kind, media: &str, patch: &[u8]) -> Result<Patch, Status> {
        let mut headers = HeaderMap::new();
        let media = HeaderValue::from_str(&format!("application/{media}")).expect("a media type");
        headers.insert(http::header::CONTENT_TYPE, media);
        Patch::parse(kind, &headers, patch)
    }

    /// Applies a patch as a request does. The object may be too deep for its kind, but not for the
    /// stack.
    fn apply(kind: &Kind, object: &Value, patch: &Patch) -> Result<Decoded, Status> {
        let mut patched = object.clone();
        patch.apply(kind, &mut patched)?;
        assert!(depth(&patched) <= 2 * MAX_DEPTH, "{}", depth(&patched));
        decode::conform_patched(kind, patched, FieldValidation::Warn)
    }

    /// Operations of which each nests deeper what the one before made.
    fn doubling(copies: usize) -> Vec<u8> {
        let mut operations = vec![json!({"op": "add", "path": "/data/p", "value": {"q": {}}})];
        let mut deepest = "/q".to_owned();
        for _ in 0..copies {
            let below = format!("{deepest}/p");
            operations.push(json!({"op": "copy", "from": "/data/p", "path": format!("/data/p{below}")}));
            deepest = format!("{below}{deepest}");
        }
        json!(operations).to_string().into_bytes()
    }

    #[test]
    fn copies_that_double_the_depth_are_refused() {
        fuzz(1, |_| {
            let (kind, object) = revision();
            let patch = doubling(14);
            let refused = apply(&kind, &object, &parse(&kind, MEDIA[0], &patch).expect("a patch")).unwrap_err();
            assert_eq!(refused.code(), 422);
            assert!(refused.message().ends_with("exceeded max depth"), "{}", refused.message());
            apply(&kind, &object, &parse(&kind, MEDIA[0], &doubling(5)).expect("a patch")).expect("63 levels");
        });
    }

    fn operation(source: &mut Source) -> Value {
        let pieces = ["/data", "/a", "/b", "/p", "/0", "/-", "/metadata", "/q", "/~1", ""];
        let deep = "/a".repeat(120);
        let mut path = source.text(&pieces, 8);
        if source.one_in(20) {
            path.push_str(&deep);
        }
        let value = serde_json::from_slice(&source.nested(126)).unwrap_or(Value::Null);
        let op = *source.choose(&["add", "replace", "copy", "copy", "move", "test", "remove", "none"]);
        json!({"op": op, "path": path, "from": source.text(&pieces, 8), "value": value})
    }

    #[test]
    fn any_patch_is_applied_or_refused() {
        let (bodies, _) = recorded();
        fuzz(200, |source| {
            let (kind, object) = revision();
            let operations: Vec<Value> = (0..source.below(20)).map(|_| operation(source)).collect();
            let mut patch = match source.below(3) {
                0 => source.nested(300),
                1 => source.mutated(&bodies),
                _ => json!(operations).to_string().into_bytes(),
            };
            if source.one_in(3) {
                source.mutate(&mut patch, &bodies);
            }
            for media in MEDIA {
                if let Ok(patch) = parse(&kind, media, &patch) {
                    drop(apply(&kind, &object, &patch));
                }
            }
        });
    }

    #[test]
    fn any_strategic_patch_of_a_pod_is_applied_or_refused() {
        let (bodies, _) = recorded();
        let words = ["$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers"];
        fuzz(200, |source| {
            let kind = Registry::new().find("", "v1", "pods").expect("a built-in kind");
            let object = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}});
            let mut patch: Value = serde_json::from_slice(&source.mutated(&bodies)).unwrap_or_else(|_| json!({}));
            if !patch["spec"].is_object() {
                patch = json!({"metadata": {}, "spec": {"containers": [{"name": "c"}, {"name": "d"}]}});
            }
            let nested = serde_json::from_slice(&source.nested(120)).unwrap_or(json!(["c"]));
            for part in ["metadata", "spec"] {
                patch[part][*source.choose(&words)] = nested.clone();
            }
            if let Ok(patch) = parse(&kind, MEDIA[2], patch.to_string().as_bytes()) {
                drop(apply(&kind, &object, &patch));
            }
        });
    }
}
