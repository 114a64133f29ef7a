//! The time to read bodies out of a cache, by wire format and policy: a projection of five fields
//! and whole pods, in sweeps over everything in random order, one after the other.
//!
//! `cargo bench -p kube-informer --bench bodies -- [pods]`. Each figure is microseconds for one
//! object: a get by key, and the body. "once" reads bodies that were never read, "again" is the
//! same sweep repeated, and "after" reads the projection after the sweeps over whole pods.

use std::hint::black_box;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube_embedded::Server;
use kube_embedded::generate::Generator;
use kube_informer::{Informer, Keep, Lister, Object, ObjectKey, Wire};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

/// Five fields of a pod.
#[derive(Deserialize)]
struct Placed {
    metadata: Named,
    spec: Spec,
    status: Status,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
    priority: Option<i32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(20_000);
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(measure(count))
}

async fn measure(count: u64) -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder().in_process().start().await?;
    server.load(Generator::new(7).pods(count))?;
    println!("{count} pods; microseconds for each");
    println!("{:<9} {:<9} five fields:  once again  pod:  once again third  fields after", "wire", "policy");
    for wire in [Wire::Json, Wire::Protobuf] {
        for keep in [Keep::Plain, Keep::Compact, Keep::Decoded] {
            let client = Client::new(server.service(), "default");
            let pods = Informer::<Pod>::builder(client).wire(wire).keep(keep).start();
            pods.synced().await?;
            settle(keep).await;
            let (whole, fields) = (pods.lister(), pods.view::<Placed>().lister());
            let mut keys: Vec<ObjectKey> = whole.keys();
            keys.shuffle(&mut Pcg64Mcg::seed_from_u64(1));
            let read = |placed: &Placed| {
                let (Named { name }, Spec { node_name, priority }) = (&placed.metadata, &placed.spec);
                let texts = [node_name, &placed.status.phase, &placed.status.pod_ip];
                name.len()
                    + texts.into_iter().flatten().map(String::len).sum::<usize>()
                    + usize::from(priority.is_some())
            };
            let pod = |pod: &Pod| pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
            let mut row = vec![sweep(&fields, &keys, read)?, sweep(&fields, &keys, read)?];
            for _ in 0..3 {
                row.push(sweep(&whole, &keys, pod)?);
            }
            row.push(sweep(&fields, &keys, read)?);
            let [once, again, pod_once, pod_again, pod_third, after] = row[..] else { unreachable!("six sweeps") };
            println!(
                "{:<9} {:<9} {once:>18.2} {again:>5.2} {pod_once:>11.2} {pod_again:>5.2} {pod_third:>5.2} {after:>13.2}",
                format!("{wire:?}"),
                format!("{keep:?}"),
            );
            pods.shutdown().await;
        }
    }
    Ok(())
}

/// Waits for what is done after the first list: decoding, or packing once more.
async fn settle(keep: Keep) {
    let seconds = if keep == Keep::Plain { 0 } else { 15 };
    tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
}

fn sweep<K: Object>(
    lister: &Lister<K>,
    keys: &[ObjectKey],
    read: impl Fn(&K) -> usize,
) -> Result<f64, Box<dyn std::error::Error>> {
    let (start, mut sum) = (Instant::now(), 0);
    for key in keys {
        sum += read(lister.get(key).ok_or("an object that is gone")?.get()?);
    }
    black_box(sum);
    Ok(start.elapsed().as_secs_f64() * 1e6 / keys.len() as f64)
}
