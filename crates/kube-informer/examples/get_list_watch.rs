//! Compares get, list and watch of the kube `Api` with an informer: counts the requests and bytes
//! of each.
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

/// Number of reads.
const READS: usize = 20;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::from_args([]).await?;
    if let Some(server) = cluster.server() {
        server.load(Generator::new(1).pods(200))?;
    }
    let (client, counter) = RequestCounter::wrap(&cluster.client());
    let pods: Api<Pod> = Api::all(client.clone());
    println!("{:<42} {:>8} {:>10}", "", "requests", "bytes");

    // A full list for each read.
    let mut known = Vec::new();
    for _ in 0..READS {
        known = pods.list(&ListParams::default()).await?.items;
    }
    counter.print(&format!("list of {} pods, {READS} times", known.len()));

    // One object per request.
    let one = known.first().ok_or("there are no pods")?;
    let namespace = Api::<Pod>::namespaced(client.clone(), &one.namespace().unwrap_or_default());
    for _ in 0..READS {
        namespace.get(&one.name_any()).await?;
    }
    counter.print(&format!("get of one pod, {READS} times"));

    // A list, then a watch from its version. The caller has to resume the watch and store the
    // objects.
    let list = pods.list(&ListParams::default().limit(1)).await?;
    let version = list.metadata.resource_version.unwrap_or_default();
    let mut events = Box::pin(pods.watch(&WatchParams::default().timeout(5), &version).await?);
    if let Some(server) = cluster.server() {
        server.load([Generator::new(1).pod(200)])?;
        while let Some(event) = events.try_next().await? {
            if let WatchEvent::Added(_) = event {
                break;
            }
        }
    }
    drop(events);
    counter.print("watch, until something happens");

    // An informer: only its initial list and its watch are requests, and their responses are
    // compressed.
    let informer = Informer::<Pod>::builder(client).start();
    informer.synced().await?;
    counter.print("informer, until it has everything");
    let (lister, key) = (informer.lister(), ObjectKey::of(one).ok_or("a pod without a name")?);
    let mut read = 0;
    for _ in 0..READS {
        read += lister.list().len() + usize::from(lister.get(&key).is_some());
    }
    if let Some(server) = cluster.server() {
        server.objects("v1", "Pod")?.namespace(key.namespace().unwrap_or_default()).delete(key.name())?;
        informer.wait_until(key, |pod| pod.is_none_or(|pod| pod.deletion_timestamp().is_some())).await?;
    }
    counter.print(&format!("informer, {READS} lists, {READS} gets and a change"));
    println!("{read} pods came out of the cache.");
    informer.shutdown().await;
    Ok(())
}

/// Counts requests and response bytes.
#[derive(Clone, Default)]
struct RequestCounter {
    requests: Arc<AtomicU64>,
    bytes: Arc<AtomicU64>,
}

impl RequestCounter {
    /// Wraps a client to count its requests.
    fn wrap(client: &Client) -> (Client, Self) {
        let (counter, namespace) = (Self::default(), client.default_namespace().to_owned());
        let (shared, client) = (counter.clone(), client.clone());
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let (client, counter) = (client.clone(), shared.clone());
            async move {
                counter.requests.fetch_add(1, Ordering::Relaxed);
                let answer = client.send(request).await?;
                Ok::<_, kube::Error>(answer.map(|body| {
                    body.map_frame(move |frame| {
                        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
                        counter.bytes.fetch_add(bytes, Ordering::Relaxed);
                        frame
                    })
                }))
            }
        });
        (Client::new(service, namespace), counter)
    }

    /// Prints the counts since the last call.
    fn print(&self, what: &str) {
        let (requests, bytes) = (self.requests.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed));
        println!("{what:<42} {requests:>8} {bytes:>10}");
    }
}
