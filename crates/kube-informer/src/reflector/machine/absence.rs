//! Resources that the server does not know: not yet, or no longer.

use super::super::status::Synced;
use super::super::step::Action;
use super::{Machine, MachinePhase, RelistState, Step};
use crate::client::ServerError;
use crate::reflector::definition_watch::DefinitionState;
use crate::store::Delta;

/// What is known about a resource that the server may not know.
#[derive(Debug, Default)]
pub(super) struct Absence {
    is_watching_definition: bool,
    definition: DefinitionState,
    /// Whether the server last reported the resource as unknown.
    is_unknown: bool,
    /// Whether the deletion of the cached objects has been delivered.
    deletion_delivered: bool,
}

impl Machine {
    /// Records a failure. A resource that was unknown and is now reported as not ready has been
    /// created: the backoff is reset.
    pub(super) fn note_absence(&mut self, cause: &ServerError) {
        if cause.is_not_found() {
            self.absence.is_unknown = true;
        } else if cause.is_too_many_requests() && std::mem::take(&mut self.absence.is_unknown) {
            self.backoff.forget();
        }
    }

    /// Called at the start of a wait: starts the definition watch if the server does not know the
    /// resource.
    pub(super) fn watch_definition(&mut self, step: &mut Step<'_>) {
        if !self.is_not_found() {
            return;
        }
        if !self.absence.is_watching_definition {
            self.absence.is_watching_definition = true;
            step.act(Action::WatchDefinition);
        }
        if self.absence.definition == DefinitionState::Absent {
            self.wait_for_definition(step);
        }
    }

    /// The server knows the resource: stops the definition watch.
    pub(super) fn unwatch_definition(&mut self, step: &mut Step<'_>) {
        if std::mem::take(&mut self.absence).is_watching_definition {
            step.act(Action::UnwatchDefinition);
        }
    }

    pub(super) fn definition_changed(&mut self, state: DefinitionState, step: &mut Step<'_>) {
        self.absence.definition = state;
        if state == DefinitionState::Present {
            self.backoff.forget();
        }
        if !self.is_not_found() {
            return;
        }
        match state {
            DefinitionState::Absent => self.wait_for_definition(step),
            DefinitionState::Present => {
                self.wait_until(step.now);
                self.tick(step);
            }
            DefinitionState::Unknown => {
                let soon = step.now + self.settings.backoff.cap;
                if self.due().is_some_and(|due| due > soon) {
                    self.wait_until(soon);
                }
            }
        }
    }

    /// Neither the server nor the definition watch knows the resource: retries rarely, and removes
    /// its objects from the store.
    fn wait_for_definition(&mut self, step: &mut Step<'_>) {
        self.wait_until(step.now + self.settings.absent_retry);
        let Some(version) = self.version.clone().filter(|_| self.synced == Synced::Yes) else { return };
        if !std::mem::replace(&mut self.absence.deletion_delivered, true) {
            self.begin_relist(step);
            self.relist = RelistState::NotBegun;
            self.deliver(Delta::RelistEnded { scope: self.scope.clone(), version }, step);
        }
    }

    fn is_not_found(&self) -> bool {
        matches!(&self.phase, MachinePhase::Waiting { cause, .. } if ServerError::is_not_found(cause))
    }

    fn wait_until(&mut self, moment: std::time::Duration) {
        if let MachinePhase::Waiting { until, .. } = &mut self.phase {
            *until = moment;
        }
    }
}
