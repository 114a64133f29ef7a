//! Benchmark of the simulated cluster: time to populate it, memory, and maximum write rate:
//! `cargo bench -p kube-embedded --bench pretend`, with `-- 5000` for another number of nodes.
//!
//! Wall-clock times of one machine: they show the order of magnitude and are comparable only within
//! one run.

use std::time::{Duration, Instant};

use kube_embedded::Server;
use kube_embedded::pretend::{Pretend, Size};

fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    let quick = std::env::args().any(|arg| arg == "--test");
    let asked = std::env::args().find_map(|arg| arg.parse().ok());
    let size = Size::of_nodes(asked.unwrap_or(if quick { 2 } else { 1_000 }));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        stand(size).await;
        for rate in if quick { vec![100.0] } else { vec![100.0, 1_000.0, 1_000_000.0] } {
            live(size, rate, Duration::from_secs(if quick { 0 } else { 10 })).await;
        }
    });
}

async fn stand(size: Size) {
    let server = Server::builder().in_process().start().await.expect("a server");
    let (before, began) = (resident(), Instant::now());
    let cluster = Pretend::builder().size(size).rate(0.0).start(&server).await.expect("a cluster");
    let elapsed = began.elapsed();
    cluster.stop().await;
    row(&format!("{} nodes and {} pods stand", size.nodes, size.pods), format!("{:.1} s", elapsed.as_secs_f64()));
    row("objects in all", server.revision());
    let full = resident().saturating_sub(before);
    server.compact_now();
    row("resident memory, with the history", format!("{} MB", full / 1_000_000));
    row("resident memory, history compacted", format!("{} MB", resident().saturating_sub(before) / 1_000_000));
}

async fn live(size: Size, rate: f64, time: Duration) {
    let server = Server::builder().in_process().start().await.expect("a server");
    let cluster = Pretend::builder().size(size).rate(rate).start(&server).await.expect("a cluster");
    let (before, began, used) = (cluster.writes(), Instant::now(), cpu());
    tokio::time::sleep(time).await;
    let elapsed = began.elapsed().as_secs_f64();
    let written = (cluster.writes() - before) as f64;
    let asked = if rate >= 1e6 { "all it can".to_owned() } else { format!("{rate} writes/s and leases") };
    row(&format!("asked for {asked}"), format!("{:.0} /s", written / elapsed));
    row("CPU it takes, with the server", format!("{:.0} %", (cpu() - used) / elapsed * 100.0));
    cluster.stop().await;
}

fn row(what: &str, figure: impl std::fmt::Display) {
    let figure = figure.to_string();
    println!("{what:<58} {figure:>14}");
}

/// Resident memory of this process in bytes; 0 if the system does not report it.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages * 4096
}

/// CPU time of this process in seconds; 0 if the system does not report it.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    ticks as f64 / 100.0
}
