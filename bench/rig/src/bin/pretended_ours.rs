//! This project's informers on a simulated cluster: `pretended_ours URL SETTING`, where a setting
//! is `default`, `plain` or `compact`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{Client, Config};
use kube_informer::{Informer, Keep, Kind, Object, Registration};
use rig::figures_on_request::answer_figures;
use tokio::runtime::Runtime;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (url, setting) = (arguments.next().ok_or("the URL?")?, arguments.next().ok_or("the setting?")?);
    let runtime = Runtime::new()?;
    let _entered = runtime.enter();
    let client = kube_informer::client(Config::new(url.parse()?))?;
    let events = Arc::new(AtomicU64::new(0));
    let _pods = follow::<Pod>(&client, &setting, &events);
    let _nodes = follow::<Node>(&client, &setting, &events);
    let _leases = follow::<Lease>(&client, &setting, &events);
    answer_figures(|| events.load(Ordering::Relaxed))?;
    Ok(())
}

fn follow<K: Object + Kind>(client: &Client, setting: &str, events: &Arc<AtomicU64>) -> (Informer<K>, Registration) {
    let builder = Informer::<K>::builder(client.clone());
    let informer = match setting {
        "plain" => builder.keep(Keep::Plain).build(),
        "compact" => builder.keep(Keep::Compact).build(),
        _ => builder.build(),
    };
    let events = Arc::clone(events);
    let handler = informer.on_event(move |_| _ = events.fetch_add(1, Ordering::Relaxed));
    informer.start();
    (informer, handler)
}
