//! What happened in a run.

use std::fmt;
use std::time::Duration;

use kube_embedded::Change;

use crate::state::State;

/// Everything that a run leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// The requests of the controller, in the order in which they were sent.
    pub(crate) requests: Vec<Request>,
    /// The revision at which the controller first started.
    pub(crate) start: u64,
    /// All writes to the cluster, by anyone, in order.
    pub(crate) changes: Vec<TimedChange>,
    /// Steps, faults, crashes and starts.
    pub(crate) notes: Vec<Note>,
    pub(crate) logs: Vec<Note>,
    pub(crate) panics: Vec<String>,
    /// How the run ended.
    pub(crate) ending: Ending,
    /// For each fault of the plan, whether it happened.
    pub(crate) reached: Vec<bool>,
    /// Steps of the workload that the server refused.
    pub(crate) refused_steps: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Ending {
    /// Nothing was written for long.
    Settled,
    /// Writes did not end.
    #[default]
    Restless,
    /// Requests without an effect did not end.
    Busy,
}

/// A request of the controller.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The verb and the path, such as `create:configmaps/default/a`.
    pub(crate) signature: String,
    /// How many of this signature there were before, and this one.
    pub(crate) nth: usize,
    pub(crate) kind: RequestKind,
    /// Whether a state of any age may be shown (`resourceVersion=0`).
    pub(crate) allows_any: bool,
    pub(crate) sent: Duration,
    pub(crate) answered: Option<Duration>,
    pub(crate) code: Option<u16>,
    /// The server's revision before and after a write.
    pub(crate) revisions: Option<(u64, u64)>,
    /// The process that sent it, counted from zero.
    pub(crate) process: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A list, or a read of one object.
    Read,
    Watch,
    Create,
    /// A write that is not a create.
    Write,
}

impl RequestKind {
    pub(crate) fn is_write(self) -> bool {
        matches!(self, Self::Create | Self::Write)
    }
}

impl Request {
    /// Whether the request is for a lease or an event: nothing depends on them but time.
    pub(crate) fn is_background(&self) -> bool {
        self.is_lease() || matches!(self.resource(), "events" | "events.events.k8s.io")
    }

    pub(crate) fn is_lease(&self) -> bool {
        self.resource() == "leases.coordination.k8s.io"
    }

    /// The plural of the kind, with its group.
    fn resource(&self) -> &str {
        let path = self.signature.split_once(':').map_or("", |(_, path)| path);
        path.split('/').next().unwrap_or_default()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct TimedChange {
    pub(crate) at: Duration,
    pub(crate) change: Change,
}

/// Something that happened, for the report.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    pub(crate) at: Duration,
    pub(crate) kind: NoteKind,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoteKind {
    Step,
    Fault,
    Process,
    Log,
}

impl Trace {
    /// The objects at the end, of those that were written in the run.
    pub(crate) fn final_state(&self) -> State {
        let mut state = State::default();
        self.changes.iter().for_each(|change| state.apply(&change.change));
        state
    }

    /// What the same seed has to repeat.
    pub(crate) fn sequence(&self) -> impl Iterator<Item = String> {
        self.requests.iter().map(|request| {
            let code = request.code.map_or_else(|| "no answer".to_owned(), |code| code.to_string());
            let revisions = request.revisions.map(|(from, to)| format!(", revision {from} to {to}"));
            format!("{}#{}: {code}{}", request.signature, request.nth, revisions.unwrap_or_default())
        })
    }
}

/// A time of a run, in seconds.
pub(crate) struct Seconds(pub(crate) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9.3}s", self.0.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_leases_and_events_of_kubernetes_depend_on_time_alone() {
        let is_background = |signature: &str| {
            let (kind, sent) = (RequestKind::Create, Duration::ZERO);
            let signature = signature.to_owned();
            let request = Request {
                signature,
                nth: 1,
                kind,
                allows_any: false,
                sent,
                answered: None,
                code: None,
                revisions: None,
                process: 0,
            };
            request.is_background()
        };
        for signature in [
            "create:leases.coordination.k8s.io/default/a",
            "update:leases.coordination.k8s.io/default/a",
            "create:events/default/a",
            "patch:events.events.k8s.io/default/a",
        ] {
            assert!(is_background(signature), "{signature}");
        }
        for signature in [
            "create:eventsources.argoproj.io/default/a",
            "create:events.example.com/default/a",
            "create:leases.example.com/default/a",
            "create:configmaps/default/events",
        ] {
            assert!(!is_background(signature), "{signature}");
        }
    }
}
