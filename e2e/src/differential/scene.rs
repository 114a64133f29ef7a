//! The state of a running scenario, with diagnostics if it makes no progress.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::witness::Witness;
use crate::Error;
use crate::link::Link;

/// Timeout without progress. client-go waits up to a minute after a failure, and again if the next
/// attempt fails too, for example because its version has expired after a reconnect. An overloaded
/// machine may take another two minutes.
const STILL: Duration = Duration::from_secs(240);

/// Interval of messages about missing progress.
const TELL: Duration = Duration::from_secs(30);

/// Both informers, each with its link to the server, and the current activity.
#[derive(Debug)]
pub(crate) struct Scene {
    name: &'static str,
    /// This project's, then client-go's.
    pub(crate) links: [Link; 2],
    pub(crate) witnesses: [Witness; 2],
    doing: Mutex<Doing>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Doing {
    what: String,
    /// Number of previous activities.
    nth: usize,
}

impl Scene {
    /// Opens the links to the server. The informers' events are written into the folder as they
    /// arrive.
    pub(crate) async fn open(name: &'static str, server: SocketAddr, folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            name,
            links: [Link::open(server).await?, Link::open(server).await?],
            witnesses: [Witness::new("kube-informer", folder)?, Witness::new("client-go", folder)?],
            doing: Mutex::new(Doing { what: "nothing yet".to_owned(), nth: 0 }),
        })
    }

    /// Sets the current activity.
    pub(crate) fn doing(&self, what: impl Into<String>) {
        let mut doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        *doing = Doing { what: what.into(), nth: doing.nth + 1 };
    }

    /// Runs a scenario as long as it makes progress; its duration depends on the machine.
    pub(crate) async fn watch_over<T>(&self, play: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let mut play = std::pin::pin!(play);
        let (mut before, mut since, mut told) = (self.movement(), Instant::now(), Duration::ZERO);
        loop {
            tokio::select! {
                biased;
                played = &mut play => return played,
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
            let now = self.movement();
            if now != before {
                (before, since, told) = (now, Instant::now(), Duration::ZERO);
            }
            let still = since.elapsed();
            if still >= STILL {
                return Err(format!("nothing has moved for {} s, {self}", still.as_secs()).into());
            }
            if still >= told + TELL {
                told = still;
                println!("e2e:   {}: nothing has moved for {} s, {self}", self.name, still.as_secs());
            }
        }
    }

    /// Changes whenever the activity changes or a handler receives something new. Transferred bytes
    /// do not count, because a server sends some without any progress.
    fn movement(&self) -> (Doing, [usize; 2]) {
        let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (doing, [self.witnesses[0].news(), self.witnesses[1].news()])
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        write!(f, "while {}:", doing.what)?;
        for (witness, link) in self.witnesses.iter().zip(&self.links) {
            write!(f, "\n    {witness}; {link}")?;
            if let Some(complaint) = witness.last_complaint() {
                write!(f, "; last complaint: {complaint}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::super::transcript::{Line, State};
    use super::*;

    fn updated(version: u64) -> Line {
        let state = |version| State { key: "a/b".into(), uid: "u".into(), version, step: String::new() };
        Line::Updated { old: state(1), object: state(version) }
    }

    async fn scene(folder: &Path) -> Result<Scene, Error> {
        Scene::open("a test", "127.0.0.1:1".parse()?, folder).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_when_nothing_moves_and_says_how_both_stand() -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let scene = scene(folder.path()).await?;
        scene.witnesses[0].tell(updated(7));
        scene.witnesses[0].complain("watching maps: connection refused");
        scene.doing("waiting until client-go hears of a/b at 7");
        let error = scene.watch_over(pending::<Result<(), Error>>()).await.err().ok_or("it does not end")?.to_string();
        for part in [
            "waiting until client-go hears of a/b at 7",
            "kube-informer has told 1 lines, the last 240 s ago: updated a/b at 7",
            "watching maps: connection refused",
            "client-go has told nothing",
            "its line is set to Pass, 0 connections accepted",
        ] {
            assert!(error.contains(part), "{part:?} is missing in: {error}");
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_goes_on_for_as_long_as_something_new_is_told() -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let scene = scene(folder.path()).await?;
        let slow = async {
            for version in 2..10 {
                tokio::time::sleep(STILL - Duration::from_secs(10)).await;
                scene.witnesses[1].tell(updated(version));
            }
            Ok(())
        };
        scene.watch_over(slow).await
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_again_moves_nothing() -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let scene = scene(folder.path()).await?;
        let resyncs = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                scene.witnesses[0].tell(updated(1));
            }
        };
        assert!(scene.watch_over::<()>(resyncs).await.is_err());
        Ok(())
    }

    #[tokio::test]
    async fn what_is_told_is_on_disk_at_once() -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let scene = scene(folder.path()).await?;
        scene.witnesses[1].tell(updated(7));
        let written = std::fs::read_to_string(folder.path().join("client-go.jsonl"))?;
        assert!(written.contains(r#""type":"updated""#) && written.ends_with("\n"), "{written}");
        Ok(())
    }
}
