//! The lock and the clock of the queue.
//!
//! Unit tests explore the queue's schedules with shuttle: there the lock is shuttle's, and the test
//! advances the clock. Integration tests use tokio's paused time.

pub(super) use self::here::{Clock, Mutex, Sleep};

#[cfg(not(test))]
mod here {
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use parking_lot::MutexGuard;
    use tokio::time::Instant;

    use crate::workqueue::moment::Moment;

    /// Cache-line aligned to avoid false sharing with the `Arc` count.
    #[derive(Debug)]
    #[repr(align(64))]
    pub(in crate::workqueue) struct Mutex<T>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in crate::workqueue) fn new(inner: T) -> Self {
            Self(parking_lot::Mutex::new(inner))
        }

        #[inline]
        pub(in crate::workqueue) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock()
        }
    }

    #[derive(Debug)]
    pub(in crate::workqueue) struct Clock {
        start: Instant,
    }

    #[derive(Debug)]
    pub(in crate::workqueue) struct Sleep(Pin<Box<tokio::time::Sleep>>);

    /// Sleep for a due time that `Instant` cannot represent; the sleeper checks again afterwards.
    const MAX_SLEEP: Duration = Duration::from_secs(24 * 3600);

    impl Clock {
        pub(in crate::workqueue) fn new() -> Self {
            Self { start: Instant::now() }
        }

        pub(in crate::workqueue) fn now(&self) -> Moment {
            Moment::START.after(self.start.elapsed())
        }

        pub(in crate::workqueue) fn sleep_until(&self, due: Moment) -> Sleep {
            let until = self.start.checked_add(due.since(Moment::START));
            Sleep(Box::pin(tokio::time::sleep_until(until.unwrap_or_else(|| Instant::now() + MAX_SLEEP))))
        }
    }

    impl Sleep {
        pub(in crate::workqueue) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            self.0.as_mut().poll(cx)
        }
    }
}

#[cfg(test)]
mod here {
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};
    use std::time::Duration;

    use crate::workqueue::moment::Moment;

    #[derive(Debug)]
    pub(in crate::workqueue) struct Mutex<T>(shuttle::sync::Mutex<T>);

    #[derive(Debug, Clone)]
    pub(in crate::workqueue) struct Clock(Arc<Mutex<Time>>);

    #[derive(Debug)]
    struct Time {
        now: Moment,
        sleepers: Vec<(Moment, Waker)>,
    }

    #[derive(Debug)]
    pub(in crate::workqueue) struct Sleep {
        clock: Clock,
        due: Moment,
    }

    impl<T> Mutex<T> {
        pub(in crate::workqueue) fn new(inner: T) -> Self {
            Self(shuttle::sync::Mutex::new(inner))
        }

        pub(in crate::workqueue) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    impl Clock {
        pub(in crate::workqueue) fn new() -> Self {
            Self(Arc::new(Mutex::new(Time { now: Moment::START, sleepers: Vec::new() })))
        }

        pub(in crate::workqueue) fn now(&self) -> Moment {
            self.0.lock().now
        }

        pub(in crate::workqueue) fn sleep_until(&self, due: Moment) -> Sleep {
            Sleep { clock: self.clone(), due }
        }

        pub(in crate::workqueue) fn advance(&self, by: Duration) {
            let mut time = self.0.lock();
            time.now = time.now.after(by);
            let now = time.now;
            let due: Vec<_> = time.sleepers.extract_if(.., |(due, _)| *due <= now).collect();
            drop(time);
            due.into_iter().for_each(|(_, waker)| waker.wake());
        }
    }

    impl Sleep {
        pub(in crate::workqueue) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            let mut time = self.clock.0.lock();
            if self.due <= time.now {
                return Poll::Ready(());
            }
            time.sleepers.push((self.due, cx.waker().clone()));
            Poll::Pending
        }
    }
}
