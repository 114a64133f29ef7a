//! Bounds what watches add to the store between two lists.

use super::super::status::RelistReason;
use super::super::step::Action;
use super::{Machine, MachinePhase, Step};
use crate::client::{Failure, Operation};

/// How much the store has grown since the last complete list.
///
/// What an object adds depends on what it replaces and on how it is encoded, which only the sink
/// knows. Measuring it takes time for each object, so it is measured each time that the watch has
/// delivered half of the limit: at most one and a half times the limit is added.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// The size of the last complete list.
    list: u64,
    /// What was held of it, once that has been measured.
    listed: Option<u64>,
    /// Bytes of objects delivered since the last measurement.
    received: u64,
}

impl Machine {
    /// A list of this size is complete.
    pub(super) fn measure_listed(&mut self, list: u64, step: &mut Step<'_>) {
        self.growth = Growth { list, ..Growth::default() };
        step.act(Action::MeasureHeld);
    }

    /// The watch has delivered an object of this size.
    pub(super) fn measure_growth(&mut self, bytes: u64, step: &mut Step<'_>) {
        self.growth.received = self.growth.received.saturating_add(bytes);
        if self.growth.received > self.settings.max_watch_bytes / 2 {
            self.growth.received = 0;
            step.act(Action::MeasureHeld);
        }
    }

    /// The sink holds this many bytes of objects. Lists again if watches have added too many: then
    /// the limit of lists applies to all of them.
    pub(super) fn held(&mut self, bytes: u64, step: &mut Step<'_>) {
        // The first measurement is that of the list itself. What it has replaced or removed may
        // still be held then.
        let Some(listed) = self.growth.listed else {
            self.growth.listed = Some(bytes.min(self.growth.list));
            return;
        };
        let limit = self.settings.max_watch_bytes;
        if bytes.saturating_sub(listed) > limit && matches!(self.phase, MachinePhase::Watching(_)) {
            let error = self.error(Operation::Watch, Failure::WatchTooLarge { limit });
            self.report(&error, step);
            self.relist(RelistReason::Grown, error, step);
        }
    }
}
