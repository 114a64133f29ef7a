//! Conversion of custom resources by the webhook of their definition.
//!
//! Views convert where objects are read and written, which is synchronous. What a view needs and
//! does not know yet is noted; the request then calls the webhook and tries again. While something
//! is missing, nothing is stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::review;
use super::transport::Handlers;
use crate::admission::metadata;
use crate::encoding::depth::{TOO_DEEP, is_too_deep};
use crate::encoding::value::text;
use crate::http::status::Status;
use crate::kinds::Kind;
use crate::rng::Rng;

const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// The timeout of a conversion.
const TIMEOUT_SECONDS: u64 = 30;

/// How often a request waits for conversions. Other writes may force another round.
const MAX_ROUNDS: usize = 100;

/// What a conversion may change in the metadata.
const CONVERTED_METADATA: [&str; 2] = ["labels", "annotations"];

/// The conversions of one request.
#[derive(Debug)]
pub(crate) struct Conversions {
    webhook: Arc<Value>,
    handlers: Handlers,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Converted objects, by what was converted.
    known: HashMap<Arc<Question>, Value>,
    /// Noted once each, in the order in which the view needs them.
    missing: Vec<Missing>,
    missing_questions: HashSet<Arc<Question>>,
    rounds: usize,
}

/// A version, and an object without the metadata that a conversion keeps.
type Question = (String, String);

#[derive(Debug)]
struct Missing {
    question: Arc<Question>,
    object: Value,
    origin: Option<Origin>,
}

/// Where a stored object that is converted comes from.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) key: String,
    pub(crate) revision: u64,
}

/// Why objects could not be converted.
#[derive(Debug)]
pub(crate) struct Unconverted {
    pub(crate) why: String,
    /// The stored object; `None` for one that is to be stored.
    pub(crate) origin: Option<Origin>,
}

impl Conversions {
    /// The conversions of a request for a kind, if its definition has a webhook.
    pub(crate) fn of(kind: &Kind, handlers: &Handlers) -> Option<Arc<Conversions>> {
        let webhook = kind.conversion.clone()?;
        Some(Arc::new(Conversions { webhook, handlers: handlers.clone(), state: Mutex::default() }))
    }

    /// Converts an object to the version of a kind, or notes that the conversion is missing.
    pub(crate) fn convert(&self, to: &Kind, object: &mut Value, origin: Option<Origin>) {
        if object["apiVersion"] == to.api_version() {
            return;
        }
        let question = (to.api_version().to_owned(), content(object).to_string());
        let mut state = self.state.lock();
        if let Some(known) = state.known.get(&question) {
            let mut converted = known.clone();
            restore_metadata(&mut converted, object);
            *object = converted;
            return;
        }
        // What is to be stored was computed from what is missing, if anything is.
        let is_premature = origin.is_none() && !state.missing.is_empty();
        let question = Arc::new(question);
        if !is_premature && state.missing_questions.insert(question.clone()) {
            state.missing.push(Missing { question, object: object.clone(), origin });
        }
        drop(state);
        object["apiVersion"] = to.api_version().into();
    }

    /// Whether conversions are missing.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.state.lock().missing.is_empty()
    }

    /// Drops what was converted, for a watch that goes on.
    pub(crate) fn forget(&self) {
        *self.state.lock() = State::default();
    }

    /// Makes the missing conversions. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// What the webhook, or the call of it, failed at.
    pub(crate) async fn make(&self, rng: &Rng) -> Result<bool, Unconverted> {
        let missing = {
            let mut state = self.state.lock();
            state.rounds += 1;
            state.missing_questions.clear();
            std::mem::take(&mut state.missing)
        };
        if missing.is_empty() {
            return Ok(false);
        }
        let fail = |why: String| Unconverted { why, origin: missing[0].origin.clone() };
        if self.state.lock().rounds > MAX_ROUNDS {
            return Err(fail("the objects change faster than they are converted".to_owned()));
        }
        let mut versions: Vec<&str> = missing.iter().map(|missing| missing.question.0.as_str()).collect();
        versions.sort_unstable();
        versions.dedup();
        for version in versions {
            let some: Vec<&Missing> = missing.iter().filter(|missing| missing.question.0 == version).collect();
            let objects: Vec<&Value> = some.iter().map(|missing| &missing.object).collect();
            let converted = self.call(rng, version, &objects).await.map_err(|why| {
                let (group_version, kind) = type_of(objects[0]);
                fail(format!("conversion webhook for {group_version}, Kind={kind} {why}"))
            })?;
            let known = some.iter().map(|missing| missing.question.clone()).zip(converted);
            self.state.lock().known.extend(known);
        }
        Ok(true)
    }

    async fn call(&self, rng: &Rng, version: &str, objects: &[&Value]) -> Result<Vec<Value>, String> {
        let uid = rng.uid();
        let review = json!({
            "kind": "ConversionReview", "apiVersion": API_VERSION,
            "request": {"uid": uid, "desiredAPIVersion": version, "objects": objects},
        });
        let webhook = json!({"clientConfig": self.webhook["clientConfig"], "timeoutSeconds": TIMEOUT_SECONDS});
        let reply = self.handlers.call(&webhook, &review).await.map_err(|why| format!("failed: {why}"))?;
        let converted = answer(&reply, &uid).map_err(|why| format!("failed: {why}"))?;
        if converted.len() != objects.len() {
            return Err(format!("returned {} objects, expected {}", converted.len(), objects.len()));
        }
        for (converted, object) in converted.iter().zip(objects) {
            check_converted(converted, object, version)?;
        }
        Ok(converted)
    }
}

impl Unconverted {
    /// The failure of a request that reads or changes one object.
    pub(crate) fn into_status(self) -> Status {
        Status::internal(self.undecodable())
    }

    /// The failure of a request that gets or deletes one object.
    pub(crate) fn into_read_error(self) -> Status {
        match &self.origin {
            Some(Origin { key, .. }) => Status::internal_error(&self.corrupt(&format!("/{key}"))),
            None => self.into_status(),
        }
    }

    /// The failure of a list.
    pub(crate) fn into_list_error(self, kind: &Kind) -> Status {
        let Some(Origin { key, .. }) = &self.origin else { return self.into_status() };
        let path = format!("/registry/{key}");
        Status::unreadable_list(&kind.group, &kind.plural, &path, &self.corrupt(&path))
    }

    fn undecodable(&self) -> String {
        match &self.origin {
            Some(Origin { revision, .. }) => format!("object not decodable revision={revision}: {}", self.why),
            None => self.why.clone(),
        }
    }

    fn corrupt(&self, path: &str) -> String {
        let why = self.undecodable();
        format!("StorageError: corrupt object, Code: 7, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {why}")
    }
}

/// What a conversion depends on: not the metadata that differs between attempts of a request.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    if let Some(metadata) = content.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "labels" | "annotations"));
    }
    content
}

/// Copies the metadata of the original, but for labels and annotations.
fn restore_metadata(converted: &mut Value, original: &Value) {
    let mut restored = original["metadata"].clone();
    for part in CONVERTED_METADATA {
        match metadata::part(converted, part) {
            Some(value) => restored[part] = value.clone(),
            None => restored.as_object_mut().into_iter().for_each(|metadata| drop(metadata.remove(part))),
        }
    }
    converted["metadata"] = restored;
}

fn type_of(object: &Value) -> (&str, &str) {
    (text(&object["apiVersion"]), text(&object["kind"]))
}

fn answer(review: &Value, uid: &str) -> Result<Vec<Value>, String> {
    review::check_type(review, API_VERSION, "ConversionReview")?;
    let response = &review["response"];
    if !response.is_object() {
        return Err("no response provided".to_owned());
    }
    if response["uid"] != uid {
        return Err(format!("expected response.uid={uid:?}, got {:?}", text(&response["uid"])));
    }
    let (status, message) = (text(&response["result"]["status"]), text(&response["result"]["message"]));
    match (status, message) {
        ("Success", _) => Ok(response["convertedObjects"].as_array().cloned().unwrap_or_default()),
        (_, "") => Err(format!("response.result.status was '{status}', not 'Success'")),
        (_, message) => Err(message.to_owned()),
    }
}

fn check_converted(converted: &Value, original: &Value, version: &str) -> Result<(), String> {
    check_type(converted, original, version).map_err(|why| format!("returned invalid object at index 0: {why}"))?;
    check_identity(converted, original).map_err(|why| format!("returned invalid object: {why}"))?;
    check_metadata(converted).map_err(|why| format!("returned invalid metadata: {why}"))?;
    // What is stored is parsed again.
    if is_too_deep(converted) { Err(format!("returned invalid object: {TOO_DEEP}")) } else { Ok(()) }
}

fn check_type(converted: &Value, original: &Value, version: &str) -> Result<(), String> {
    let ((found, kind), (_, expected)) = (type_of(converted), type_of(original));
    if found != version {
        return Err(format!("invalid groupVersion (expected {version}, received {found})"));
    }
    if kind != expected {
        return Err(format!("invalid kind (expected {expected}, received {kind})"));
    }
    Ok(())
}

fn check_identity(converted: &Value, original: &Value) -> Result<(), String> {
    for (part, title) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (before, after) = (metadata::text(original, part), metadata::text(converted, part));
        if before != after {
            return Err(format!("must have the same {title}: {before} != {after}"));
        }
    }
    Ok(())
}

fn check_metadata(converted: &Value) -> Result<(), String> {
    if !converted["metadata"].is_object() {
        return Err("missing metadata in converted object".to_owned());
    }
    for part in CONVERTED_METADATA {
        let values = metadata::part(converted, part).map(|values| values.as_object());
        match values {
            None => {}
            Some(None) => return Err(format!("invalid metadata.{part} in converted object")),
            Some(Some(values)) => {
                if let Some((key, _)) = values.iter().find(|(_, value)| !value.is_string()) {
                    return Err(format!("metadata.{part}[{key}] must be a string in converted object"));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_answer_of_a_conversion_is_read_or_refused() {
        let object =
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "labels": {"a": "1"}}});
        let mut converted = object.clone();
        converted["apiVersion"] = "example.com/v2".into();
        let review = json!({"kind": "ConversionReview", "apiVersion": API_VERSION, "response": {
            "uid": "1", "result": {"status": "Success", "message": "m"}, "convertedObjects": [converted],
        }});
        let bodies = [review.to_string().into_bytes()];
        fuzz(500, |source| {
            let Ok(review) = serde_json::from_slice::<Value>(&source.mutated(&bodies)) else { return };
            let Ok(mut objects) = answer(&review, "1") else { return };
            for converted in &mut objects {
                if check_converted(converted, &object, "example.com/v2").is_ok() {
                    restore_metadata(converted, &object);
                    assert!(!is_too_deep(converted) && converted["metadata"]["name"] == "a");
                }
            }
        });
    }
}
