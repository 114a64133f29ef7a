//! The right to write: [`Leadership`], and the [`Writer`] that only it hands out.

use kube::Client;

/// The right of this process to write to the cluster.
///
/// A program without leader election takes [`unelected`](Self::unelected).
#[derive(Debug, Clone)]
pub struct Leadership(());

impl Leadership {
    /// Leadership of a program of which only one replica runs.
    #[must_use]
    pub fn unelected() -> Self {
        Self(())
    }

    /// Returns the writing half of a client, valid as long as this leadership is held.
    #[must_use]
    pub fn writer(&self, client: &Client) -> Writer {
        Writer { client: client.clone() }
    }
}

/// The writing half of a client: each request is checked against the [`Leadership`] it came from.
#[derive(Clone)]
pub struct Writer {
    client: Client,
}

impl Writer {
    /// Returns a client whose requests are checked.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}
