//! What becomes of a pod in a cluster that lives on, and how that shows in its life.

use super::life::{Life, Phase, Readiness, Restart, container_id};

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Wanted, and on no node yet.
    Made,
    /// On a node that has not looked at it yet.
    Bound,
    /// Its containers are being created.
    Creating,
    Unready,
    Ready,
    /// Its main container fails again and again.
    Crashing,
}

/// What has become of a pod so far. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Course {
    pub(crate) stage: Stage,
    /// When it was made; those of the first population are as old as the generator says.
    pub(crate) born: Option<i64>,
    pub(crate) started: i64,
    /// When the stage was reached; 0 for a pod that is as it was generated.
    pub(crate) changed: i64,
    /// Restarts since the pretending began, and when the last one was.
    pub(crate) restarts: u64,
    pub(crate) restarted: i64,
}

impl Course {
    pub(crate) fn new(born: i64) -> Self {
        Self { stage: Stage::Made, born: Some(born), started: born, changed: born, restarts: 0, restarted: 0 }
    }

    pub(super) fn of(life: &Life) -> Self {
        let stage = match (life.phase, life.readiness) {
            (Phase::Pending, _) => Stage::Creating,
            (Phase::Crashing, _) => Stage::Crashing,
            (_, Readiness::Ready) => Stage::Ready,
            (_, Readiness::Unready) => Stage::Unready,
        };
        Self { stage, born: None, started: life.started, changed: 0, restarts: 0, restarted: 0 }
    }

    /// Reaches a stage.
    pub(crate) fn reach(&mut self, stage: Stage, now: i64) {
        if stage == Stage::Unready && matches!(self.stage, Stage::Made | Stage::Bound | Stage::Creating) {
            self.started = now;
        }
        self.stage = stage;
        self.changed = now;
    }

    /// The main container fails and is started again, at once or later.
    pub(crate) fn fail(&mut self, stage: Stage, now: i64) {
        self.restarts += 1;
        self.restarted = now;
        self.reach(stage, now);
    }
}

impl Life {
    /// The life of a pod that was generated with this one and has come so far since.
    pub(super) fn follow(&mut self, seed: u64, index: u64, course: &Course) {
        if course.changed == 0 {
            return;
        }
        if let Some(born) = course.born {
            self.settle();
            self.restarts = 0;
            (self.created, self.initialized, self.sandboxed) = (born, born, born + 1);
        }
        self.started = course.started;
        (self.phase, self.readiness) = match course.stage {
            Stage::Made | Stage::Bound | Stage::Creating => (Phase::Pending, Readiness::Unready),
            Stage::Unready => (Phase::Running, Readiness::Unready),
            Stage::Ready => (Phase::Running, Readiness::Ready),
            Stage::Crashing => (Phase::Crashing, Readiness::Unready),
        };
        self.ready_changed = course.changed;
        self.touched = course.changed;
        self.restarts += course.restarts;
        if course.restarts > 0 {
            let began = self.restarted.as_ref().map_or(self.started, |last| last.at);
            self.restarted = Some(Restart {
                at: course.restarted,
                began: began.min(course.restarted),
                ended: course.restarted,
                exit_code: if index.is_multiple_of(3) { 137 } else { 1 },
                container_id: container_id(seed, index, 0, self.restarts - 1),
            });
        }
        if let Some(main) = self.container_ids.first_mut() {
            *main = container_id(seed, index, 0, self.restarts);
        }
    }
}
