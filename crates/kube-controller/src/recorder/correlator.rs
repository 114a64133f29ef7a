//! Which events are written, and which are counted: aggregation, series, rate limit. Pure.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;

use super::new_event::NewEvent;
use crate::lru::Lru;
use crate::names::is_dns_name;

/// The number of keys that each part remembers.
const CAPACITY: usize = 4_096;
/// From this number of notes on, similar events are one series.
const DISTINCT_NOTES: usize = 10;
/// Similar events are forgotten when none has occurred for so long.
const SIMILAR_FOR: Duration = Duration::from_secs(600);
const COMBINED: &str = "(combined from similar events): ";
/// The rate limit of each object: requests at once, and the time for each that follows.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);
/// A series ends when its event has not occurred for so long.
pub(super) const FINISH: Duration = Duration::from_secs(6 * 60);
/// The count of a series is written so often.
pub(super) const REFRESH: Duration = Duration::from_secs(30 * 60);
/// The server's limits.
const MAX_WORD: usize = 128;
const MAX_NOTE: usize = 1_024;
const MAX_NAME: usize = 253;

/// An event that was recorded.
#[derive(Debug)]
pub(super) struct Occurrence {
    regarding: ObjectReference,
    event: NewEvent,
    wall: Timestamp,
}

/// A request to send.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    Create(Arc<Event>),
    /// The series has changed. If the server has no such event, it is created.
    Update(Arc<Event>),
}

/// What becomes of an event.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    Write(Write),
    /// It is counted as a part of a series.
    Counted,
    /// The rate limit does not permit a request.
    Limited,
}

#[derive(Debug)]
pub(super) struct Correlator {
    controller: String,
    instance: String,
    similar: Lru<SimilarKey, Similar>,
    series: Lru<SeriesKey, Series>,
    buckets: Lru<Arc<ObjectId>, Bucket>,
    /// The time in the name of the last event: names are unique.
    last_nanos: i128,
}

/// What identifies an object in events.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ObjectId([Option<String>; 6]);

/// Events that differ only in their notes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SimilarKey {
    kind: &'static str,
    reason: String,
    action: String,
    regarding: Arc<ObjectId>,
    related: Option<Arc<ObjectId>>,
}

/// Events that are one series. Without a note: the combined one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SeriesKey(SimilarKey, Option<String>);

#[derive(Debug)]
struct Similar {
    notes: BTreeSet<String>,
    last: Duration,
}

#[derive(Debug)]
struct Series {
    event: Arc<Event>,
    count: i32,
    /// The count that was last passed on to be written: 0 if the event was never written.
    written: i32,
    written_at: Duration,
    last: Duration,
    last_wall: Timestamp,
}

/// A token bucket.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Duration,
}

impl Occurrence {
    pub(super) fn new(regarding: &ObjectReference, mut event: NewEvent, wall: Timestamp) -> Self {
        truncate(&mut event.reason, MAX_WORD);
        truncate(&mut event.action, MAX_WORD);
        truncate(&mut event.note, MAX_NOTE);
        Self { regarding: regarding.clone(), event, wall }
    }
}

impl Correlator {
    pub(super) fn new(controller: &str, instance: &str) -> Self {
        let mut instance = instance.to_owned();
        truncate(&mut instance, MAX_WORD);
        Self {
            controller: controller.to_owned(),
            instance,
            similar: Lru::new(CAPACITY),
            series: Lru::new(CAPACITY),
            buckets: Lru::new(CAPACITY),
            last_nanos: 0,
        }
    }

    /// Decides on an event that is processed at this time of a monotonic clock.
    pub(super) fn observe(&mut self, occurrence: Occurrence, now: Duration) -> Decision {
        let Occurrence { regarding, mut event, wall } = occurrence;
        let object = Arc::new(ObjectId::of(&regarding));
        let key = self.aggregate(&object, &mut event, now);
        let new = self.new_event(regarding, event, wall);
        let make =
            || Series { event: Arc::new(new), count: 0, written: 0, written_at: now, last: now, last_wall: wall };
        let (series, _) = self.series.get_or_insert_with(key, make);
        series.count = series.count.saturating_add(1);
        (series.last, series.last_wall) = (now, wall);
        let is_due = series.written == 0 || series.count == 2;
        if !is_due {
            return Decision::Counted;
        }
        let (bucket, _) = self.buckets.get_or_insert_with(object, || Bucket { tokens: BURST, at: now });
        if bucket.take(now) { Decision::Write(series.write(now)) } else { Decision::Limited }
    }

    /// The counts that are due at this time, and those of series that end. Called about every
    /// minute.
    pub(super) fn due(&mut self, now: Duration) -> Vec<Write> {
        let mut due = Vec::new();
        for series in self.series.values_mut() {
            let is_due = series.is_over(now) || series.written_at + REFRESH <= now;
            if is_due && series.has_unwritten() {
                due.push(series.write(now));
            }
        }
        self.series.retain(|series| !series.is_over(now));
        due
    }

    /// The counts that were not written, at the end.
    pub(super) fn rest(&mut self, now: Duration) -> Vec<Write> {
        self.series.values_mut().filter(|series| series.has_unwritten()).map(|series| series.write(now)).collect()
    }

    /// The key of the series that an event belongs to. Its note is changed if it is combined with
    /// others.
    fn aggregate(&mut self, object: &Arc<ObjectId>, event: &mut NewEvent, now: Duration) -> SeriesKey {
        let key = SimilarKey {
            kind: event.kind,
            reason: event.reason.clone(),
            action: event.action.clone(),
            regarding: Arc::clone(object),
            related: event.related.as_ref().map(|related| Arc::new(ObjectId::of(related))),
        };
        let make = || Similar { notes: BTreeSet::new(), last: now };
        let (similar, _) = self.similar.get_or_insert_with(key.clone(), make);
        if similar.last + SIMILAR_FOR < now {
            similar.notes.clear();
        }
        similar.last = now;
        similar.notes.insert(event.note.clone());
        if similar.notes.len() < DISTINCT_NOTES {
            return SeriesKey(key, Some(event.note.clone()));
        }
        similar.notes.pop_first();
        event.note.insert_str(0, COMBINED);
        truncate(&mut event.note, MAX_NOTE);
        SeriesKey(key, None)
    }

    fn new_event(&mut self, regarding: ObjectReference, event: NewEvent, wall: Timestamp) -> Event {
        self.last_nanos = wall.as_nanosecond().max(self.last_nanos + 1);
        let suffix = format!(".{:x}", self.last_nanos);
        let mut name = regarding.name.clone().unwrap_or_default();
        truncate(&mut name, MAX_NAME - suffix.len());
        // Not every object has a name that an event can have, such as the role `system:node`.
        if !is_dns_name(&name) {
            "event".clone_into(&mut name);
        }
        let namespace = regarding.namespace.clone().filter(|namespace| !namespace.is_empty());
        Event {
            metadata: ObjectMeta {
                name: Some(name + &suffix),
                namespace: Some(namespace.unwrap_or_else(|| "default".to_owned())),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(wall)),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(event.kind.to_owned()),
            reason: Some(event.reason),
            action: Some(event.action),
            note: Some(event.note),
            regarding: Some(regarding),
            related: event.related,
            ..Event::default()
        }
    }
}

impl Series {
    fn has_unwritten(&self) -> bool {
        self.written != self.count
    }

    fn is_over(&self, now: Duration) -> bool {
        self.last + FINISH <= now
    }

    fn write(&mut self, now: Duration) -> Write {
        let is_new = self.written == 0;
        (self.written, self.written_at) = (self.count, now);
        if self.count > 1 {
            let last_observed_time = MicroTime(self.last_wall);
            let series = EventSeries { count: self.count, last_observed_time };
            Arc::make_mut(&mut self.event).series = Some(series);
        }
        let event = Arc::clone(&self.event);
        if is_new { Write::Create(event) } else { Write::Update(event) }
    }
}

impl Bucket {
    fn take(&mut self, now: Duration) -> bool {
        let refilled = (now - self.at).as_secs_f64() / REFILL.as_secs_f64();
        (self.tokens, self.at) = ((self.tokens + refilled).min(BURST), now);
        let is_taken = self.tokens >= 1.0;
        if is_taken {
            self.tokens -= 1.0;
        }
        is_taken
    }
}

impl ObjectId {
    fn of(object: &ObjectReference) -> Self {
        let ObjectReference { api_version, kind, namespace, name, uid, field_path, resource_version: _ } =
            object.clone();
        Self([api_version, kind, namespace, name, uid, field_path])
    }
}

/// Cuts a text off at a boundary of characters.
fn truncate(text: &mut String, max: usize) {
    let end = (0..=max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.truncate(end.unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn correlator() -> Correlator {
        Correlator::new("test", "test-1")
    }

    fn object(name: &str) -> ObjectReference {
        ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() }
    }

    fn of(name: &str, note: &str) -> Occurrence {
        Occurrence::new(&object(name), NewEvent::normal("R", "A", note), Timestamp::UNIX_EPOCH)
    }

    fn count(event: &Event) -> Option<i32> {
        event.series.as_ref().map(|series| series.count)
    }

    #[test]
    fn an_event_is_written_the_first_and_the_second_time_and_then_counted() {
        let mut correlator = correlator();
        let Decision::Write(Write::Create(first)) = correlator.observe(of("a", "x"), SECOND) else { panic!() };
        assert_eq!(count(&first), None);
        let Decision::Write(Write::Update(second)) = correlator.observe(of("a", "x"), SECOND) else { panic!() };
        assert_eq!((count(&second), &second.metadata.name), (Some(2), &first.metadata.name));
        for _ in 0..100 {
            assert_eq!(correlator.observe(of("a", "x"), 2 * SECOND), Decision::Counted);
        }
        assert_eq!(correlator.due(2 * SECOND + FINISH - SECOND), []);
        let last = correlator.due(2 * SECOND + FINISH);
        assert!(matches!(&last[..], [Write::Update(event)] if count(event) == Some(102)), "{last:?}");
        assert_eq!(correlator.series.len(), 0);
        assert!(matches!(correlator.observe(of("a", "x"), 999 * SECOND), Decision::Write(Write::Create(_))));
    }

    #[test]
    fn a_series_that_goes_on_is_written_every_half_hour() {
        let mut correlator = correlator();
        let minutes = (0..=60).filter(|minute| {
            let now = 60 * SECOND * *minute;
            correlator.observe(of("a", "x"), now);
            !correlator.due(now).is_empty()
        });
        // The second one was written after a minute.
        assert_eq!(minutes.collect::<Vec<_>>(), [31]);
    }

    #[test]
    fn the_tenth_of_similar_events_begins_a_combined_series() {
        let mut correlator = correlator();
        for note in 0..9 {
            let decision = correlator.observe(of("a", &note.to_string()), SECOND);
            assert!(matches!(decision, Decision::Write(Write::Create(event)) if event.note == Some(note.to_string())));
        }
        let Decision::Write(Write::Create(event)) = correlator.observe(of("a", "9"), SECOND) else { panic!() };
        assert_eq!(event.note.as_deref(), Some("(combined from similar events): 9"));
        let Decision::Write(Write::Update(event)) = correlator.observe(of("a", "10"), SECOND) else { panic!() };
        assert_eq!(count(&event), Some(2));
        assert_eq!(correlator.observe(of("a", "11"), SECOND), Decision::Counted);
        // Another object is not similar, and old ones are forgotten.
        assert!(matches!(correlator.observe(of("b", "12"), SECOND), Decision::Write(Write::Create(_))));
        let Decision::Write(Write::Create(event)) = correlator.observe(of("a", "13"), 602 * SECOND) else { panic!() };
        assert_eq!(event.note.as_deref(), Some("13"));
    }

    #[test]
    fn an_object_has_25_requests_at_once_and_one_more_every_5_minutes_whatever_the_reason() {
        let mut correlator = correlator();
        let mut requests = |times: u64, now| {
            let event = |nth| NewEvent::normal(format!("R{nth}-{now:?}"), "A", "x");
            let observe = |nth: &u64| {
                let occurrence = Occurrence::new(&object("a"), event(*nth), Timestamp::UNIX_EPOCH);
                matches!(correlator.observe(occurrence, now), Decision::Write(_))
            };
            (0..times).filter(observe).count()
        };
        assert_eq!(requests(100, SECOND), 25);
        assert_eq!(requests(100, 2 * SECOND), 0);
        assert_eq!(requests(100, 302 * SECOND), 1);
        assert_eq!(requests(100, 1_000_000 * SECOND), 25);
    }

    #[test]
    fn a_limited_event_is_created_with_its_count_when_it_may_be_written() {
        let mut correlator = correlator();
        for nth in 0..30 {
            let event = NewEvent::normal(format!("R{nth}"), "A", "x");
            correlator.observe(Occurrence::new(&object("a"), event, Timestamp::UNIX_EPOCH), SECOND);
        }
        let again = NewEvent::normal("R29", "A", "x");
        let decision = correlator.observe(Occurrence::new(&object("a"), again, Timestamp::UNIX_EPOCH), 310 * SECOND);
        assert!(matches!(decision, Decision::Write(Write::Create(event)) if count(&event) == Some(2)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut correlator = correlator();
        for nth in 0..10_000 {
            correlator.observe(of(&nth.to_string(), &nth.to_string()), SECOND);
        }
        let sizes = (correlator.similar.len(), correlator.series.len(), correlator.buckets.len());
        assert_eq!(sizes, (CAPACITY, CAPACITY, CAPACITY));
    }

    #[test]
    fn what_exceeds_the_limits_of_the_server_is_cut_off_and_names_are_unique() {
        let mut correlator = correlator();
        let long = "ä".repeat(2_000);
        let event = || NewEvent::warning(&long, &long, &long);
        let long_name = "n".repeat(253);
        let names: BTreeSet<_> = [&*long_name, &*long_name, "system:node", ""]
            .into_iter()
            .enumerate()
            .map(|(nth, name)| {
                let mut regarding = object(name);
                regarding.uid = Some(nth.to_string());
                let occurrence = Occurrence::new(&regarding, event(), Timestamp::now());
                let Decision::Write(Write::Create(event)) = correlator.observe(occurrence, SECOND) else { panic!() };
                assert!(event.note.as_ref().unwrap().len() <= MAX_NOTE);
                assert!(event.reason.as_ref().unwrap().len() <= MAX_WORD);
                let name = event.metadata.name.clone().unwrap();
                assert!(is_dns_name(&name), "{name}");
                name
            })
            .collect();
        assert_eq!(names.len(), 4);
    }
}
