//! Delete options: the body or the query parameters of a DELETE request.

use serde_json::Value;

use super::write_options::{DryRun, dry_run};
use crate::admission::decode;
use crate::admission::metadata::{self, FOREGROUND, ORPHAN};
use crate::encoding::value::type_name;
use crate::http::query::Query;
use crate::http::status::{Cause, Status};
use crate::kinds::{Behaviour, Kind, Propagation};

/// The options of a deletion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: DryRun,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    /// The deprecated alternative to `policy`.
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) policy: Option<Policy>,
}

/// The propagation policy: how dependents are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Dependents are deleted first.
    Foreground,
    /// Dependents are deleted afterwards.
    Background,
    /// Dependents stay, without their owner reference.
    Orphan,
}

impl DeleteOptions {
    /// Parses the body, or the query if the body is empty; the two are never combined.
    ///
    /// # Errors
    ///
    /// 400, 422 or 500 for invalid options.
    pub(crate) fn parse(query: &Query, body: &[u8]) -> Result<Self, Status> {
        let mut causes = Vec::new();
        let mut policy = String::new();
        let mut options = if body.is_empty() {
            policy.push_str(query.text("propagationPolicy"));
            Self {
                dry_run: dry_run(query.all("dryRun"), &mut causes),
                grace_seconds: query.integer("gracePeriodSeconds")?,
                orphan_dependents: query.get("orphanDependents").map(|_| query.flag("orphanDependents")),
                ..Self::default()
            }
        } else {
            Self::from_body(body, &mut policy, &mut causes)?
        };
        options.policy = match policy.as_str() {
            "" => None,
            "Foreground" => Some(Policy::Foreground),
            "Background" => Some(Policy::Background),
            "Orphan" => Some(Policy::Orphan),
            other => {
                let supported = "\"Foreground\", \"Background\", \"Orphan\", \"nil\"";
                causes.insert(0, Cause::unsupported("propagationPolicy", format!("{other:?}"), supported));
                None
            }
        };
        if options.orphan_dependents.is_some() && !policy.is_empty() {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            causes.insert(0, Cause::invalid("propagationPolicy", format!("{policy:?}"), why));
        }
        if causes.is_empty() {
            return Ok(options);
        }
        Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", causes))
    }

    /// The options in the body of an eviction.
    ///
    /// # Errors
    ///
    /// Those of a body.
    pub(crate) fn of(options: &Value) -> Result<Self, Status> {
        Self::parse(&Query::default(), options.to_string().as_bytes())
    }

    fn from_body(body: &[u8], policy: &mut String, causes: &mut Vec<Cause>) -> Result<Self, Status> {
        let (object, _) = decode::parse(body)
            .map_err(|why| Status::bad_request(format!("couldn't get version/kind; json parse error: {why}")))?;
        let wrong = |value: &Value, field: &str, of: &str| {
            let found = type_name(value);
            Status::bad_request(format!(
                "json: cannot unmarshal {found} into Go struct field DeleteOptions.{field} of type {of}"
            ))
        };
        if !matches!(object, Value::Object(_) | Value::Null) {
            let why = decode::no_object(&object);
            return Err(Status::bad_request(format!("couldn't get version/kind; json parse error: {why}")));
        }
        let (kind, version) = (object["kind"].as_str().unwrap_or_default(), object["apiVersion"].as_str());
        if !matches!(kind, "" | "DeleteOptions") {
            let version = version.unwrap_or("v1");
            let why =
                format!("no kind {kind:?} is registered for version {version:?} in scheme \"{}\"", decode::SCHEME);
            return Err(Status::bad_request(why));
        }
        let text = |value: &Value, field: &str| match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            other => Err(wrong(other, field, "string")),
        };
        policy.push_str(&text(&object["propagationPolicy"], "propagationPolicy")?.unwrap_or_default());
        let preconditions = &object["preconditions"];
        if !matches!(preconditions, Value::Null | Value::Object(_)) {
            return Err(wrong(preconditions, "preconditions", "v1.Preconditions"));
        }
        let dry_runs: Vec<&str> = match &object["dryRun"] {
            Value::Null => Vec::new(),
            Value::Array(values) => values.iter().map(|value| value.as_str().unwrap_or_default()).collect(),
            other => return Err(wrong(other, "dryRun", "[]string")),
        };
        Ok(Self {
            dry_run: dry_run(dry_runs.into_iter(), causes),
            grace_seconds: match &object["gracePeriodSeconds"] {
                Value::Null => None,
                seconds => Some(seconds.as_i64().ok_or_else(|| wrong(seconds, "gracePeriodSeconds", "int64"))?),
            },
            uid: text(&preconditions["uid"], "preconditions.uid")?,
            resource_version: text(&preconditions["resourceVersion"], "preconditions.resourceVersion")?,
            orphan_dependents: match &object["orphanDependents"] {
                Value::Null => None,
                flag => Some(flag.as_bool().ok_or_else(|| wrong(flag, "orphanDependents", "bool"))?),
            },
            policy: None,
        })
    }

    /// Whether the client sent no propagation policy.
    pub(crate) fn leaves_dependents_open(&self) -> bool {
        self.policy.is_none() && self.orphan_dependents.is_none()
    }

    /// Checks the uid and resource version in the preconditions.
    ///
    /// # Errors
    ///
    /// 409, which names the Kind instead of the resource.
    pub(crate) fn check_preconditions(&self, kind: &Kind, object: &Value) -> Result<(), Status> {
        let conflict = |what: &str, expected: &str, found: &str, guess: &str| {
            let why = format!(
                "the {what} in the precondition ({expected}) does not match the {what} in record ({found}). \
                 The object might have been {guess}"
            );
            Err(Status::conflict(&kind.group, &kind.kind, metadata::text(object, "name"), &why))
        };
        let uid = metadata::text(object, "uid");
        if let Some(expected) = self.uid.as_deref().filter(|expected| *expected != uid) {
            return conflict("UID", expected, uid, "deleted and then recreated");
        }
        let version = metadata::text(object, "resourceVersion");
        if let Some(expected) = self.resource_version.as_deref().filter(|expected| *expected != version) {
            return conflict("ResourceVersion", expected, version, "modified");
        }
        Ok(())
    }

    /// The finalizers of the object after this deletion request.
    pub(crate) fn finalizers(&self, behaviour: &Behaviour, object: &Value) -> Vec<String> {
        let before = metadata::finalizers(object);
        let has = |finalizer: &str| before.contains(&finalizer);
        let policy = match (self.orphan_dependents, self.policy) {
            (Some(true), _) => Policy::Orphan,
            (Some(false), _) => Policy::Background,
            (None, Some(policy)) => policy,
            (None, None) if has(ORPHAN) => Policy::Orphan,
            (None, None) if has(FOREGROUND) => Policy::Foreground,
            (None, None) => match behaviour.propagation {
                Propagation::Background => Policy::Background,
                Propagation::Orphan => Policy::Orphan,
            },
        };
        let others = before.into_iter().filter(|finalizer| !matches!(*finalizer, ORPHAN | FOREGROUND));
        let own = match policy {
            Policy::Background => None,
            Policy::Orphan => Some(ORPHAN),
            Policy::Foreground => Some(FOREGROUND),
        };
        others.chain(own).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str, body: &str) -> Result<DeleteOptions, Status> {
        DeleteOptions::parse(&Query::parse(query), body.as_bytes())
    }

    #[test]
    fn a_body_counts_alone() {
        let options = parse("gracePeriodSeconds=5", r#"{"propagationPolicy":"Orphan"}"#).unwrap();
        assert_eq!((options.grace_seconds, options.policy), (None, Some(Policy::Orphan)));
        assert_eq!(parse("gracePeriodSeconds=5", "").unwrap().grace_seconds, Some(5));
    }

    #[test]
    fn an_unknown_policy_is_refused_in_the_servers_words() {
        assert_eq!(
            parse("propagationPolicy=Foo", "").unwrap_err().message(),
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Foo\": supported values: \
             \"Foreground\", \"Background\", \"Orphan\", \"nil\""
        );
    }

    #[test]
    fn wrong_types_are_refused() {
        for body in ["[]", "{", r#"{"gracePeriodSeconds":"x"}"#, r#"{"preconditions":1}"#, r#"{"dryRun":"All"}"#] {
            assert!(parse("", body).unwrap_err().code() >= 400, "{body}");
        }
    }
}
