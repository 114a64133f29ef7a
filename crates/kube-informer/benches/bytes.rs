//! Cost of processing object bytes: scanning, framing, splitting lists, cutting fields, packing,
//! decoding.
#![allow(missing_docs, reason = "criterion's macros write an undocumented function")]

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use k8s_openapi::api::core::v1::Pod;
use kube_embedded::generate::Generator;
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings};
use kube_informer::codec::{Extent, FieldCutter, Frames, ListSplitter, MAX_OBJECT_SIZE, Skip, WatchFrame, scan};
use kube_informer::object::FieldPath;
use kube_informer::{Keep, Obj, Untyped};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

/// Maximum payload of a TLS record.
const CHUNK: usize = 16 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodIp {
    status: PodIpStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodIpStatus {
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

fn pods(count: u64) -> Vec<Bytes> {
    Generator::new(7).pods(count).map(|pod| pod.into_bytes().into()).collect()
}

fn chunks(bytes: &[u8]) -> Vec<Bytes> {
    bytes.chunks(CHUNK).map(Bytes::copy_from_slice).collect()
}

/// Cycles through many different objects, so that caches and branch predictors cannot memorize one.
fn cycle<'a, T>(values: &'a [T]) -> impl FnMut() -> &'a T {
    let mut at = 0;
    move || {
        at = (at + 1) % values.len();
        &values[at]
    }
}

fn scanning(c: &mut Criterion) {
    let pods = pods(500);
    let mean = pods.iter().map(Bytes::len).sum::<usize>() / pods.len();
    let mut group = c.benchmark_group("scan one pod");
    group.throughput(Throughput::Bytes(mean as u64));
    let mut next = cycle(&pods);
    group.bench_function("skip by blocks", |b| b.iter(|| Skip::default().feed(&next()[1..])));
    let mut next = cycle(&pods);
    group.bench_function("serde IgnoredAny", |b| b.iter(|| serde_json::from_slice::<IgnoredAny>(next())));
    let mut next = cycle(&pods);
    group.bench_function("serde RawValue", |b| {
        b.iter(|| serde_json::from_slice::<&RawValue>(black_box(next())).map(|raw| raw.get().len()));
    });
    let mut next = cycle(&pods);
    group.bench_function("metadata", |b| b.iter(|| scan(next(), Extent::Metadata).map(|found| found.has_metadata)));
    let mut next = cycle(&pods);
    group.bench_function("whole", |b| b.iter(|| scan(next(), Extent::Whole).map(|found| found.has_metadata)));
    let path: FieldPath = "spec.nodeName".parse().expect("a path");
    let objects = accepted(&encoder(Keep::Plain), &pods);
    let mut next = cycle(&objects);
    group.bench_function("value at spec.nodeName", |b| b.iter(|| next().value_at(&path)));
    group.finish();
}

fn streams(c: &mut Criterion) {
    let pods = pods(500);
    let lines: Vec<Vec<u8>> =
        pods.iter().map(|pod| [br#"{"type":"MODIFIED","object":"#, &pod[..], b"}\n"].concat()).collect();
    let watch = chunks(&lines.concat());
    let items: Vec<&[u8]> = pods.iter().map(|pod| &pod[br#"{"kind":"Pod","apiVersion":"v1","#.len()..]).collect();
    let items: Vec<Vec<u8>> = items.iter().map(|rest| [b"{", *rest].concat()).collect();
    let head = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":["#;
    let list = chunks(&[&head[..], &items.join(&b','), b"]}"].concat());

    let mut group = c.benchmark_group("500 pods");
    group.throughput(Throughput::Elements(500));
    group.bench_function("watch frames", |b| {
        b.iter(|| {
            let mut frames = Frames::new(MAX_OBJECT_SIZE);
            let mut count = 0;
            for chunk in &watch {
                frames.push(chunk.clone());
                while let Some(Ok(frame)) = frames.next() {
                    count += usize::from(WatchFrame::read(&frame).is_ok());
                }
            }
            assert_eq!(count, 500);
        });
    });
    group.bench_function("list", |b| {
        b.iter(|| {
            let mut splitter = ListSplitter::new(MAX_OBJECT_SIZE);
            let mut count = 0;
            for chunk in &list {
                splitter.push(chunk.clone());
                while let Some(Ok(_)) = splitter.next() {
                    count += 1;
                }
            }
            assert_eq!(count, 500);
        });
    });
    group.finish();
}

fn cutting(c: &mut Criterion) {
    let pods = pods(500);
    let mut group = c.benchmark_group("cut managedFields");
    let cutter = FieldCutter::new(["metadata.managedFields".parse().expect("a path")]);
    let mut next = cycle(&pods);
    group.bench_function("bytes", |b| b.iter(|| cutter.cut(next())));
    let mut next = cycle(&pods);
    group.bench_function("serde Value", |b| {
        b.iter(|| {
            let mut value: serde_json::Value = serde_json::from_slice(next()).expect("JSON");
            value["metadata"].as_object_mut().expect("an object").remove("managedFields");
            value.to_string()
        });
    });
    group.finish();
}

fn encoder(keep: Keep) -> BodyEncoder {
    let mut settings = BodyEncoderSettings::default();
    settings.keep = keep;
    settings.recent_bytes = 0;
    BodyEncoder::new(settings)
}

fn accepted(encoder: &BodyEncoder, pods: &[Bytes]) -> Vec<Obj<Untyped>> {
    pods.iter().map(|pod| encoder.accept(pod, Arrival::Listed).expect("a pod")).collect()
}

/// An encoder with its final dictionary, and the objects packed with it.
fn settled(keep: Keep, pods: &[Bytes]) -> (BodyEncoder, Vec<Obj<Untyped>>) {
    let encoder = encoder(keep);
    let objects = accepted(&encoder, pods);
    for tick in 0..100 {
        encoder.pack_cold(tick, 1000);
        while let Some(samples) = encoder.take_training_samples() {
            encoder.install(samples.train().expect("a dictionary"));
        }
    }
    (encoder, objects)
}

fn keeping(c: &mut Criterion) {
    let pods = pods(5000);
    let mut group = c.benchmark_group("keep one pod");
    for keep in [Keep::Plain, Keep::Compact] {
        let (encoder, objects) = settled(keep, &pods);
        let mut next = cycle(&pods);
        group.bench_with_input(BenchmarkId::new("accept", format!("{keep:?}")), &encoder, |b, encoder| {
            b.iter_batched(&mut next, |pod| encoder.accept(pod, Arrival::Listed), BatchSize::SmallInput);
        });
        let mut next = cycle(&objects);
        group.bench_function(BenchmarkId::new("json", format!("{keep:?}")), |b| b.iter(|| next().json()));
        let mut next = cycle(&objects);
        group.bench_function(BenchmarkId::new("annotation", format!("{keep:?}")), |b| {
            b.iter(|| next().annotation("none"));
        });
        let mut next = cycle(&objects);
        group.bench_function(BenchmarkId::new("get Pod", format!("{keep:?}")), |b| {
            b.iter(|| next().fresh_handle().cast::<Pod>().get().map(|pod| pod.metadata.name.is_some()));
        });
        let mut next = cycle(&objects);
        group.bench_function(BenchmarkId::new("get projection", format!("{keep:?}")), |b| {
            b.iter(|| next().fresh_handle().cast::<PodIp>().get().map(|pod| pod.status.pod_ip.is_some()));
        });
    }
    let mut next = cycle(&pods);
    group.bench_function("serde Pod", |b| b.iter(|| serde_json::from_slice::<Pod>(next())));

    let encoder = BodyEncoder::new(BodyEncoderSettings::default());
    let objects = accepted(&encoder, &pods[..500]);
    let mut next = cycle(&objects);
    group.bench_function("get Pod again and again", |b| {
        b.iter(|| next().fresh_handle().cast::<Pod>().get().map(|pod| pod.metadata.name.is_some()));
    });
    let mut next = cycle(&objects);
    group.bench_function("make and drop a handle", |b| b.iter(|| next().fresh_handle()));
    group.finish();
}

criterion_group!(benches, scanning, streams, cutting, keeping);
criterion_main!(benches);
