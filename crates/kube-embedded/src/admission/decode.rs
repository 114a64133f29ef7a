//! Decoding of request bodies into objects of a kind, with the real server's error messages.

mod fields;
mod go_error;

use base64::Engine as _;
use serde_json::Value;

pub(crate) use self::fields::parse;
use super::defaults;
use crate::admission::metadata;
use crate::api::write_options::FieldValidation;
use crate::encoding::depth::{MAX_DEPTH, TOO_DEEP, depth};
use crate::encoding::json;
use crate::encoding::value::type_name;
use crate::http::status::{Cause, Status};
use crate::kinds::{self, Kind, Registry};

/// How much deeper than the object itself its `managedFields` may be: they describe every field of
/// the object, and begin below the metadata.
const MANAGED_FIELDS_DEPTH: usize = 8;

/// The source position of the real server's scheme, which some error messages contain.
pub(crate) const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// An object from a client, in the form in which its kind is stored.
#[derive(Debug, Clone)]
pub(crate) struct Decoded {
    pub(crate) object: Value,
    /// Warnings for the client about unknown and duplicate fields.
    pub(crate) warnings: Vec<String>,
}

/// Decodes a body as an object of a kind.
///
/// # Errors
///
/// 400 for a body that is not such an object, 422 for a custom resource of another kind.
pub(crate) fn decode(
    registry: &Registry,
    kind: &Kind,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let (object, duplicates) = parse(body).map_err(|why| {
        unrecognized(&kind.kind, &format!("couldn't get version/kind; json parse error: {why}"), body)
    })?;
    // Go decodes null as an empty object.
    let object = if object.is_null() { Value::Object(serde_json::Map::new()) } else { object };
    check_type(registry, kind, &object, body)?;
    let forgets = forgets_managers(&object);
    let mut decoded = conform_from(kind, object, Source { body, duplicates: &duplicates }, validation)?;
    if forgets {
        metadata::set(&mut decoded.object, "managedFields", vec![Value::Object(serde_json::Map::new())]);
    }
    Ok(decoded)
}

/// Whether an object asks for the removal of all managers with an empty list. Such a list is lost
/// when the object is pruned; a list with an empty entry asks for the same.
fn forgets_managers(object: &Value) -> bool {
    metadata::part(object, "managedFields").and_then(Value::as_array).is_some_and(Vec::is_empty)
}

/// The text that an object was parsed from.
#[derive(Clone, Copy, Default)]
struct Source<'s> {
    body: &'s [u8],
    /// The reports of its duplicate fields.
    duplicates: &'s [String],
}

/// Prunes an object to the fields of its kind and fills in defaults.
///
/// # Errors
///
/// 400 for values of wrong types and, with strict field validation, for unknown fields.
pub(crate) fn conform(kind: &Kind, object: Value, validation: FieldValidation) -> Result<Decoded, Status> {
    conform_from(kind, object, Source::default(), validation)
}

fn conform_from(
    kind: &Kind,
    mut object: Value,
    source: Source<'_>,
    validation: FieldValidation,
) -> Result<Decoded, Status> {
    let warnings = prune(kind, &mut object, source, validation)
        .map_err(|why| Status::bad_request(format!("{} cannot be handled as a {}: {why}", named(kind), kind.kind)))?;
    Ok(Decoded { object, warnings })
}

/// Works as [`conform`] for the result of a patch, which has other error messages.
pub(crate) fn conform_patched(kind: &Kind, mut object: Value, validation: FieldValidation) -> Result<Decoded, Status> {
    let (before, forgets) = (object.clone(), forgets_managers(&object));
    let warnings =
        prune(kind, &mut object, Source::default(), validation).map_err(|why| invalid_patch(&before, &why))?;
    if forgets {
        metadata::set(&mut object, "managedFields", vec![Value::Object(serde_json::Map::new())]);
    }
    Ok(Decoded { object, warnings })
}

/// 422 for a patch of which the result, or the object before the operation that failed, is
/// `object`.
pub(crate) fn invalid_patch(object: &Value, why: &str) -> Status {
    let shown = json::encode_sorted(&Value::String(String::from_utf8_lossy(&json::encode_sorted(object)).into()));
    let shown = String::from_utf8_lossy(&shown).into_owned();
    Status::invalid("", "", "", vec![Cause::invalid("patch", shown, why)])
}

fn prune(
    kind: &Kind,
    object: &mut Value,
    source: Source<'_>,
    validation: FieldValidation,
) -> Result<Vec<String>, String> {
    check_depth(object)?;
    let unknown = kinds::prune(kind, object).map_err(|problem| problem.to_string())?;
    let mut unknown: Vec<String> = unknown.iter().map(|field| field.path().to_owned()).collect();
    if let Some(structure) = &kind.structure {
        unknown.extend(structure.prune(object).iter().map(ToString::to_string));
        structure.fill(object);
    }
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(serde_json::Map::new());
    }
    if kind.kind == "Secret" && kind.group.is_empty() {
        store_strings(object);
    }
    defaults::fill(kind, object);
    let found = match validation {
        FieldValidation::Ignore => Vec::new(),
        _ if unknown.is_empty() && source.duplicates.is_empty() => Vec::new(),
        // The real server decodes into a type at once, but a custom resource first as it is.
        _ if !kind.is_custom() && !source.body.is_empty() => fields::report(source.body, &unknown),
        _ => {
            let unknown = unknown.iter().map(|path| format!("unknown field \"{path}\""));
            source.duplicates.iter().cloned().chain(unknown).collect()
        }
    };
    if validation == FieldValidation::Strict && !found.is_empty() {
        return Err(format!("strict decoding error: {}", found.join(", ")));
    }
    Ok(found)
}

/// Moves the write-only `stringData` of a secret into `data`.
fn store_strings(secret: &mut Value) {
    let Some(Value::Object(strings)) = secret.as_object_mut().and_then(|secret| secret.remove("stringData")) else {
        return;
    };
    for (name, text) in strings {
        let text = text.as_str().unwrap_or_default();
        secret["data"][name] = base64::engine::general_purpose::STANDARD.encode(text).into();
    }
}

/// Checks the nesting depth of an object. Its `managedFields` have a limit of their own: an object
/// that was stored can be sent back with them.
fn check_depth(object: &mut Value) -> Result<(), String> {
    let managed = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("managedFields")).map(Value::take);
    let is_too_deep = depth(object) > MAX_DEPTH
        || managed.as_ref().is_some_and(|managed| depth(managed) > MAX_DEPTH + MANAGED_FIELDS_DEPTH);
    if let Some(managed) = managed {
        metadata::set(object, "managedFields", managed);
    }
    if is_too_deep { Err(TOO_DEEP.to_owned()) } else { Ok(()) }
}

/// Checks that `apiVersion` and `kind` match the requested kind. Built-in kinds may omit them.
fn check_type(registry: &Registry, kind: &Kind, object: &Value, body: &[u8]) -> Result<(), Status> {
    let Value::Object(map) = object else {
        let why = format!("couldn't get version/kind; json parse error: {}", no_object(object));
        return Err(unrecognized(&kind.kind, &why, body));
    };
    let given = |key: &str| match map.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(other) => {
            let found = type_name(other);
            let why = format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go struct field .{key} \
                 of type string"
            );
            Err(unrecognized(&kind.kind, &why, body))
        }
    };
    let (given_version, given_kind) = (given("apiVersion")?, given("kind")?);
    match kind.is_custom() {
        true => check_custom_type(kind, given_version, given_kind, object, body),
        false => check_built_in_type(registry, kind, given_version, given_kind),
    }
}

/// The error message for a body that is not a JSON object.
pub(crate) fn no_object(value: &Value) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type struct \
         {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
        type_name(value)
    )
}

fn check_custom_type(kind: &Kind, version: &str, given: &str, object: &Value, body: &[u8]) -> Result<(), Status> {
    let text = String::from_utf8_lossy(body);
    if given.is_empty() {
        return Err(unrecognized(&kind.kind, &format!("Object 'Kind' is missing in '{text}'"), body));
    }
    if version.is_empty() {
        let why = format!(
            "{given} in version \"\" cannot be handled as a {}: Object 'apiVersion' is missing in '{text}'",
            kind.kind
        );
        return Err(Status::bad_request(why));
    }
    check_version(kind, version)?;
    if given != kind.kind {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let cause = Cause::invalid("kind", format!("{given:?}"), format!("must be {}", kind.kind));
        return Err(Status::invalid(&kind.group, given, name, vec![cause]));
    }
    Ok(())
}

fn check_built_in_type(registry: &Registry, kind: &Kind, version: &str, given: &str) -> Result<(), Status> {
    let version = if version.is_empty() { kind.api_version() } else { version };
    let given = if given.is_empty() { &kind.kind } else { given };
    if version == kind.api_version() && given == kind.kind {
        return Ok(());
    }
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let refused = |why: String| {
        Status::bad_request(format!("{given} in version {short:?} cannot be handled as a {}: {why}", kind.kind))
    };
    let known = |name: &str| registry.by_kind(group, short, name).filter(|known| !known.is_custom());
    match known(given).or_else(|| given.strip_suffix("List").and_then(known)) {
        None => Err(refused(format!("no kind {given:?} is registered for version {version:?} in scheme \"{SCHEME}\""))),
        Some(other) if other.group == kind.group && given == kind.kind => check_version(kind, version),
        Some(other) => {
            let package = |group: &str| match group.split('.').next() {
                None | Some("") => "core".to_owned(),
                Some(package) => package.to_owned(),
            };
            Err(refused(format!(
                "converting ({}.{given}) to ({}.{}): unknown conversion",
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

/// 400 for a body whose type cannot be recognized.
pub(crate) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> Status {
    let summary = summary(body);
    Status::bad_request(format!("the object provided is unrecognized (must be of type {kind}): {why} ({summary})"))
}

/// The beginning of a body, as error messages quote it.
fn summary(body: &[u8]) -> String {
    const MAX_BYTES: usize = 30;
    let start = &body[..body.len().min(MAX_BYTES)];
    let rest = if body.len() > MAX_BYTES { " ..." } else { "" };
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
    fn what_is_no_json_is_reported_in_gos_words() {
        let message = |body| configmap(body, FieldValidation::Warn).unwrap_err().message().to_owned();
        assert_eq!(
            message(""),
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: \
             unexpected end of JSON input (<empty>)"
        );
        assert!(message("{x").contains("invalid character 'x' looking for beginning of object key string ({x)"));
        assert!(message("[]").contains("cannot unmarshal array into Go value of type struct"));
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

    #[test]
    fn fields_are_reported_in_the_order_of_the_document() {
        let warnings = |body| configmap(body, FieldValidation::Warn).unwrap().warnings;
        let body = r#"{"data":{"b":"1","b":"2"},"zeta":{"a":1,"a":2},"alpha":1,"alpha":2,"metadata":{"x":1}}"#;
        assert_eq!(
            warnings(body),
            [
                "duplicate field \"data.b\"",
                "unknown field \"zeta\"",
                "unknown field \"alpha\"",
                "unknown field \"metadata.x\""
            ]
        );
        let many: String = (0..1_000).map(|n| format!(r#""f{n}":1,"f{n}":2,"#)).collect();
        assert_eq!(warnings(&format!("{{{many}\"data\":{{}}}}")).len(), 100);
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::encoding::depth::is_too_deep;
    use crate::fuzzing::{fuzz, recorded};

    #[test]
    fn any_body_is_decoded_or_refused() {
        let (bodies, _) = recorded();
        let registry = Registry::new();
        let kinds: Vec<_> = registry.kinds().cloned().collect();
        fuzz(300, |source| {
            let body = if source.one_in(4) { source.nested(300) } else { source.mutated(&bodies) };
            let kind = source.choose(&kinds);
            if let Ok(decoded) = decode(&registry, kind, &body, FieldValidation::Warn) {
                assert!(!is_too_deep(&decoded.object));
                json::encode_as_is(kind, &decoded.object);
            }
        });
    }

    #[test]
    fn an_object_may_be_as_deep_as_the_limit_with_its_managers() {
        fuzz(1, |_| {
            let registry = Registry::new();
            let kind = registry.find("apps", "v1", "controllerrevisions").expect("a built-in kind");
            let deep = |depth| (1..depth).fold(serde_json::json!({}), |inner, _| serde_json::json!({"a": inner}));
            let sent = |depth, managed| serde_json::json!({"revision": 1, "data": deep(depth), "metadata": {"managedFields": [{"fieldsV1": deep(managed)}]}});
            for (depth, managed, fits) in [(99, 1, true), (99, 100, true), (100, 1, false), (1, 125, false)] {
                let body = sent(depth, managed).to_string();
                let decoded = decode(&registry, &kind, body.as_bytes(), FieldValidation::Warn);
                assert_eq!(decoded.is_ok(), fits, "{depth}, {managed}: {decoded:?}");
            }
        });
    }
}
