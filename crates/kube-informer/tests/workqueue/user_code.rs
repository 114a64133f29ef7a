//! Code of the user that a queue calls may itself use the queue.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use crate::support::{S, now};
use kube_informer::WorkQueue;
use kube_informer::workqueue::RateLimit;

/// Runs what deadlocks if code of the user is called while the queue is locked.
fn without_deadlock(run: impl FnOnce() + Send + 'static) {
    let (done, waits) = mpsc::channel();
    thread::spawn(move || {
        run();
        done.send(()).expect("the test waits");
    });
    waits.recv_timeout(Duration::from_secs(120)).expect("neither a deadlock nor a panic");
}

#[test]
fn a_custom_rate_limit_may_use_the_queue() {
    without_deadlock(|| {
        let own = Arc::new(OnceLock::<WorkQueue<&str>>::new());
        let queue = Arc::clone(&own);
        let limit = RateLimit::custom(move |failures| {
            let queue = queue.get().expect("the queue is built");
            queue.add("noted");
            S * (failures + 1)
        });
        let queue = WorkQueue::new(limit.and(RateLimit::none()).max_wait(9 * S));
        own.set(queue.clone()).expect("set once");
        queue.retry("a");
        queue.retry("a");
        assert_eq!((queue.attempts(&"a"), queue.delayed(), queue.len()), (2, 1, 1));
        let noted = now(queue.next()).flatten().expect("the rate limit has added it");
        noted.retry();
        assert_eq!((queue.attempts(&"noted"), queue.delayed(), queue.len()), (1, 1, 1));
    });
}

/// An item that looks at its queue when it is dropped.
#[derive(Debug, Clone)]
struct Nosy(&'static str, Arc<OnceLock<WorkQueue<Nosy>>>);

impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(queue) = self.1.get() {
            let _len = queue.len();
        }
    }
}

impl PartialEq for Nosy {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Nosy {}

impl Hash for Nosy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

#[test]
fn an_item_that_is_dropped_may_use_the_queue() {
    without_deadlock(|| {
        let own = Arc::new(OnceLock::new());
        let item = |name| Nosy(name, Arc::clone(&own));
        let queue = WorkQueue::new(RateLimit::none());
        own.set(queue.clone()).expect("set once");
        queue.retry(item("failed"));
        now(queue.next()).flatten().expect("it is ready").done();
        queue.forget(&item("failed"));
        queue.add_after(item("delayed"), S);
        queue.add_after(item("delayed"), S);
        assert_eq!(queue.delayed(), 1);
        queue.shutdown();
        assert_eq!(queue.delayed(), 0);
    });
}
