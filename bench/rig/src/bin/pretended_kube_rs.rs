//! kube-runtime's watchers and reflectors on a simulated cluster: `pretended_kube_rs URL SETTING`,
//! where the setting is ignored.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Config, Resource};
use rig::figures_on_request::answer_figures;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().nth(1).ok_or("the URL?")?;
    let runtime = Runtime::new()?;
    let _entered = runtime.enter();
    let client = Client::try_from(Config::new(url.parse()?))?;
    let events = Arc::new(AtomicU64::new(0));
    let _pods = follow::<Pod>(&runtime, &client, &events);
    let _nodes = follow::<Node>(&runtime, &client, &events);
    let _leases = follow::<Lease>(&runtime, &client, &events);
    answer_figures(|| events.load(Ordering::Relaxed))?;
    Ok(())
}

fn follow<K>(runtime: &Runtime, client: &Client, events: &Arc<AtomicU64>) -> Store<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    let (store, writer) = reflector::store();
    let config = watcher::Config::default().streaming_lists();
    let stream = watcher(Api::<K>::all(client.clone()), config).default_backoff().reflect(writer);
    let events = Arc::clone(events);
    runtime.spawn(stream.touched_objects().for_each(move |_| {
        events.fetch_add(1, Ordering::Relaxed);
        std::future::ready(())
    }));
    store
}
