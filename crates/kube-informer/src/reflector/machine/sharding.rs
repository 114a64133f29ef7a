//! Shards: which objects are requested, moves, and whether the server obeys.

use std::sync::Arc;
use std::time::Duration;

use super::super::status::Synced;
use super::super::step::Action;
use super::{ListStart, Machine, MachinePhase, NextRequest, Step};
use crate::body::{Obj, Untyped};
use crate::client::{ServerError, WatchQuery, WatchStart};
use crate::codec::Change;
use crate::object::Version;
use crate::shard::{Echo, HashRanges, Shard, ShardSupport};
use crate::store::Delta;

/// The shard of a reflector.
///
/// When its ranges move, the objects that leave are removed downstream at once. Those that enter
/// are listed alone, at the newest version, and then the watch of the new ranges continues from
/// the version that the watch of the old ones has reached: all ranges are complete up to there.
#[derive(Debug, Default)]
pub(super) struct Sharding {
    shard: Option<Arc<Shard>>,
    /// The ranges that have still to be listed after a move.
    entering: HashRanges,
    /// Listed after a move, with the versions of the lists, which the watch has not reached.
    ahead: Vec<(Shard, Version)>,
    support: ShardSupport,
    /// Whether it is being asked for.
    is_asking: bool,
}

impl Sharding {
    pub(super) fn shard(&self) -> Option<Arc<Shard>> {
        self.shard.clone()
    }

    pub(super) fn support(&self) -> Option<ShardSupport> {
        self.shard.as_ref().map(|_| self.support)
    }

    /// What has still to be listed after a move.
    pub(super) fn entering(&self) -> Option<Shard> {
        let shard = self.shard.as_ref().filter(|_| !self.entering.is_empty())?;
        Some(Shard::new(shard.key, self.entering.clone()))
    }

    /// A list of the whole shard begins.
    pub(super) fn lists_everything(&mut self) {
        self.entering = HashRanges::NONE;
    }

    pub(super) fn went_back(&mut self) {
        self.ahead.clear();
    }

    /// A list is complete: what does it show of the server?
    pub(super) fn listed(&mut self, is_within_shard: bool, echo: Option<Echo>) {
        self.support = match echo {
            _ if !is_within_shard => ShardSupport::Ignored,
            Some(Echo::Same) => ShardSupport::Honoured,
            Some(Echo::Other | Echo::Unclear) | None => ShardSupport::Unknown,
        };
    }

    /// An object has arrived that was not requested.
    pub(super) fn received_outside(&mut self) {
        self.support = ShardSupport::Ignored;
    }

    /// Whether a list after a move already had this change of an object, which the watch delivers
    /// again, and possibly later changes of it. Not of deletions: a list that failed may have
    /// delivered the object.
    pub(super) fn is_in_list(&mut self, change: Change, object: &Obj<Untyped>, reached: Option<&Version>) -> bool {
        if self.ahead.is_empty() {
            return false;
        }
        let is_in_list = change != Change::Deleted
            && self.ahead.iter().any(|(shard, listed)| object.version() <= listed && shard.contains(object));
        self.ahead.retain(|(_, listed)| reached.is_some_and(|reached| reached < listed));
        is_in_list
    }
}

impl Machine {
    /// Sets the first shard.
    pub(crate) fn begin_with_shard(&mut self, shard: Arc<Shard>) {
        self.sharding.shard = Some(shard);
    }

    pub(super) fn watch_query(&self, start: WatchStart, timeout: Duration) -> WatchQuery {
        let mut query = WatchQuery::new(start, timeout);
        query.shard = self.sharding.shard();
        query
    }

    /// The shard has other ranges from now on.
    pub(super) fn shard_moved(&mut self, shard: Option<Arc<Shard>>, step: &mut Step<'_>) {
        let (Some(shard), Some(before)) = (shard, self.sharding.shard()) else { return };
        if shard == before {
            self.sharding.shard = Some(shard);
            if self.is_following() && self.sharding.entering.is_empty() {
                self.deliver_shard_held(step);
            }
            return;
        }
        let (scope, after) = (self.scope.clone(), Arc::clone(&shard));
        self.deliver(Delta::ShardLeft { scope, shard: after }, step);
        self.sharding.shard = Some(Arc::clone(&shard));
        let added = shard.ranges.difference(&before.ranges);
        if shard.key != before.key || !added.is_empty() {
            // What was written before the move is in the next list.
            self.list_start = ListStart::Latest;
        }
        if shard.key != before.key || !self.is_following() {
            return self.list_moved(step);
        }
        self.sharding.entering = self.sharding.entering.union(&added).intersection(&shard.ranges);
        if self.sharding.entering.is_empty() {
            self.deliver_shard_held(step);
        }
        match self.phase {
            MachinePhase::Waiting { .. } => {}
            _ => self.watch(step),
        }
    }

    /// Whether there is a version from which watches continue.
    fn is_following(&self) -> bool {
        self.synced == Synced::Yes
            && match &self.phase {
                MachinePhase::Opening(_)
                | MachinePhase::Watching(_)
                | MachinePhase::Waiting { next: NextRequest::Watch, .. } => true,
                MachinePhase::Listing(_) => !self.sharding.entering.is_empty(),
                MachinePhase::Idle
                | MachinePhase::Streaming(_)
                | MachinePhase::Probing { .. }
                | MachinePhase::Waiting { .. } => false,
            }
    }

    /// Lists the whole shard, unless that is the next request anyway.
    fn list_moved(&mut self, step: &mut Step<'_>) {
        self.sharding.lists_everything();
        match &mut self.phase {
            MachinePhase::Idle | MachinePhase::Probing { .. } => {}
            MachinePhase::Waiting { next, .. } => *next = NextRequest::List,
            MachinePhase::Streaming(_)
            | MachinePhase::Listing(_)
            | MachinePhase::Opening(_)
            | MachinePhase::Watching(_) => self.list(step),
        }
    }

    /// What has entered the shard is listed, up to this version.
    pub(super) fn entering_complete(&mut self, version: Version, step: &mut Step<'_>) {
        if self.version.as_ref().is_some_and(|ours| version < *ours) {
            return self.relist_went_back(step);
        }
        if let Some(entered) = self.sharding.entering() {
            self.sharding.ahead.push((entered, version));
        }
        self.sharding.entering = HashRanges::NONE;
        self.list_start = ListStart::ReachedVersion;
        self.deliver_shard_held(step);
        self.watch(step);
    }

    /// A list of the whole shard is complete.
    pub(super) fn shard_held(&mut self, step: &mut Step<'_>) {
        self.deliver_shard_held(step);
        self.ask_shard_support(step);
    }

    fn deliver_shard_held(&mut self, step: &mut Step<'_>) {
        if let Some(shard) = self.sharding.shard() {
            self.deliver(Delta::ShardHeld { scope: self.scope.clone(), shard }, step);
        }
    }

    /// Asks whether the server obeys the selector, unless that is known.
    pub(super) fn ask_shard_support(&mut self, step: &mut Step<'_>) {
        if let Some(shard) = self.sharding.shard()
            && self.sharding.support == ShardSupport::Unknown
            && !self.sharding.is_asking
        {
            self.sharding.is_asking = true;
            step.act(Action::AskShardSupport(shard));
        }
    }

    pub(super) fn shard_support_received(&mut self, answer: Result<ShardSupport, ServerError>, step: &mut Step<'_>) {
        self.sharding.is_asking = false;
        match answer {
            // An object outside of the shard may have shown it meanwhile.
            Ok(support) if self.sharding.support == ShardSupport::Unknown => self.sharding.support = support,
            Ok(_) => {}
            // Asked again when the next watch is open.
            Err(error) => self.report(&error, step),
        }
    }

    /// An item of a LIST does not belong to the shard.
    pub(super) fn item_outside(&mut self, now: Duration) {
        self.counters.outside += 1;
        if let MachinePhase::Listing(paged) = &mut self.phase {
            paged.progress.received(now);
            paged.progress.received_outside();
        }
    }
}
