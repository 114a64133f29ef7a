//! Fault injection.
//!
//! A [`Rule`] selects the requests that fail, how many and from when, and a [`Fault`] defines how.
//! Rules may be injected and removed while the server runs. Uses `http` and `encoding`, and of
//! `api` only access rules, as patterns of requests, and the error frame of a watch; must not use
//! `storage` or `controllers`.
//!
//! ```
//! use kube_embedded::Verb;
//! use kube_embedded::faults::{Fault, Faults, Rule};
//!
//! let faults = Faults::new();
//!
//! // The next two lists of pods are refused, with a Retry-After of one second.
//! let refused = faults.inject(Rule::new(Fault::status(503).retry_after(1)).verb(Verb::List).resource("", "pods").times(2));
//!
//! // Every streaming list loses the bookmark that ends its first phase.
//! let endless = faults.inject(Rule::new(Fault::OmitInitialEventsEnd).query("sendInitialEvents", "true"));
//!
//! assert_eq!(refused.count(), 0);
//! endless.remove();
//! faults.clear();
//! ```
//!
//! Several rules may match one request. Their delays add up. If any of them replaces the response,
//! the first such fault does; otherwise all stream faults apply, in the order of their injection.

mod body;
mod editor;
mod injected;
mod request;
mod rule;

use std::time::Duration;

use bytes::Bytes;

pub(crate) use body::FaultyBody;
pub use injected::{FaultHandle, Faults};
pub use request::Request;
pub use rule::Rule;

use crate::http::status::{Details, Status};

/// How a request fails.
///
/// Faults that count events apply to watches only. They count every frame of the stream, bookmarks
/// included. They are applied before compression, so a client that requests gzip gets the same
/// faults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The connection is dropped without a response.
    Disconnect,
    /// The request is carried out, and the connection is dropped without a response: the client
    /// cannot know whether its write was stored.
    LoseResponse,
    /// The response is this status. See [`Fault::status`].
    Status(Status),
    /// The response is 429 in plain text, as API priority and fairness sends it, with a
    /// `Retry-After` of one second.
    TooManyRequests,
    /// The response is 410: the requested resource version is too old.
    GoneAtOpen,
    /// The response is delayed by this duration.
    Delay(Duration),
    /// After this many bytes of the body the server sends nothing more and keeps the connection
    /// open.
    StallAfterBytes(u64),
    /// After this many events the server sends nothing more and keeps the connection open.
    StallAfterEvents(u64),
    /// After this many bytes of the body the connection is broken.
    CutAfterBytes(u64),
    /// After this many events the connection is broken.
    CutAfterEvents(u64),
    /// After this many events half of the next event is sent, then the connection is broken.
    CutWithinEvent(u64),
    /// After this many events the stream ends as it does at its timeout.
    EndAfterEvents(u64),
    /// After this many events these bytes are inserted, then the stream continues.
    GarbageAfterEvents(u64, Bytes),
    /// After this many events an ERROR event with status 410 is sent, then the stream ends.
    GoneAfterEvents(u64),
    /// The bookmark that ends the initial events is omitted. The stream continues.
    OmitInitialEventsEnd,
    /// All bookmarks are omitted, including the one that ends the initial events.
    OmitBookmarks,
    /// After this many events the last event is sent a second time.
    DuplicateAfterEvents(u64),
}

impl Fault {
    /// A status with this code and its usual reason and message.
    #[must_use]
    pub fn status(code: u16) -> Self {
        let (reason, message) = match code {
            400 => ("BadRequest", "the server rejected our request for an unknown reason"),
            401 => ("Unauthorized", "Unauthorized"),
            403 => ("Forbidden", "forbidden"),
            404 => ("NotFound", "the server could not find the requested resource"),
            409 => ("Conflict", "the server reported a conflict"),
            410 => ("Expired", GONE),
            429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
            500 => ("InternalError", "Internal error occurred"),
            503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => ("Timeout", "the server was unable to return a response in the time allotted"),
            _ => ("", "the server failed on command"),
        };
        Self::Status(Status::new(code, reason, message))
    }

    /// Sets the number of seconds after which the client may retry, in the `Retry-After` header and
    /// in the details of the status. Has no effect on faults other than [`Fault::Status`].
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        match self {
            Self::Status(status) => {
                let details = status.details().cloned().unwrap_or_default();
                Self::Status(status.with_details(Details { retry_after_seconds: seconds, ..details }))
            }
            other => other,
        }
    }

    fn stage(&self) -> Stage {
        match self {
            Self::Delay(_) => Stage::Before,
            Self::Disconnect | Self::Status(_) | Self::TooManyRequests | Self::GoneAtOpen => Stage::Answer,
            Self::LoseResponse => Stage::Response,
            Self::StallAfterBytes(_) | Self::CutAfterBytes(_) => Stage::Body,
            Self::StallAfterEvents(_)
            | Self::CutAfterEvents(_)
            | Self::CutWithinEvent(_)
            | Self::EndAfterEvents(_)
            | Self::GarbageAfterEvents(..)
            | Self::GoneAfterEvents(_)
            | Self::OmitInitialEventsEnd
            | Self::OmitBookmarks
            | Self::DuplicateAfterEvents(_) => Stage::Events,
        }
    }
}

/// Where in the handling of a request a fault takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Answer,
    /// After the request was carried out.
    Response,
    Body,
    /// Watches only.
    Events,
}

const GONE: &str = "The resourceVersion for the provided watch is too old.";

pub(crate) mod request_log;
#[cfg(test)]
mod tests;
