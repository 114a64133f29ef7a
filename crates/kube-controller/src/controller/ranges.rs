//! The ranges of a group that a controller works for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use kube_informer::shard::{ShardKey, fnv_1a};
use kube_informer::{Obj, ObjRef, Uid};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::context::ControllerContext;
use crate::sharding::Tenure;

/// The ranges for which attempts may begin.
#[derive(Debug)]
pub(super) struct OpenRanges {
    key: ShardKey,
    /// By the first hash.
    open: Mutex<BTreeMap<u64, Arc<OpenRange>>>,
}

/// A range, with the right to write for it.
pub(super) struct OpenRange {
    tenure: Tenure,
    context: Arc<ControllerContext>,
    /// Attempts that run.
    running: watch::Sender<usize>,
}

/// The right to run one attempt.
#[derive(Debug)]
pub(super) struct Permit(Arc<OpenRange>);

impl OpenRanges {
    pub(super) fn new(key: ShardKey) -> Self {
        Self { key, open: Mutex::default() }
    }

    /// Lets attempts begin for a range.
    pub(super) fn open(&self, tenure: Tenure, context: Arc<ControllerContext>) {
        let (start, running) = (tenure.range().start(), watch::Sender::new(0));
        let before = self.open.lock().insert(start, Arc::new(OpenRange { tenure, context, running }));
        drop(before);
    }

    /// Lets no more attempts begin for a range.
    pub(super) fn close(&self, tenure: &Tenure) -> Option<Arc<OpenRange>> {
        let mut open = self.open.lock();
        let start = tenure.range().start();
        let is_same = open.get(&start).is_some_and(|range| range.tenure.epoch() == tenure.epoch());
        is_same.then(|| open.remove(&start)).flatten()
    }

    pub(super) fn close_all(&self) -> Vec<Arc<OpenRange>> {
        std::mem::take(&mut *self.open.lock()).into_values().collect()
    }

    /// Returns the right to run an attempt for an object, if its range is open.
    pub(super) fn enter<K>(&self, object: &Obj<K>) -> Option<Permit> {
        let hash = self.hash(object.key().namespace(), object.uid());
        let open = self.open.lock();
        let range = find(&open, hash)?;
        range.running.send_modify(|running| *running += 1);
        Some(Permit(Arc::clone(range)))
    }

    /// Whether the range of a cached object is open.
    pub(super) fn contain<K>(&self, object: &ObjRef<'_, K>) -> bool {
        let hash = self.hash(object.key().namespace(), object.uid());
        find(&self.open.lock(), hash).is_some()
    }

    /// The hash that decides.
    pub(super) fn hash(&self, namespace: Option<&str>, uid: Option<&Uid>) -> u64 {
        match self.key {
            ShardKey::Namespace => fnv_1a(namespace.unwrap_or_default()),
            ShardKey::Uid => uid.map_or(fnv_1a(""), Uid::fnv_1a),
        }
    }
}

fn find(open: &BTreeMap<u64, Arc<OpenRange>>, hash: u64) -> Option<&Arc<OpenRange>> {
    let (_, range) = open.range(..=hash).next_back()?;
    range.tenure.range().contains(hash).then_some(range)
}

impl OpenRange {
    pub(super) fn tenure(&self) -> &Tenure {
        &self.tenure
    }

    /// Completes when no attempt runs for the range.
    pub(super) async fn idle(&self) {
        // The sender is in `self`.
        drop(self.running.subscribe().wait_for(|running| *running == 0).await);
    }
}

impl Permit {
    /// What attempts for the range write with.
    pub(super) fn context(&self) -> &Arc<ControllerContext> {
        &self.0.context
    }

    /// Completes when the range is lost.
    pub(super) async fn lost(&self) {
        self.0.tenure.leadership().lost().await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.send_modify(|running| *running -= 1);
    }
}

impl fmt::Debug for OpenRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRange").field("tenure", &self.tenure).finish_non_exhaustive()
    }
}
