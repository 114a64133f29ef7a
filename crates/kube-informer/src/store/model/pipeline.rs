//! A queue and a store, with checks of everything they return.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashSet;

use super::fault::Fault;
use super::reflector::Reflector;
use super::rng::Rng;
use super::server::Server;
use crate::body::{Obj, Untyped};
use crate::informer::Index;
use crate::informer::Lister;
use crate::object::ObjectKey;
use crate::object::Selector;
use crate::object::Uid;
use crate::object::Version;
use crate::pipeline::{DeltaFifo, DeltaFifoBounds, DeltaFifoFull, Discipline};
use crate::store::{Delta, History, WatchScope};
use crate::store::{Event, FinalState, Origin};
use crate::store::{Ingest, Reader, Store, StoreEntry, StoreState};

/// One reported event of a key.
pub(super) type Reported = (&'static str, Id, Origin);

/// Identifies a state of an object by its address: the server keeps every state alive.
type Id = usize;

pub(super) struct Pipeline {
    queue: DeltaFifo,
    store: Store,
    reader: Reader,
    filters: bool,
    fault: Option<Fault>,
    index: Option<Index<Untyped, String>>,
    selectors: [(&'static str, Selector); 3],
    /// The last reported state of each existing object.
    known: BTreeMap<ObjectKey, Obj<Untyped>>,
    /// Objects whose deletion has been reported.
    ended: HashSet<Uid>,
    /// All reported events of each key, without resyncs.
    pub(super) reported: BTreeMap<ObjectKey, Vec<Reported>>,
    went_back: bool,
    scoped: bool,
    listings: usize,
    version: Option<Version>,
    /// A snapshot that a reader still holds.
    snapshot: Option<(Arc<StoreState>, Vec<Id>)>,
}

impl Pipeline {
    pub(super) fn new(discipline: Discipline, filters: bool, fault: Option<Fault>, rng: &mut Rng) -> Self {
        let ingest = if filters { Ingest::default().keep_if(passes) } else { Ingest::default() };
        let store = Store::seeded(ingest, 0);
        let (reader, known) = (store.reader(), store.reader());
        let bounds = DeltaFifoBounds { deltas: rng.between(2, 30) as usize, bytes: rng.between(500, 20_000) as usize };
        let queue = DeltaFifo::new(discipline, bounds, move |key| known.get(key).is_some());
        Self {
            queue,
            store,
            reader,
            filters,
            fault,
            index: None,
            selectors: ["x", "y", "z"].map(|app| (app, format!("app={app}").parse().unwrap())),
            known: BTreeMap::new(),
            ended: HashSet::new(),
            reported: BTreeMap::new(),
            went_back: false,
            scoped: false,
            listings: 0,
            version: None,
            snapshot: None,
        }
    }

    /// Queues deltas; the consumer runs when the queue is full, and at random.
    pub(super) fn push(&mut self, deltas: &[Delta], rng: &mut Rng) -> Result<(), String> {
        for delta in deltas {
            let mut delta = delta.clone();
            while let Err(DeltaFifoFull(back)) = self.queue.push(delta) {
                delta = back;
                self.consume(rng)?;
            }
        }
        if rng.one_in(3) {
            self.consume(rng)?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self, server: &Server, reflectors: &[Reflector]) -> Result<(), String> {
        let mut rng = Rng::new(0);
        while !self.queue.is_empty() {
            self.consume(&mut rng)?;
        }
        let wanted =
            |key: &ObjectKey| reflectors.iter().any(|reflector| !reflector.is_left() && reflector.scope.covers(key));
        let expected =
            server.objects.values().filter(|object| wanted(object.key()) && (!self.filters || passes(object)));
        let expected: BTreeMap<_, _> = expected.map(|object| (object.key(), object)).collect();
        let cached = Lister::<Untyped>::new(self.reader.clone()).sorted();
        let same = ids(expected.values().copied()) == ids(&cached);
        ensure(same, || format!("the server has\n{expected:#?}\nthe cache has\n{cached:#?}"))?;
        self.check_known()?;
        self.check_snapshot()?;
        self.check_reads()
    }

    /// The held snapshot is not affected by later writes.
    fn check_snapshot(&self) -> Result<(), String> {
        let same = self.snapshot.as_ref().is_none_or(|(state, seen)| states(state) == *seen);
        ensure(same, || "a snapshot has changed".to_owned())
    }

    fn consume(&mut self, rng: &mut Rng) -> Result<(), String> {
        if self.index.is_none() && rng.one_in(3) {
            self.index = Some(Index::by_label(&self.reader, "app"));
        }
        let batch = self.queue.pop();
        for delta in &batch {
            if let Delta::RelistBegun(relist) = delta {
                self.scoped |= relist.scope != WatchScope::Everything;
                if relist.history == History::WentBack {
                    self.went_back = true;
                    self.ended.clear();
                }
            }
        }
        let before = self.reader.snapshot();
        let mut events: Vec<_> = self.store.apply(batch).collect();
        if let Some(fault) = self.fault {
            events = fault.corrupt(events);
        }
        self.listings = self.store.listings.len();
        let visible = if self.fault == Some(Fault::EventBeforeStore) { before } else { self.reader.snapshot() };
        self.check_events(&events, &visible)?;
        if self.listings == 0 {
            self.check_known()?;
        }
        let version = self.reader.version();
        if let (Some(before), Some(now)) = (&self.version, &version) {
            // The version is the lowest of all scopes, and a scope may be added.
            let several = self.scoped || self.went_back;
            ensure(several || now >= before, || format!("version {before} became {now}"))?;
        }
        self.version = version;
        self.went_back &= self.listings > 0;
        if rng.one_in(6) {
            self.check_reads()?;
        }
        if rng.one_in(2) {
            _ = self.store.tidy();
        }
        if rng.one_in(4) {
            self.check_snapshot()?;
            let state = self.reader.snapshot();
            let seen = states(&state);
            self.snapshot = rng.one_in(2).then_some((state, seen));
        }
        Ok(())
    }

    /// Each event follows the previous one of its object, and readers already see it.
    fn check_events(&mut self, events: &[Event<Untyped>], visible: &StoreState) -> Result<(), String> {
        let listed = |event: &&Event<Untyped>| matches!(event.origin(), Origin::Initial | Origin::Relist);
        let mut seen_added = false;
        for event in events.iter().filter(listed) {
            seen_added |= matches!(event, Event::Added { .. });
            ensure(!(seen_added && event.is_deleted()), || {
                format!("a deletion of a list after its additions: {event:?}")
            })?;
        }
        for event in events {
            self.check_sequence(event).map_err(|why| format!("{why}: {event:?}"))?;
            if event.origin() != Origin::Resync {
                let kind = match event {
                    Event::Added { .. } => "added",
                    Event::Updated { .. } => "updated",
                    Event::Deleted { .. } => "deleted",
                };
                let reported = (kind, id(event.object()), event.origin());
                self.reported.entry(event.key().clone()).or_default().push(reported);
            }
        }
        for key in events.iter().map(Event::key) {
            let (reported, seen) = (self.known.get(key), visible.get(key).map(StoreEntry::object));
            let agree = match (reported, &seen) {
                (Some(reported), Some(seen)) => id(reported) == id(seen),
                (Some(_), None) => false,
                // It may have been created again, in a list that is not complete.
                (None, Some(_)) => self.listings > 0,
                (None, None) => true,
            };
            ensure(agree, || format!("reported {reported:?} when readers saw {seen:?}"))?;
        }
        Ok(())
    }

    fn check_sequence(&mut self, event: &Event<Untyped>) -> Result<(), String> {
        let before = self.known.get(event.key());
        match event {
            Event::Added { object, .. } => {
                ensure(before.is_none(), || "added twice".to_owned())?;
                let ended = object.uid().is_some_and(|uid| self.ended.contains(uid));
                ensure(!ended, || "added after its deletion".to_owned())?;
            }
            Event::Updated { old, new, origin } => {
                let before = before.ok_or("updated before added")?;
                ensure(id(before) == id(old), || format!("old is not the last reported state: {before:?}"))?;
                ensure(before.uid() == new.uid(), || "updated into another object".to_owned())?;
                let forward = new.version() > old.version();
                ensure(forward || *origin == Origin::Resync || self.went_back, || "went back".to_owned())?;
                ensure(!self.filters || passes(new), || "does not pass the filter".to_owned())?;
            }
            Event::Deleted { last, state, .. } => {
                let before = before.ok_or("deleted before added")?;
                ensure(before.uid() == last.uid(), || "deleted another object".to_owned())?;
                match state {
                    FinalState::Known => ensure(last.version() > before.version(), || "old end".to_owned())?,
                    FinalState::Missed | FinalState::Filtered => {
                        ensure(id(before) == id(last), || format!("not the last reported state: {before:?}"))?;
                    }
                }
                if *state != FinalState::Filtered {
                    self.ended.extend(last.uid().cloned());
                }
            }
        }
        match event {
            Event::Deleted { last, .. } => drop(self.known.remove(last.key())),
            Event::Added { object: new, .. } | Event::Updated { new, .. } => {
                drop(self.known.insert(new.key().clone(), new.clone()));
            }
        }
        Ok(())
    }

    /// Without a list in progress, the reported objects are the cached ones.
    fn check_known(&self) -> Result<(), String> {
        let cached = Lister::<Untyped>::new(self.reader.clone()).sorted();
        let same = ids(&cached) == ids(self.known.values());
        ensure(same, || format!("reported\n{:#?}\ncached\n{cached:#?}", self.known))
    }

    /// Indexes, selectors, namespaces and counts agree with a scan of all objects.
    fn check_reads(&self) -> Result<(), String> {
        let lister = Lister::<Untyped>::new(self.reader.clone());
        let snapshot = lister.snapshot();
        let all = lister.sorted();
        ensure(lister.len() == all.len() && lister.keys().len() == all.len(), || "miscounted".to_owned())?;
        for (app, selector) in &self.selectors {
            let of_app = all.iter().filter(|object| object.label("app") == Some(*app));
            let expected = sorted(ids(of_app));
            let selected = sorted(ids(&lister.select(selector)));
            ensure(selected == expected, || format!("app={app} selects other objects"))?;
            ensure(snapshot.select(selector).count() == expected.len(), || format!("app={app} in a snapshot"))?;
            let parts = ["", "a", "b"].map(|namespace| lister.namespace(namespace).select(selector)).concat();
            ensure(sorted(ids(&parts)) == expected, || format!("app={app} in namespaces"))?;
            if let Some(index) = &self.index {
                let indexed = sorted(ids(&index.get(*app)));
                ensure(indexed == expected, || format!("the index of {app} has other objects"))?;
                ensure(index.count(*app) == expected.len(), || "the index miscounts".to_owned())?;
                let walked = snapshot.indexed(index, *app).len();
                ensure(walked == expected.len(), || "the snapshot has another index".to_owned())?;
            }
        }
        for namespace in ["", "a", "b"] {
            let within = all.iter().filter(|object| object.namespace().unwrap_or_default() == namespace);
            let listed = lister.namespace(namespace).sorted();
            ensure(ids(&listed) == ids(within), || format!("namespace {namespace:?} has other objects"))?;
        }
        Ok(())
    }
}

fn passes(object: &Obj<Untyped>) -> bool {
    object.label("app") != Some("z")
}

fn id(object: &Obj<Untyped>) -> Id {
    Arc::as_ptr(object.raw()) as Id
}

fn ids<'a>(objects: impl IntoIterator<Item = &'a Obj<Untyped>>) -> Vec<Id> {
    objects.into_iter().map(id).collect()
}

fn states(state: &StoreState) -> Vec<Id> {
    state.iter().map(|entry| id(&entry.object())).collect()
}

fn sorted(mut ids: Vec<Id>) -> Vec<Id> {
    ids.sort_unstable();
    ids
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise()) }
}
