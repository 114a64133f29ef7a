//! Request bodies: from bytes to an object of a kind, or the real server's words for why not.

mod duplicates;
mod go_error;

use base64::Engine as _;
use serde_json::Value;

pub(crate) use self::duplicates::parse;
pub(crate) use self::go_error::name_of;
use super::defaults;
use crate::api::write_options::FieldValidation;
use crate::encoding::json;
use crate::http::status::{Cause, Status};
use crate::kinds::{self, Kind, Registry};

/// How deep objects may nest: what is stored must be read again, and the parser has its limit.
const DEEPEST: usize = 100;

/// Where the real server's table of kinds stands in its source, which some failures tell.
pub(crate) const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// An object that a client sent, in the form its kind is stored in.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub(crate) object: Value,
    /// What the client is to be told about fields it sent in vain.
    pub(crate) warnings: Vec<String>,
}

/// Reads a body as an object of a kind.
///
/// # Errors
///
/// 400 for what is no such object, 422 for a custom resource of another kind.
pub(crate) fn decode(
    registry: &Registry,
    kind: &Kind,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let (object, duplicates) = parse(body).map_err(|why| {
        unrecognized(&kind.kind, &format!("couldn't get version/kind; json parse error: {why}"), body)
    })?;
    // Go takes null for an object that says nothing.
    let object = if object.is_null() { Value::Object(serde_json::Map::new()) } else { object };
    check_type(registry, kind, &object, body)?;
    conform(kind, object, &duplicates, validation)
}

/// Brings an object into its kind's form, with what there is to say about its fields.
///
/// # Errors
///
/// 400 for values of wrong types and, if the client wants it so, for unknown and duplicate fields.
pub(crate) fn conform(
    kind: &Kind,
    mut object: Value,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let warnings = prune(kind, &mut object, duplicates, validation)
        .map_err(|why| Status::bad_request(format!("{} cannot be handled as a {}: {why}", named(kind), kind.kind)))?;
    Ok(Decoded { object, warnings })
}

/// The same for the outcome of a patch, whose failures are told in other words.
pub(crate) fn conform_patched(kind: &Kind, mut object: Value, validation: FieldValidation) -> Result<Decoded, Status> {
    let before = object.clone();
    let warnings = prune(kind, &mut object, &[], validation).map_err(|why| {
        let shown = json::encode_sorted(&Value::String(String::from_utf8_lossy(&json::encode_sorted(&before)).into()));
        let shown = String::from_utf8_lossy(&shown).into_owned();
        Status::invalid("", "", "", vec![Cause::invalid("patch", shown, why)])
    })?;
    Ok(Decoded { object, warnings })
}

fn prune(
    kind: &Kind,
    object: &mut Value,
    duplicates: &[String],
    validation: FieldValidation,
) -> Result<Vec<String>, String> {
    if depth(object) > DEEPEST {
        return Err("exceeded max depth".to_owned());
    }
    let unknown = kinds::prune(kind, object).map_err(|problem| problem.to_string())?;
    let mut unknown: Vec<String> = unknown.iter().map(ToString::to_string).collect();
    if let Some(structure) = &kind.structure {
        unknown.extend(structure.prune(object).iter().map(|path| format!("unknown field \"{path}\"")));
        structure.fill(object);
    }
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(serde_json::Map::new());
    }
    if kind.kind == "Secret" && kind.group.is_empty() {
        store_strings(object);
    }
    defaults::fill(kind, object);
    let found = || unknown.iter().cloned().chain(duplicates.iter().map(|at| format!("duplicate field \"{at}\"")));
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(found().collect()),
        FieldValidation::Strict if unknown.is_empty() && duplicates.is_empty() => Ok(Vec::new()),
        FieldValidation::Strict => Err(format!("strict decoding error: {}", found().collect::<Vec<_>>().join(", "))),
    }
}

/// The plain strings of a secret are for writing only: they are kept as data.
fn store_strings(secret: &mut Value) {
    let Some(Value::Object(strings)) = secret.as_object_mut().and_then(|secret| secret.remove("stringData")) else {
        return;
    };
    for (name, text) in strings {
        let text = text.as_str().unwrap_or_default();
        secret["data"][name] = base64::engine::general_purpose::STANDARD.encode(text).into();
    }
}

/// How deep a value nests.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Whether the object says that it is of this kind. Built-in kinds need not say anything.
fn check_type(registry: &Registry, kind: &Kind, object: &Value, body: &[u8]) -> Result<(), Status> {
    let Value::Object(map) = object else {
        let why = format!("couldn't get version/kind; json parse error: {}", no_object(object));
        return Err(unrecognized(&kind.kind, &why, body));
    };
    let said = |key: &str| match map.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => {
            let found = name_of(other);
            let why = format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field .{key} \
                 of type string"
            );
            Err(unrecognized(&kind.kind, &why, body))
        }
    };
    let (said_version, said_kind) = (said("apiVersion")?, said("kind")?);
    match kind.is_custom() {
        true => check_custom_type(kind, said_version, said_kind, object, body),
        false => check_built_in_type(registry, kind, said_version, said_kind),
    }
}

/// What is wrong with a body that is no object.
pub(crate) fn no_object(value: &Value) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type struct \
         {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        name_of(value)
    )
}

fn check_custom_type(kind: &Kind, version: &str, said: &str, object: &Value, body: &[u8]) -> Result<(), Status> {
    let text = String::from_utf8_lossy(body);
    if said.is_empty() {
        return Err(unrecognized(&kind.kind, &format!("Object 'Kind' is missing in '{text}'"), body));
    }
    if version.is_empty() {
        let why = format!(
            "{said} in version \"\" cannot be handled as a {}: Object 'apiVersion' is missing in '{text}'",
            kind.kind
        );
        return Err(Status::bad_request(why));
    }
    check_version(kind, version)?;
    if said != kind.kind {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let cause = Cause::invalid("kind", format!("{said:?}"), format!("must be {}", kind.kind));
        return Err(Status::invalid(&kind.group, said, name, vec![cause]));
    }
    Ok(())
}

fn check_built_in_type(registry: &Registry, kind: &Kind, version: &str, said: &str) -> Result<(), Status> {
    let version = if version.is_empty() { kind.api_version() } else { version };
    let said = if said.is_empty() { &kind.kind } else { said };
    if version == kind.api_version() && said == kind.kind {
        return Ok(());
    }
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let refused = |why: String| {
        Status::bad_request(format!("{said} in version {short:?} cannot be handled as a {}: {why}", kind.kind))
    };
    let known = |name: &str| registry.by_kind(group, short, name).filter(|known| !known.is_custom());
    match known(said).or_else(|| said.strip_suffix("List").and_then(known)) {
        None => Err(refused(format!("no kind {said:?} is registered for version {version:?} in scheme \"{SCHEME}\""))),
        Some(other) if other.group == kind.group && said == kind.kind => check_version(kind, version),
        Some(other) => {
            let package = |group: &str| match group.split('.').next() {
                None | Some("") => "core".to_owned(),
                Some(package) => package.to_owned(),
            };
            Err(refused(format!(
                "converting ({}.{said}) to ({}.{}): unknown conversion",
                other.version,
                package(&kind.group),
                kind.kind
            )))
        }
    }
}

fn check_version(kind: &Kind, version: &str) -> Result<(), Status> {
    if version == kind.api_version() {
        return Ok(());
    }
    let expected = kind.api_version();
    let why = format!("the API version in the data ({version}) does not match the expected API version ({expected})");
    Err(Status::bad_request(why))
}

fn named(kind: &Kind) -> String {
    format!("{} in version {:?}", kind.kind, kind.version)
}

/// 400 for what cannot be told to be of any kind.
pub(crate) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> Status {
    let summary = summary(body);
    Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({summary})"))
}

/// The beginning of a body, as failures quote it.
fn summary(body: &[u8]) -> String {
    const LONGEST: usize = 30;
    let start = &body[..body.len().min(LONGEST)];
    let rest = if body.len() > LONGEST { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{rest}", String::from_utf8_lossy(start)),
        Some(_) => {
            let hex: String = start.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{hex}{rest}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configmap(body: &str, validation: FieldValidation) -> Result<Decoded, Status> {
        let registry = Registry::new();
        let kind = registry.find("", "v1", "configmaps").unwrap();
        decode(&registry, &kind, body.as_bytes(), validation)
    }

    #[test]
    fn a_built_in_kind_need_not_be_named_but_not_be_another() {
        assert!(configmap("{}", FieldValidation::Warn).is_ok());
        let secret = configmap(r#"{"kind":"Secret","apiVersion":"v1"}"#, FieldValidation::Warn).unwrap_err();
        assert!(secret.message().starts_with("Secret in version \"v1\" cannot be handled as a ConfigMap: "));
    }

    #[test]
    fn what_is_no_json_is_told_in_gos_words() {
        let told = |body| configmap(body, FieldValidation::Warn).unwrap_err().message().to_owned();
        assert_eq!(
            told(""),
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: \
             unexpected end of JSON input (<empty>)"
        );
        assert!(told("{x").contains("invalid character 'x' looking for beginning of object key string ({x)"));
        assert!(told("[]").contains("cannot unmarshal array into Go value of type struct"));
    }

    #[test]
    fn unknown_and_duplicate_fields_are_warned_of_or_refused() {
        let body = r#"{"bogus":1,"data":{"a":"1","a":"2"}}"#;
        let warned = configmap(body, FieldValidation::Warn).unwrap();
        assert_eq!(warned.warnings, ["unknown field \"bogus\"", "duplicate field \"data.a\""]);
        assert_eq!(warned.object["data"]["a"], "2");
        assert_eq!(
            configmap(body, FieldValidation::Strict).unwrap_err().message(),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"bogus\", \
             duplicate field \"data.a\""
        );
        assert!(configmap(body, FieldValidation::Ignore).unwrap().warnings.is_empty());
    }
}
