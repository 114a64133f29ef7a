//! Status conditions: [`NewCondition`], set in a `Vec<Condition>` as `kubectl wait` and other
//! controllers expect them.
//!
//! ```
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
//! use kube_controller::conditions::{self, NewCondition};
//!
//! let mut status: Vec<Condition> = Vec::new(); // a copy of the object's `status.conditions`
//! let generation = Some(2); // the object's `metadata.generation`, as it was reconciled
//! let ready = NewCondition::is_false("Ready", "Scaling", "2 of 3 replicas").observed_generation(generation);
//! assert!(ready.clone().set(&mut status));
//! assert!(!ready.set(&mut status)); // nothing to write
//! assert!(!conditions::is_true(&status, "Ready"));
//! ```
//!
//! The transition time changes with the status only: it says since when the condition has held. The
//! observed generation says which generation the condition is about, so that a client that waits
//! for `Ready` after a change does not see the state before.

// Uses nothing else of the crate.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// A condition as a reconcile has found it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a condition is set in a list of conditions"]
pub struct NewCondition {
    type_: String,
    status: &'static str,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

impl NewCondition {
    /// The condition holds. The reason is one word in camel case, the message is for people.
    pub fn is_true(type_: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("True", type_.into(), reason.into(), message.into())
    }

    /// The condition does not hold.
    pub fn is_false(type_: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("False", type_.into(), reason.into(), message.into())
    }

    /// Whether the condition holds is not known.
    pub fn is_unknown(type_: impl Into<String>, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("Unknown", type_.into(), reason.into(), message.into())
    }

    fn new(status: &'static str, type_: String, reason: String, message: String) -> Self {
        Self { type_, status, reason, message, observed_generation: None }
    }

    /// Sets the generation of the object that was reconciled: its `metadata.generation`.
    pub fn observed_generation(mut self, generation: impl Into<Option<i64>>) -> Self {
        self.observed_generation = generation.into();
        self
    }

    /// Adds or updates the condition of this type, in its place. Returns whether anything changed.
    #[doc(alias = "SetStatusCondition")]
    pub fn set(self, conditions: &mut Vec<Condition>) -> bool {
        self.set_at(conditions, Timestamp::now())
    }

    /// As [`set`](Self::set), at a given time.
    ///
    /// The time is cut to seconds, as the server does: what is set equals what is read.
    pub fn set_at(self, conditions: &mut Vec<Condition>, now: Timestamp) -> bool {
        let Self { type_, status, reason, message, observed_generation } = self;
        let now = Time(Timestamp::from_second(now.as_second()).unwrap_or(now));
        let before = conditions.iter_mut().find(|condition| condition.type_ == type_);
        let last_transition_time = match &before {
            Some(before) if before.status == status => before.last_transition_time.clone(),
            _ => now,
        };
        let status = status.to_owned();
        let condition = Condition { last_transition_time, message, observed_generation, reason, status, type_ };
        match before {
            Some(before) if *before == condition => return false,
            Some(before) => *before = condition,
            None => conditions.push(condition),
        }
        true
    }
}

/// Returns the condition of a type.
#[must_use]
#[doc(alias = "FindStatusCondition")]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether there is a condition of a type, and it holds.
#[must_use]
#[doc(alias = "IsStatusConditionTrue")]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}

/// Removes the condition of a type. Returns whether there was one.
#[doc(alias = "RemoveStatusCondition")]
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millisecond(second * 1_000 + 500).unwrap()
    }

    fn transition(conditions: &[Condition]) -> i64 {
        find(conditions, "Ready").unwrap().last_transition_time.0.as_second()
    }

    #[test]
    fn the_transition_time_changes_only_with_the_status() {
        let mut conditions = Vec::new();
        let ready = |message: &str| NewCondition::is_true("Ready", "Done", message);
        assert!(ready("a").set_at(&mut conditions, at(1)));
        assert!(!ready("a").set_at(&mut conditions, at(2)));
        assert!(ready("b").set_at(&mut conditions, at(3)));
        assert!(ready("b").observed_generation(2).set_at(&mut conditions, at(4)));
        assert_eq!((transition(&conditions), conditions[0].observed_generation), (1, Some(2)));
        assert!(NewCondition::is_unknown("Ready", "Gone", "").set_at(&mut conditions, at(5)));
        assert_eq!(transition(&conditions), 5);
    }

    #[test]
    fn other_conditions_keep_their_place() {
        let mut conditions = Vec::new();
        for name in ["A", "Ready", "B"] {
            NewCondition::is_true(name, "R", "").set_at(&mut conditions, at(1));
        }
        NewCondition::is_false("Ready", "R", "").set_at(&mut conditions, at(2));
        let types: Vec<_> = conditions.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["A", "Ready", "B"]);
        assert!(is_true(&conditions, "A") && !is_true(&conditions, "Ready") && !is_true(&conditions, "C"));
        assert!(remove(&mut conditions, "Ready") && !remove(&mut conditions, "Ready"));
        assert_eq!(conditions.len(), 2);
    }

    #[test]
    fn what_was_set_equals_what_the_server_returns() {
        let mut conditions = Vec::new();
        NewCondition::is_true("Ready", "Done", "").set_at(&mut conditions, at(1));
        let json = serde_json::to_string(&conditions).unwrap();
        assert!(json.contains(r#""lastTransitionTime":"1970-01-01T00:00:01Z""#), "{json}");
        assert_eq!(serde_json::from_str::<Vec<Condition>>(&json).unwrap(), conditions);
    }
}
