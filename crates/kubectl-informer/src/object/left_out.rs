//! What `get` reports of `--where`: objects without a result, and names that no object has.

use std::collections::BTreeSet;

use kube_informer::ObjectKey;

use super::filter::{Evaluation, Outcome};
use super::query::Quoting;

/// Counts the objects for which an expression was evaluated, and those that lack a field it reads.
#[derive(Debug, Default)]
pub(crate) struct LeftOut {
    evaluated: usize,
    count: usize,
    /// The first of them and, where it may be quoted, the field.
    first: Option<(ObjectKey, Option<String>)>,
    /// Variables that no object has had so far.
    absent: BTreeSet<String>,
}

impl LeftOut {
    /// Adds the result for an object. The name of a field may be computed from the object's values.
    pub(super) fn add(&mut self, key: &ObjectKey, evaluation: Evaluation, quoting: Quoting) {
        self.absent = match self.evaluated {
            0 => evaluation.absent,
            _ => self.absent.intersection(&evaluation.absent).cloned().collect(),
        };
        self.evaluated += 1;
        if let Outcome::NoSuchField(field) = evaluation.outcome {
            self.count += 1;
            let field = (quoting == Quoting::Allowed).then_some(field);
            self.first.get_or_insert_with(|| (key.clone(), field));
        }
    }

    /// The report, for a kind as it is called in lower case; no line if there is nothing to report.
    pub(crate) fn lines(&self, kind: &str) -> Vec<String> {
        let mut lines: Vec<String> = self.absent.iter().map(|name| format!("! no {kind} has {name:?}")).collect();
        if let Some((key, field)) = &self.first {
            let field = field.as_ref().map_or_else(|| "such field".to_owned(), |field| format!("field {field:?}"));
            lines.push(format!(
                "! --where: {} of {} left out, because a field is missing; the first: {key} has no {field}. \
                 For fields that may be missing, write a.?b.orValue(0) or has(a.b)",
                self.count, self.evaluated
            ));
        }
        lines
    }
}
