//! The `scale` subresource: desired and current replicas of an object of any scalable kind.

use serde_json::{Value, json};

use crate::admission::decode;
use crate::admission::metadata;
use crate::admission::ownership::{self, Author, Conflicts};
use crate::api::verbs::apply::checked;
use crate::api::verbs::patch::Patch;
use crate::api::verbs::update::{check_name, replace};
use crate::api::write::{Authorship, Write};
use crate::encoding::depth::{MAX_DEPTH, TOO_DEEP};
use crate::encoding::json;
use crate::encoding::value::type_name;
use crate::http::reply::{Content, Reply};
use crate::http::status::{Cause, Status};
use crate::kinds::table::cells::words::{NoSelector, selector};
use crate::kinds::{self, Kind, Part, ScalePaths};
use crate::webhooks::{Operation, Stage};

/// The encoded scale of an object.
///
/// # Errors
///
/// 500 if its selector is invalid.
pub(crate) fn show(kind: &Kind, object: &Value) -> Result<Content, Status> {
    scale(kind, object).map(|scale| Content::Scale(encode(&scale)))
}

/// Sets the number of desired replicas.
///
/// # Errors
///
/// 400, 404, 409 and 422, as on the real server.
pub(crate) fn update(write: &Write<'_>, name: &str, body: &[u8]) -> Result<Reply, Status> {
    let (wanted, _) = decode::parse(body)
        .map_err(|why| Status::bad_request(format!("couldn't get version/kind; json parse error: {why}")))?;
    set(write, name, |_| Ok(wanted.clone()))
}

/// Patches the number of desired replicas.
///
/// # Errors
///
/// Those of an update, and those of a patch that cannot be applied.
pub(crate) fn patch(write: &Write<'_>, name: &str, patch: &Patch) -> Result<Reply, Status> {
    set(write, name, |scale| {
        let mut patched = scale.clone();
        patch.apply(write.kind(), &mut patched)?;
        Ok(patched)
    })
}

/// Applies a number of desired replicas. Their owner owns the field that they are written to.
///
/// # Errors
///
/// Those of an update, those of a configuration of another type, and 409 if other managers own a
/// different number.
pub(crate) fn apply(write: &Write<'_>, name: &str, config: &Value, conflicts: Conflicts) -> Result<Reply, Status> {
    let kind = write.kind();
    let Some(paths) = &kind.scale else { return Err(Status::unknown_resource()) };
    let Authorship::Manager(manager) = write.authorship else { return Err(Status::unknown_resource()) };
    let config = checked(kinds::scale(), name, config)?;
    let time = write.cluster.clock.seconds();
    let author = Author { manager, time: &time, part: Some(Part::Scale) };
    rescale(&write.settled(), name, |old, mut live| {
        ownership::to_scale(old, &paths.wanted, &mut live);
        let applied = ownership::apply(kinds::scale(), author, Some(&live), &config, conflicts)?;
        // The real server cannot apply a scale of a custom kind: it fails after it has found no
        // conflict.
        if kind.is_custom() {
            let namespace = metadata::text(&config, "namespace");
            return Err(Status::internal(format!(
                "failed to convert new object ({namespace}/{name}; autoscaling/v1, Kind=Scale) to proper version: \
                 request to convert CR to an invalid group/version: autoscaling/v1"
            )));
        }
        let mut new = old.clone();
        ownership::from_scale(kind, &mut new, &paths.wanted, &applied);
        Ok((applied, new))
    })
}

fn set(write: &Write<'_>, name: &str, change: impl Fn(&Value) -> Result<Value, Status>) -> Result<Reply, Status> {
    rescale(write, name, |old, scale| Ok((change(&scale)?, old.clone())))
}

/// Writes the replicas of a changed scale to the object. `change` returns the scale and the object
/// to write them to, from the current object and its scale.
fn rescale(
    write: &Write<'_>,
    name: &str,
    change: impl Fn(&Value, Value) -> Result<(Value, Value), Status>,
) -> Result<Reply, Status> {
    let kind = write.kind();
    let Some(paths) = &kind.scale else { return Err(Status::unknown_resource()) };
    if paths.wanted.len() > MAX_DEPTH {
        return Err(Status::internal(TOO_DEEP));
    }
    let key = write.key(name);
    loop {
        let existing = write.find(&key).ok_or_else(|| write.not_found(name))?;
        let old = write.view.value(&existing);
        let before = scale(kind, &old)?;
        let (mut wanted, mut new) = change(&old, before.clone())?;
        // Webhooks receive the scale, not the object.
        for stage in [Stage::Mutation, Stage::Validation] {
            if let Some(changed) = write.pass((stage, Operation::Update), &wanted, &before)? {
                wanted = changed;
            }
        }
        check_name(name, &wanted)?;
        let replicas = replicas(name, &wanted)?;
        match metadata::text(&wanted, "resourceVersion") {
            "" => metadata::set(&mut new, "resourceVersion", existing.revision().to_string()),
            version => metadata::set(&mut new, "resourceVersion", version),
        }
        *value_at(&mut new, &paths.wanted) = replicas.into();
        if let Ok(reply) = replace(write, &existing, &old, new, Some(Part::Scale))? {
            let content = match reply.content {
                Content::Object(object) => show(kind, &write.view.value(&object))?,
                Content::Unsaved(object) => show(kind, &object)?,
                other => other,
            };
            return Ok(Reply { content, ..reply });
        }
    }
}

fn replicas(name: &str, scale: &Value) -> Result<i64, Status> {
    let replicas = match &scale["spec"]["replicas"] {
        Value::Null => 0,
        Value::Number(number) if number.as_i64().is_some_and(|whole| i32::try_from(whole).is_ok()) => {
            number.as_i64().unwrap_or(0)
        }
        other => {
            let found = match other {
                Value::Number(number) => format!("number {number}"),
                other => type_name(other).to_owned(),
            };
            let why =
                format!("json: cannot unmarshal {found} into Go struct field ScaleSpec.spec.replicas of type int32");
            return Err(Status::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {why}")));
        }
    };
    if replicas >= 0 {
        return Ok(replicas);
    }
    let cause = Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
    Err(Status::invalid("autoscaling", "Scale", name, vec![cause]))
}

fn scale(kind: &Kind, object: &Value) -> Result<Value, Status> {
    let Some(ScalePaths { wanted, present, selector: by }) = &kind.scale else {
        return Err(Status::unknown_resource());
    };
    let found = |path: &[String]| path.iter().try_fold(object, |at, part| at.get(part)).unwrap_or(&Value::Null);
    let number = |path: &[String]| found(path).as_i64().unwrap_or(0);
    let selected = match found(by) {
        Value::String(text) => text.clone(),
        // A `ReplicationController` selects by plain labels.
        labels if kind.kind == "ReplicationController" => selector(&json!({"matchLabels": labels})).unwrap_or_default(),
        object => selector(object).map_err(|NoSelector| Status::internal("invalid label selector"))?,
    };
    let mut scale = json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {},
        "spec": {"replicas": number(wanted)},
        "status": {"replicas": number(present)},
    });
    if !selected.is_empty() {
        scale["status"]["selector"] = selected.into();
    }
    for part in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata::part(object, part) {
            scale["metadata"][part] = value.clone();
        }
    }
    Ok(scale)
}

/// Encodes a scale in the order of its Go struct.
fn encode(scale: &Value) -> Vec<u8> {
    let mut spec = scale["spec"].clone();
    // 0 is omitted.
    if spec["replicas"] == 0 {
        spec = json!({});
    }
    let mut out = br#"{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":"#.to_vec();
    out.extend_from_slice(&json::encode_metadata(&scale["metadata"]));
    out.extend_from_slice(br#","spec":"#);
    out.extend_from_slice(&json::encode_sorted(&spec));
    out.extend_from_slice(br#","status":"#);
    out.extend_from_slice(&json::encode_sorted(&scale["status"]));
    out.push(b'}');
    out
}

/// The value at a path, created if missing.
fn value_at<'v>(object: &'v mut Value, path: &[String]) -> &'v mut Value {
    path.iter().fold(object, |at, part| {
        if !at.is_object() {
            *at = json!({});
        }
        &mut at[part.as_str()]
    })
}
