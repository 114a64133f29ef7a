//! What learning runs show: the final state, what may differ in it, and how often each object is
//! created and deleted.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use kube_embedded::ChangeKind;
use serde_json::Value;

use crate::canonical::{Canonical, Ignored, canonical, canonical_name, differences};
use crate::trace::Trace;

/// What a run with faults is compared with.
#[derive(Debug)]
pub(crate) struct Baseline {
    pub(crate) state: Canonical,
    /// Differences between the learning runs, which do not count: object and path.
    pub(crate) variable: BTreeSet<(String, String)>,
    /// Objects that not every learning run has.
    pub(crate) unstable: BTreeSet<String>,
    /// How often each object was created and deleted.
    pub(crate) counts: Counts,
    pub(crate) writes: usize,
    pub(crate) requests: usize,
}

/// How often each object was created and deleted.
pub(crate) type Counts = BTreeMap<String, [usize; 2]>;

impl Baseline {
    /// Compares learning runs. The first is the one that plans perturb.
    ///
    /// # Panics
    ///
    /// Without learning runs.
    pub(crate) fn learn(traces: &[Trace], ignored: &Ignored) -> Self {
        let mut states = traces.iter().map(|trace| canonical(&trace.final_state(), ignored));
        let state = states.next().expect("there is a learning run");
        let mut baseline = Self {
            state,
            variable: BTreeSet::new(),
            unstable: BTreeSet::new(),
            counts: Counts::new(),
            writes: traces.iter().map(|trace| trace.changes.len()).max().unwrap_or(0),
            requests: traces.iter().map(|trace| trace.requests.len()).max().unwrap_or(0),
        };
        for other in states {
            for difference in differences(&baseline.state, &other) {
                if difference.path.is_empty() && difference.values.contains(&None) {
                    baseline.unstable.insert(difference.object);
                } else {
                    baseline.variable.insert((difference.object, difference.path));
                }
            }
        }
        for trace in traces {
            for (name, counts) in count(trace, ignored) {
                let most = baseline.counts.entry(name).or_default();
                *most = [most[0].max(counts[0]), most[1].max(counts[1])];
            }
        }
        baseline
    }
}

/// How often each object was created and deleted in a run.
///
/// An object whose owners were all deleted before it was created does not count: the watches of a
/// controller are independent, and its cache of owners may be behind that of the owned objects. The
/// garbage collector deletes such an object, and the controller may repeat that until it settles.
pub(crate) fn count(trace: &Trace, ignored: &Ignored) -> Counts {
    let mut counts = Counts::new();
    let (mut deleted, mut ownerless) = (HashSet::new(), HashSet::new());
    for change in trace.changes.iter().map(|change| &change.change) {
        let uid = change.object["metadata"]["uid"].as_str().unwrap_or_default();
        let which = match change.kind {
            ChangeKind::Created => {
                let owners = change.object["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
                let is_gone = |owner: &Value| owner["uid"].as_str().is_some_and(|uid| deleted.contains(uid));
                if !owners.is_empty() && owners.iter().all(is_gone) {
                    ownerless.insert(uid);
                }
                0
            }
            ChangeKind::Deleted => {
                deleted.insert(uid);
                1
            }
            ChangeKind::Updated => continue,
        };
        if !ownerless.contains(uid) && !ignored.is_ignored(&change.object) {
            counts.entry(canonical_name(&change.object)).or_default()[which] += 1;
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kube_embedded::Server;
    use serde_json::json;

    use super::*;
    use crate::trace::TimedChange;

    /// Creates a config map with this owner; returns its uid.
    fn create(server: &Server, name: &str, owner: Option<&str>) -> String {
        let owner = owner.map(|uid| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}));
        let metadata = json!({"name": name, "namespace": "default", "ownerReferences": Vec::from_iter(owner)});
        let map = server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})).unwrap();
        map["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn what_is_created_for_an_owner_that_is_gone_is_not_counted_and_all_else_is() {
        let server = Server::builder().in_process().start().await.unwrap();
        let maps = server.objects("v1", "ConfigMap").unwrap();
        let begin = server.revision();
        let owner = create(&server, "owner", None);
        create(&server, "child", Some(&owner));
        maps.delete("owner").unwrap();
        maps.delete("child").unwrap();
        // Twice for the owner that is gone, and once for one that is there.
        for _ in 0..2 {
            create(&server, "child", Some(&owner));
            maps.delete("child").unwrap();
        }
        let owner = create(&server, "owner", None);
        create(&server, "child", Some(&owner));
        let changes = server.changes_after(begin).unwrap();
        let changes = changes.into_iter().map(|change| TimedChange { at: Duration::ZERO, change }).collect();
        let counts = count(&Trace { changes, ..Trace::default() }, &Ignored::default());
        let counts: Vec<_> = counts.iter().map(|(name, counts)| (name.as_str(), *counts)).collect();
        assert_eq!(counts, [("ConfigMap default/child", [2, 1]), ("ConfigMap default/owner", [2, 1])]);
    }
}
