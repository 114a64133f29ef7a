//! What the queue stands on: a lock and a clock.
//!
//! The unit tests of this crate explore the schedules of the queue with shuttle, so there its lock is shuttle's, and time is moved by
//! hand. Everything else that uses the queue in a test is an integration test, on tokio's paused time.

pub(super) use self::here::{Clock, Mutex, Sleep};

#[cfg(not(test))]
mod here {
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::thread;
    use std::time::Duration;

    use parking_lot::MutexGuard;
    use tokio::time::Instant;

    use crate::workqueue::crowd::{Crowd, Manners};
    use crate::workqueue::moment::Moment;

    /// On lines of the cache of its own: those who have the queue and those who count its handles would take them from each other.
    #[derive(Debug)]
    #[repr(align(64))]
    pub(in crate::workqueue) struct Mutex<T> {
        inner: parking_lot::Mutex<T>,
        crowd: Crowd,
        start: std::time::Instant,
    }

    /// How long to step aside, at least: Linux lets a thread sleep some 50 µs longer than it asked for.
    const ASIDE: Duration = Duration::from_micros(20);

    impl<T> Mutex<T> {
        pub(in crate::workqueue) fn new(inner: T) -> Self {
            let (crowd, start) = (Crowd::default(), std::time::Instant::now());
            Self { inner: parking_lot::Mutex::new(inner), crowd, start }
        }

        #[inline]
        pub(in crate::workqueue) fn lock(&self) -> MutexGuard<'_, T> {
            self.inner.try_lock().unwrap_or_else(|| self.meet())
        }

        #[cold]
        fn meet(&self) -> MutexGuard<'_, T> {
            if self.crowd.meet(Moment::START.after(self.start.elapsed())) == Manners::StepAside {
                thread::sleep(ASIDE);
            }
            self.inner.lock()
        }
    }

    #[derive(Debug)]
    pub(in crate::workqueue) struct Clock {
        start: Instant,
    }

    #[derive(Debug)]
    pub(in crate::workqueue) struct Sleep(Pin<Box<tokio::time::Sleep>>);

    /// For a time that cannot be told as an instant. Whoever sleeps looks again after it.
    const FAR: Duration = Duration::from_secs(24 * 3600);

    impl Clock {
        pub(in crate::workqueue) fn new() -> Self {
            Self { start: Instant::now() }
        }

        pub(in crate::workqueue) fn now(&self) -> Moment {
            Moment::START.after(self.start.elapsed())
        }

        pub(in crate::workqueue) fn sleep_until(&self, due: Moment) -> Sleep {
            let until = self.start.checked_add(due.since(Moment::START));
            Sleep(Box::pin(tokio::time::sleep_until(until.unwrap_or_else(|| Instant::now() + FAR))))
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
