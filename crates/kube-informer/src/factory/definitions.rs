//! Seeing kinds come and go: the definitions of custom resources, watched while somebody waits for one.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::stream::{self, BoxStream, StreamExt as _};
use kube::Client;
use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::informer::Subscription;
use crate::informer::SyncError;
use crate::informer::{Core, Informer};
use crate::object::ObjectKey;
use crate::pipeline::controller::Shared;
use crate::reflector::{DefinitionState, DefinitionWatch};

/// How long to go without, where definitions may not be watched.
const REFUSED_FOR: Duration = Duration::from_secs(600);

type Definition = PartialObjectMeta<DynamicObject>;

/// The definitions of custom resources. They are watched, metadata only, while somebody waits for one of them, and only where the
/// server lets us.
pub(super) struct Definitions {
    client: Client,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Held by those who wait.
    watching: Weak<Core>,
    /// The last one watched, as long as tasks of it are left.
    ending: Vec<Arc<Shared>>,
    refused_until: Option<Instant>,
}

impl Definitions {
    pub(super) fn new(client: Client) -> Arc<Self> {
        Arc::new(Self { client, state: Mutex::default() })
    }

    /// Somebody to look out for this resource, if it is one that may have a definition: its group then has a dot in it.
    pub(super) fn definition_watch(self: &Arc<Self>, resource: &ApiResource) -> Option<Arc<dyn DefinitionWatch>> {
        let ApiResource { group, plural, .. } = resource;
        let name = ObjectKey::cluster(format!("{plural}.{group}"));
        group.contains('.').then(|| Arc::new(One { definitions: Arc::clone(self), name }) as _)
    }

    /// Tasks that may be left when nobody waits any more.
    pub(super) fn ending(&self) -> Vec<Arc<Shared>> {
        self.state.lock().ending.clone()
    }

    /// The one watch of all who wait now.
    fn watch(&self) -> Informer<Definition> {
        let informer;
        let mut state = self.state.lock();
        if let Some(core) = state.watching.upgrade() {
            return Informer::of(core);
        }
        informer = Informer::metadata_for(self.client.clone(), resource()).drop_managed_fields().build();
        state.watching = Arc::downgrade(informer.core());
        state.ending.retain(|shared| !shared.is_over());
        state.ending.push(Arc::clone(informer.core().shared()));
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

/// Looks out for one definition.
struct One {
    definitions: Arc<Definitions>,
    name: ObjectKey,
}

/// How far looking out has come.
enum Looking {
    Beginning,
    /// Not to be watched before that.
    Refused(Instant),
    Hearing(Subscription<Definition>),
}

impl DefinitionWatch for One {
    fn look(&self) -> BoxStream<'static, DefinitionState> {
        let Self { definitions, name } = self;
        let beginning = match definitions.refused_until() {
            Some(until) => Looking::Refused(until),
            None => Looking::Beginning,
        };
        let (definitions, name) = (Arc::clone(definitions), name.clone());
        stream::unfold(beginning, move |looking| look_on(looking, Arc::clone(&definitions), name.clone())).boxed()
    }
}

async fn look_on(
    mut looking: Looking,
    definitions: Arc<Definitions>,
    name: ObjectKey,
) -> Option<(DefinitionState, Looking)> {
    loop {
        looking = match looking {
            Looking::Refused(until) => {
                sleep_until(until).await;
                Looking::Beginning
            }
            Looking::Beginning => {
                let all = definitions.watch();
                match all.synced().await {
                    Ok(()) => {}
                    Err(SyncError::Refused(_)) => {
                        let until = Instant::now() + REFUSED_FOR;
                        definitions.refused(until);
                        return Some((DefinitionState::Unknown, Looking::Refused(until)));
                    }
                    Err(SyncError::Stopped) => return None,
                }
                let its_name = name.clone();
                let events = all.handler().filter(move |definition| *definition.key() == its_name).subscribe();
                // One that is there is the first event.
                if all.lister().get(&name).is_none() {
                    return Some((DefinitionState::Absent, Looking::Hearing(events)));
                }
                Looking::Hearing(events)
            }
            Looking::Hearing(mut events) => {
                let event = events.next().await?;
                let sight = if event.is_deleted() { DefinitionState::Absent } else { DefinitionState::Present };
                return Some((sight, Looking::Hearing(events)));
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
