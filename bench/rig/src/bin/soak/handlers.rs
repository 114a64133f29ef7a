//! Handlers of all types, each of which checks its events.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use kube_informer::pipeline::{Backlog, Overflow};
use kube_informer::{Event, Informer, Obj, Registration};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::informers::Watched;
use crate::story::Story;

/// The delivery mode of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// Every event, immediately.
    Every,
    /// The latest state of each object.
    Latest,
    /// A small backlog and too slow for a burst: after an overflow it receives the difference
    /// (`Overflow::Replay`).
    Slow,
    /// As a stream.
    Stream,
    /// Filtered to objects with even resource versions, so that they appear and disappear; with
    /// resync.
    Even,
}

impl Manner {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Every, Self::Slow, Self::Stream, Self::Even, Self::Latest];
}

/// A handler and its record of events.
pub struct Handler {
    manner: Manner,
    story: Story,
    life: Life,
}

enum Life {
    Registered(Registration),
    Streaming(JoinHandle<()>),
}

impl Handler {
    /// Adds a handler, which shares its event counter with all others.
    pub fn add(watched: &Watched, manner: Manner, events: &Arc<AtomicU64>) -> Self {
        let name = format!("a handler of {} ({manner:?})", watched.name);
        let story = Story::new(name, watched.returns, Arc::clone(events));
        let life = listen(&watched.informer, manner, story.clone());
        Self { manner, story, life }
    }

    /// The first inconsistent event, if any.
    pub fn wrong(&self) -> Option<String> {
        self.story.wrong()
    }

    /// Checks that the handler's state equals the cache.
    pub fn agrees(&self, cached: &HashMap<String, u64>) -> Result<(), String> {
        let believed = self.story.believed();
        let hears = |version: u64| self.manner != Manner::Even || version.is_multiple_of(2);
        for (key, version) in cached.iter().filter(|(_, version)| hears(**version)) {
            if believed.get(key) != Some(version) {
                return Err(format!(
                    "{key} is {version}, and a handler ({:?}) believes {:?}",
                    self.manner,
                    believed.get(key)
                ));
            }
        }
        let wanted = cached.values().filter(|version| hears(**version)).count();
        if believed.len() == wanted {
            return Ok(());
        }
        Err(format!("{wanted} objects are there, and a handler ({:?}) believes in {}", self.manner, believed.len()))
    }

    /// Removes the handler.
    pub async fn end(self) {
        match self.life {
            Life::Registered(registration) => registration.remove().await,
            Life::Streaming(task) => {
                task.abort();
                drop(task.await);
            }
        }
    }
}

fn listen(informer: &Informer<Value>, manner: Manner, story: Story) -> Life {
    let hear = move |event: Event<Value>| story.hear(&event);
    let handler = informer.handler();
    match manner {
        Manner::Every => Life::Registered(handler.on_event(hear)),
        Manner::Latest => Life::Registered(handler.backlog(Backlog::Latest).on_event(hear)),
        Manner::Slow => {
            let hear = Arc::new(hear);
            let handler = handler.backlog(Backlog::Every { limit: 64, overflow: Overflow::Replay });
            Life::Registered(handler.on_event_async(move |event| {
                let hear = Arc::clone(&hear);
                async move {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    hear(event);
                }
            }))
        }
        Manner::Stream => {
            let mut events = handler.subscribe();
            Life::Streaming(tokio::spawn(async move {
                while let Some(event) = events.next().await {
                    hear(event);
                }
            }))
        }
        Manner::Even => {
            let even = |object: &Obj<Value>| object.version().number().is_some_and(|number| number.is_multiple_of(2));
            let handler = handler.filter(even).resync(Duration::from_secs(20));
            Life::Registered(handler.on_event(hear))
        }
    }
}
