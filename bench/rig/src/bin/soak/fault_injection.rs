//! Fault injection, one fault after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::Error;
use crate::host::Host;

/// The cycle of faults. Expired versions and cut connections are the most frequent.
const COURSE: [&str; 14] = [
    "cut",
    "expire",
    "fail torn",
    "fail unavailable",
    "cut",
    "fail gone",
    "expire",
    "refuse",
    "fail twice",
    "cut",
    "fail stalled",
    "expire",
    "fail busy",
    "fail garbled",
];
const REFUSED: Duration = Duration::from_secs(2);
/// Stalled watches stay stalled for this long, so that the reflector has to detect them.
const STALLED: Duration = Duration::from_secs(30);

/// Counters of faults. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct FaultCounters {
    /// Times that all connections were cut, for any reason.
    pub cuts: Arc<AtomicU64>,
    /// Times that resource versions expired, which forces relists.
    pub expiries: Arc<AtomicU64>,
    /// Requests and watches made to fail.
    pub failures: Arc<AtomicU64>,
}

impl FaultCounters {
    /// Injects faults until the deadline.
    pub async fn inject(self, host: Host, every: Duration, until: Instant) -> Result<(), Error> {
        for what in COURSE.iter().cycle() {
            if Instant::now() + every + REFUSED > until {
                // Does not end early, because the number of tasks is measured.
                sleep_until(until + Duration::from_secs(2)).await;
                break;
            }
            sleep(every).await;
            host.ask(*what).await?;
            self.cuts.fetch_add(1, Ordering::Relaxed);
            match *what {
                "expire" => drop(self.expiries.fetch_add(1, Ordering::Relaxed)),
                "refuse" => {
                    host.ask("cut").await?;
                    sleep(REFUSED).await;
                    host.ask("accept").await?;
                }
                "fail stalled" => {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                    sleep_until(until.min(Instant::now() + STALLED)).await;
                }
                _ if what.starts_with("fail") => drop(self.failures.fetch_add(1, Ordering::Relaxed)),
                _ => {}
            }
        }
        host.ask("calm").await.map(drop)
    }
}
