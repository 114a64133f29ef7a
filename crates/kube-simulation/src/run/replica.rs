//! The view of an API server: the revision up to which its watch cache has read.
//!
//! All watches of a process show the same revision at the same time, as those of one API server do.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use tokio::sync::watch;
use tokio::time::sleep;

use super::conductor::Conductor;

/// How fast a view follows the latest revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Some milliseconds late.
    Normal,
    /// This late, one revision after the other.
    Slow(Duration),
    Frozen,
}

#[derive(Debug)]
pub(crate) struct Replica {
    view: watch::Sender<u64>,
    pace: watch::Sender<Pace>,
}

impl Replica {
    /// A replica that has read up to `view`, and follows from there.
    pub(crate) fn start(conductor: &Arc<Conductor>, view: u64, pace: Pace, seed: u64) -> Arc<Self> {
        let replica = Arc::new(Self { view: watch::channel(view).0, pace: watch::channel(pace).0 });
        tokio::spawn(follow(Arc::downgrade(conductor), replica.clone(), Pcg64Mcg::seed_from_u64(seed ^ 0x5eed)));
        replica
    }

    /// The revision that reads which allow it, and watches, may show.
    pub(crate) fn view(&self) -> u64 {
        *self.view.borrow()
    }

    pub(crate) fn views(&self) -> watch::Receiver<u64> {
        self.view.subscribe()
    }

    pub(crate) fn set_pace(&self, pace: Pace) {
        self.pace.send_replace(pace);
    }

    /// Follows at this pace for a while, and then normally.
    pub(crate) fn set_pace_for(self: &Arc<Self>, pace: Pace, duration: Duration) {
        self.set_pace(pace);
        let replica = self.clone();
        tokio::spawn(async move {
            sleep(duration).await;
            replica.set_pace(Pace::Normal);
        });
    }
}

async fn follow(conductor: Weak<Conductor>, replica: Arc<Replica>, mut rng: Pcg64Mcg) {
    let mut paces = replica.pace.subscribe();
    loop {
        let shown = replica.view();
        let Some(conductor) = conductor.upgrade() else { return };
        conductor.server().until(|server| server.revision() > shown).await;
        let pace = *paces.borrow_and_update();
        match pace {
            Pace::Frozen => {
                if paces.changed().await.is_err() {
                    return;
                }
            }
            Pace::Slow(lag) => {
                // A change of the pace takes effect at once.
                if tokio::time::timeout(lag, paces.changed()).await.is_err() {
                    replica.view.send_replace(shown + 1);
                }
            }
            Pace::Normal => {
                let revision = conductor.server().revision();
                sleep(Duration::from_millis(rng.random_range(1..=4))).await;
                if !matches!(*replica.pace.borrow(), Pace::Frozen) {
                    replica.view.send_replace(revision);
                }
            }
        }
    }
}
