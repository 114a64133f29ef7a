//! Failures of the command: message, advice and exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

use kube_informer::SyncError;
use kube_informer::client::ServerError;

/// Why the command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Any other failure: exit code 1.
    Other(String),
    /// Invalid command line or kubeconfig: exit code 2, as clap uses.
    Usage(String),
    /// Unknown kind or object: exit code 3.
    NotFound(String),
    /// Authentication or authorization failed (401 or 403): exit code 4.
    Refused(String),
    /// No server answers: exit code 5.
    Unreachable(String),
    /// The reader closed the output pipe, which is no error: exit code 0.
    OutputClosed,
}

impl Failure {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Other(_) => 1,
            Self::Usage(_) => 2,
            Self::NotFound(_) => 3,
            Self::Refused(_) => 4,
            Self::Unreachable(_) => 5,
            Self::OutputClosed => 0,
        })
    }

    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Self::OutputClosed)
    }

    /// Failure of API discovery.
    pub(crate) fn of_discovery(server: &str, error: &ServerError) -> Self {
        let operation = format!("API discovery at {server}");
        let message = || error.status().map(|status| status.message.clone()).unwrap_or_default();
        match error.code() {
            Some(401) => Self::Refused(format!("{operation}: {UNKNOWN_USER}")),
            Some(403) => Self::Refused(format!("{operation}: {}", message())),
            Some(404) => Self::NotFound(format!("{operation}: {}", message())),
            Some(code) => Self::Other(format!("{operation}: the server responded with {code}: {}", message())),
            None => Self::unreachable(&format!("{operation}: {error}")),
        }
    }

    /// The server did not respond.
    pub(crate) fn unreachable(why: &str) -> Self {
        Self::Unreachable(format!(
            "{why}.\nIs the server up, and is this the right context? kubectl config current-context"
        ))
    }

    /// Failure of an informer's initial sync.
    pub(crate) fn of_sync(server: &str, kind: &str, error: &SyncError) -> Self {
        match error {
            SyncError::Refused(error) => Self::of_server(server, kind, Verbs::ListAndWatch, error),
            _ => Self::Other(format!("{kind} at {server}: {error}")),
        }
    }

    /// Failure of a list request.
    pub(crate) fn of_list(server: &str, kind: &str, error: &ServerError) -> Self {
        match error.code() {
            None => Self::unreachable(&format!("listing {kind} at {server}: {error}")),
            Some(_) => Self::of_server(server, kind, Verbs::List, error),
        }
    }

    /// Maps an error returned by the server to a failure.
    fn of_server(server: &str, kind: &str, verbs: Verbs, error: &ServerError) -> Self {
        let subject = format!("{kind} at {server}");
        match error.code() {
            Some(401) => Self::Refused(format!("{subject}: {UNKNOWN_USER}")),
            Some(403) => {
                let message = error.status().map(|status| status.message.clone()).unwrap_or_default();
                let advice = match verbs {
                    Verbs::List => format!("Check your permission: kubectl auth can-i list {kind}"),
                    Verbs::ListAndWatch => format!(
                        "The verbs list and watch are needed: \
                         kubectl auth can-i list {kind}; kubectl auth can-i watch {kind}"
                    ),
                };
                Self::Refused(format!("{subject}: {message}\n{advice}"))
            }
            Some(404) => Self::NotFound(format!("{subject}: the server does not serve this kind (any more)")),
            _ => Self::Other(format!("{subject}: {error}")),
        }
    }
}

/// What a command needs to be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verbs {
    List,
    ListAndWatch,
}

const UNKNOWN_USER: &str = "the server does not accept the credentials (401 Unauthorized).\n\
    Check the user and token of your context: kubectl config view --minify";

/// Formats an error with its chain of sources, skipping repeated text.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let message = cause.to_string();
        if !text.contains(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        next = cause.source();
    }
    text
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::OutputClosed,
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
            Self::OutputClosed => f.write_str("the output was closed"),
        }
    }
}
