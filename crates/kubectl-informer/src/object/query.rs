//! Which objects are shown: `--by` and `--where`.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use kube_informer::object::FieldPath;
use kube_informer::{Obj, ObjectKey};
use serde_json::Value;

use super::by::By;
use super::filter::{Filter, Outcome};
use super::left_out::LeftOut;
use super::redaction::Secrets;
use crate::completions;
use crate::failure::Failure;

/// The flags of a query.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct QueryArgs {
    /// Only objects with this value: node=NAME, ip=ADDRESS, owner=NAME, label:KEY=VALUE or
    /// PATH=VALUE; may be repeated, then all must match
    #[arg(long, value_name = "WHAT=VALUE", add = ArgValueCandidates::new(completions::by))]
    pub(crate) by: Vec<By>,
    /// Only objects for which this CEL expression is true, over metadata, spec, status, data, …,
    /// object, now, timestamp(…), duration(…) and quantity(…); may be repeated, then all must be
    /// true
    #[arg(long = "where", value_name = "EXPRESSION")]
    pub(crate) conditions: Vec<Filter>,
}

/// A query for the objects of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    by: Vec<By>,
    conditions: Vec<Filter>,
    /// Whether an evaluation error may quote values of the object.
    quoting: Quoting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    Allowed,
    Forbidden,
}

impl Query {
    pub(crate) fn new(args: &QueryArgs, kind: &str, secrets: Secrets) -> Self {
        let quoting = if secrets == Secrets::Shown || kind != "Secret" { Quoting::Allowed } else { Quoting::Forbidden };
        Self { by: args.by.clone(), conditions: args.conditions.clone(), quoting }
    }

    /// Whether expressions read the decoded object.
    pub(crate) fn reads_body(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// The paths of `--by`.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &FieldPath> {
        self.by.iter().filter_map(By::path)
    }

    /// Returns whether an object matches.
    pub(crate) fn fits(&self, object: &Obj<Value>, left_out: &mut LeftOut) -> Result<bool, Failure> {
        // Only expressions need the decoded object.
        let is_indexed = self.fits_indexes(object);
        if !is_indexed || self.conditions.is_empty() {
            return Ok(is_indexed);
        }
        match object.get() {
            Ok(value) => self.fits_value(object.key(), value, left_out),
            Err(_) => Ok(false),
        }
    }

    pub(crate) fn fits_indexes(&self, object: &Obj<Value>) -> bool {
        self.by.iter().all(|by| by.fits(object))
    }

    pub(crate) fn fits_value(&self, key: &ObjectKey, value: &Value, left_out: &mut LeftOut) -> Result<bool, Failure> {
        for condition in &self.conditions {
            let evaluation = condition.evaluate(value).map_err(|why| self.evaluation_failure(key, why))?;
            let fits = evaluation.outcome == Outcome::True;
            left_out.add(key, evaluation, self.quoting);
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The failure of the expression. Errors may quote values, so for Secrets the cause is
    /// withheld.
    fn evaluation_failure(&self, key: &ObjectKey, why: String) -> Failure {
        match self.quoting {
            Quoting::Allowed => Failure::Usage(why),
            Quoting::Forbidden => Failure::Usage(format!("--where: cannot read {key}; see --show-secrets")),
        }
    }
}
