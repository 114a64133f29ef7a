//! The state of a running scenario, with diagnostics if it makes no progress.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::transcript_recorder::TranscriptRecorder;
use crate::Error;
use crate::link::Link;

/// Timeout without progress. client-go waits up to a minute after a failure, and again if the next
/// attempt fails too, for example because its version has expired after a reconnect. An overloaded
/// machine may take another two minutes.
const STALL_TIMEOUT: Duration = Duration::from_secs(240);

/// Interval of messages about missing progress.
const REPORT_INTERVAL: Duration = Duration::from_secs(30);

/// Both informers, each with its link to the server, and the current activity.
#[derive(Debug)]
pub(crate) struct Scene {
    name: &'static str,
    /// This project's, then client-go's.
    pub(crate) links: [Link; 2],
    pub(crate) recorders: [TranscriptRecorder; 2],
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
            recorders: [
                TranscriptRecorder::new("kube-informer", folder)?,
                TranscriptRecorder::new("client-go", folder)?,
            ],
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
        let (mut before, mut since, mut reported) = (self.progress(), Instant::now(), Duration::ZERO);
        loop {
            tokio::select! {
                biased;
                played = &mut play => return played,
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
            let now = self.progress();
            if now != before {
                (before, since, reported) = (now, Instant::now(), Duration::ZERO);
            }
            let still = since.elapsed();
            if still >= STALL_TIMEOUT {
                return Err(format!("no progress for {} s, {self}", still.as_secs()).into());
            }
            if still >= reported + REPORT_INTERVAL {
                reported = still;
                println!("e2e:   {}: no progress for {} s, {self}", self.name, still.as_secs());
            }
        }
    }

    /// Changes whenever the activity changes or a handler receives something new. Transferred bytes
    /// do not count, because a server sends some without any progress.
    fn progress(&self) -> (Doing, [usize; 2]) {
        let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (doing, [self.recorders[0].changes(), self.recorders[1].changes()])
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        write!(f, "while {}:", doing.what)?;
        for (recorder, link) in self.recorders.iter().zip(&self.links) {
            write!(f, "\n    {recorder}; {link}")?;
            if let Some(error) = recorder.last_error() {
                write!(f, "; last error: {error}")?;
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
    async fn a_run_without_progress_fails_with_the_state_of_both_informers() -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let scene = scene(folder.path()).await?;
        scene.recorders[0].record(updated(7));
        scene.recorders[0].record_error("watching maps: connection refused");
        scene.doing("waiting until client-go receives a/b at 7");
        let error = scene.watch_over(pending::<Result<(), Error>>()).await.err().ok_or("it does not end")?.to_string();
        for part in [
            "waiting until client-go receives a/b at 7",
            "kube-informer has recorded 1 lines, the last 240 s ago: updated a/b at 7",
            "watching maps: connection refused",
            "client-go has received nothing",
            "its line is set to Pass, 0 connections accepted",
        ] {
            assert!(error.contains(part), "{part:?} is missing in: {error}");
        }
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_continues_while_new_events_are_recorded() -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let scene = scene(folder.path()).await?;
        let slow = async {
            for version in 2..10 {
                tokio::time::sleep(STALL_TIMEOUT - Duration::from_secs(10)).await;
                scene.recorders[1].record(updated(version));
            }
            Ok(())
        };
        scene.watch_over(slow).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_resync_is_not_progress() -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let scene = scene(folder.path()).await?;
        let resyncs = async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                scene.recorders[0].record(updated(1));
            }
        };
        assert!(scene.watch_over::<()>(resyncs).await.is_err());
        Ok(())
    }

    #[tokio::test]
    async fn a_recorded_line_is_on_disk_at_once() -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let scene = scene(folder.path()).await?;
        scene.recorders[1].record(updated(7));
        let written = std::fs::read_to_string(folder.path().join("client-go.jsonl"))?;
        assert!(written.contains(r#""type":"updated""#) && written.ends_with("\n"), "{written}");
        Ok(())
    }
}
