//! When which handler is told everything again.

use std::time::Duration;

use tokio::time::Instant;

/// The shortest period of a handler.
const SHORTEST: Duration = Duration::from_secs(1);

/// The one clock that all resyncs of an informer follow: it looks every so often which handlers are due.
///
/// The period is the informer's own. A handler that asks for a shorter one before the informer starts shortens it; one that asks
/// later gets this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckPeriod {
    period: Option<Duration>,
    settled: bool,
}

impl CheckPeriod {
    pub(crate) fn new(informer: Option<Duration>) -> Self {
        Self { period: informer.filter(|period| !period.is_zero()), settled: false }
    }

    pub(crate) fn period(&self) -> Option<Duration> {
        self.period
    }

    /// The informer has started: no handler can change the period any more.
    pub(crate) fn settle(&mut self) {
        self.settled = true;
    }

    /// Takes note of a handler's wish. Gives the period that it gets, none for no resyncs at all.
    pub(crate) fn admit(&mut self, wish: ResyncChoice) -> Option<Duration> {
        let wished = match wish {
            ResyncChoice::AsInformer => return self.period,
            ResyncChoice::Never => return None,
            ResyncChoice::Every(period) => period.max(SHORTEST),
        };
        let Some(period) = &mut self.period else {
            tracing::warn!("a handler wants resyncs, but its informer has none: it gets none");
            return None;
        };
        if !self.settled {
            *period = wished.min(*period);
        }
        Some(wished.max(*period))
    }
}

/// What a handler wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ResyncChoice {
    /// Whatever the informer has.
    #[default]
    AsInformer,
    /// Nothing again.
    Never,
    /// Everything again this often.
    Every(Duration),
}

/// When one handler is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResyncTimer {
    period: Duration,
    next: Instant,
}

impl ResyncTimer {
    pub(crate) fn new(period: Option<Duration>, now: Instant) -> Option<Self> {
        period.map(|period| Self { period, next: now + period })
    }

    /// Whether it is time; if so, the next time is a period from now.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + self.period;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn the_shortest_wish_before_the_start_is_everybodys_clock() {
        let mut check = CheckPeriod::new(Some(secs(12)));
        assert_eq!(check.admit(ResyncChoice::AsInformer), Some(secs(12)));
        assert_eq!(check.admit(ResyncChoice::Every(secs(10))), Some(secs(10)));
        assert_eq!(check.admit(ResyncChoice::Every(secs(20))), Some(secs(20)));
        assert_eq!(check.period(), Some(secs(10)));
    }

    #[test]
    fn a_wish_after_the_start_cannot_shorten_the_clock() {
        let mut check = CheckPeriod::new(Some(secs(12)));
        check.settle();
        assert_eq!(check.admit(ResyncChoice::Every(secs(5))), Some(secs(12)));
        assert_eq!(check.period(), Some(secs(12)));
    }

    #[test]
    fn a_wish_is_never_below_a_second() {
        let mut check = CheckPeriod::new(Some(secs(12)));
        assert_eq!(check.admit(ResyncChoice::Every(Duration::from_millis(1))), Some(secs(1)));
    }

    #[test]
    fn an_informer_without_resync_gives_none_to_anybody() {
        let mut check = CheckPeriod::new(None);
        assert_eq!(check.admit(ResyncChoice::Every(secs(5))), None);
        assert_eq!(CheckPeriod::new(Some(Duration::ZERO)).admit(ResyncChoice::AsInformer), None);
    }
}
