//! The clock by which leases expire.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A monotonic clock: the time since an arbitrary start. Cheap to clone.
///
/// The default, [`system`](Self::system), goes on while the machine is suspended, if the system has
/// such a clock: Linux (`CLOCK_BOOTTIME`) and Apple's systems do. Without one, a process of a
/// machine that wakes up counts the time before and after, but not that of its sleep, and may write
/// until it has noticed that the lease was taken over. Every clock goes on while a process is
/// stopped (SIGSTOP, a debugger, a frozen control group). A virtual machine that its host pauses
/// may have no clock that goes on.
///
/// Timers do not count the time of a sleep on any system. They only decide when the election acts;
/// whether a write is sent is decided by this clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

/// The shortest wait for a clock that is behind tokio's.
const MIN_SLEEP: Duration = Duration::from_millis(1);

impl Clock {
    /// The later of tokio's clock and the system's clock that counts the time of suspension.
    ///
    /// Tokio's clock is part of it for tests on paused time, where it is the one that advances.
    #[must_use]
    pub fn system() -> Self {
        let (tokio, boot) = (Instant::now(), since_boot());
        Self::custom(move || tokio.elapsed().max(since_boot().saturating_sub(boot)))
    }

    /// Tokio's clock alone, for tests on paused time.
    #[must_use]
    pub fn tokio() -> Self {
        let start = Instant::now();
        Self::custom(move || start.elapsed())
    }

    /// Another clock: a function that returns the time since some start, and never goes back.
    #[must_use]
    pub fn custom(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time since the start of the clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        (self.0)()
    }

    /// Waits until the clock shows this time. A clock that is faster than tokio's shows more.
    pub(crate) async fn sleep_until(&self, then: Duration) {
        loop {
            let remaining = then.saturating_sub(self.now());
            if remaining.is_zero() {
                return;
            }
            sleep(remaining.max(MIN_SLEEP)).await;
        }
    }

    /// Runs a future until the clock shows this time.
    pub(crate) async fn timeout_at<T>(&self, then: Duration, future: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = future => Some(done),
            () = self.sleep_until(then) => None,
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

/// The time since the machine was started, with the time of suspension.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn since_boot() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: ClockId = ClockId::Boottime;
    // On Apple's systems this clock counts the time of suspension.
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::Monotonic;

    let now = clock_gettime(CLOCK);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// No clock that counts the time of suspension is known here.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn since_boot() -> Duration {
    Duration::ZERO
}
