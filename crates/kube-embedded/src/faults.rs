//! Failures on command.
//!
//! A [`Rule`] says which requests fail, how often and from when, and a [`Fault`] says how. Rules may be injected and
//! removed while the server runs.
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
//! Several rules may fit one request. Their delays add up, and either the first fault that answers in the server's place
//! does so, or all that work on the stream do, in the order in which they were injected.

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
/// The ones that count events work on watches only. Every frame of the stream is an event to them, bookmarks too. They
/// see the stream before it is compressed, so a client that asks for gzip meets the same faults.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The connection is dropped without an answer.
    Disconnect,
    /// The answer is this status. See [`Fault::status`].
    Status(Status),
    /// The answer is 429 in plain text, as priority and fairness sends it, with a `Retry-After` of one second.
    TooManyRequests,
    /// The answer is 410: the version asked for is too old.
    GoneAtOpen,
    /// The answer comes so much later.
    Delay(Duration),
    /// After so many bytes of the body nothing more comes, and the connection stays open.
    StallAfterBytes(u64),
    /// After so many events nothing more comes, and the connection stays open.
    StallAfterEvents(u64),
    /// After so many bytes of the body the connection breaks.
    CutAfterBytes(u64),
    /// After so many events the connection breaks.
    CutAfterEvents(u64),
    /// After so many events half of the next one comes, and then the connection breaks.
    CutWithinEvent(u64),
    /// After so many events the stream ends as it would at its time-out.
    EndAfterEvents(u64),
    /// After so many events come these bytes, and then the stream goes on.
    GarbageAfterEvents(u64, Bytes),
    /// After so many events comes an ERROR event of a 410, and then the end.
    GoneAfterEvents(u64),
    /// The bookmark that ends the initial events never comes. The stream goes on.
    OmitInitialEventsEnd,
    /// No bookmark comes, not even the one that ends the initial events.
    OmitBookmarks,
    /// After so many events the last one comes a second time.
    DuplicateAfterEvents(u64),
}

impl Fault {
    /// A status with this code, and the reason and the message that usually go with it.
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

    /// Tells the client to come again after so many seconds: in the `Retry-After` header and in the details of the
    /// status. Other faults than a status stay as they are.
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

    /// Where the fault takes effect.
    fn stage(&self) -> Stage {
        match self {
            Self::Delay(_) => Stage::Before,
            Self::Disconnect | Self::Status(_) | Self::TooManyRequests | Self::GoneAtOpen => Stage::Answer,
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

/// When a fault takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Before,
    Answer,
    Body,
    /// Only watches have events.
    Events,
}

const GONE: &str = "The resourceVersion for the provided watch is too old.";

pub(crate) mod request_log;
#[cfg(test)]
mod tests;
