//! Events returned by the store.

use std::collections::VecDeque;
use std::sync::Arc;
use std::vec;

use super::{Event, Origin};
use crate::body::{Obj, Raw, Untyped};
use crate::pipeline::processor::{BatchKind, News, Run};

/// Events for handlers, in order. Readers already see the changes.
///
/// Long runs of events, as at the end of a list, are created lazily.
#[derive(Debug, Default)]
#[must_use = "handlers are notified of changes through these events"]
pub struct Events {
    parts: VecDeque<Part>,
    len: usize,
}

#[derive(Debug)]
enum Part {
    Single(Event<Untyped>),
    Added(vec::IntoIter<Arc<Raw>>, Origin),
    Resync(vec::IntoIter<Arc<Raw>>),
}

impl Events {
    pub(super) fn with_room(events: usize) -> Self {
        Self { parts: VecDeque::with_capacity(events), len: 0 }
    }

    pub(super) fn one(&mut self, event: Event<Untyped>) {
        self.len += 1;
        self.parts.push_back(Part::Single(event));
    }

    pub(super) fn added(&mut self, objects: Vec<Arc<Raw>>, origin: Origin) {
        self.len += objects.len();
        self.parts.push_back(Part::Added(objects.into_iter(), origin));
    }

    pub(super) fn again(&mut self, objects: Vec<Arc<Raw>>) {
        self.len += objects.len();
        self.parts.push_back(Part::Resync(objects.into_iter()));
    }
}

impl Events {
    /// Converts the events for delivery to many handlers: long runs stay together and are shared.
    pub(crate) fn into_news(self) -> Vec<News> {
        let news = |part| match part {
            Part::Single(event) => News::One(event),
            Part::Added(objects, origin) => News::Run(Run::new(objects.collect(), BatchKind::Added(origin))),
            Part::Resync(objects) => News::Run(Run::new(objects.collect(), BatchKind::Resync)),
        };
        self.parts.into_iter().map(news).collect()
    }
}

impl Iterator for Events {
    type Item = Event<Untyped>;

    fn next(&mut self) -> Option<Event<Untyped>> {
        loop {
            let event = match self.parts.front_mut()? {
                Part::Single(_) => match self.parts.pop_front() {
                    Some(Part::Single(event)) => Some(event),
                    _ => None,
                },
                Part::Added(objects, origin) => {
                    objects.next().map(|raw| Event::Added { object: Obj::new(raw), origin: *origin })
                }
                Part::Resync(objects) => objects.next().map(|raw| {
                    let new = Obj::<Untyped>::new(raw);
                    Event::Updated { old: new.clone(), new, origin: Origin::Resync }
                }),
            };
            if event.is_some() {
                self.len -= 1;
                return event;
            }
            self.parts.pop_front();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl ExactSizeIterator for Events {}
