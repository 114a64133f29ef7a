//! What waits for one handler. Pure: no task, no clock.

use std::collections::VecDeque;
use std::sync::Arc;

use super::coalesce::{Coalescer, Next, Telling};
use crate::body::{Obj, Raw};
use crate::store::{Event, Origin};

/// How much may wait for a handler that is slower than the cluster, and what becomes of the rest.
///
/// Whatever the policy, nothing upstream ever waits for the handler, and the story of each object stays whole: added once, updated,
/// deleted once, each update from the state that the handler last heard.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Backlog, Informer};
///
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// // It wants to know how things are, not how they came to be so: it hears of each object at most once while it is busy.
/// let painter = maps.handler().backlog(Backlog::Latest).on_event_async(|event| async move {
///     println!("repaint {}", event.key());
/// });
/// painter.synced().await?;
/// assert_eq!(painter.backlog(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backlog {
    /// Every event, in order, while no more than `limit` wait.
    ///
    /// Objects told together (the first list, a resync, the present state for a late handler) do not count: they share one list,
    /// and never are more than the cache holds.
    Every {
        /// How many events may wait.
        limit: usize,
        /// What to do when more would.
        overflow: Overflow,
    },
    /// The changes of an object gather while the handler is busy: it hears of each object at most once, and of its latest state.
    Latest,
}

impl Default for Backlog {
    /// Every event, up to 4,096 of them; then as [`Overflow::Coalesce`].
    fn default() -> Self {
        Self::Every { limit: 4096, overflow: Overflow::Coalesce }
    }
}

/// What becomes of a handler's queue that is full: it is dropped, and the handler is told the difference between what it last heard
/// and the cache, one event for each object that changed. This goes on until the handler has caught up.
///
/// ```
/// use kube_informer::{Backlog, Overflow};
///
/// // A hundred events may wait. Whoever falls further behind is told the difference, marked as after a lost watch.
/// let backlog = Backlog::Every { limit: 100, overflow: Overflow::Replay };
/// assert_ne!(backlog, Backlog::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// The difference is told as the last change of each object was.
    #[default]
    Coalesce,
    /// The difference is told as after a lost watch: with [`Origin::Relist`], and deletions as
    /// [`Missed`](crate::FinalState::Missed). So the handler can tell that it has missed something.
    Replay,
}

/// The queue of one handler.
///
/// Two parts: a line, told first, and what has gathered behind it. Without an overflow there is only the line.
#[derive(Debug)]
pub(super) struct Queue {
    policy: Backlog,
    line: VecDeque<Item>,
    /// The events in line that count.
    counted: usize,
    /// The objects in line that do not.
    uncounted: usize,
    gathered: Option<Coalescer>,
    /// The second of two events that belong together.
    sequel: Option<Event>,
    overflows: u64,
}

#[derive(Debug)]
enum Item {
    One(Event),
    Run(Run),
    Synced,
}

/// Objects that are told together, shared by all handlers.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    objects: Arc<[Arc<Raw>]>,
    next: usize,
    telling: BatchKind,
}

/// What is told of the objects of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchKind {
    /// They are new.
    Added(Origin),
    /// Nothing: they are told again.
    Resync,
}

/// What comes out of a queue.
#[derive(Debug)]
pub(super) enum Told {
    Event(Event),
    /// All that was there at the beginning has been told.
    Synced,
}

impl Run {
    pub(crate) fn new(objects: Arc<[Arc<Raw>]>, telling: BatchKind) -> Self {
        Self { objects, next: 0, telling }
    }

    pub(crate) fn is_resync(&self) -> bool {
        self.telling == BatchKind::Resync
    }

    /// What is left of it, but for objects that have something gathered.
    pub(super) fn without(self, gathered: &Coalescer) -> Self {
        let left = self.objects.iter().skip(self.next);
        let objects = left.filter(|raw| !gathered.has(&raw.meta().key)).cloned().collect();
        Self { objects, next: 0, telling: self.telling }
    }

    pub(super) fn left(&self) -> usize {
        self.objects.len() - self.next
    }

    /// Whether it takes room that is counted.
    fn counts(&self) -> bool {
        !matches!(self.telling, BatchKind::Resync | BatchKind::Added(Origin::Initial))
    }
}

impl Iterator for Run {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let object = Obj::new(Arc::clone(self.objects.get(self.next)?));
        self.next += 1;
        Some(match self.telling {
            BatchKind::Added(origin) => Event::Added { object, origin },
            BatchKind::Resync => Event::Updated { old: object.clone(), new: object, origin: Origin::Resync },
        })
    }
}

impl Queue {
    pub(super) fn new(policy: Backlog) -> Self {
        let gathered = matches!(policy, Backlog::Latest).then(|| Coalescer::new(Telling::AsItHappened));
        Self { policy, line: VecDeque::new(), counted: 0, uncounted: 0, gathered, sequel: None, overflows: 0 }
    }

    pub(super) fn policy(&self) -> Backlog {
        self.policy
    }

    /// How many events wait.
    pub(super) fn len(&self) -> usize {
        let gathered = self.gathered.as_ref().map_or(0, Coalescer::len);
        self.counted + self.uncounted + gathered + usize::from(self.sequel.is_some())
    }

    /// How often the queue was full.
    pub(super) fn overflows(&self) -> u64 {
        self.overflows
    }

    pub(super) fn push(&mut self, event: Event) {
        if let Some(gathered) = &mut self.gathered {
            return gathered.push(event);
        }
        self.line.push_back(Item::One(event));
        self.counted += 1;
        self.check_limit();
    }

    pub(super) fn push_run(&mut self, run: Run) {
        if run.left() == 0 {
            return;
        }
        let under_way = self.line.iter().any(|item| matches!(item, Item::Run(_)));
        if run.is_resync() && (under_way || self.gathered.as_ref().is_some_and(Coalescer::is_resyncing)) {
            // What was told together before is not even through.
            return;
        }
        match &mut self.gathered {
            Some(gathered) if !gathered.is_empty() => match run.is_resync() {
                true => gathered.resync(run),
                false => run.for_each(|event| gathered.push(event)),
            },
            _ => {
                *(if run.counts() { &mut self.counted } else { &mut self.uncounted }) += run.left();
                self.line.push_back(Item::Run(run));
                self.check_limit();
            }
        }
    }

    /// All that was there at the beginning has been pushed.
    pub(super) fn push_synced(&mut self) {
        match &mut self.gathered {
            Some(gathered) if !gathered.is_empty() => gathered.synced(),
            _ => self.line.push_back(Item::Synced),
        }
    }

    fn check_limit(&mut self) {
        let Backlog::Every { limit, overflow } = self.policy else { return };
        if self.counted <= limit {
            return;
        }
        self.overflows += 1;
        let telling = match overflow {
            Overflow::Coalesce => Telling::AsItHappened,
            Overflow::Replay => Telling::AsListed,
        };
        let mut gathered = Coalescer::new(telling);
        let mut first = VecDeque::new();
        for item in std::mem::take(&mut self.line) {
            match item {
                // Nothing gathered is older than a run at the head, ...
                Item::Run(run) if !run.counts() && gathered.is_empty() => first.push_back(Item::Run(run)),
                // ... or than a resync that leaves out what has gathered.
                Item::Run(run) if run.is_resync() => {
                    self.uncounted -= run.left();
                    let run = run.without(&gathered);
                    self.uncounted += run.left();
                    first.push_back(Item::Run(run));
                }
                Item::Run(run) => {
                    if !run.counts() {
                        self.uncounted -= run.left();
                    }
                    run.for_each(|event| gathered.push(event));
                }
                Item::One(event) => gathered.push(event),
                Item::Synced if gathered.is_empty() => first.push_back(Item::Synced),
                Item::Synced => gathered.synced(),
            }
        }
        self.line = first;
        self.counted = 0;
        self.gathered = Some(gathered);
    }

    pub(super) fn pop(&mut self) -> Option<Told> {
        if let Some(event) = self.sequel.take() {
            return Some(Told::Event(event));
        }
        while let Some(item) = self.line.front_mut() {
            match item {
                Item::Run(run) => {
                    let Some(event) = run.next() else {
                        self.line.pop_front();
                        continue;
                    };
                    *(if run.counts() { &mut self.counted } else { &mut self.uncounted }) -= 1;
                    if let Some(event) = self.merged(event) {
                        return Some(Told::Event(event));
                    }
                }
                Item::One(_) | Item::Synced => match self.line.pop_front() {
                    Some(Item::One(event)) => {
                        self.counted -= 1;
                        return Some(Told::Event(event));
                    }
                    _ => return Some(Told::Synced),
                },
            }
        }
        self.pop_gathered()
    }

    /// The next item is the mark of the beginning's end: takes it out.
    pub(super) fn pop_synced(&mut self) -> bool {
        if self.sequel.is_some() {
            return false;
        }
        while matches!(self.line.front(), Some(Item::Run(run)) if run.left() == 0) {
            self.line.pop_front();
        }
        match self.line.front() {
            Some(Item::Synced) => self.line.pop_front().is_some(),
            Some(_) => false,
            None => self.gathered.as_mut().is_some_and(Coalescer::pop_synced),
        }
    }

    /// An event of a run, together with what has gathered behind it.
    fn merged(&mut self, event: Event) -> Option<Event> {
        let Some(gathered) = &mut self.gathered else { return Some(event) };
        match event {
            Event::Added { object, origin } => gathered.introduce(object).map(|object| Event::Added { object, origin }),
            event => (!gathered.has(event.key())).then_some(event),
        }
    }

    fn pop_gathered(&mut self) -> Option<Told> {
        let gathered = self.gathered.as_mut()?;
        let told = match gathered.pop() {
            Some(Next::Events(event, sequel)) => {
                self.sequel = sequel;
                Some(Told::Event(event))
            }
            Some(Next::Synced) => Some(Told::Synced),
            None => None,
        };
        if gathered.is_empty() && matches!(self.policy, Backlog::Every { .. }) {
            self.gathered = None;
        }
        told
    }
}
