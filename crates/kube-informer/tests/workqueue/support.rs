//! Shared by work queue tests.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kube_informer::WorkQueue;
use kube_informer::workqueue::{Item, RateLimit};

pub const MS: Duration = Duration::from_millis(1);
pub const S: Duration = Duration::from_secs(1);

pub type Queue = WorkQueue<&'static str>;

pub fn queue() -> Queue {
    WorkQueue::new(RateLimit::exponential(S, 1000 * S))
}

/// Polls a future once; returns its output if it is ready.
pub fn now<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Takes an item that is ready.
pub fn take(queue: &Queue) -> Item<&'static str> {
    now(queue.next()).expect("something is ready").expect("the queue is open")
}

pub fn nothing_is_ready(queue: &Queue) -> bool {
    now(queue.next()).is_none()
}

pub fn all_ready(queue: &Queue) -> Vec<&'static str> {
    std::iter::from_fn(|| now(queue.next())?)
        .map(|item| {
            let name = *item;
            item.forget();
            name
        })
        .collect()
}
