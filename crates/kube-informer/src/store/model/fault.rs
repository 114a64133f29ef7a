//! Faults that the model test must detect.

use crate::body::Untyped;
use crate::store::{Event, FinalState, Origin};

/// A fault injected between the store and the checks of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A complete list does not report the deletions it implies.
    NoMissedDeletes,
    /// New objects of a list are reported before its deletions.
    WrongOrder,
    /// A new object of a list is reported twice.
    DoubleAdd,
    /// A deletion seen by the watch is not reported.
    LostDelete,
    /// Handlers receive an event before readers can see the change.
    EventBeforeStore,
}

impl Fault {
    pub(super) const ALL: [Self; 5] =
        [Self::NoMissedDeletes, Self::WrongOrder, Self::DoubleAdd, Self::LostDelete, Self::EventBeforeStore];

    pub(super) fn corrupt(self, mut events: Vec<Event<Untyped>>) -> Vec<Event<Untyped>> {
        match self {
            Self::NoMissedDeletes => events.retain(|event| !(is_listed(event) && is_missed(event))),
            Self::WrongOrder => events.sort_by_key(|event| !(is_listed(event) && is_added(event))),
            Self::DoubleAdd => {
                let twice = events.iter().find(|event| is_listed(event) && is_added(event)).cloned();
                events.extend(twice);
            }
            Self::LostDelete => events.retain(|event| is_listed(event) || !event.is_deleted()),
            // The checks read a snapshot taken before the deltas were applied.
            Self::EventBeforeStore => {}
        }
        events
    }
}

fn is_listed(event: &Event<Untyped>) -> bool {
    matches!(event.origin(), Origin::Initial | Origin::Relist)
}

fn is_added(event: &Event<Untyped>) -> bool {
    matches!(event, Event::Added { .. })
}

fn is_missed(event: &Event<Untyped>) -> bool {
    matches!(event, Event::Deleted { state: FinalState::Missed, .. })
}
