//! What works for the ranges that a member holds.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use super::record::Versions;
use super::tenure::Tenure;
use super::tenures::Tenures;

/// Works for the ranges that a member holds, such as a controller: see
/// [`ShardGroup::participate`](super::ShardGroup::participate).
///
/// A range is released only when every participant has [ended](Self::ended) its work for it, or at
/// the drain deadline. A participant that is dropped has ended its work.
pub struct Participant {
    tenures: Arc<Tenures>,
    changed: watch::Receiver<u64>,
    id: u64,
    /// What this participant was told, and whether that it is to end it.
    known: BTreeMap<usize, (Tenure, bool)>,
}

/// A change of the ranges that a member holds.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Change {
    /// The range is held from now on.
    Gained(Tenure),
    /// The range is to be released: no work may begin for it, and what runs should end soon.
    Draining(Tenure),
    /// The range was lost, or its release has not waited any longer. Its writes fail.
    Lost(Tenure),
}

impl Participant {
    pub(super) fn new(tenures: &Arc<Tenures>) -> Self {
        let (tenures, changed) = (Arc::clone(tenures), tenures.subscribe());
        let id = tenures.join();
        Self { tenures, changed, id, known: BTreeMap::new() }
    }

    /// Waits for the next change.
    pub async fn next(&mut self) -> Change {
        loop {
            self.changed.mark_unchanged();
            if let Some(change) = self.change() {
                return change;
            }
            // The sender is in `self`.
            drop(self.changed.changed().await);
        }
    }

    /// Ends the work for a range: nothing runs any more, and nothing is written.
    ///
    /// `versions` are what this participant has seen and written, by resource: the next holder
    /// begins only when its caches are there. `None` if that is not known.
    pub fn ended(&self, tenure: &Tenure, versions: Option<Versions>) {
        self.tenures.ended(self.id, tenure, versions);
    }

    fn change(&mut self) -> Option<Change> {
        self.tenures.with(|held| {
            let is_lost = |(index, (tenure, _)): &(&usize, &(Tenure, bool))| {
                held.get(index).is_none_or(|now| now.tenure.epoch() != tenure.epoch())
            };
            if let Some(index) = self.known.iter().find(is_lost).map(|(index, _)| *index) {
                return self.known.remove(&index).map(|(tenure, _)| Change::Lost(tenure));
            }
            for (index, now) in held {
                match self.known.get_mut(index) {
                    // One that drains already was gained before this participant joined.
                    None if !now.is_draining => {
                        self.known.insert(*index, (now.tenure.clone(), false));
                        return Some(Change::Gained(now.tenure.clone()));
                    }
                    Some((tenure, is_draining)) if now.is_draining && !*is_draining => {
                        *is_draining = true;
                        return Some(Change::Draining(tenure.clone()));
                    }
                    _ => {}
                }
            }
            None
        })
    }
}

impl Drop for Participant {
    fn drop(&mut self) {
        self.tenures.leave(self.id);
    }
}

impl fmt::Debug for Participant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Participant").field("ranges", &self.known.len()).finish_non_exhaustive()
    }
}
