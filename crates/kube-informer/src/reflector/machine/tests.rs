//! Unit tests of the state machine, without a clock.

use super::*;
use crate::body::{Obj, Untyped};
use crate::client::{Detail, WatchQuery, WatchStart};
use crate::codec::{Broken, Change, ListEnd, ServerStatus};
use crate::reflector::settings::BackoffSettings;
use crate::reflector::step::{Frame, ServerState};

mod absence;
mod freshness;
mod growth;
mod listing;
mod sharding;
mod silence;
mod watching;
mod witness;

/// A machine and its time. Actions are abbreviated to a few words.
struct Bench {
    machine: Machine,
    now: Duration,
    rng: Rng,
    /// How often the sink's size was to be measured.
    measured: usize,
}

impl Bench {
    fn new(settings: ReflectorSettings) -> Self {
        // No jitter, so that waits are exact.
        let backoff = BackoffSettings { jitter: 0.0, ..settings.backoff };
        let machine = Machine::new("pods".into(), WatchScope::Everything, ReflectorSettings { backoff, ..settings });
        Self { machine, now: Duration::ZERO, rng: Rng::seeded(1), measured: 0 }
    }

    fn paged() -> Self {
        Self::new(ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() })
    }

    /// A machine that has completed an empty LIST and watches from this version.
    fn watching_from(version: &str) -> Self {
        let mut bench = Self::paged();
        bench.step(Input::Start);
        bench.step(Input::Opened(Lane::Main));
        bench.step(page_end(version, None));
        bench.step(Input::Opened(Lane::Main));
        assert!(matches!(bench.machine.phase, MachinePhase::Watching(_)));
        bench
    }

    fn step(&mut self, input: Input) -> Vec<String> {
        let mut actions = Vec::new();
        let mut step = Step { now: self.now, rng: &mut self.rng, actions: &mut actions };
        self.machine.step(input, &mut step);
        let before = actions.len();
        actions.retain(|action| !matches!(action, Action::MeasureHeld));
        self.measured += before - actions.len();
        actions.iter().map(word).collect()
    }

    fn after(&mut self, seconds: f64) -> &mut Self {
        self.now += Duration::from_secs_f64(seconds);
        self
    }

    /// Advances the time to the next tick; returns how long that took, and the actions.
    fn tick(&mut self) -> (f64, Vec<String>) {
        let due = self.machine.due().expect("something is due");
        let passed = due.saturating_sub(self.now);
        self.now = due.max(self.now);
        (passed.as_secs_f64(), self.step(Input::Tick))
    }

    fn fail(&mut self, error: ServerError) -> Vec<String> {
        self.step(Input::Failed(Lane::Main, error))
    }

    fn receive(&mut self, change: Change, key: &str, version: &str) -> Vec<String> {
        let mut words = self.step(Input::Bytes(Lane::Main));
        words.extend(self.step(Input::Frame(Lane::Main, Frame::Changed(change, object(key, version)))));
        words
    }

    fn bookmark(&mut self, version: &str, initial_events_end: bool) -> Vec<String> {
        self.step(Input::Frame(Lane::Main, Frame::Bookmark { version: Version::new(version), initial_events_end }))
    }

    fn version(&self) -> String {
        self.machine.version.as_ref().map(ToString::to_string).unwrap_or_default()
    }

    /// Since when it is not known what was missed, in seconds.
    fn degraded_since(&self) -> Option<f64> {
        self.machine.degraded().map(|(_, since)| since.as_secs_f64())
    }

    /// When the store was last known to be caught up, in seconds.
    fn caught_up(&self) -> Option<f64> {
        self.machine.freshness.caught_up().map(|at| at.as_secs_f64())
    }

    /// Since when the history has not been verified, in seconds.
    fn unverified_since(&self) -> Option<f64> {
        self.machine.witnesses.unverified_since().map(|since| since.as_secs_f64())
    }

    fn relists(&self) -> crate::reflector::Relists {
        self.machine.counters.relists
    }
}

fn object(key: &str, version: &str) -> Obj<Untyped> {
    Obj::from_json(format!(r#"{{"metadata":{{"name":"{key}","resourceVersion":"{version}"}}}}"#)).unwrap()
}

fn page_end(version: &str, token: Option<&str>) -> Input {
    Input::PageEnded(ListEnd {
        kind: Some("PodList".to_owned()),
        version: Some(Version::new(version)).filter(|version| !version.is_empty()),
        continue_token: token.map(ToOwned::to_owned),
        ..ListEnd::default()
    })
}

/// The answer of a source that cannot request a single object.
fn server_at(version: &str) -> ServerState {
    ServerState { version: Version::new(version), object: None, has_others: true }
}

fn error(failure: Failure) -> ServerError {
    ServerError::new(Operation::Watch, "pods", failure)
}

fn answered(code: u16) -> ServerError {
    let reason = match code {
        410 => "Expired",
        500 => "InternalError",
        _ => "",
    };
    let message = if code == 504 { "Timeout: Too large resource version: 9, current: 2" } else { "" };
    let status =
        ServerStatus { code, reason: reason.to_owned(), message: message.to_owned(), ..ServerStatus::default() };
    error(Failure::Answered { status: Box::new(status), retry_after: None })
}

fn later(code: u16, seconds: u64) -> ServerError {
    let status = Box::new(ServerStatus { code, ..ServerStatus::default() });
    error(Failure::Answered { status, retry_after: Some(Duration::from_secs(seconds)) })
}

fn broken_frame() -> Input {
    Input::BadFrame(Lane::Main, Failure::Undecodable(Broken::Byte))
}

fn bad_object() -> Input {
    Input::BadFrame(Lane::Main, Failure::UndecodableObject("no name".into()))
}

fn refused() -> ServerError {
    error(Failure::ConnectionRefused)
}

fn cut() -> ServerError {
    error(Failure::BodyCut("reset".into()))
}

/// Abbreviates an action.
fn word(action: &Action) -> String {
    match action {
        Action::List(query) => format!("list {}", list_word(query)),
        Action::Watch(query) => watch_word(query),
        Action::AskShardSupport(_) => "ask shard support".to_owned(),
        Action::Close => "close".to_owned(),
        Action::RequestRevision(query) => {
            assert_eq!((query.limit, query.detail, &query.version), (Some(1), Detail::Metadata, &ListVersion::Latest));
            "ask revision".to_owned()
        }
        Action::WatchSecond(query) => format!("beside {}", watch_word(query)),
        Action::PauseSecond => "hold beside".to_owned(),
        Action::CloseSecond => "close beside".to_owned(),
        Action::Switch => "switch".to_owned(),
        Action::WatchDefinition => "look out".to_owned(),
        Action::UnwatchDefinition => "look away".to_owned(),
        Action::Report(_) => "report".to_owned(),
        Action::MeasureHeld => unreachable!("counted instead"),
        Action::Deliver(delta) => match delta {
            Delta::Changed(object) => format!("changed {}@{}", object.key(), object.version()),
            Delta::Deleted(object) => format!("deleted {}@{}", object.key(), object.version()),
            Delta::Listed(object) => format!("listed {}@{}", object.key(), object.version()),
            Delta::RelistBegun(Relist { history: History::Continues, .. }) => "begun".to_owned(),
            Delta::RelistBegun(Relist { history: History::WentBack, .. }) => "begun, went back".to_owned(),
            Delta::RelistEnded { version, .. } => format!("ended @{version}"),
            Delta::RelistAbandoned(_) => "abandoned".to_owned(),
            Delta::RelistDropped(_) => "dropped".to_owned(),
            Delta::Bookmark { version, .. } => format!("bookmark @{version}"),
            Delta::Entered(object) => format!("entered {}@{}", object.key(), object.version()),
            Delta::ShardLeft { shard, .. } => format!("left for {}", shard.ranges),
            Delta::ShardHeld { shard, .. } => format!("held {}", shard.ranges),
            other => panic!("not an event of a reflector: {other:?}"),
        },
    }
}

fn list_word(query: &ListQuery) -> String {
    let version = match (&query.continue_token, &query.version) {
        (Some(token), _) => format!("after {token}"),
        (None, ListVersion::Latest) => "latest".to_owned(),
        (None, ListVersion::Any) => "any".to_owned(),
        (None, ListVersion::NotOlderThan(version)) => format!("from {version}"),
    };
    query.limit.map_or_else(|| version.clone(), |limit| format!("{version} by {limit}"))
}

fn watch_word(query: &WatchQuery) -> String {
    assert!((300..=600).contains(&query.timeout.as_secs()), "{:?}", query.timeout);
    match &query.start {
        WatchStart::After(version) => format!("watch {version}"),
        WatchStart::Everything { not_older_than: None } => "stream".to_owned(),
        WatchStart::Everything { not_older_than: Some(version) } => format!("stream from {version}"),
    }
}
