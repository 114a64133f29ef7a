//! Recognizes a server that went back in time although its version is beyond the reached one: a
//! restored backup that has been written to since.
//!
//! What such a server has lost are the last changes. So the objects that changed last are
//! witnesses: when the server's version is requested, so is the state of one of them.

use std::time::Duration;

use super::super::step::{Action, ServerState};
use super::{Machine, Step, revision_query};
use crate::body::{Obj, Untyped};
use crate::codec::Change;
use crate::object::{ObjectKey, Uid, Version};

/// The last known changes.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    /// The last change of any kind.
    last: Option<Witness>,
    /// The last addition or deletion. It is requested too if the other object has changed since,
    /// which proves nothing.
    last_in_or_out: Option<Witness>,
    /// The witness whose state has been requested.
    requested: Option<(Witness, Order)>,
    /// An object that the server no longer has, and its version then. Its deletion precedes that
    /// version, unless it never happened.
    missing: Option<(ObjectKey, Version)>,
    unverified: Option<Unverified>,
}

/// Since a failure it is not known whether the server still has the history that was delivered.
#[derive(Debug)]
struct Unverified {
    since: Duration,
    /// The version that had been reached: later changes are not of that history.
    reached: Version,
}

/// The last known state of an object.
#[derive(Debug, Clone)]
struct Witness {
    key: ObjectKey,
    uid: Option<Uid>,
    version: Version,
    is_deleted: bool,
}

/// Whether a witness is of the last known change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Last,
    Earlier,
}

/// What the server's present state of a witness shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Testimony {
    /// The last known state: the server has lost nothing.
    Same,
    /// A later state, as there may be in either case.
    Changed,
    /// The object does not exist any more, as may be in either case.
    Gone,
    /// A state that precedes the last known one, or excludes it.
    Contradiction,
}

impl Witness {
    fn new(object: &Obj<Untyped>, is_deleted: bool) -> Self {
        let (key, uid, version) = (object.key().clone(), object.uid().cloned(), object.version().clone());
        Self { key, uid, version, is_deleted }
    }

    fn testimony(&self, found: Option<&Obj<Untyped>>) -> Testimony {
        let Some(found) = found else {
            return if self.is_deleted { Testimony::Same } else { Testimony::Gone };
        };
        let has_same_uid = found.uid() == self.uid.as_ref();
        if *found.version() < self.version || (self.is_deleted && has_same_uid) {
            // Versions of an object only grow, and uids are not used again.
            Testimony::Contradiction
        } else if *found.version() != self.version {
            Testimony::Changed
        } else if has_same_uid {
            Testimony::Same
        } else {
            Testimony::Contradiction
        }
    }
}

impl Witnesses {
    /// A list begins: objects may have been deleted without a deletion being delivered.
    pub(super) fn forget(&mut self) {
        *self = Self { unverified: self.unverified.take(), ..Self::default() };
    }

    /// The server that answers next may be another one, such as one restored from a backup.
    pub(super) fn may_be_another_server(&mut self, reached: &Version, now: Duration) {
        self.unverified.get_or_insert_with(|| Unverified { since: now, reached: reached.clone() });
    }

    /// Since when the history has not been verified.
    pub(super) fn unverified_since(&self) -> Option<Duration> {
        self.unverified.as_ref().map(|unverified| unverified.since)
    }

    /// The server has the history that was delivered, or a list has replaced it.
    pub(super) fn verified(&mut self) {
        self.unverified = None;
    }

    /// The server has this object in its last known state: the history is verified if that was the
    /// last change before the failure. A deletion shows less, because the object may be absent from
    /// the backup, too.
    fn confirmed(&mut self, witness: &Witness, order: Order) {
        if order == Order::Last && !witness.is_deleted {
            self.unverified.take_if(|unverified| witness.version <= unverified.reached);
        }
    }

    pub(super) fn listed(&mut self, object: &Obj<Untyped>) {
        if self.last.as_ref().is_none_or(|last| last.version < *object.version()) {
            self.last = Some(Witness::new(object, false));
        }
    }

    pub(super) fn changed(&mut self, change: Change, object: &Obj<Untyped>) {
        self.missing.take_if(|(key, _)| *key == *object.key());
        self.requested.take_if(|(witness, _)| witness.key == *object.key());
        if self.last.as_ref().is_some_and(|last| *object.version() < last.version) {
            return;
        }
        let witness = Witness::new(object, change == Change::Deleted);
        if change != Change::Modified {
            self.last_in_or_out = Some(witness.clone());
        }
        self.last = Some(witness);
    }

    /// Whether a deletion should have been delivered, now that this version has been reached.
    pub(super) fn is_deletion_overdue(&self, reached: Option<&Version>) -> bool {
        let Some((_, before)) = &self.missing else { return false };
        reached.is_some_and(|reached| before <= reached)
    }

    /// Whether a deletion should be delivered.
    pub(super) fn is_deletion_due(&self) -> bool {
        self.missing.is_some()
    }

    /// Selects the witness to request.
    fn request(&mut self, witness: Option<Witness>, order: Order) -> Option<ObjectKey> {
        self.requested = witness.map(|witness| (witness, order));
        self.requested.as_ref().map(|(witness, _)| witness.key.clone())
    }
}

/// What follows from the state of a witness.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing is known to contradict the delivered history.
    Continues,
    /// The server went back in time.
    WentBack,
    /// Another witness has been requested.
    Pending,
}

impl Machine {
    /// Requests the server's version, and the state of the object that changed last.
    pub(super) fn request_witness(&mut self, step: &mut Step<'_>) {
        let last = self.witnesses.last.clone();
        let key = self.witnesses.request(last, Order::Last);
        step.act(Action::RequestRevision(revision_query(key)));
    }

    /// Compares the server's state of the requested object with the last known one.
    pub(super) fn hear_witness(&mut self, state: &ServerState, step: &mut Step<'_>) -> Verdict {
        let requested = self.witnesses.requested.take().filter(|_| state.is_of_requested_object());
        let Some((witness, order)) = requested else { return Verdict::Continues };
        match witness.testimony(state.object.as_ref()) {
            Testimony::Same => {
                self.witnesses.confirmed(&witness, order);
                Verdict::Continues
            }
            Testimony::Contradiction => Verdict::WentBack,
            Testimony::Gone => {
                self.witnesses.missing = Some((witness.key, state.version.clone()));
                if self.witnesses.is_deletion_overdue(self.version.as_ref()) {
                    return Verdict::WentBack;
                }
                Verdict::Continues
            }
            Testimony::Changed => {
                let next = self.witnesses.last_in_or_out.clone().filter(|next| next.key != witness.key);
                let Some(key) = self.witnesses.request(next, Order::Earlier) else { return Verdict::Continues };
                step.act(Action::RequestRevision(revision_query(Some(key))));
                Verdict::Pending
            }
        }
    }
}
