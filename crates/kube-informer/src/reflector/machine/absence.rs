//! A resource that the server does not know: not yet, or no longer.

use super::super::status::Synced;
use super::super::step::Action;
use super::{Machine, Phase, Step, Told};
use crate::client::ServerError;
use crate::reflector::definition_watch::DefinitionState;
use crate::store::Delta;

/// What is known of a resource that the server may not know.
#[derive(Debug, Default)]
pub(super) struct Absence {
    looking: Looking,
    sight: DefinitionState,
    server: Server,
    /// Whether what was in the cache has been told to be gone.
    told: Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Looking {
    #[default]
    No,
    Yes,
}

/// What the server said last of the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Server {
    #[default]
    KnowsIt,
    DoesNot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Gone {
    #[default]
    Untold,
    Told,
}

impl Machine {
    /// Something has failed. A resource that the server did not know and now is not ready for has come: waits are short again.
    pub(super) fn note_absence(&mut self, cause: &ServerError) {
        if cause.is_not_found() {
            self.absence.server = Server::DoesNot;
        } else if cause.is_too_many_requests() && std::mem::take(&mut self.absence.server) == Server::DoesNot {
            self.backoff.forget();
        }
    }

    /// Waiting has begun. If it is for a resource that the server does not know, somebody may see it come.
    pub(super) fn look_out(&mut self, step: &mut Step<'_>) {
        if !self.is_not_found() {
            return;
        }
        if self.absence.looking == Looking::No {
            self.absence.looking = Looking::Yes;
            step.act(Action::LookOut);
        }
        if self.absence.sight == DefinitionState::Absent {
            self.rest(step);
        }
    }

    /// The resource is there.
    pub(super) fn look_away(&mut self, step: &mut Step<'_>) {
        if std::mem::take(&mut self.absence).looking == Looking::Yes {
            step.act(Action::LookAway);
        }
    }

    pub(super) fn sighted(&mut self, sight: DefinitionState, step: &mut Step<'_>) {
        self.absence.sight = sight;
        if sight == DefinitionState::Present {
            self.backoff.forget();
        }
        if !self.is_not_found() {
            return;
        }
        match sight {
            DefinitionState::Absent => self.rest(step),
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

    /// Neither the server nor whoever looks out knows the resource: there is little to ask for, and nothing of it is left.
    fn rest(&mut self, step: &mut Step<'_>) {
        self.wait_until(step.now + self.settings.absent_retry);
        let Some(version) = self.version.clone().filter(|_| self.synced == Synced::Yes) else { return };
        if std::mem::replace(&mut self.absence.told, Gone::Told) == Gone::Untold {
            self.begin(step);
            self.relist = Told::Nothing;
            self.deliver(Delta::RelistEnded { scope: self.scope.clone(), version }, step);
        }
    }

    fn is_not_found(&self) -> bool {
        matches!(&self.phase, Phase::Waiting { cause, .. } if ServerError::is_not_found(cause))
    }

    fn wait_until(&mut self, moment: std::time::Duration) {
        if let Phase::Waiting { until, .. } = &mut self.phase {
            *until = moment;
        }
    }
}
