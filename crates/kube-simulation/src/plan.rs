//! Plans: which faults happen in a run, and where.
//!
//! Pure. [`generate`] makes plans from a learning run.

use std::fmt;
use std::str::FromStr;

pub(crate) mod generate;

/// What happens in one run, apart from the workload: a seed and the faults. Its text form replays
/// it, see [`Simulation::replay`](crate::Simulation::replay).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Plan {
    pub(crate) seed: u64,
    pub(crate) faults: Vec<Fault>,
}

/// A fault and its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// Where it happens.
    pub place: Place,
}

/// Where a fault happens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// The nth request of this verb for this path, counted from one, such as
    /// `create:configmaps/default/a#1`.
    Request(String, usize),
    /// From before the first of these steps of the workload until after the last, counted from
    /// zero.
    Steps(usize, usize),
}

/// The classes of faults, which can be switched off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultClass {
    /// The controller stops between two writes and starts again.
    Intermediate,
    /// The controller sees a state that is behind.
    Stale,
    /// The controller does not see a state, because a later one replaced it.
    Unobserved,
    /// Requests fail, watches end, the lease is lost, the clock jumps.
    Failures,
    /// Two faults in one run.
    Pairs,
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// The controller stops before the request reaches the server.
    CrashBefore,
    /// The controller stops when the server has stored the write, before the response arrives.
    CrashDuring,
    /// The controller stops a millisecond after the response arrived.
    CrashAfter,
    /// As [`CrashDuring`](Self::CrashDuring), and the controller starts again at a view that is
    /// behind by this many revisions. Half a minute later the view is up to date.
    StaleRestart(u64),
    /// The watches end with 410, and the lists that follow show a view that is behind by this many
    /// revisions, for half a minute.
    StaleRelist(u64),
    /// For two minutes after the write, watches show each revision two seconds late, and one after
    /// the other.
    SlowView,
    /// The controller does not run.
    Down,
    /// The controller runs and cannot connect; then the history is compacted, and it has to list
    /// again.
    Disconnected,
    /// Watches show nothing new; then the history is compacted, and the controller has to list
    /// again.
    Overwritten,
    /// The server refuses the request with this status, and does not carry it out.
    Status(u16),
    /// The server carries the request out and answers with the timeout 504.
    TimeoutAfter,
    /// The connection breaks before the request reaches the server.
    Disconnect,
    /// The connection breaks after the request was carried out.
    LoseResponse,
    /// The request takes 20 seconds to reach the server.
    Late,
    /// The connection of the watch breaks after its first event.
    WatchCut,
    /// From this request on, writes of leases fail for three minutes.
    LeadershipLost,
    /// The clock jumps an hour ahead when the response arrives, or a second after the step.
    ClockJump,
}

impl FaultClass {
    /// All classes.
    pub const ALL: [Self; 5] = [Self::Intermediate, Self::Stale, Self::Unobserved, Self::Failures, Self::Pairs];

    /// The name of the class.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Intermediate => "intermediate",
            Self::Stale => "stale",
            Self::Unobserved => "unobserved",
            Self::Failures => "failures",
            Self::Pairs => "pairs",
        }
    }
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FaultKind {
    /// The class of the fault.
    #[must_use]
    pub fn class(self) -> FaultClass {
        match self {
            Self::CrashBefore | Self::CrashDuring | Self::CrashAfter => FaultClass::Intermediate,
            Self::StaleRestart(_) | Self::StaleRelist(_) | Self::SlowView => FaultClass::Stale,
            Self::Down | Self::Disconnected | Self::Overwritten => FaultClass::Unobserved,
            Self::Status(_)
            | Self::TimeoutAfter
            | Self::Disconnect
            | Self::LoseResponse
            | Self::Late
            | Self::WatchCut
            | Self::LeadershipLost
            | Self::ClockJump => FaultClass::Failures,
        }
    }

    /// The name in the text form, without the number.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CrashBefore => "crash-before",
            Self::CrashDuring => "crash-during",
            Self::CrashAfter => "crash-after",
            Self::StaleRestart(_) => "stale-restart",
            Self::StaleRelist(_) => "stale-relist",
            Self::SlowView => "slow-view",
            Self::Down => "down",
            Self::Disconnected => "disconnected",
            Self::Overwritten => "overwritten",
            Self::Status(_) => "status",
            Self::TimeoutAfter => "timeout-after",
            Self::Disconnect => "disconnect",
            Self::LoseResponse => "lose-response",
            Self::Late => "late",
            Self::WatchCut => "watch-cut",
            Self::LeadershipLost => "leadership-lost",
            Self::ClockJump => "clock-jump",
        }
    }

    fn number(self) -> Option<u64> {
        match self {
            Self::StaleRestart(behind) | Self::StaleRelist(behind) => Some(behind),
            Self::Status(code) => Some(code.into()),
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (name, number) = match text.rsplit_once('=') {
            Some((name, number)) => (name, Some(number.parse().ok()?)),
            None => (text, None),
        };
        let number_or_zero = number.unwrap_or(0);
        let all = [
            Self::CrashBefore,
            Self::CrashDuring,
            Self::CrashAfter,
            Self::StaleRestart(number_or_zero),
            Self::StaleRelist(number_or_zero),
            Self::SlowView,
            Self::Down,
            Self::Disconnected,
            Self::Overwritten,
            Self::Status(u16::try_from(number_or_zero).ok()?),
            Self::TimeoutAfter,
            Self::Disconnect,
            Self::LoseResponse,
            Self::Late,
            Self::WatchCut,
            Self::LeadershipLost,
            Self::ClockJump,
        ];
        all.into_iter().find(|kind| kind.name() == name && kind.number() == number)
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.number() {
            Some(number) => write!(f, "={number}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(request, nth) => write!(f, "{request}#{nth}"),
            Self::Steps(from, until) => write!(f, "steps {from}..={until}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.kind, self.place)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed={}", self.seed)?;
        self.faults.iter().try_for_each(|fault| write!(f, " + {fault}"))
    }
}

/// A text is not the text form of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotAPlan(String);

impl fmt::Display for NotAPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a plan, as a report shows it: {:?}", self.0)
    }
}

impl std::error::Error for NotAPlan {}

impl FromStr for Plan {
    type Err = NotAPlan;

    fn from_str(text: &str) -> Result<Self, NotAPlan> {
        let not_a_plan = || NotAPlan(text.to_owned());
        let mut parts = text.split(" + ");
        let seed = parts.next().and_then(|part| part.trim().strip_prefix("seed=")?.parse().ok());
        let faults: Option<Vec<_>> = parts.map(parse_fault).collect();
        Ok(Self { seed: seed.ok_or_else(not_a_plan)?, faults: faults.ok_or_else(not_a_plan)? })
    }
}

fn parse_fault(text: &str) -> Option<Fault> {
    let (kind, place) = text.trim().split_once('@')?;
    let place = match place.strip_prefix("steps ").and_then(|steps| steps.split_once("..=")) {
        Some((from, until)) => Place::Steps(from.parse().ok()?, until.parse().ok()?),
        None => {
            let (request, nth) = place.rsplit_once('#')?;
            Place::Request(request.to_owned(), nth.parse().ok()?)
        }
    };
    Some(Fault { kind: FaultKind::parse(kind)?, place })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn the_text_of_a_plan_is_read_back() {
        for text in [
            "seed=7",
            "seed=0 + crash-during@create:configmaps/default/a#1",
            "seed=1 + status=409@patch:things.zoo.example.com/default/a/status#2 + down@steps 0..=3",
            "seed=1 + stale-restart=4@update:leases.coordination.k8s.io/x/y#1",
        ] {
            assert_eq!(text.parse::<Plan>().unwrap().to_string(), text);
        }
        for text in ["", "seed=x", "seed=1 + boom@a#1", "seed=1 + status@a#1", "seed=1 + down@steps 1"] {
            assert_eq!(text.parse::<Plan>(), Err(NotAPlan(text.to_owned())));
        }
    }
}
