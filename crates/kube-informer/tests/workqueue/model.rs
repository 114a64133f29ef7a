//! Model test: the work queue compared with a literal model of client-go's, on thousands of random
//! operation sequences.
//!
//! Where the two should agree, they do after every step; intended differences are part of the
//! model.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kube_informer::workqueue::{Item, Priority, RateLimit};
use kube_informer::{Origin, WorkQueue};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tokio::runtime::Builder;

const SEQUENCES: u64 = 3_000;
const STEPS: usize = 150;
const ITEMS: u8 = 4;

/// An operation on a queue.
#[derive(Debug, Clone, Copy)]
enum Op {
    Add(u8, Origin),
    AddAfter(u8, u64),
    Retry(u8),
    Forget(u8),
    Take,
    /// Ends the processing of a running item.
    End(u8, End),
    /// Advances time by milliseconds.
    Pass(u64),
    Shutdown,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Done,
    Forget,
    Retry,
    RetryAfter(u64),
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    ClientGo,
    /// With the documented differences of our queue.
    Ours,
}

/// Model of client-go's queue: the queue, the dirty set and the processing set, the delayed items,
/// and the number of failures per item.
struct Model {
    rules: Rules,
    now: u64,
    number: u64,
    /// In insertion order; client-go has a single priority.
    queue: Vec<(u8, Priority)>,
    dirty: BTreeSet<u8>,
    processing: BTreeMap<u8, Priority>,
    /// Time when it is ready, insertion number, and priority with which it will be added.
    waiting: BTreeMap<u8, (u64, u64, Priority)>,
    failures: BTreeMap<u8, u32>,
    shutting_down: bool,
    /// Only in our rules: for an item added while it is processed, whether a live add was among
    /// them, and the highest priority.
    again: BTreeMap<u8, (bool, Priority)>,
}

impl Model {
    fn new(rules: Rules) -> Self {
        Self {
            rules,
            now: 0,
            number: 0,
            queue: Vec::new(),
            dirty: BTreeSet::new(),
            processing: BTreeMap::new(),
            waiting: BTreeMap::new(),
            failures: BTreeMap::new(),
            shutting_down: false,
            again: BTreeMap::new(),
        }
    }

    fn add(&mut self, item: u8, priority: Priority, fresh: bool) {
        if self.shutting_down {
            return;
        }
        let queued = self.dirty.contains(&item) && !self.processing.contains_key(&item);
        if self.rules == Rules::Ours && !queued && self.waiting.contains_key(&item) {
            if !fresh && self.num_requeues(item) > 0 {
                let waiting = self.waiting.get_mut(&item).expect("it waits");
                waiting.2 = waiting.2.max(priority);
                return;
            }
            self.waiting.remove(&item);
        }
        if self.dirty.contains(&item) {
            if queued {
                self.touch(item, priority);
            } else if let Some(again) = self.again.get_mut(&item) {
                *again = (again.0 || fresh, again.1.max(priority));
            }
            return;
        }
        self.dirty.insert(item);
        if self.processing.contains_key(&item) {
            self.again.insert(item, (fresh, priority));
            return;
        }
        self.queue.push((item, priority));
    }

    fn touch(&mut self, item: u8, priority: Priority) {
        let place = self.queue.iter().position(|(other, _)| *other == item).expect("it is queued");
        if priority > self.queue[place].1 {
            self.queue.remove(place);
            self.queue.push((item, priority));
        }
    }

    fn get(&mut self) -> Option<u8> {
        let highest = self.queue.iter().map(|(_, priority)| *priority).max()?;
        let place = self.queue.iter().position(|(_, priority)| *priority == highest).expect("one has the highest");
        let (item, priority) = self.queue.remove(place);
        self.processing.insert(item, priority);
        self.dirty.remove(&item);
        Some(item)
    }

    fn done(&mut self, item: u8) {
        self.processing.remove(&item);
        let again = self.again.remove(&item);
        if self.dirty.contains(&item) {
            self.queue.push((item, again.map_or(Priority::High, |(_, priority)| priority)));
        }
    }

    fn add_after(&mut self, item: u8, delay: u64, priority: Priority) {
        if self.shutting_down {
            return;
        }
        if delay == 0 {
            return self.add(item, priority, true);
        }
        let ready = (self.now + delay, self.number, priority);
        self.number += 1;
        let old = self.waiting.get(&item).copied();
        let priority = old.map_or(priority, |(.., old)| old.max(priority));
        let (due, number, _) = old.filter(|(due, ..)| *due <= ready.0).unwrap_or(ready);
        self.waiting.insert(item, (due, number, priority));
    }

    fn add_rate_limited(&mut self, item: u8, priority: Priority) {
        let delay = self.when(item);
        self.add_after(item, delay, priority);
    }

    fn when(&mut self, item: u8) -> u64 {
        let failures = self.failures.entry(item).or_default();
        *failures += 1;
        (4 << (*failures - 1).min(10)).min(64)
    }

    fn num_requeues(&self, item: u8) -> u32 {
        self.failures.get(&item).copied().unwrap_or(0)
    }

    fn end(&mut self, item: u8, end: End) {
        let priority = self.processing[&item];
        match end {
            End::Done => {}
            End::Forget => drop(self.failures.remove(&item)),
            End::Retry | End::Drop | End::RetryAfter(_) if self.shutting_down => {}
            End::Retry | End::Drop | End::RetryAfter(_) => self.back(item, end, priority),
        }
        self.done(item);
    }

    fn back(&mut self, item: u8, end: End, priority: Priority) {
        let delay = if let End::RetryAfter(delay) = end { delay } else { self.when(item) };
        let Some((fresh, again)) = self.again.get(&item).copied().filter(|_| self.rules == Rules::Ours) else {
            return self.add_after(item, delay, priority);
        };
        let priority = priority.max(again);
        if fresh || self.num_requeues(item) == 0 {
            // An item added meanwhile runs immediately, so no delay is needed.
            self.again.insert(item, (fresh, priority));
        } else {
            // A non-live add, such as a resync, waits for the delay too.
            self.again.remove(&item);
            self.dirty.remove(&item);
            self.add_after(item, delay, priority);
        }
    }

    fn pass(&mut self, millis: u64) {
        self.now += millis;
        while let Some((item, priority)) = self.due() {
            self.waiting.remove(&item);
            self.add(item, priority, true);
        }
    }

    fn due(&self) -> Option<(u8, Priority)> {
        let due = self.waiting.iter().filter(|(_, (due, ..))| *due <= self.now);
        due.min_by_key(|(_, (due, number, _))| (*due, *number)).map(|(item, (.., priority))| (*item, *priority))
    }

    fn shut_down(&mut self) {
        self.shutting_down = true;
        self.waiting.clear();
    }

    /// Returns whether the queues differ on this operation by design.
    fn differs(&self, op: Op) -> bool {
        match op {
            Op::Add(item, _) => self.waiting.contains_key(&item),
            Op::AddAfter(item, 0) => self.waiting.contains_key(&item),
            Op::End(item, End::RetryAfter(0)) => self.waiting.contains_key(&item) || self.dirty.contains(&item),
            Op::End(item, End::Retry | End::RetryAfter(_) | End::Drop) => self.dirty.contains(&item),
            _ => false,
        }
    }
}

/// The queue and the model, driven in parallel.
struct QueueAndModel {
    queue: WorkQueue<u8>,
    running: BTreeMap<u8, Item<u8>>,
    model: Model,
}

impl QueueAndModel {
    fn new(rules: Rules) -> Self {
        let limit = RateLimit::exponential(Duration::from_millis(4), Duration::from_millis(64));
        let queue = WorkQueue::builder().rate_limit(limit).longest_wait(Duration::MAX).build();
        Self { queue, running: BTreeMap::new(), model: Model::new(rules) }
    }

    async fn step(&mut self, op: Op) {
        match op {
            Op::Add(item, origin) => {
                self.queue.add_from(item, origin);
                self.model.add(item, origin.into(), origin == Origin::Live);
            }
            Op::AddAfter(item, delay) => {
                self.queue.add_after(item, Duration::from_millis(delay));
                self.model.add_after(item, delay, Priority::High);
            }
            Op::Retry(item) if !self.model.shutting_down => {
                self.queue.retry(item);
                self.model.add_rate_limited(item, Priority::High);
            }
            Op::Retry(item) => self.queue.retry(item),
            Op::Forget(item) => {
                self.queue.forget(&item);
                self.model.failures.remove(&item);
            }
            Op::Take => {
                let taken = now(self.queue.next()).flatten();
                assert_eq!(taken.as_deref().copied(), self.model.get());
                self.running.extend(taken.map(|item| (*item, item)));
            }
            Op::End(item, end) => {
                let Some(taken) = self.running.remove(&item) else { return };
                match end {
                    End::Done => taken.done(),
                    End::Forget => taken.forget(),
                    End::Retry => taken.retry(),
                    End::RetryAfter(delay) => taken.retry_after(Duration::from_millis(delay)),
                    End::Drop => drop(taken),
                }
                self.model.end(item, end);
            }
            Op::Pass(millis) => {
                tokio::time::advance(Duration::from_millis(millis)).await;
                self.model.pass(millis);
            }
            Op::Shutdown => {
                self.queue.shutdown();
                self.model.shut_down();
            }
        }
    }

    fn assert_equal(&self) {
        let Self { queue, model, .. } = self;
        assert_eq!(queue.len(), model.queue.len(), "queued");
        assert_eq!(queue.delayed(), model.waiting.len(), "waiting");
        assert_eq!(queue.running(), model.processing.len(), "running");
        for item in 0..ITEMS {
            assert_eq!(queue.attempts(&item), model.num_requeues(item), "failures of {item}");
        }
    }
}

fn now<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn random_op(random: &mut Pcg64, rules: Rules) -> Op {
    let item = random.random_range(0..ITEMS);
    let delay = [0, 1, 4, 4, 10, 100][random.random_range(0..6)];
    match random.random_range(0..100) {
        0..20 if rules == Rules::ClientGo => Op::Add(item, Origin::Live),
        0..20 => {
            Op::Add(item, [Origin::Initial, Origin::Live, Origin::Relist, Origin::Resync][random.random_range(0..4)])
        }
        20..32 => Op::AddAfter(item, delay),
        32..38 => Op::Retry(item),
        38..42 => Op::Forget(item),
        42..62 => Op::Take,
        62..68 => Op::End(item, End::Done),
        68..74 => Op::End(item, End::Forget),
        74..80 => Op::End(item, End::Retry),
        80..84 => Op::End(item, End::RetryAfter(delay)),
        84..87 => Op::End(item, End::Drop),
        87..99 => Op::Pass([1, 2, 5, 30][random.random_range(0..4)]),
        _ if random.random_range(0..3) == 0 => Op::Shutdown,
        _ => Op::Take,
    }
}

fn run(story: impl Future<Output = ()>) {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime can be had");
    runtime.block_on(tokio::task::coop::unconstrained(story));
}

/// Runs random sequences of operations. On failure the seed and the operations so far are printed.
fn play(rules: Rules, leave_out: impl Fn(&Model, Op) -> bool) {
    struct OperationLog(u64, Vec<Op>);
    impl Drop for OperationLog {
        fn drop(&mut self) {
            if std::thread::panicking() {
                println!("seed {}: {:?}", self.0, self.1);
            }
        }
    }
    for seed in 0..SEQUENCES {
        run(async {
            let mut random = Pcg64::seed_from_u64(seed);
            let mut both = QueueAndModel::new(rules);
            let mut story = OperationLog(seed, Vec::new());
            for _ in 0..STEPS {
                let op = random_op(&mut random, rules);
                if leave_out(&both.model, op) {
                    continue;
                }
                story.1.push(op);
                both.step(op).await;
                both.assert_equal();
            }
        });
    }
}

#[test]
fn where_no_difference_is_meant_the_queue_does_what_client_gos_does() {
    play(Rules::ClientGo, Model::differs);
}

#[test]
fn where_differences_are_meant_they_are_the_stated_ones() {
    play(Rules::Ours, |_, _| false);
}

/// Times at which an item runs if it always succeeds: by client-go's rules and by ours.
fn runs(story: &[Op]) -> (Vec<u64>, Vec<u64>) {
    let play = |mut model: Model| {
        let mut runs = Vec::new();
        for op in story {
            match *op {
                Op::Add(item, origin) => model.add(item, origin.into(), origin == Origin::Live),
                Op::AddAfter(item, delay) => model.add_after(item, delay, Priority::High),
                Op::Retry(item) => model.add_rate_limited(item, Priority::High),
                Op::Take => drop(model.get()),
                Op::End(item, end) => model.end(item, end),
                _ => unreachable!("no story has it"),
            }
        }
        for _ in 0..100 {
            while let Some(item) = model.get() {
                runs.push(model.now);
                model.done(item);
            }
            model.pass(1);
        }
        runs
    };
    (play(Model::new(Rules::ClientGo)), play(Model::new(Rules::Ours)))
}

#[test]
fn an_immediate_add_doubles_a_delayed_one_in_client_go_and_not_here() {
    assert_eq!(runs(&[Op::AddAfter(0, 10), Op::Add(0, Origin::Live)]), (vec![0, 10], vec![0]));
}

#[test]
fn a_resync_undercuts_the_backoff_in_client_go_and_not_here() {
    assert_eq!(runs(&[Op::Retry(0), Op::Add(0, Origin::Resync)]), (vec![0, 4], vec![4]));
    let resynced_while_it_failed =
        [Op::Add(0, Origin::Live), Op::Take, Op::Add(0, Origin::Resync), Op::End(0, End::Retry)];
    assert_eq!(runs(&resynced_while_it_failed), (vec![0, 4], vec![4]));
}

#[test]
fn a_live_add_of_an_item_that_fails_doubles_its_retry_in_client_go_and_not_here() {
    let added_while_it_failed = [Op::Add(0, Origin::Live), Op::Take, Op::Add(0, Origin::Live), Op::End(0, End::Retry)];
    assert_eq!(runs(&added_while_it_failed), (vec![0, 4], vec![0]));
}
