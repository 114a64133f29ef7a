//! The latest changes, bounded by their size.

use std::collections::VecDeque;

use kube_informer::ObjectKey;

use super::{Change, What};
use crate::client::kind_info::KindInfo;

/// A ring of changes: the oldest are dropped when their objects take more than the limit.
#[derive(Debug)]
pub(crate) struct Ring {
    changes: VecDeque<Change>,
    bytes: usize,
    max_bytes: usize,
}

impl Ring {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { changes: VecDeque::new(), bytes: 0, max_bytes }
    }

    pub(crate) fn push(&mut self, change: &Change) {
        let change = change.compact();
        self.bytes += weight(&change);
        self.changes.push_back(change);
        while self.bytes > self.max_bytes {
            let Some(oldest) = self.changes.pop_front() else { return };
            self.bytes -= weight(&oldest);
        }
    }

    /// All changes, the oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Change> {
        self.changes.iter()
    }

    /// The changes of one object, the oldest first.
    pub(crate) fn of<'r>(
        &'r self,
        kind: &'r KindInfo,
        key: &'r ObjectKey,
    ) -> impl DoubleEndedIterator<Item = &'r Change> {
        self.iter().filter(move |change| *change.kind == *kind && change.object.key() == key)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// The size of what a change keeps alive. States that two changes share are counted twice.
fn weight(change: &Change) -> usize {
    let old = if let What::Updated { old } = &change.what { old.weight() } else { 0 };
    size_of::<Change>() + change.object.weight() + old
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use kube_informer::{Obj, Origin};
    use serde_json::Value;

    use super::*;

    fn kind() -> Arc<KindInfo> {
        Arc::new(KindInfo {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            plural: "configmaps".to_owned(),
            namespaced: true,
            short_names: Vec::new(),
        })
    }

    fn object(value: u32) -> Obj<Value> {
        Obj::from_json(format!(r#"{{"metadata":{{"name":"a","namespace":"b"}},"data":{{"k":"{value}"}}}}"#)).unwrap()
    }

    fn update(at: i64) -> Change {
        let new = u32::try_from(at).unwrap();
        let what = What::Updated { old: object(new - 1) };
        let at = Timestamp::from_second(at).unwrap();
        Change { at, kind: kind(), what, origin: Origin::Live, object: object(new) }
    }

    #[test]
    fn the_oldest_changes_are_dropped_when_the_ring_is_full() {
        let one = weight(&update(1));
        let mut ring = Ring::new(3 * one + one / 2);
        (1..=10).for_each(|at| ring.push(&update(at)));
        let kept: Vec<i64> = ring.iter().map(|change| change.at.as_second()).collect();
        assert_eq!(kept, [8, 9, 10]);
        assert!(ring.bytes() <= 3 * one + one / 2);
    }
}
