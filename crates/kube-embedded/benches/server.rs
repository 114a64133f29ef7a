//! Benchmark of the server's speed and memory: `cargo bench -p kube-embedded --bench server`.
//!
//! Wall-clock times of one machine: they show the order of magnitude and are comparable only within
//! one run.

use std::time::{Duration, Instant};

use http::Request;
use http_body_util::{BodyExt as _, Full};
use kube_embedded::generate::Generator;
use kube_embedded::{Server, Service};
use serde_json::json;
use tower::ServiceExt as _;

const SEED: u64 = 7;
const PODS: u64 = 100_000;
const WATCHERS: usize = 1_000;
const EVENTS: usize = 1_000;
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn main() {
    // `cargo test --benches` only checks that the benchmark starts.
    let quick = std::env::args().any(|arg| arg == "--test");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let scale = if quick { 100 } else { 1 };
    runtime.block_on(async {
        start();
        start_servers(if quick { 1 } else { 100 }).await;
        // First, so that earlier allocations do not affect the memory measurement.
        holding(PODS / scale).await;
        creates(20_000 / scale).await;
        fan_out(WATCHERS / scale as usize, EVENTS / scale as usize).await;
    });
}

fn start() {
    println!("{:<58} {:>14}", "", "figure");
}

fn row(what: &str, figure: impl std::fmt::Display) {
    let figure = figure.to_string();
    println!("{what:<58} {figure:>14}");
}

async fn start_servers(count: u32) {
    let began = Instant::now();
    for _ in 0..count {
        Server::builder().start().await.expect("a server").shutdown().await;
    }
    row("start and shut down, one server", format!("{:.2} ms", began.elapsed().as_secs_f64() * 1e3 / f64::from(count)));
}

async fn creates(count: u64) {
    let server = with_namespaces().await;
    let pods: Vec<_> = Generator::new(SEED).pods(count).collect();
    let values: Vec<serde_json::Value> =
        pods.iter().map(|pod| serde_json::from_slice(&pod.to_write()).expect("JSON")).collect();
    let began = Instant::now();
    for pod in &values {
        server.create(pod).expect("created");
    }
    per_second("creates of pods, Rust API", count, began.elapsed());

    let server = with_namespaces().await;
    let service = server.service();
    let began = Instant::now();
    for pod in &pods {
        post(&service, &pod.collection_path(), pod.to_write()).await;
    }
    per_second("creates of pods, in-process HTTP", count, began.elapsed());
}

async fn holding(count: u64) {
    let server = with_namespaces().await;
    let before = resident();
    let began = Instant::now();
    let mut bytes = 0;
    for pod in Generator::new(SEED).pods(count) {
        bytes += pod.bytes().len();
        server.create(&serde_json::from_slice::<serde_json::Value>(&pod.to_write()).expect("JSON")).expect("created");
    }
    let label = format!("{count} pods of {} bytes, generated and created", bytes as u64 / count);
    row(&label, format!("{:.1} s", began.elapsed().as_secs_f64()));
    server.compact_now();
    let held = resident().saturating_sub(before);
    row("resident memory for them, history compacted", format!("{} MB", held / 1_000_000));
    row("of that, for each pod", format!("{} bytes", held / count));

    let service = server.service();
    let (length, elapsed) = drain(&service, "/api/v1/pods?resourceVersion=0").await;
    row("list of them all", format!("{:.2} GB/s", length as f64 / elapsed.as_secs_f64() / 1e9));
    for round in ["first", "second"] {
        let (length, elapsed) = drain_as(&service, "/api/v1/pods?resourceVersion=0", PROTOBUF).await;
        row(
            &format!("the same in protobuf, the {round} time"),
            format!("{:.2} GB/s", length as f64 / elapsed.as_secs_f64() / 1e9),
        );
        row("for each pod", format!("{:.1} \u{b5}s", elapsed.as_secs_f64() * 1e6 / count as f64));
    }
    let held = resident().saturating_sub(before);
    row("resident memory with their messages, for each pod", format!("{} bytes", held / count));
    let path = "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let mut response = get(&service, path).await.into_body();
    let began = Instant::now();
    let mut length = 0;
    loop {
        let frame = response.frame().await.expect("more").expect("unbroken").into_data().expect("data");
        length += frame.len();
        let end = &frame[frame.len().saturating_sub(400)..];
        if String::from_utf8_lossy(end).contains("initial-events-end") {
            break;
        }
    }
    row("streaming list of them all", format!("{:.2} GB/s", length as f64 / began.elapsed().as_secs_f64() / 1e9));
}

async fn fan_out(watchers: usize, events: usize) {
    let server = with_namespaces().await;
    let revision = server.revision();
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..watchers {
        let path = format!("/api/v1/configmaps?watch=1&resourceVersion={revision}");
        let mut body = get(&server.service(), &path).await.into_body();
        readers.spawn(async move {
            let mut seen = 0;
            while seen < events {
                let frame = body.frame().await.expect("more").expect("unbroken").into_data().expect("data");
                seen += frame.iter().filter(|byte| **byte == b'\n').count();
            }
        });
    }
    let began = Instant::now();
    for i in 0..events {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{i}"), "namespace": "default"}, "data": {"k": "v".repeat(1000)}});
        server.create(&object).expect("created");
        if i % 10 == 0 {
            tokio::task::yield_now().await;
        }
    }
    while readers.join_next().await.is_some() {}
    per_second(&format!("events delivered to {watchers} watchers"), (watchers * events) as u64, began.elapsed());
}

async fn with_namespaces() -> Server {
    let server = Server::builder().start().await.expect("a server");
    for namespace in Generator::new(SEED).namespaces() {
        let value: serde_json::Value = serde_json::from_slice(&namespace.to_write()).expect("JSON");
        // The four initial namespaces already exist.
        drop(server.create(&value));
    }
    server
}

async fn get(service: &Service, path: &str) -> http::Response<kube_embedded::Body> {
    get_as(service, path, "application/json").await
}

async fn get_as(service: &Service, path: &str, accept: &str) -> http::Response<kube_embedded::Body> {
    let request = Request::get(path).header("accept", accept).body(Full::<bytes::Bytes>::default()).expect("a request");
    let response = service.clone().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), 200);
    response
}

async fn post(service: &Service, path: &str, body: Vec<u8>) {
    let request = Request::post(path).body(Full::new(bytes::Bytes::from(body))).expect("a request");
    let response = service.clone().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), 201);
}

async fn drain(service: &Service, path: &str) -> (usize, Duration) {
    drain_as(service, path, "application/json").await
}

async fn drain_as(service: &Service, path: &str, accept: &str) -> (usize, Duration) {
    let began = Instant::now();
    let mut body = get_as(service, path, accept).await.into_body();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        length += frame.expect("unbroken").into_data().expect("data").len();
    }
    (length, began.elapsed())
}

fn per_second(what: &str, count: u64, elapsed: Duration) {
    row(what, format!("{:.0} /s", count as f64 / elapsed.as_secs_f64()));
}

/// Resident memory of this process in bytes; 0 if the system does not report it.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
    pages * 4096
}
