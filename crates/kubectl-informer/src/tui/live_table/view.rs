//! What the user chose to see of a table: filter, expression, order.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use kube_informer::object::FieldPath;
use kube_informer::{Obj, ObjectKey};
use serde_json::Value;

use super::row::Row;
use crate::get::Rank;
use crate::object::filter::{Filter, Outcome};

/// The order of the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sort {
    /// By namespace and name.
    Name,
    Path(FieldPath),
    Column(usize),
    /// The latest change first.
    Changed,
}

pub(crate) struct View {
    /// A part of a cell, in lower case.
    filter: String,
    condition: Option<Filter>,
    sort: Sort,
    pub(crate) is_reversed: bool,
}

impl View {
    pub(super) fn new(sort: Sort) -> Self {
        Self { filter: String::new(), condition: None, sort, is_reversed: false }
    }

    pub(crate) fn filter(&self) -> &str {
        &self.filter
    }

    pub(crate) fn condition(&self) -> Option<&Filter> {
        self.condition.as_ref()
    }

    pub(super) fn set_filter(&mut self, text: &str) {
        self.filter = text.to_lowercase();
    }

    pub(super) fn set_condition(&mut self, condition: Option<Filter>) {
        self.condition = condition;
    }

    pub(super) fn sort_by_next_column(&mut self, columns: usize) {
        self.sort = match self.sort {
            Sort::Column(nth) if nth + 1 < columns => Sort::Column(nth + 1),
            Sort::Column(_) => Sort::Name,
            Sort::Name | Sort::Path(_) | Sort::Changed => Sort::Column(0),
        };
    }

    pub(super) fn toggle_changed_first(&mut self) {
        self.sort = if self.sort == Sort::Changed { Sort::Name } else { Sort::Changed };
    }

    /// Whether the order depends on nothing but the names and the cells.
    pub(super) fn sorts_by_cells(&self) -> bool {
        matches!(self.sort, Sort::Name | Sort::Column(_))
    }

    /// Whether the expression is true for an object. Where it has no result, the object is hidden.
    pub(super) fn fits(&self, object: &Obj<Value>) -> bool {
        let Some(condition) = &self.condition else { return true };
        let evaluation = object.get().ok().and_then(|value| condition.evaluate(value).ok());
        evaluation.is_some_and(|evaluation| evaluation.outcome == Outcome::True)
    }

    /// The keys of the shown rows in order.
    pub(super) fn order(&self, head: &[String], rows: &BTreeMap<ObjectKey, Row>) -> Vec<ObjectKey> {
        let is_shown = |row: &Row| {
            row.is_shown
                && (self.filter.is_empty() || row.cells.iter().any(|cell| cell.to_lowercase().contains(&self.filter)))
        };
        let mut shown: Vec<(&ObjectKey, &Row)> = rows.iter().filter(|(_, row)| is_shown(row)).collect();
        match &self.sort {
            Sort::Name => {}
            Sort::Path(path) => shown.sort_by_cached_key(|(_, row)| Rank::of(row.object.value_at(path))),
            Sort::Changed => shown.sort_by_key(|(_, row)| Reverse(row.last_change)),
            // The youngest first; the text of an age has no order.
            Sort::Column(nth) if head.get(*nth).is_some_and(|name| name == "AGE") => {
                shown.sort_by_cached_key(|(_, row)| Reverse(row.object.value_at("metadata.creationTimestamp").ok()));
            }
            Sort::Column(nth) => shown.sort_by_cached_key(|(_, row)| Rank::of(row.cells.get(*nth).cloned())),
        }
        if self.is_reversed {
            shown.reverse();
        }
        shown.into_iter().map(|(key, _)| key.clone()).collect()
    }

    /// Marks the column by which the rows are sorted.
    pub(super) fn mark(&self, head: &mut [String]) {
        if let Sort::Column(nth) = self.sort
            && let Some(name) = head.get_mut(nth)
        {
            name.push(if self.is_reversed { '↑' } else { '↓' });
        }
    }

    /// What differs from all rows by name, for a status line.
    pub(crate) fn description(&self) -> String {
        let mut parts = Vec::new();
        if !self.filter.is_empty() {
            parts.push(format!("/{}", self.filter));
        }
        if let Some(condition) = &self.condition {
            parts.push(format!("where {}", condition.text()));
        }
        if self.sort == Sort::Changed {
            parts.push("changed first".to_owned());
        }
        parts.join(", ")
    }
}
