//! What can go wrong, what to do about it, and with which code the command ends then.

use std::fmt;
use std::io;
use std::process::ExitCode;

use kube_informer::{ServerError, SyncError};

/// Why the command ends without having done what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Anything that is none of the others: code 1.
    Other(String),
    /// The command line asks for something that is not there to be asked for: code 2, which clap uses too.
    Usage(String),
    /// A kind or an object that is not there: code 3.
    NotFound(String),
    /// The server will not have us, or will not let us: code 4.
    Refused(String),
    /// No server answers: code 5.
    Unreachable(String),
    /// Whoever reads the output has gone, which is their right: code 0.
    Unread,
}

impl Failure {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Other(_) => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::Refused(_) => 4,
            Self::Unreachable(_) => 5,
            Self::Unread => 0,
        })
    }

    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::Unread)
    }

    /// Why the server could not be asked what it serves.
    pub(crate) fn of_discovery(error: &ServerError) -> Self {
        let doing = "asking the server what it serves";
        let said = || error.status().map(|status| status.message.clone()).unwrap_or_default();
        match error.code() {
            Some(401) => Self::Refused(format!("{doing}: {UNKNOWN_USER}")),
            Some(403) => Self::Refused(format!("{doing}: {}", said())),
            Some(404) => Self::NotFound(format!("{doing}: {}", said())),
            Some(code) => Self::Other(format!("{doing}: the server answers {code}: {}", said())),
            None => Self::of_silence(&error.to_string()),
        }
    }

    /// No server has answered.
    pub(crate) fn of_silence(why: &str) -> Self {
        Self::Unreachable(format!(
            "{why}.\nIs the server up, and is this the right context? kubectl config current-context"
        ))
    }

    /// Why an informer of a kind cannot sync.
    pub(crate) fn of_sync(kind: &str, error: &SyncError) -> Self {
        match error {
            SyncError::Refused(error) => Self::of_server(kind, error),
            _ => Self::Other(format!("{kind}: {error}")),
        }
    }

    /// What a server said to an informer of a kind.
    pub(crate) fn of_server(kind: &str, error: &ServerError) -> Self {
        match error.code() {
            Some(401) => Self::Refused(format!("{kind}: {UNKNOWN_USER}")),
            Some(403) => {
                let said = error.status().map(|status| status.message.clone()).unwrap_or_default();
                Self::Refused(format!(
                    "{said}\nAn informer needs the verbs list and watch on {kind}: kubectl auth can-i list {kind}; kubectl auth can-i watch {kind}"
                ))
            }
            Some(404) => Self::NotFound(format!("{kind}: the server does not serve this kind (any more)")),
            _ => Self::Other(format!("{kind}: {error}")),
        }
    }
}

const UNKNOWN_USER: &str =
    "the server does not know you (401).\nCheck the user and token of your context: kubectl config view --minify";

/// An error and all that caused it.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Other(error.to_string()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(text)
            | Self::Usage(text)
            | Self::NotFound(text)
            | Self::Refused(text)
            | Self::Unreachable(text) => f.write_str(text),
            Self::Unread => f.write_str("nobody reads the output"),
        }
    }
}
