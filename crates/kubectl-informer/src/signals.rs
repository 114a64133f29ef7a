//! Termination signals.

use std::future::Future;

/// Installs handlers for Ctrl-C and, on Unix, SIGTERM; the future completes at the first signal.
///
/// The call installs them, not the first poll: a signal in between does not end the process before
/// it has cleaned up.
#[cfg(unix)]
pub(crate) fn ended() -> impl Future<Output = ()> {
    use tokio::signal::unix::{Signal, SignalKind, signal};

    async fn received(signal: Option<Signal>) {
        match signal {
            Some(mut signal) => drop(signal.recv().await),
            // Without a handler the signal ends the process.
            None => std::future::pending().await,
        }
    }
    let [interrupted, terminated] = [SignalKind::interrupt(), SignalKind::terminate()].map(|kind| signal(kind).ok());
    async {
        tokio::select! {
            () = received(interrupted) => {}
            () = received(terminated) => {}
        }
    }
}

/// Completes on Ctrl-C.
#[cfg(not(unix))]
pub(crate) fn ended() -> impl Future<Output = ()> {
    async { drop(tokio::signal::ctrl_c().await) }
}
