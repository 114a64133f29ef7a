//! `AdmissionReview`: what webhooks receive and answer.

use base64::Engine as _;
use json_patch::Patch;
use serde_json::{Value, json};

use super::gate::{Operation, Stage};
use crate::encoding::value::text;
use crate::http::status::{Cause, Details, Status};
use crate::kinds::Kind;

const API_VERSION: &str = "admission.k8s.io/v1";

/// A request to a webhook.
pub(super) struct Request<'r> {
    pub(super) uid: String,
    /// The kind in the version that the webhook asked for.
    pub(super) kind: &'r Kind,
    /// The kind in the version of the client's request.
    pub(super) asked: &'r Kind,
    /// The kind of the objects, if it is that of a subresource.
    pub(super) body_kind: Option<&'r Kind>,
    pub(super) subresource: &'r str,
    pub(super) name: &'r str,
    pub(super) namespace: Option<&'r str>,
    pub(super) operation: Operation,
    pub(super) user: &'r Value,
    pub(super) object: &'r Value,
    pub(super) old: &'r Value,
    pub(super) is_dry_run: bool,
}

impl Request<'_> {
    pub(super) fn to_value(&self) -> Value {
        let options = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => "DeleteOptions",
        };
        let mut request = json!({
            "uid": self.uid,
            "kind": kind_of(self.body_kind.unwrap_or(self.kind)),
            "resource": resource_of(self.kind),
            "requestKind": kind_of(self.body_kind.unwrap_or(self.asked)),
            "requestResource": resource_of(self.asked),
            "operation": self.operation.name(),
            "userInfo": self.user,
            "object": self.object,
            "oldObject": self.old,
            "dryRun": self.is_dry_run,
            "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"},
        });
        for (field, text) in [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace.unwrap_or_default()),
        ] {
            if !text.is_empty() {
                request[field] = text.into();
            }
        }
        request
    }
}

fn kind_of(kind: &Kind) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind})
}

fn resource_of(kind: &Kind) -> Value {
    json!({"group": kind.group, "version": kind.version, "resource": kind.plural})
}

pub(super) fn envelope(request: &Value) -> Value {
    json!({"kind": "AdmissionReview", "apiVersion": API_VERSION, "request": request})
}

/// Checks the type of what a webhook answered.
pub(super) fn check_type(review: &Value, api_version: &str, kind: &str) -> Result<(), String> {
    let (found_version, found_kind) = (text(&review["apiVersion"]), text(&review["kind"]));
    if (found_version, found_kind) == (api_version, kind) {
        return Ok(());
    }
    let slash = if found_version.contains('/') { "" } else { "/" };
    Err(format!(
        "expected webhook response of {api_version}, Kind={kind}, got {slash}{found_version}, Kind={found_kind}"
    ))
}

/// The answer of a webhook.
pub(super) struct Answer {
    /// The status of a refusal; empty if it has none.
    pub(super) refusal: Option<Value>,
    pub(super) patch: Option<Patch>,
    pub(super) warnings: Vec<String>,
}

impl Answer {
    /// Reads the answer to a request.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn read(review: &Value, request: &Value, stage: Stage) -> Result<Answer, String> {
        let response = &review["response"];
        if !response.is_object() {
            return Err("webhook response was absent".to_owned());
        }
        if response["uid"] != request["uid"] {
            let (expected, found) = (&request["uid"], response["uid"].as_str().unwrap_or_default());
            return Err(format!("expected response.uid={expected}, got {found:?}"));
        }
        check_type(review, API_VERSION, "AdmissionReview")?;
        let (patch, patch_type) = (text(&response["patch"]), text(&response["patchType"]));
        match (stage, patch.is_empty(), patch_type.is_empty()) {
            (Stage::Validation, false, _) => return Err("validating webhook may not return response.patch".to_owned()),
            (Stage::Validation, _, false) => {
                return Err("validating webhook may not return response.patchType".to_owned());
            }
            (_, false, true) => return Err("webhook returned response.patch but not response.patchType".to_owned()),
            (_, true, false) => return Err("webhook returned response.patchType but not response.patch".to_owned()),
            _ => {}
        }
        let refusal = (response["allowed"] != true).then(|| response["status"].clone());
        let patch = match patch {
            "" => None,
            patch => {
                let bytes = base64::engine::general_purpose::STANDARD.decode(patch).map_err(|why| why.to_string())?;
                Some(serde_json::from_slice(&bytes).map_err(|why| why.to_string())?)
            }
        };
        let warnings = response["warnings"].as_array().into_iter().flatten();
        let warnings = warnings.filter_map(Value::as_str).map(str::to_owned).collect();
        Ok(Answer { refusal, patch, warnings })
    }
}

/// The status of a request that a webhook refused.
pub(super) fn denied(webhook: &str, status: &Value) -> Status {
    let denied = format!("admission webhook {webhook:?} denied the request");
    let (message, reason) = (text(&status["message"]), text(&status["reason"]));
    let message = match (message, reason) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|code| *code >= 400);
    let refusal = Status::new(code.unwrap_or(400), "", message).with_reason(reason);
    match status["details"].as_object() {
        None => refusal,
        Some(details) => {
            let part = |name: &str| text(details.get(name).unwrap_or(&Value::Null)).to_owned();
            let causes = details.get("causes").and_then(Value::as_array).into_iter().flatten();
            let causes =
                causes.map(|cause| Cause::new("FieldValueInvalid", text(&cause["field"]), text(&cause["message"])));
            refusal.with_details(Details {
                name: part("name"),
                group: part("group"),
                kind: part("kind"),
                uid: part("uid"),
                causes: causes.collect(),
                retry_after_seconds: 0,
            })
        }
    }
}

#[cfg(test)]
mod fuzz {
    use base64::engine::general_purpose::STANDARD;

    use super::*;
    use crate::api::verbs::patch::{Unpatched, apply_json};
    use crate::fuzzing::fuzz;

    fn answer(patch: &[u8]) -> Value {
        json!({"kind": "AdmissionReview", "apiVersion": API_VERSION, "response": {
            "uid": "1", "allowed": true, "patchType": "JSONPatch", "patch": STANDARD.encode(patch), "warnings": ["w"],
            "status": {"code": 403, "message": "no", "details": {"causes": [{"field": "a"}]}},
        }})
    }

    #[test]
    fn any_answer_of_a_webhook_is_read_or_refused() {
        let request = json!({"uid": "1"});
        let patch = br#"[{"op":"add","path":"/a","value":{"b":[]}},{"op":"copy","from":"/a","path":"/a/b/-"},{"op":"test","path":"/a","value":null}]"#;
        let bodies = [answer(patch).to_string().into_bytes()];
        fuzz(300, |source| {
            let bytes = match source.one_in(2) {
                true => source.mutated(&bodies),
                false => answer(&source.mutated(&[patch.to_vec()])).to_string().into_bytes(),
            };
            let Ok(review) = serde_json::from_slice::<Value>(&bytes) else { return };
            let Ok(answer) = Answer::read(&review, &request, Stage::Mutation) else { return };
            if let Some(refusal) = &answer.refusal {
                drop(denied("w", refusal).to_json());
            }
            if let Some(patch) = &answer.patch {
                drop(apply_json(patch, &mut json!({"a": {"b": []}})));
            }
        });
    }

    #[test]
    fn a_patch_of_a_webhook_that_doubles_the_depth_is_refused() {
        let mut operations = vec![json!({"op": "add", "path": "/p", "value": {"q": {}}})];
        let mut deepest = "/q".to_owned();
        for _ in 0..14 {
            let below = format!("{deepest}/p");
            operations.push(json!({"op": "copy", "from": "/p", "path": format!("/p{below}")}));
            deepest = format!("{below}{deepest}");
        }
        let bytes = json!(operations).to_string().into_bytes();
        fuzz(1, |_| {
            let answer = Answer::read(&answer(&bytes), &json!({"uid": "1"}), Stage::Mutation);
            let patch = answer.ok().and_then(|answer| answer.patch).expect("a patch");
            let refused = apply_json(&patch, &mut json!({})).expect_err("it is too deep");
            assert!(matches!(refused, Unpatched::Refused(_)), "{refused:?}");
        });
    }
}
