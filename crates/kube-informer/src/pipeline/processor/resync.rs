//! When each handler receives a resync.

use std::time::Duration;

use tokio::time::Instant;

/// The minimum resync period of a handler.
const MIN_PERIOD: Duration = Duration::from_secs(1);

/// The common resync timer of an informer: at each period, the handlers that are due receive a
/// resync.
///
/// The initial period is the informer's. A handler that requests a shorter one before the informer
/// starts shortens it; a handler added later cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CheckPeriod {
    period: Option<Duration>,
    is_frozen: bool,
}

impl CheckPeriod {
    pub(crate) fn new(informer: Option<Duration>) -> Self {
        Self { period: informer.filter(|period| !period.is_zero()), is_frozen: false }
    }

    pub(crate) fn period(&self) -> Option<Duration> {
        self.period
    }

    /// Called when the informer has started: handlers can no longer change the period.
    pub(crate) fn freeze(&mut self) {
        self.is_frozen = true;
    }

    /// Registers a handler. Returns the period it gets; `None` for no resyncs.
    pub(crate) fn admit(&mut self, choice: ResyncChoice) -> Option<Duration> {
        let requested = match choice {
            ResyncChoice::AsInformer => return self.period,
            ResyncChoice::Never => return None,
            ResyncChoice::Every(period) => period.max(MIN_PERIOD),
        };
        let Some(period) = &mut self.period else {
            tracing::warn!("a handler wants resyncs, but its informer has none: it gets none");
            return None;
        };
        if !self.is_frozen {
            *period = requested.min(*period);
        }
        Some(requested.max(*period))
    }
}

/// The resync period that a handler requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ResyncChoice {
    /// The informer's period.
    #[default]
    AsInformer,
    /// No resyncs.
    Never,
    /// A resync this often.
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

    /// Whether it is due; if so, the next time is one period from now.
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
        check.freeze();
        assert_eq!(check.admit(ResyncChoice::Every(secs(5))), Some(secs(12)));
        assert_eq!(check.period(), Some(secs(12)));
    }

    #[test]
    fn a_wish_is_never_below_a_second() {
        let mut check = CheckPeriod::new(Some(secs(12)));
        assert_eq!(check.admit(ResyncChoice::Every(Duration::from_millis(1))), Some(secs(1)));
    }

    #[test]
    fn an_informer_without_resync_gives_none_to_any_handler() {
        let mut check = CheckPeriod::new(None);
        assert_eq!(check.admit(ResyncChoice::Every(secs(5))), None);
        assert_eq!(CheckPeriod::new(Some(Duration::ZERO)).admit(ResyncChoice::AsInformer), None);
    }
}
