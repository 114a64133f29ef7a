//! Threads that meet at the queue.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::moment::Moment;

/// Notices that threads take the queue from each other with every step.
///
/// Handing it over costs more than what is done there, so one thread gets through more work by itself than two that meet each time, and the
/// other one need not burn meanwhile. So whoever finds the queue locked when that has happened again and again steps aside for a while. Threads that
/// work on something between two steps, be it for 200 ns, do not meet that often: they only wait until the queue is unlocked.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    /// When two met, in nanoseconds.
    last: AtomicU64,
    /// How many have followed each other with little time in between, the last one included.
    meetings: AtomicU32,
}

/// What to do for somebody who finds the queue locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manners {
    /// It will be unlocked at once.
    Wait,
    /// Let others get on with it.
    StepAside,
}

/// Meetings with less time in between are one crowd,
const SOON: Duration = Duration::from_nanos(300);
/// if there are more of them than this.
const CROWD: u32 = 4;

impl Crowd {
    /// Somebody found the queue locked.
    pub(super) fn meet(&self, now: Moment) -> Manners {
        let last = self.last.swap(now.nanos(), Ordering::Relaxed);
        if u128::from(now.nanos().saturating_sub(last)) > SOON.as_nanos() {
            self.meetings.store(1, Ordering::Relaxed);
            return Manners::Wait;
        }
        if self.meetings.fetch_add(1, Ordering::Relaxed) < CROWD {
            return Manners::Wait;
        }
        self.meetings.store(0, Ordering::Relaxed);
        Manners::StepAside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meetings(apart: Duration) -> Vec<Manners> {
        let crowd = Crowd::default();
        (1..=100).map(|i| crowd.meet(Moment::START.after(Duration::from_secs(1) + apart * i))).collect()
    }

    #[test]
    fn whoever_meets_others_again_and_again_steps_aside_now_and_then() {
        let aside = meetings(Duration::from_nanos(200)).iter().filter(|it| **it == Manners::StepAside).count();
        assert!((16..=20).contains(&aside), "{aside} of 100");
    }

    #[test]
    fn whoever_meets_others_seldom_waits_for_them() {
        assert!(!meetings(Duration::from_nanos(400)).contains(&Manners::StepAside));
    }

    #[test]
    fn a_pause_ends_a_crowd() {
        let crowd = Crowd::default();
        let mut now = Moment::START;
        for _ in 0..100 {
            for _ in 0..CROWD {
                now = now.after(Duration::from_nanos(200));
                assert_eq!(crowd.meet(now), Manners::Wait);
            }
            now = now.after(Duration::from_micros(2));
        }
    }
}
