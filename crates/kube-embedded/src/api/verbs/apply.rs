//! Server-side apply.

use serde_json::Value;

use super::create::create;
use super::update::{check_name, replace};
use crate::admission::decode::{self, Decoded};
use crate::admission::metadata;
use crate::admission::ownership::{self, Author, Conflicts};
use crate::api::write::{Authorship, Write};
use crate::http::reply::Reply;
use crate::http::status::Status;
use crate::kinds::{Kind, Part};

/// Applies a configuration.
///
/// # Errors
///
/// 400 for a body that is not a configuration of the kind, 404 for a subresource of a missing
/// object, 409 if other managers own fields that it changes, and all errors of a create and an
/// update.
pub(crate) fn apply(
    write: &Write<'_>,
    name: &str,
    config: &Value,
    part: Option<Part>,
    conflicts: Conflicts,
) -> Result<Reply, Status> {
    let kind = write.kind();
    let config = checked(kind, name, config)?;
    let Authorship::Manager(manager) = write.authorship else { return Err(Status::unknown_resource()) };
    let settled = write.settled();
    let key = write.key(name);
    loop {
        let time = write.cluster.clock.seconds();
        let author = Author { manager, time: &time, part };
        let existing = write.find(&key);
        let live = existing.as_ref().map(|existing| write.view.value(existing));
        let applied = ownership::apply(kind, author, live.as_ref(), &config, conflicts)?;
        let (Some(existing), Some(old)) = (existing, live) else {
            if part.is_some() {
                return Err(write.not_found(name));
            }
            let decoded = decode::conform(kind, applied, write.options.field_validation)?;
            match create(&settled, decoded) {
                // A concurrent request created the object: retry as an update.
                Err(status) if status.reason() == "AlreadyExists" && write.find(&key).is_some() => continue,
                made => return made,
            }
        };
        let Decoded { object, warnings } = decode::conform_patched(kind, applied, write.options.field_validation)?;
        if let Ok(reply) = replace(&settled, &existing, &old, object, part)? {
            return Ok(reply.with_warnings(warnings));
        }
    }
}

/// Checks a configuration for an object with this name, and adds the name if it is missing.
///
/// # Errors
///
/// 400 for another type or name, and for field managers.
pub(crate) fn checked(kind: &Kind, name: &str, config: &Value) -> Result<Value, Status> {
    check_type(kind, config)?;
    if !metadata::list(config, "managedFields").is_empty() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let mut config = config.clone();
    if metadata::text(&config, "name").is_empty() {
        metadata::set(&mut config, "name", name);
    }
    check_name(name, &config)?;
    Ok(config)
}

/// Checks `apiVersion` and `kind`, which a configuration must contain.
fn check_type(kind: &Kind, config: &Value) -> Result<(), Status> {
    let string_field = |part: &str| config[part].as_str().unwrap_or_default();
    let (version, name) = (string_field("apiVersion"), string_field("kind"));
    if version == kind.api_version() && name == kind.kind {
        return Ok(());
    }
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Err(Status::bad_request(format!("invalid object type: {group}/{version}, Kind={name}")))
}
