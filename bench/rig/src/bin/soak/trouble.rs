//! What goes wrong, one thing after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::Error;
use crate::host::Host;

/// In this order, again and again. Expired versions and cuts are what happens most.
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
/// Watches that stall are left alone for so long, so that it has to be noticed.
const STALLED: Duration = Duration::from_secs(30);

/// How often what has happened. A clone counts the same.
#[derive(Debug, Clone, Default)]
pub struct Troubles {
    /// All connections broken off, for whatever reason.
    pub cuts: Arc<AtomicU64>,
    /// Versions expired, so that lists had to be made anew.
    pub expiries: Arc<AtomicU64>,
    /// Requests and watches made to fail.
    pub failures: Arc<AtomicU64>,
}

impl Troubles {
    /// Makes trouble until then.
    pub async fn make(self, host: Host, every: Duration, until: Instant) -> Result<(), Error> {
        for what in COURSE.iter().cycle() {
            if Instant::now() + every + REFUSED > until {
                // Not before the end: the number of tasks is looked at.
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
