//! The state of a pod in the simulated cluster, and how it is reflected in the pod's [`Life`].

use super::life::{Life, Phase, Readiness, Restart, container_id};

/// The lifecycle stage of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Created, not yet bound to a node.
    Made,
    /// Bound, not yet seen by the kubelet.
    Bound,
    /// The containers are being created.
    Creating,
    Unready,
    Ready,
    /// The main container is in a crash loop.
    Crashing,
}

/// The state changes of a pod so far. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PodProgress {
    pub(crate) stage: Stage,
    /// When the pod was created. `None` for the initial pods, whose age is generated.
    pub(crate) born: Option<i64>,
    pub(crate) started: i64,
    /// When the stage was reached; 0 if the pod is still in its generated state.
    pub(crate) changed: i64,
    /// Number of restarts since the simulation started, and the time of the last one.
    pub(crate) restarts: u64,
    pub(crate) restarted: i64,
}

impl PodProgress {
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

    /// Moves to a stage.
    pub(crate) fn reach(&mut self, stage: Stage, now: i64) {
        if stage == Stage::Unready && matches!(self.stage, Stage::Made | Stage::Bound | Stage::Creating) {
            self.started = now;
        }
        self.stage = stage;
        self.changed = now;
    }

    /// Restarts the main container, at once or with a backoff, depending on the stage.
    pub(crate) fn fail(&mut self, stage: Stage, now: i64) {
        self.restarts += 1;
        self.restarted = now;
        self.reach(stage, now);
    }
}

impl Life {
    /// Applies a pod's course to its generated life.
    pub(super) fn follow(&mut self, seed: u64, index: u64, course: &PodProgress) {
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
