use super::answer::version;
use super::client::{Body, Connection};
use super::template::{matches, without_managed_fields};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body_util::BodyExt;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// An open watch. Dropping it closes the connection.
pub(crate) struct Stream {
    pub(crate) asked: String,
    pub(crate) headers: HeaderMap,
    body: Body,
    buffer: BytesMut,
    _connection: Connection,
}

/// A watch event.
#[derive(Debug)]
pub(crate) struct Event {
    /// The raw frame including its line break.
    pub(crate) text: String,
    pub(crate) json: Value,
}

/// Timeout for the next event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(120);

impl Stream {
    pub(super) fn new(asked: String, headers: HeaderMap, body: Body, connection: Connection) -> Self {
        Self { asked, headers, body, buffer: BytesMut::new(), _connection: connection }
    }

    /// The next event; panics if there is none.
    #[track_caller]
    pub(crate) fn next(&mut self) -> impl Future<Output = Event> {
        self.next_within(EVENT_TIMEOUT)
    }

    pub(crate) async fn next_within(&mut self, limit: Duration) -> Event {
        match timeout(limit, self.frame()).await {
            Ok(Some(event)) => event,
            Ok(None) => panic!("{}: ended where an event was expected", self.asked),
            Err(_) => panic!("{}: no event within {limit:?}", self.asked),
        }
    }

    /// The next event, which must have this type and object name.
    pub(crate) async fn expect(&mut self, kind: &str, name: &str) -> Event {
        let event = self.next().await;
        event.must_be(kind, name, &self.asked);
        event
    }

    /// The next event other than bookmarks.
    pub(crate) async fn next_change(&mut self) -> Event {
        loop {
            let event = self.next().await;
            if event.kind() != "BOOKMARK" {
                return event;
            }
        }
    }

    /// The next event other than bookmarks, which must have this type and object name.
    pub(crate) async fn expect_change(&mut self, kind: &str, name: &str) -> Event {
        let event = self.next_change().await;
        event.must_be(kind, name, &self.asked);
        event
    }

    /// All events until the server ends the stream cleanly.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = timeout(EVENT_TIMEOUT, self.frame()).await.expect("the stream ends") {
            events.push(event);
        }
        events
    }

    /// Asserts that the stream ends without another event.
    pub(crate) async fn end(&mut self) {
        let rest = self.rest().await;
        assert!(rest.is_empty(), "{}: expected the end, but got {rest:?}", self.asked);
    }

    /// The next bytes of the body as the server flushed them, still encoded; `None` at its end.
    pub(crate) async fn bytes(&mut self) -> Option<Bytes> {
        let frame = timeout(EVENT_TIMEOUT, self.body.frame()).await.expect("bytes or the end of the stream")?;
        Some(frame.expect("the stream is not broken off").into_data().unwrap_or_default())
    }

    async fn frame(&mut self) -> Option<Event> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line = self.buffer.split_to(end + 1);
                let json = serde_json::from_slice(&line)
                    .unwrap_or_else(|error| panic!("{}: {error} in {:?}", self.asked, String::from_utf8_lossy(&line)));
                return Some(Event { text: String::from_utf8_lossy(&line).into_owned(), json });
            }
            let Some(frame) = self.body.frame().await else {
                assert!(self.buffer.is_empty(), "{}: ended within a frame: {:?}", self.asked, self.buffer);
                return None;
            };
            let frame = frame.unwrap_or_else(|error| panic!("{}: broken off: {error}", self.asked));
            self.buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
        }
    }
}

impl Event {
    fn must_be(&self, kind: &str, name: &str, asked: &str) {
        let seen = (self.kind(), self.json["object"]["metadata"]["name"].as_str().unwrap_or_default());
        assert!(seen == (kind, name), "{asked}\n  expected {kind} {name}\n  but got  {}", self.text);
    }

    pub(crate) fn kind(&self) -> &str {
        self.json["type"].as_str().unwrap_or_default()
    }

    pub(crate) fn object(&self) -> &Value {
        &self.json["object"]
    }

    pub(crate) fn name(&self) -> &str {
        self.json["object"]["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Asserts the exact frame, except for placeholders (see [`matches`]).
    #[track_caller]
    pub(crate) fn says(&self, template: &str) -> &Self {
        assert!(
            matches(template, &without_managed_fields(&self.text)),
            "expected {}\n  but got  {}",
            template.escape_debug(),
            self.text.escape_debug()
        );
        self
    }

    #[track_caller]
    pub(crate) fn version(&self) -> u64 {
        version(&self.json["object"])
    }

    /// Whether this is the bookmark that ends the initial events.
    pub(crate) fn ends_initial_events(&self) -> bool {
        self.kind() == "BOOKMARK"
            && self.json["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true"
    }
}
