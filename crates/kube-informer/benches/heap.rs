//! Bytes per object, by policy, for the generated pods, compared to zstd level 3 with a dictionary
//! of 110 KB.
//!
//! `cargo bench -p kube-informer --bench heap -- [pods]`. "held" is the bytes requested from the
//! allocator plus sixteen per allocation (header and rounding), everything included: key, metadata,
//! the store, its label sets, the dictionary. "resident" is the growth of the process, which also
//! includes what zstd allocates itself.

use std::alloc::System;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kube_embedded::generate::{Generator, Sample};
use kube_informer::Keep;
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings, Samples};
use kube_informer::store::{Delta, History, Relist, WatchScope};
use kube_informer::store::{Ingest, Store};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Number of objects that arrive while a dictionary is trained on another thread.
const TRAINING_TAKES: usize = 3000;

/// Overhead per allocation.
const HEADER: usize = 16;

fn main() -> ExitCode {
    let count = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(20_000);
    let pods = as_listed(count);
    let mean = pods.iter().map(|pod| pod.bytes().len()).sum::<usize>() / pods.len();
    let reference = reference(&pods);
    println!("{count} pods of {mean} bytes; zstd-3 with a 110 KB dictionary: {reference}");
    println!("{:>42}peak: sync  relist", "");
    println!(
        "{:<9}{:>8}{:>8}{:>10}{:>8}{:>9}{:>8}{:>12}{:>12}",
        "", "held", "over", "resident", "allocs", "", "", "accept", "pack cold"
    );
    let mut verdict = ExitCode::SUCCESS;
    for keep in [Keep::Compact, Keep::Plain] {
        let row = hold(keep, &pods);
        let over = row.held.cast_signed() - reference.cast_signed();
        println!(
            "{:<9}{:>8}{over:>8}{:>10}{:>8.2}{:>9.2}{:>8.2}{:>12?}{:>12?}",
            format!("{keep:?}"),
            row.held,
            row.resident,
            row.allocations,
            row.peaks.0,
            row.peaks.1,
            row.accept,
            row.pack
        );
        if keep == Keep::Compact && over > 400 {
            println!("TOO MUCH: compact may hold 400 bytes over the reference");
            verdict = ExitCode::FAILURE;
        }
    }
    verdict
}

/// Pods in the order of a list response.
fn as_listed(count: u64) -> Vec<Sample> {
    let mut pods: Vec<_> = Generator::new(7).pods(count).collect();
    pods.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
    pods
}

/// The mean size with zstd level 3 and a dictionary trained on one pod in a hundred.
fn reference(pods: &[Sample]) -> usize {
    let samples: Vec<&[u8]> = pods.iter().step_by(100).map(Sample::bytes).collect();
    let dictionary = zstd::dict::from_samples(&samples, 110 << 10).expect("a dictionary");
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).expect("a compressor");
    pods.iter().map(|pod| compressor.compress(pod.bytes()).expect("compressed").len()).sum::<usize>() / pods.len()
}

struct Row {
    held: usize,
    resident: usize,
    allocations: f64,
    /// Peak memory relative to the final size: during the first list, and during a relist in which
    /// every object has a new version.
    peaks: (f64, f64),
    accept: Duration,
    pack: Duration,
}

fn hold(keep: Keep, pods: &[Sample]) -> Row {
    let (region, before) = (Region::new(ALLOCATOR), resident());
    let held = || {
        let change = region.change();
        let allocations = change.allocations - change.deallocations;
        (change.bytes_allocated - change.bytes_deallocated + HEADER * allocations, allocations)
    };
    let mut cache = Cache::new(keep);
    let mut peaks = (0, 0);
    cache.begin();
    for pod in pods {
        cache.list(Bytes::copy_from_slice(pod.bytes()));
        peaks.0 = peaks.0.max(held().0);
    }
    cache.end(1 << 40);
    cache.settle();
    let (bytes, allocations) = held();
    let resident = resident().saturating_sub(before) / pods.len();
    let accept = cache.accept / u32::try_from(pods.len()).expect("not that many");
    cache.begin();
    for (at, pod) in pods.iter().enumerate() {
        cache.list(pod.at_version(1 << 40 | at as u64).into());
        peaks.1 = peaks.1.max(held().0);
    }
    cache.end(1 << 41);
    Row {
        held: bytes / pods.len(),
        resident,
        allocations: allocations as f64 / pods.len() as f64,
        peaks: (peaks.0 as f64 / bytes as f64, peaks.1 as f64 / bytes as f64),
        accept,
        pack: cache.packing.0 / cache.packing.1.max(1),
    }
}

/// A body encoder and a store.
struct Cache {
    encoder: BodyEncoder,
    store: Store,
    listed: usize,
    training: Option<(usize, Samples)>,
    accept: Duration,
    packing: (Duration, u32),
}

impl Cache {
    fn new(keep: Keep) -> Self {
        let mut settings = BodyEncoderSettings::default();
        settings.keep = keep;
        Self {
            encoder: BodyEncoder::new(settings),
            store: Store::new(Ingest::default()),
            listed: 0,
            training: None,
            accept: Duration::ZERO,
            packing: (Duration::ZERO, 0),
        }
    }

    fn begin(&mut self) {
        let relist = Relist { scope: WatchScope::Everything, history: History::Continues };
        drop(self.store.apply([Delta::RelistBegun(relist)]));
    }

    fn end(&mut self, version: u64) {
        drop(self.store.apply([Delta::RelistEnded { scope: WatchScope::Everything, version: version.into() }]));
    }

    fn list(&mut self, json: Bytes) {
        let start = Instant::now();
        let object = self.encoder.accept(&json, Arrival::Listed).expect("a pod");
        self.accept += start.elapsed();
        drop(json);
        drop(self.store.apply([Delta::Listed(object)]));
        self.listed += 1;
        match self.training.take() {
            None => {
                self.training =
                    self.encoder.take_training_samples().map(|samples| (self.listed + TRAINING_TAKES, samples));
            }
            Some((due, samples)) if due > self.listed => self.training = Some((due, samples)),
            Some((_, samples)) => self.encoder.install(samples.train().expect("a dictionary")),
        }
    }

    /// Packs and trains until nothing is left to do, as an idle informer does.
    fn settle(&mut self) {
        for tick in 0.. {
            let start = Instant::now();
            let step = self.encoder.pack_cold(tick, 1000);
            self.packing.0 += start.elapsed();
            self.packing.1 += u32::try_from(step.objects).expect("a budget");
            let training = self.training.take().map(|(_, samples)| samples);
            if let Some(samples) = training.or_else(|| self.encoder.take_training_samples()) {
                self.encoder.install(samples.train().expect("a dictionary"));
            } else if step.waiting == 0 && tick > 3 {
                break;
            }
        }
    }
}

/// Resident bytes of the process; zero where `/proc` is not available.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| text.split(' ').nth(1)?.parse().ok());
    pages.unwrap_or(0_usize) * 4096
}
