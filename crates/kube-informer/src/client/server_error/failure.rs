//! The kinds of failure.

use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use crate::codec::{Broken, FrameTooLong, GunzipError, ListError, ServerStatus};

/// Why a request, or the stream it answered with, failed.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::{Doing, Failure, ServerError};
///
/// let error = ServerError::new(Doing::Watch, "pods", Failure::TimedOut { after: Duration::from_secs(60) });
/// assert!(matches!(error.failure(), Failure::TimedOut { .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The server answered with a failure, or sent one as the last event of a watch.
    Answered {
        /// What it said.
        status: Box<ServerStatus>,
        /// How long it asks us to stay away: from the header, or from the status.
        retry_after: Option<Duration>,
    },
    /// Nobody listens there.
    ConnectionRefused,
    /// No connection could be made, or it broke before the answer.
    Transport(Box<str>),
    /// The TLS handshake failed.
    Tls(Box<str>),
    /// The credentials could not be had.
    Credentials(Box<str>),
    /// The request could not be made out of what was asked for.
    Request(Box<str>),
    /// The answer broke off.
    BodyCut(Box<str>),
    /// The answer was to be gzip and is not.
    Gzip,
    /// One object or frame is longer than it may be.
    TooLong {
        /// How long it may be.
        limit: usize,
    },
    /// The answer is neither JSON nor what was asked for: some proxy's page, perhaps.
    NotJson {
        /// What it says it is.
        content_type: Box<str>,
    },
    /// The answer is JSON, but no list.
    NotAList {
        /// What it says it is.
        kind: Box<str>,
    },
    /// The answer, or one frame of it, cannot be read.
    Undecodable(Broken),
    /// One object cannot be read; the others were.
    UndecodableObject,
    /// There is no version to watch from: the list, or the object, has none.
    NoVersion,
    /// Nothing came for too long.
    TimedOut {
        /// How long.
        after: Duration,
    },
    /// All objects may have come, but not the mark that ends them.
    NoInitialEventsEnd {
        /// For how long nothing new came.
        after: Duration,
    },
    /// A watch was closed as soon as it had been opened.
    #[doc(alias("VeryShortWatchError"))]
    ShortWatch,
    /// A watch that was to begin with everything there is ended before it had sent it.
    EndedEarly,
}

impl Failure {
    /// A failed request or body of kube's, by what is at the root of it.
    pub(crate) fn of_kube(error: &kube::Error) -> Self {
        if let kube::Error::Auth(error) = error {
            return Self::Credentials(chain(error).into());
        }
        let text = chain(error);
        if is_refused(error) {
            return Self::ConnectionRefused;
        }
        let small = text.to_ascii_lowercase();
        if ["certificate", "tls", "handshake"].iter().any(|word| small.contains(word)) {
            return Self::Tls(text.into());
        }
        Self::Transport(text.into())
    }

    /// A body that broke off.
    pub(crate) fn of_body(error: &(dyn Error + 'static)) -> Self {
        Self::BodyCut(chain(error).into())
    }

    /// A failure that a watch sent as its last event.
    pub(crate) fn of_frame(status: ServerStatus) -> Self {
        let retry_after = retry_after(&status);
        Self::Answered { status: Box::new(status), retry_after }
    }
}

/// What a status says of when to come back.
pub(super) fn retry_after(status: &ServerStatus) -> Option<Duration> {
    let seconds = status.details.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

/// All that an error says, from the outside in, nothing twice.
fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut inner = error.source();
    while let Some(error) = inner {
        let further = error.to_string();
        if !text.contains(&further) {
            text.push_str(": ");
            text.push_str(&further);
        }
        inner = error.source();
    }
    text
}

fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    error.downcast_ref::<io::Error>().is_some_and(refused) || error.source().is_some_and(is_refused)
}

impl From<FrameTooLong> for Failure {
    fn from(error: FrameTooLong) -> Self {
        Self::TooLong { limit: error.limit() }
    }
}

impl From<GunzipError> for Failure {
    fn from(_: GunzipError) -> Self {
        Self::Gzip
    }
}

impl From<ListError> for Failure {
    fn from(error: ListError) -> Self {
        match error {
            ListError::Broken(broken) => Self::Undecodable(broken),
            ListError::TooLong { limit } => Self::TooLong { limit },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { status, .. } => {
                write!(f, "the server answered {}", status.code)?;
                if !status.reason.is_empty() {
                    write!(f, " {}", status.reason)?;
                }
                if !status.message.is_empty() {
                    write!(f, ": {}", status.message)?;
                }
                Ok(())
            }
            Self::ConnectionRefused => f.write_str("connection refused"),
            Self::Transport(text) => write!(f, "no connection: {text}"),
            Self::Tls(text) => write!(f, "TLS: {text}"),
            Self::Credentials(text) => write!(f, "no credentials: {text}"),
            Self::Request(text) => write!(f, "no such request can be made: {text}"),
            Self::BodyCut(text) => write!(f, "the answer broke off: {text}"),
            Self::Gzip => f.write_str("the answer is malformed gzip"),
            Self::TooLong { limit } => write!(f, "an object is longer than {limit} bytes"),
            Self::NotJson { content_type } => write!(f, "the answer is no JSON but {content_type}"),
            Self::NotAList { kind } => write!(f, "the answer is no list but a {kind}"),
            Self::Undecodable(broken) => write!(f, "the answer cannot be read: {broken}"),
            Self::UndecodableObject => f.write_str("an object cannot be read and was passed over"),
            Self::NoVersion => f.write_str("there is no version to watch from"),
            Self::TimedOut { after } => write!(f, "nothing came for {after:?}"),
            Self::NoInitialEventsEnd { after } => {
                write!(f, "no end of the initial events, and nothing new for {after:?}")
            }
            Self::ShortWatch => f.write_str("the watch was closed at once"),
            Self::EndedEarly => f.write_str("the watch ended before it had sent everything"),
        }
    }
}
