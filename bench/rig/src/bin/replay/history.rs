//! The state and history of the cluster as numbers: object, state and resource version.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rig::control::Phase;
use rig::corpus::BASE_VERSION;

/// An object at a resource version.
#[derive(Debug, Clone, Copy)]
pub struct At {
    pub object: u32,
    pub state: u8,
    pub version: u64,
}

/// The type of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Added,
    Modified,
    Deleted,
}

pub type Change = (What, At);

/// The state of the cluster and the log of its changes.
pub struct History {
    inner: Mutex<Inner>,
    changed: Condvar,
}

struct Inner {
    version: u64,
    /// The minimum resource version from which a watch can start.
    oldest: u64,
    present: Vec<(At, bool)>,
    log: Vec<Change>,
    /// The object to update next.
    turn: usize,
    times: Vec<(u64, u64)>,
    timing: bool,
}

/// The result of reading the log.
pub enum LogRead {
    Changes(Vec<Change>),
    Expired,
    Nothing,
}

impl History {
    pub fn new(count: usize) -> Self {
        let present = (0..count).map(|object| {
            let at = At { object: object as u32, state: 0, version: BASE_VERSION + 1 + object as u64 };
            (at, true)
        });
        Self {
            inner: Mutex::new(Inner {
                version: BASE_VERSION + count as u64,
                oldest: 0,
                present: present.collect(),
                log: Vec::new(),
                turn: 0,
                times: Vec::new(),
                timing: false,
            }),
            changed: Condvar::new(),
        }
    }

    /// All objects and the current resource version.
    pub fn everything(&self) -> (Vec<At>, u64) {
        let inner = self.inner.lock();
        (inner.present.iter().filter(|(_, there)| *there).map(|(at, _)| *at).collect(), inner.version)
    }

    /// The changes after a resource version, up to `most`; waits if there are none.
    pub fn after(&self, version: u64, most: usize, wait: Duration) -> LogRead {
        let deadline = Instant::now() + wait;
        let mut inner = self.inner.lock();
        loop {
            if version < inner.oldest {
                return LogRead::Expired;
            }
            let from = inner.log.partition_point(|(_, at)| at.version <= version);
            if from < inner.log.len() {
                let to = inner.log.len().min(from + most);
                return LogRead::Changes(inner.log[from..to].to_vec());
            }
            if self.changed.wait_until(&mut inner, deadline).timed_out() {
                return LogRead::Nothing;
            }
        }
    }

    /// The objects that the next updates will change, with their new states.
    pub fn next_updates(&self, count: u64) -> Vec<(usize, usize)> {
        let inner = self.inner.lock();
        let objects = (1..=count as usize).map(|nth| (inner.turn + nth) * 7919 % inner.present.len());
        objects.map(|object| (object, usize::from(inner.present[object].0.state ^ 1))).collect()
    }

    /// Updates objects in scattered order.
    pub fn update(&self, count: u64) -> Phase {
        let mut inner = self.inner.lock();
        for _ in 0..count {
            inner.update_next();
        }
        self.publish(inner, count)
    }

    /// Deletes this many objects, then creates them again.
    pub fn churn(&self, count: u64) -> Phase {
        let mut inner = self.inner.lock();
        let first = inner.turn;
        for what in [What::Deleted, What::Added] {
            inner.turn = first;
            for _ in 0..count {
                let object = inner.next_turn();
                inner.present[object].1 = what == What::Added;
                inner.change(object, what);
            }
        }
        self.publish(inner, 2 * count)
    }

    /// Updates every object and discards the log.
    pub fn forget(&self) -> Phase {
        let mut inner = self.inner.lock();
        let count = inner.present.len();
        for object in 0..count {
            inner.version += 1;
            let version = inner.version;
            inner.present[object].0.version = version;
            inner.present[object].0.state ^= 1;
        }
        inner.log.clear();
        inner.oldest = inner.version;
        self.publish(inner, count as u64)
    }

    /// Starts recording when events are written.
    pub fn take_times(&self) {
        let mut inner = self.inner.lock();
        inner.times.clear();
        inner.timing = true;
    }

    /// Records that an event is about to be written.
    pub fn written(&self, version: u64, now: u64) {
        let mut inner = self.inner.lock();
        if inner.timing && inner.times.last().is_none_or(|(last, _)| *last < version) {
            inner.times.push((version, now));
        }
    }

    /// The recorded times.
    pub fn times(&self) -> Vec<(u64, u64)> {
        let mut inner = self.inner.lock();
        inner.timing = false;
        inner.times.clone()
    }

    fn publish(&self, inner: MutexGuard<'_, Inner>, events: u64) -> Phase {
        let version = inner.version;
        drop(inner);
        self.changed.notify_all();
        Phase { events, version }
    }
}

impl Inner {
    fn update_next(&mut self) {
        let object = self.next_turn();
        self.present[object].0.state ^= 1;
        self.change(object, What::Modified);
    }

    fn change(&mut self, object: usize, what: What) {
        self.version += 1;
        self.present[object].0.version = self.version;
        let at = self.present[object].0;
        self.log.push((what, at));
    }

    fn next_turn(&mut self) -> usize {
        self.turn += 1;
        self.turn * 7919 % self.present.len()
    }
}
