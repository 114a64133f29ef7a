//! A resource that is followed through the versions in which a server serves it.

use std::fmt;
use std::sync::Arc;

use kube::Client;
use parking_lot::Mutex;

use crate::client::discovery::discover;
use crate::client::discovery::served::Served;
use crate::client::{Failure, Operation, ServerError};

/// The version of a resource that requests go to: the one that the server prefers, found by
/// discovery before the first request, and again after the server no longer serves it.
pub(super) struct Followed {
    group: Box<str>,
    plural: Box<str>,
    state: Mutex<FollowedState>,
}

#[derive(Debug, Default)]
struct FollowedState {
    /// What requests go to; `None` until discovery has found it.
    current: Option<Arc<Served>>,
    /// What was last listed. Watches of another version would not show how unchanged objects differ
    /// there.
    listed: Option<Arc<Served>>,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To receive all objects.
    List,
    /// To receive changes, or only the version.
    Continue,
}

impl Followed {
    pub(super) fn new(group: &str, plural: &str) -> Self {
        Self { group: group.into(), plural: plural.into(), state: Mutex::default() }
    }

    /// The resource as it is served now. Fails if it is not served. After a change of its version,
    /// the first list fails too, and until then every other request, so that everything is listed
    /// again as another state of the server.
    pub(super) async fn resolve(
        &self,
        client: &Client,
        operation: Operation,
        what: &Arc<str>,
        purpose: Purpose,
    ) -> Result<Arc<Served>, ServerError> {
        let error = |failure| ServerError::new(operation, Arc::clone(what), failure);
        let current = self.state.lock().current.clone();
        let found = match current {
            Some(current) => current,
            None => Arc::new(self.discover(client).await?.ok_or_else(|| error(Failure::NotServed))?),
        };
        let mut state = self.state.lock();
        state.current = Some(Arc::clone(&found));
        let is_other = state.listed.as_ref().is_some_and(|listed| listed.version != found.version);
        if purpose == Purpose::List {
            state.listed = Some(Arc::clone(&found));
        }
        if is_other { Err(error(Failure::OtherVersion)) } else { Ok(found) }
    }

    async fn discover(&self, client: &Client) -> Result<Option<Served>, ServerError> {
        let is_it = |served: &Served| *served.group == *self.group && *served.plural == *self.plural;
        Ok(discover(client).await?.into_iter().find(|served| is_it(served) && served.is_watchable()))
    }

    /// The server does not serve it any more: the next request runs discovery again.
    pub(super) fn lost(&self) {
        self.state.lock().current = None;
    }
}

/// A clone is for another reflector, which begins without a version.
impl Clone for Followed {
    fn clone(&self) -> Self {
        Self::new(&self.group, &self.plural)
    }
}

impl fmt::Debug for Followed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Followed").field("group", &self.group).field("plural", &self.plural).finish_non_exhaustive()
    }
}
