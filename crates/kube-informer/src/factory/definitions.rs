//! Detection of custom resource definitions that are created or deleted.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use kube::Client;
use kube::core::ApiResource;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use super::registry::Registry;
use crate::informer::Subscription;
use crate::informer::SyncError;
use crate::informer::{Core, Informer};
use crate::object::{MetadataOnly, ObjectKey};
use crate::pipeline::controller::ControllerShared;
use crate::reflector::{DefinitionState, DefinitionWatch};

/// How long the definitions are not watched after the server refused it.
const REFUSED_FOR: Duration = Duration::from_secs(600);

type Definition = MetadataOnly;

/// The definitions of custom resources.
///
/// One metadata-only informer watches them while any informer waits for its definition, if the
/// server permits it.
pub(super) struct Definitions {
    client: Client,
    state: Mutex<WatchState>,
}

#[derive(Default)]
struct WatchState {
    /// The informer of the definitions, kept alive by the streams that use it.
    watching: Weak<Core>,
    /// Earlier and current informers of the definitions that still have tasks.
    ending: Vec<Arc<ControllerShared>>,
    refused_until: Option<Instant>,
}

impl Definitions {
    pub(super) fn new(client: Client) -> Arc<Self> {
        Arc::new(Self { client, state: Mutex::default() })
    }

    /// Returns the definition watch of a resource; `None` if its group has no dot, because the
    /// group of a custom resource always has one.
    pub(super) fn definition_watch(self: &Arc<Self>, resource: &ApiResource) -> Option<Arc<dyn DefinitionWatch>> {
        let ApiResource { group, plural, .. } = resource;
        let name = ObjectKey::cluster(format!("{plural}.{group}"));
        group.contains('.').then(|| Arc::new(SingleDefinitionWatch { definitions: Arc::clone(self), name }) as _)
    }

    /// Informers of the definitions that may still have tasks when they are no longer used.
    pub(super) fn ending(&self) -> Vec<Arc<ControllerShared>> {
        self.state.lock().ending.clone()
    }

    /// Returns the shared informer of the definitions; starts it if there is none.
    fn watch(&self) -> Informer<Definition> {
        let informer;
        let mut state = self.state.lock();
        if let Some(core) = state.watching.upgrade() {
            return Informer::of(core);
        }
        informer = Informer::builder_for(self.client.clone(), resource())
            .drop_managed_fields()
            .shared(Weak::<Registry>::new() as _)
            .build();
        state.watching = Arc::downgrade(informer.core());
        state.ending.retain(|shared| !shared.has_ended());
        state.ending.push(Arc::clone(informer.core().shared()));
        drop(state);
        informer.start();
        informer
    }

    fn refused_until(&self) -> Option<Instant> {
        self.state.lock().refused_until
    }

    fn refused(&self, until: Instant) {
        self.state.lock().refused_until = Some(until);
    }
}

/// Watches for one definition.
struct SingleDefinitionWatch {
    definitions: Arc<Definitions>,
    name: ObjectKey,
}

/// The state of the stream of one definition.
enum StreamState {
    Start,
    /// The server refused the watch; retry at this time.
    Refused(Instant),
    Subscribed(Subscription<Definition>),
}

impl DefinitionWatch for SingleDefinitionWatch {
    fn look(&self) -> BoxStream<'static, DefinitionState> {
        let Self { definitions, name } = self;
        let start = match definitions.refused_until() {
            Some(until) => StreamState::Refused(until),
            None => StreamState::Start,
        };
        let (definitions, name) = (Arc::clone(definitions), name.clone());
        stream::unfold(start, move |phase| next_state(phase, Arc::clone(&definitions), name.clone())).boxed()
    }
}

async fn next_state(
    mut phase: StreamState,
    definitions: Arc<Definitions>,
    name: ObjectKey,
) -> Option<(DefinitionState, StreamState)> {
    loop {
        phase = match phase {
            StreamState::Refused(until) => {
                sleep_until(until).await;
                StreamState::Start
            }
            StreamState::Start => {
                let all = definitions.watch();
                match all.synced().await {
                    Ok(()) => {}
                    Err(SyncError::Refused(_)) => {
                        let until = Instant::now() + REFUSED_FOR;
                        definitions.refused(until);
                        return Some((DefinitionState::Unknown, StreamState::Refused(until)));
                    }
                    Err(SyncError::Stopped | SyncError::Invalid(_)) => return None,
                }
                let its_name = name.clone();
                let events = all.handler().filter(move |definition| *definition.key() == its_name).subscribe();
                // An existing definition is reported by the first event.
                if all.lister().get(&name).is_none() {
                    return Some((DefinitionState::Absent, StreamState::Subscribed(events)));
                }
                StreamState::Subscribed(events)
            }
            StreamState::Subscribed(mut events) => {
                let event = events.next().await?;
                let state = if event.is_deleted() { DefinitionState::Absent } else { DefinitionState::Present };
                return Some((state, StreamState::Subscribed(events)));
            }
        }
    }
}

fn resource() -> ApiResource {
    ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    }
}
