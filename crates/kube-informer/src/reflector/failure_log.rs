//! The log of a reflector's failures: a warning for each new cause, and a line for the recovery.

use std::time::Duration;

use crate::client::{Failure, ServerError};
use crate::store::WatchScope;

/// The minimum time between two warnings.
const SPACING: Duration = Duration::from_secs(10);

/// How long a cause that returns after a recovery is not reported again.
const REPEAT_AFTER: Duration = Duration::from_secs(5 * 60);

/// Decides which failures are logged. Has no clock: times are counted from the reflector's start.
#[derive(Debug, Default)]
pub(super) struct FailureLog {
    last: Option<Warning>,
}

/// The last logged failure.
#[derive(Debug)]
struct Warning {
    cause: ServerError,
    since: Duration,
    at: Duration,
    has_recovered: bool,
}

/// A line to log.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Failed,
    Recovered { after: Duration },
}

impl FailureLog {
    /// Returns the line to log, if `failure` (its cause, and since when it has lasted) should be
    /// logged.
    pub(super) fn line(&mut self, failure: Option<(&ServerError, Duration)>, now: Duration) -> Option<Line> {
        let Some((cause, since)) = failure else {
            let last = self.last.as_mut().filter(|last| !last.has_recovered)?;
            last.has_recovered = true;
            return Some(Line::Recovered { after: now.saturating_sub(last.since) });
        };
        if self.last.as_ref().is_some_and(|last| !last.should_be_logged(cause, now)) {
            return None;
        }
        self.last = Some(Warning { cause: cause.clone(), since, at: now, has_recovered: false });
        Some(Line::Failed)
    }
}

impl Warning {
    /// Whether this failure should be logged after the last one.
    fn should_be_logged(&self, cause: &ServerError, now: Duration) -> bool {
        let passed = now.saturating_sub(self.at);
        match (is_same(&self.cause, cause), self.has_recovered) {
            (true, false) => false,
            (true, true) => passed >= REPEAT_AFTER,
            (false, _) => passed >= SPACING,
        }
    }
}

/// Whether both failures have the same cause, though their messages may differ.
fn is_same(one: &ServerError, other: &ServerError) -> bool {
    match (one.status(), other.status()) {
        (Some(status), Some(others)) => {
            // Permissions differ between lists and watches.
            let is_refusal = (400..500).contains(&status.code);
            status.code == others.code && (!is_refusal || one.operation() == other.operation())
        }
        (None, None) => std::mem::discriminant(one.failure()) == std::mem::discriminant(other.failure()),
        _ => false,
    }
}

/// A scope, as it is logged.
pub(super) fn scope_name(scope: &WatchScope) -> String {
    match scope {
        WatchScope::Everything => "all".to_owned(),
        WatchScope::Namespace(namespace) => format!("namespace {namespace}"),
    }
}

/// What a user can do about a failure.
pub(super) fn advice(cause: &ServerError, resource: &str, scope: &WatchScope) -> String {
    let flag = match scope {
        WatchScope::Everything => " -A".to_owned(),
        WatchScope::Namespace(namespace) => format!(" -n {namespace}"),
    };
    match cause.failure() {
        Failure::Answered { status, .. } => match status.code {
            401 => "check the client's token or certificate: the server does not accept it".to_owned(),
            403 => format!(
                "grant the client the verbs list and watch on {resource}, in its Role or ClusterRole; \
                 kubectl auth can-i list {resource}{flag} and kubectl auth can-i watch {resource}{flag} show them"
            ),
            404 => format!(
                "check the group and version of {resource}, and that its definition is installed: \
                 kubectl api-resources"
            ),
            429 => "none is needed: the server limits its clients".to_owned(),
            410 => "none is needed: the changes are listed again".to_owned(),
            _ if cause.is_rejected() => "check the selectors and parameters of the request".to_owned(),
            _ => "look into the log of the server".to_owned(),
        },
        Failure::Credentials(_) => "check the credentials of the client, such as its token file or plugin".to_owned(),
        Failure::Request(_) => "check the selectors and parameters of the request".to_owned(),
        Failure::Tls(_) => "check the certificate authority of the client, and the clocks".to_owned(),
        Failure::ConnectionRefused | Failure::Transport(_) | Failure::BodyCut(_) | Failure::TimedOut { .. } => {
            "check that the server is up and reachable, and the proxies in between".to_owned()
        }
        _ => "check the proxies between the client and the server".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Operation;
    use crate::codec::ServerStatus;

    fn refused() -> ServerError {
        ServerError::new(Operation::Watch, "pods", Failure::ConnectionRefused)
    }

    fn answered(code: u16) -> ServerError {
        let status = Box::new(ServerStatus { code, ..ServerStatus::default() });
        ServerError::new(Operation::List, "pods", Failure::Answered { status, retry_after: None })
    }

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_failure_is_logged_once_and_so_is_its_recovery() {
        let mut log = FailureLog::default();
        assert_eq!(log.line(None, seconds(1)), None);
        assert_eq!(log.line(Some((&refused(), seconds(2))), seconds(2)), Some(Line::Failed));
        for now in 3..10_000 {
            assert_eq!(log.line(Some((&refused(), seconds(2))), seconds(now)), None);
        }
        assert_eq!(log.line(None, seconds(10_002)), Some(Line::Recovered { after: seconds(10_000) }));
        assert_eq!(log.line(None, seconds(10_003)), None);
    }

    #[test]
    fn another_cause_is_logged_but_not_at_once() {
        let mut log = FailureLog::default();
        log.line(Some((&refused(), seconds(0))), seconds(0));
        assert_eq!(log.line(Some((&answered(403), seconds(0))), seconds(9)), None);
        assert_eq!(log.line(Some((&answered(403), seconds(0))), seconds(10)), Some(Line::Failed));
        assert_eq!(log.line(None, seconds(15)), Some(Line::Recovered { after: seconds(15) }));
    }

    #[test]
    fn causes_that_alternate_are_logged_at_most_six_times_a_minute() {
        let mut log = FailureLog::default();
        let causes = [refused(), answered(500), answered(403)];
        let failed = (0..600).filter(|nth| {
            let cause = &causes[usize::try_from(nth % 3).unwrap()];
            log.line(Some((cause, seconds(0))), Duration::from_millis(nth * 100)).is_some()
        });
        assert!(failed.count() <= 6);
    }

    #[test]
    fn a_watch_that_is_cut_every_minute_is_logged_every_five() {
        let mut log = FailureLog::default();
        let mut failed = 0;
        for minute in 0..60 {
            let now = seconds(minute * 60);
            failed += i32::from(log.line(Some((&refused(), now)), now).is_some());
            log.line(None, now + seconds(1));
        }
        assert_eq!(failed, 12);
    }
}
