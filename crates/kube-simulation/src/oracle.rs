//! What must hold in every run, whatever happens in it.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use kube_embedded::ChangeKind;
use serde_json::Value;

use crate::baseline::{Baseline, count};
use crate::canonical::{Ignored, canonical, canonical_name, differences};
use crate::state::State;
use crate::trace::{Ending, Trace};

/// Something that must not happen.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Violation {
    /// The final state is not that of a run without faults. Each line is a difference.
    FinalState(Vec<String>),
    /// An object was created more often than without faults.
    CreatedTooOften {
        /// The kind and name.
        object: String,
        /// How often without and with faults.
        times: [usize; 2],
    },
    /// An object was deleted more often than without faults.
    DeletedTooOften {
        /// The kind and name.
        object: String,
        /// How often without and with faults.
        times: [usize; 2],
    },
    /// Writes do not end.
    NeverSettles,
    /// Requests that change nothing do not end.
    BusyLoop,
    /// A task of the controller panicked.
    Panic(String),
    /// An invariant of the user does not hold.
    Invariant {
        /// The name of the invariant.
        name: String,
        /// The first revision at which it does not hold.
        revision: u64,
        /// What the invariant says about it.
        why: String,
    },
    /// The owners of an object were deleted, and the garbage collector cannot delete the object.
    NotCollected {
        /// The kind and name.
        object: String,
        /// The finalizers that keep it.
        finalizers: Vec<String>,
    },
    /// A step of the workload was refused, in a run without faults.
    StepRefused(String),
}

impl Violation {
    /// What violations of the same bug have in common.
    pub(crate) fn group(&self) -> String {
        match self {
            Self::FinalState(_) => "the final state differs".to_owned(),
            Self::CreatedTooOften { object, .. } => format!("{object} is created too often"),
            Self::DeletedTooOften { object, .. } => format!("{object} is deleted too often"),
            Self::NeverSettles => "writes do not end".to_owned(),
            Self::BusyLoop => "requests do not end".to_owned(),
            Self::Panic(message) => format!("panic: {message}"),
            Self::Invariant { name, .. } => format!("the invariant {name:?} does not hold"),
            Self::NotCollected { object, .. } => format!("{object} is not collected"),
            Self::StepRefused(step) => format!("refused: {step}"),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let often = |f: &mut fmt::Formatter<'_>, object: &str, [expected, found]: [usize; 2], what: &str| {
            write!(f, "{object} was {what} {found} times, without the fault {expected} times")
        };
        match self {
            Self::FinalState(differences) => {
                f.write_str("the final state is not that of a run without faults:")?;
                differences.iter().try_for_each(|difference| write!(f, "\n    {difference}"))
            }
            Self::CreatedTooOften { object, times } => often(f, object, *times, "created"),
            Self::DeletedTooOften { object, times } => often(f, object, *times, "deleted"),
            Self::NeverSettles => f.write_str("writes do not end"),
            Self::BusyLoop => f.write_str("requests that change nothing do not end"),
            Self::Panic(message) => write!(f, "a task of the controller panicked: {message}"),
            Self::Invariant { name, revision, why } => {
                write!(f, "the invariant {name:?} does not hold at revision {revision}: {why}")
            }
            Self::NotCollected { object, finalizers } => {
                write!(f, "{object} is left though its owners were deleted; its finalizers: {}", finalizers.join(", "))
            }
            Self::StepRefused(step) => write!(f, "refused: {step}"),
        }
    }
}

/// Returns why the invariant does not hold.
type Check = Arc<dyn Fn(&State) -> Result<(), String> + Send + Sync>;

/// An invariant of the user.
#[derive(Clone)]
pub(crate) struct Invariant {
    pub(crate) name: String,
    pub(crate) check: Check,
}

/// Judges a run with faults.
pub(crate) fn judge(trace: &Trace, baseline: &Baseline, ignored: &Ignored, invariants: &[Invariant]) -> Vec<Violation> {
    let (mut found, state) = judge_changes(trace, ignored, invariants);
    if trace.ending != Ending::Settled {
        return found;
    }
    let state = canonical(&state, ignored);
    let differences: Vec<String> = differences(&baseline.state, &state)
        .into_iter()
        .filter(|difference| {
            !baseline.unstable.contains(&difference.object)
                && !baseline
                    .variable
                    .iter()
                    .any(|(object, path)| *object == difference.object && begins_with(&difference.path, path, "/"))
        })
        .map(|difference| difference.to_string())
        .collect();
    if !differences.is_empty() {
        found.push(Violation::FinalState(differences));
    }
    for (object, counts) in count(trace, ignored) {
        let expected = baseline.counts.get(&object).copied().unwrap_or_default();
        let is_unstable = baseline.unstable.iter().any(|name| begins_with(name, &object, " ("));
        if is_unstable {
            continue;
        }
        if counts[0] > expected[0] {
            let times = [expected[0], counts[0]];
            found.push(Violation::CreatedTooOften { object: object.clone(), times });
        }
        if counts[1] > expected[1] {
            found.push(Violation::DeletedTooOften { object, times: [expected[1], counts[1]] });
        }
    }
    found
}

/// Whether a text is another one, or continues it after a boundary.
fn begins_with(text: &str, start: &str, boundary: &str) -> bool {
    text.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(boundary))
}

/// Judges a run by what needs no comparison.
pub(crate) fn judge_alone(trace: &Trace, ignored: &Ignored, invariants: &[Invariant]) -> Vec<Violation> {
    judge_changes(trace, ignored, invariants).0
}

/// Judges a run by what needs no comparison; returns its final state, too.
fn judge_changes(trace: &Trace, ignored: &Ignored, invariants: &[Invariant]) -> (Vec<Violation>, State) {
    let mut found: Vec<Violation> = trace.panics.iter().take(1).cloned().map(Violation::Panic).collect();
    match trace.ending {
        Ending::Settled => {}
        Ending::Restless => found.push(Violation::NeverSettles),
        Ending::Busy => found.push(Violation::BusyLoop),
    }
    let mut broken = vec![false; invariants.len()];
    let mut state = State::default();
    for change in &trace.changes {
        state.apply(&change.change);
        for (invariant, broken) in invariants.iter().zip(&mut broken) {
            if !*broken && let Err(why) = (invariant.check)(&state) {
                *broken = true;
                found.push(Violation::Invariant {
                    name: invariant.name.clone(),
                    revision: change.change.revision,
                    why,
                });
            }
        }
    }
    if trace.ending == Ending::Settled {
        found.extend(not_collected(trace, &state, ignored));
    }
    (found, state)
}

/// The objects that are left, but whose owners were deleted.
fn not_collected(trace: &Trace, state: &State, ignored: &Ignored) -> Vec<Violation> {
    let deleted = trace.changes.iter().filter(|change| change.change.kind == ChangeKind::Deleted);
    let deleted: HashSet<&str> =
        deleted.filter_map(|change| change.change.object["metadata"]["uid"].as_str()).collect();
    let is_left = |object: &Value| {
        let owners = object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
        let is_gone = |owner: &Value| owner["uid"].as_str().is_some_and(|uid| deleted.contains(uid));
        !owners.is_empty() && owners.iter().all(is_gone)
    };
    let left = state.all().filter(|(_, object)| !ignored.is_ignored(object) && is_left(object));
    let violation = |object: &Value| {
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        let finalizers = finalizers.filter_map(Value::as_str).map(str::to_owned).collect();
        Violation::NotCollected { object: canonical_name(object), finalizers }
    };
    left.map(|(_, object)| violation(object)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use kube_embedded::Server;
    use serde_json::json;

    use super::*;
    use crate::trace::TimedChange;

    /// A run in which config maps were created and some deleted again.
    async fn run(maps: &[(&str, Value)], deleted: &[&str]) -> Trace {
        let server = Server::builder().in_process().start().await.unwrap();
        let begin = server.revision();
        for (name, data) in maps {
            let metadata = json!({"name": name, "namespace": "default"});
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
            server.create(&map).unwrap();
            if deleted.contains(name) {
                server.objects("v1", "ConfigMap").unwrap().delete(name).unwrap();
            }
        }
        let changes = server.changes_after(begin).unwrap();
        let changes = changes.into_iter().map(|change| TimedChange { at: Duration::ZERO, change }).collect();
        Trace { changes, ending: Ending::Settled, ..Trace::default() }
    }

    fn texts(violations: &[Violation]) -> Vec<String> {
        violations
            .iter()
            .map(|violation| violation.to_string().lines().last().unwrap_or_default().trim().to_owned())
            .collect()
    }

    #[tokio::test]
    async fn a_field_that_may_differ_excuses_no_field_whose_name_begins_alike() {
        let learnt = run(&[("a", json!({"k": "1", "key": "1"}))], &[]).await;
        let mut baseline = Baseline::learn(&[learnt], &Ignored::default());
        baseline.variable = BTreeSet::from([("ConfigMap default/a".to_owned(), "/data/k".to_owned())]);
        let judged = |trace: Trace| texts(&judge(&trace, &baseline, &Ignored::default(), &[]));
        assert!(judged(run(&[("a", json!({"k": "2", "key": "1"}))], &[]).await).is_empty());
        let found = judged(run(&[("a", json!({"k": "1", "key": "2"}))], &[]).await);
        assert_eq!(found, [r#"~ ConfigMap default/a: /data/key is "2", and not "1""#]);
    }

    #[tokio::test]
    async fn an_object_that_a_finalizer_keeps_though_its_owners_were_deleted_is_reported() {
        let server = Server::builder().in_process().start().await.unwrap();
        let begin = server.revision();
        let map = |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        let mut owners = Vec::new();
        for name in ["one", "other"] {
            let owner = server.create(&map(json!({"name": name, "namespace": "default"}))).unwrap();
            owners
                .push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"]}));
        }
        for (name, owners) in [("kept", &owners[..]), ("left", &owners[..1])] {
            let metadata =
                json!({"name": name, "namespace": "default", "ownerReferences": owners, "finalizers": ["a/b"]});
            server.create(&map(metadata)).unwrap();
        }
        server.objects("v1", "ConfigMap").unwrap().delete("one").unwrap();
        let changes = server.changes_after(begin).unwrap();
        let changes = changes.into_iter().map(|change| TimedChange { at: Duration::ZERO, change }).collect();
        let trace = Trace { changes, ending: Ending::Settled, ..Trace::default() };
        let found = judge_alone(&trace, &Ignored::default(), &[]);
        assert_eq!(
            texts(&found),
            ["ConfigMap default/left is left though its owners were deleted; its finalizers: a/b"]
        );
    }

    #[tokio::test]
    async fn an_object_that_may_be_absent_excuses_no_object_whose_name_begins_alike() {
        let learnt = run(&[("a", json!({}))], &[]).await;
        let mut baseline = Baseline::learn(&[learnt], &Ignored::default());
        baseline.unstable = BTreeSet::from(["ConfigMap default/ab".to_owned()]);
        let again = run(&[("a", json!({})), ("a", json!({})), ("ab", json!({}))], &["a"]).await;
        let found = texts(&judge(&again, &baseline, &Ignored::default(), &[]));
        assert!(
            found.contains(&"ConfigMap default/a was created 2 times, without the fault 1 times".to_owned()),
            "{found:?}"
        );
        assert!(!found.iter().any(|text| text.contains("default/ab")), "{found:?}");
    }
}
