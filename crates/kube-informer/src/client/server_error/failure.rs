//! The kinds of failure.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use super::answer;
use crate::codec::{Broken, FrameTooLong, GunzipError, ListError, ServerStatus};
use crate::object::DecodeError;

/// Why a request, or its response stream, failed.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::client::{Failure, Operation, ServerError};
///
/// let error = ServerError::new(Operation::Watch, "pods", Failure::TimedOut { after: Duration::from_secs(60) });
/// assert!(matches!(error.failure(), Failure::TimedOut { .. }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The server returned an error, or sent one as the last event of a watch.
    Answered {
        /// The server's status.
        status: Box<ServerStatus>,
        /// How long to wait before a retry: from the `Retry-After` header, or from the status.
        retry_after: Option<Duration>,
    },
    /// The connection was refused.
    ConnectionRefused,
    /// No connection could be established, or it broke before the response.
    Transport(Box<str>),
    /// The TLS handshake failed.
    Tls(Box<str>),
    /// The credentials could not be obtained.
    Credentials(Box<str>),
    /// The request could not be built from its parameters.
    Request(Box<str>),
    /// The response was cut off.
    BodyCut(Box<str>),
    /// The response is not valid gzip, or has another encoding.
    Gzip,
    /// An object or frame exceeds the maximum length.
    TooLong {
        /// The maximum length in bytes.
        limit: usize,
    },
    /// The response is neither JSON nor the requested format, but possibly an error page of a
    /// proxy.
    NotJson {
        /// Its content type.
        content_type: Box<str>,
    },
    /// The list is of another shard than the requested one, so objects may be missing.
    OtherShard {
        /// The selector that the server has applied.
        applied: Box<str>,
    },
    /// The response is JSON, but not a list.
    NotAList {
        /// Its kind.
        kind: Box<str>,
    },
    /// The response, or one frame of it, cannot be decoded.
    Undecodable(Broken),
    /// The metadata of an object cannot be decoded. The text is that of the [`DecodeError`].
    UndecodableObject(Box<str>),
    /// There is no resource version to watch from: the list, or the object, has none.
    NoVersion,
    /// Nothing was received for too long.
    TimedOut {
        /// For how long.
        after: Duration,
    },
    /// All objects may have been received, but not the bookmark that ends the initial events.
    NoInitialEventsEnd {
        /// For how long nothing new was received.
        after: Duration,
    },
    /// A list contains more bytes of objects than
    /// [`max_list_bytes`](crate::reflector::ReflectorSettings::max_list_bytes).
    ListTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// Watches have added more bytes of objects to the cache than
    /// [`max_watch_bytes`](crate::reflector::ReflectorSettings::max_watch_bytes) since the last
    /// list.
    WatchTooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// A list was still incomplete after
    /// [`list_timeout`](crate::reflector::ReflectorSettings::list_timeout), although more of it
    /// kept arriving.
    ListTooSlow {
        /// The limit.
        after: Duration,
    },
    /// A page of a list ended with the continue token that requested it: the pages have no end.
    RepeatedPage,
    /// A watch was closed immediately after it was opened.
    #[doc(alias("VeryShortWatchError"))]
    ShortWatch,
    /// A streaming list ended before it was complete.
    EndedEarly,
    /// The [`ListWatch`](crate::client::ListWatch), or a function that it calls, panicked.
    Panicked(Box<str>),
    /// Discovery does not show the resource in any version. Only of an informer that waits for its
    /// resource to be served.
    NotServed,
    /// The resource is now served in another version, in which it is listed again.
    OtherVersion,
}

impl Failure {
    /// Classifies a failed request by its root cause.
    pub(crate) fn of_kube(error: &kube::Error) -> Self {
        if let kube::Error::Auth(error) = error {
            return Self::Credentials(error_chain(error).into());
        }
        let text = error_chain(error);
        if is_refused(error) {
            return Self::ConnectionRefused;
        }
        let lowercase = text.to_ascii_lowercase();
        if ["certificate", "tls", "handshake"].iter().any(|word| lowercase.contains(word)) {
            return Self::Tls(text.into());
        }
        Self::Transport(text.into())
    }

    /// The response body was cut off.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked(text.unwrap_or_default().into())
    }

    pub(crate) fn of_body(error: &(dyn Error + 'static)) -> Self {
        Self::BodyCut(error_chain(error).into())
    }

    /// An error that the server sent as the last event of a watch.
    pub(crate) fn of_frame(mut status: ServerStatus) -> Self {
        answer::shorten(&mut status);
        let retry_after = retry_after(&status);
        Self::Answered { status: Box::new(status), retry_after }
    }
}

/// The wait before a retry according to a status.
pub(super) fn retry_after(status: &ServerStatus) -> Option<Duration> {
    let seconds = status.details.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

/// The messages of an error and its sources, without repetitions.
fn error_chain(error: &(dyn Error + 'static)) -> String {
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

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::UndecodableObject(error.to_string().into())
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
            Self::OtherShard { applied } => {
                write!(f, "the server has listed another shard than the requested one: {applied}")
            }
            Self::NotAList { kind } => write!(f, "the answer is no list but a {kind}"),
            Self::Undecodable(broken) => write!(f, "the answer cannot be read: {broken}"),
            Self::UndecodableObject(text) => write!(f, "an object cannot be read: {text}"),
            Self::NoVersion => f.write_str("there is no version to watch from"),
            Self::TimedOut { after } => write!(f, "nothing came for {after:?}"),
            Self::NoInitialEventsEnd { after } => {
                write!(f, "no end of the initial events, and nothing new for {after:?}")
            }
            Self::ListTooLarge { limit } => {
                write!(f, "the list has more than {limit} bytes of objects (ReflectorSettings::max_list_bytes)")
            }
            Self::WatchTooLarge { limit } => write!(
                f,
                "since the last list, watches have added more than {limit} bytes of objects \
                 (ReflectorSettings::max_watch_bytes)"
            ),
            Self::ListTooSlow { after } => {
                write!(f, "the list was not complete after {after:?} (ReflectorSettings::list_timeout)")
            }
            Self::RepeatedPage => f.write_str("a page ends with the continue token that requested it"),
            Self::ShortWatch => f.write_str("the watch was closed at once"),
            Self::Panicked(text) => write!(f, "the source panicked: {text}"),
            Self::EndedEarly => f.write_str("the watch ended before it had sent everything"),
            Self::NotServed => f.write_str("the server does not serve it"),
            Self::OtherVersion => f.write_str("the server serves it in another version"),
        }
    }
}
