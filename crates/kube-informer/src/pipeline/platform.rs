//! The locks and the watch channels of the pipeline.
//!
//! Unit tests explore the schedules of its threads with shuttle: there both are built on shuttle's
//! mutex, so that every operation is a point at which another thread may run.

pub(crate) use self::here::{Mutex, watch};

#[cfg(not(test))]
mod here {
    pub(crate) use parking_lot::Mutex;
    pub(crate) use tokio::sync::watch;
}

#[cfg(test)]
mod here {
    use shuttle::sync::MutexGuard;

    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(inner: T) -> Self {
            Self(shuttle::sync::Mutex::new(inner))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap()
        }
    }

    /// As `tokio::sync::watch`, but with a mutex instead of a reader-writer lock: a borrow within a
    /// borrow is a deadlock in every schedule, not only if a writer comes in between.
    pub(crate) mod watch {
        use std::fmt;
        use std::future::poll_fn;
        use std::ops::Deref;
        use std::sync::Arc;
        use std::task::{Poll, Waker};

        use super::{Mutex, MutexGuard};

        pub(crate) struct Sender<T>(Arc<Mutex<State<T>>>);

        pub struct Receiver<T> {
            state: Arc<Mutex<State<T>>>,
            seen: u64,
        }

        pub(crate) struct Ref<'a, T>(MutexGuard<'a, State<T>>);

        /// The sender has been dropped.
        #[derive(Debug)]
        pub(crate) struct RecvError;

        struct State<T> {
            value: T,
            version: u64,
            receivers: usize,
            has_sender: bool,
            /// The wakers of receivers that wait for a change.
            changes: Vec<Waker>,
            /// The wakers of a sender that waits until no receiver is left.
            closings: Vec<Waker>,
        }

        impl<T> Sender<T> {
            pub(crate) fn new(value: T) -> Self {
                let (changes, closings) = (Vec::new(), Vec::new());
                let state = State { value, version: 0, receivers: 0, has_sender: true, changes, closings };
                Self(Arc::new(Mutex::new(state)))
            }

            pub(crate) fn subscribe(&self) -> Receiver<T> {
                let mut state = self.0.lock();
                state.receivers += 1;
                Receiver { state: Arc::clone(&self.0), seen: state.version }
            }

            pub(crate) fn borrow(&self) -> Ref<'_, T> {
                Ref(self.0.lock())
            }

            pub(crate) fn send_replace(&self, value: T) -> T {
                let mut before = value;
                self.send_modify(|value| std::mem::swap(value, &mut before));
                before
            }

            pub(crate) fn send_modify(&self, modify: impl FnOnce(&mut T)) {
                self.send_if_modified(|value| {
                    modify(value);
                    true
                });
            }

            pub(crate) fn send_if_modified(&self, modify: impl FnOnce(&mut T) -> bool) -> bool {
                let mut state = self.0.lock();
                if !modify(&mut state.value) {
                    return false;
                }
                state.version += 1;
                let changes = std::mem::take(&mut state.changes);
                drop(state);
                changes.into_iter().for_each(Waker::wake);
                true
            }

            pub(crate) fn is_closed(&self) -> bool {
                self.0.lock().receivers == 0
            }

            pub(crate) async fn closed(&self) {
                poll_fn(|cx| {
                    let mut state = self.0.lock();
                    if state.receivers == 0 {
                        return Poll::Ready(());
                    }
                    state.closings.push(cx.waker().clone());
                    Poll::Pending
                })
                .await;
            }
        }

        impl<T> Receiver<T> {
            pub(crate) fn borrow(&self) -> Ref<'_, T> {
                Ref(self.state.lock())
            }

            pub(crate) fn borrow_and_update(&mut self) -> Ref<'_, T> {
                let state = self.state.lock();
                self.seen = state.version;
                Ref(state)
            }

            pub(crate) fn mark_unchanged(&mut self) {
                drop(self.borrow_and_update());
            }

            pub(crate) async fn changed(&mut self) -> Result<(), RecvError> {
                poll_fn(|cx| {
                    let mut state = self.state.lock();
                    if state.version != self.seen {
                        self.seen = state.version;
                        return Poll::Ready(Ok(()));
                    }
                    if !state.has_sender {
                        return Poll::Ready(Err(RecvError));
                    }
                    state.changes.push(cx.waker().clone());
                    Poll::Pending
                })
                .await
            }

            pub(crate) async fn wait_for(&mut self, mut test: impl FnMut(&T) -> bool) -> Result<Ref<'_, T>, RecvError> {
                while !test(&self.borrow_and_update()) {
                    self.changed().await?;
                }
                Ok(self.borrow())
            }
        }

        impl<T> Clone for Receiver<T> {
            fn clone(&self) -> Self {
                self.state.lock().receivers += 1;
                Self { state: Arc::clone(&self.state), seen: self.seen }
            }
        }

        impl<T> Drop for Sender<T> {
            fn drop(&mut self) {
                let mut state = self.0.lock();
                state.has_sender = false;
                let changes = std::mem::take(&mut state.changes);
                drop(state);
                changes.into_iter().for_each(Waker::wake);
            }
        }

        impl<T> Drop for Receiver<T> {
            fn drop(&mut self) {
                let mut state = self.state.lock();
                state.receivers -= 1;
                let closings = if state.receivers == 0 { std::mem::take(&mut state.closings) } else { Vec::new() };
                drop(state);
                closings.into_iter().for_each(Waker::wake);
            }
        }

        impl<T> Deref for Ref<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0.value
            }
        }

        impl<T> fmt::Debug for Sender<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Sender").finish_non_exhaustive()
            }
        }

        impl<T> fmt::Debug for Receiver<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct("Receiver").finish_non_exhaustive()
            }
        }
    }
}
