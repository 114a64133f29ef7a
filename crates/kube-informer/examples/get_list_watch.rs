//! Plain get, list and watch with kube's `Api` beside an informer: what each costs the server, counted.
//!
//! ```text
//! cargo run -p kube-informer --example get_list_watch                  # an API server in the process
//! cargo run -p kube-informer --example get_list_watch -- --kubeconfig  # a real cluster
//! ```

mod support;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::TryStreamExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use kube_embedded::generate::Generator;
use kube_informer::{Informer, ObjectKey};
use support::Cluster;

/// How often somebody wants to know.
const TIMES: usize = 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::from_args([]).await?;
    if let Some(server) = cluster.server() {
        server.load(Generator::new(1).pods(200).map(|pod| pod.to_value()))?;
    }
    let (client, bill) = Bill::on(&cluster.client());
    let pods: Api<Pod> = Api::all(client.clone());
    println!("{:<42} {:>8} {:>10}", "", "requests", "bytes");

    // To ask for everything, each time.
    let mut known = Vec::new();
    for _ in 0..TIMES {
        known = pods.list(&ListParams::default()).await?.items;
    }
    bill.present(&format!("list of {} pods, {TIMES} times", known.len()));

    // To ask for one.
    let one = known.first().ok_or("there are no pods")?;
    let namespace = Api::<Pod>::namespaced(client.clone(), &one.namespace().unwrap_or_default());
    for _ in 0..TIMES {
        namespace.get(&one.name_any()).await?;
    }
    bill.present(&format!("get of one pod, {TIMES} times"));

    // To be told: a list for a beginning, then a watch from there, which somebody has to keep up and to remember.
    let list = pods.list(&ListParams::default().limit(1)).await?;
    let version = list.metadata.resource_version.unwrap_or_default();
    let mut events = Box::pin(pods.watch(&WatchParams::default().timeout(5), &version).await?);
    if let Some(server) = cluster.server() {
        server.load([Generator::new(1).pod(200).to_value()])?;
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Added(_) = event {
                break;
            }
        }
    }
    drop(events);
    bill.present("watch, until something happens");

    // An informer: the same three, of which only the first asks. It takes its answers compressed.
    let informer = Informer::<Pod>::builder(client).start();
    informer.synced().await?;
    bill.present("informer, until it has everything");
    let (lister, key) = (informer.lister(), ObjectKey::of(one).ok_or("a pod without a name")?);
    let mut read = 0;
    for _ in 0..TIMES {
        read += lister.list().len() + usize::from(lister.get(&key).is_some());
    }
    if let Some(server) = cluster.server() {
        server.objects("v1", "Pod")?.namespace(key.namespace().unwrap_or_default()).delete(key.name())?;
        informer.wait_until(key, |pod| pod.is_none_or(|pod| pod.deletion_timestamp().is_some())).await?;
    }
    bill.present(&format!("informer, {TIMES} lists, {TIMES} gets and a change"));
    println!("{read} pods came out of the cache.");
    informer.shutdown().await;
    Ok(())
}

/// What was asked of a server, and how much it answered.
#[derive(Clone, Default)]
struct Bill {
    requests: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl Bill {
    /// A client that does what another one does, and counts.
    fn on(client: &Client) -> (Client, Self) {
        let (bill, namespace) = (Self::default(), client.default_namespace().to_owned());
        let (counting, client) = (bill.clone(), client.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (client, bill) = (client.clone(), counting.clone());
            async move {
                bill.requests.fetch_add(1, Ordering::Relaxed);
                let answer = client.send(request).await?;
                Ok::<_, kube::Error>(answer.map(|body| {
                    body.map_frame(move |frame| {
                        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                        bill.bytes.fetch_add(bytes, Ordering::Relaxed);
                        frame
                    })
                }))
            }
        });
        (Client::new(service, namespace), bill)
    }

    /// Prints what was counted since this was last called.
    fn present(&self, what: &str) {
        let (requests, bytes) = (self.requests.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed));
        println!("{what:<42} {requests:>8} {bytes:>10}");
    }
}
