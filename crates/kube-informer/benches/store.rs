//! Cost of store operations: apply, index maintenance, get, list, select; and of reader contention
//! for the writer.
#![allow(missing_docs, reason = "criterion's macros write an undocumented function")]

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings};
use kube_informer::store::Store;
use kube_informer::store::{Delta, History, Relist, WatchScope};
use kube_informer::{Index, Keep, Lister, Obj, ObjectKey, Selector, Untyped, Version};

const PODS: u64 = 100_000;
const READERS: usize = 16;
const ROUNDS: usize = 7;

/// Small pods: the size of a body does not matter to the store.
fn pod(encoder: &BodyEncoder, number: u64, version: u64, arrival: Arrival) -> Obj<Untyped> {
    let json = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"deployment-{number:06}-7c9f5b{:05}","namespace":"namespace-{:04}","uid":"0b2f3c4d-5e6f-7081-92a3-{number:012x}","resourceVersion":"{version}","labels":{{"app":"app-{}","pod-template-hash":"{:08x}"}}}},"spec":{{"nodeName":"node-{}"}},"status":{{"phase":"Running"}}}}"#,
        number * 7919 % 99_991,
        number % 400,
        number % 500,
        number % 5_000,
        number % 1_000,
    );
    encoder.accept(&json.into(), arrival).expect("a pod")
}

fn encoder(keep: Keep) -> BodyEncoder {
    let mut settings = BodyEncoderSettings::default();
    settings.keep = keep;
    BodyEncoder::new(settings)
}

fn filled(encoder: &BodyEncoder) -> Store {
    let mut store = Store::default();
    let begun = Delta::RelistBegun(Relist { scope: WatchScope::Everything, history: History::Continues });
    drop(store.apply([begun]));
    for from in (0..PODS).step_by(1_000) {
        drop(store.apply((from..from + 1_000).map(|n| Delta::Listed(pod(encoder, n, n + 1, Arrival::Listed)))));
    }
    drop(store.apply([Delta::RelistEnded { scope: WatchScope::Everything, version: Version::from(PODS) }]));
    store
}

/// Updates in pseudo-random order, with increasing versions.
fn updates<'a>(encoder: &'a BodyEncoder, version: &'a mut u64) -> impl FnMut(usize) -> Vec<Delta> + 'a {
    move |count| {
        let mut next = || {
            *version += 1;
            Delta::Changed(pod(encoder, *version * 7_919 % PODS, *version, Arrival::Changed(0)))
        };
        (0..count).map(|_| next()).collect()
    }
}

fn apply(c: &mut Criterion) {
    for keep in [Keep::Plain, Keep::Compact, Keep::Decoded] {
        let encoder = encoder(keep);
        let mut store = filled(&encoder);
        let mut version = PODS;
        let mut group = c.benchmark_group(format!("apply, {keep:?}"));
        for size in [1, 100] {
            let mut next = updates(&encoder, &mut version);
            group.throughput(Throughput::Elements(size as u64));
            let run = |batch: Vec<Delta>, store: &mut Store| store.apply(batch).for_each(drop);
            group.bench_function(format!("batches of {size}"), |b| {
                b.iter_batched(|| next(size), |batch| run(batch, &mut store), BatchSize::SmallInput);
            });
        }
        let _indexes: [Index<Untyped, String>; 2] = [
            Index::by_label(&store.reader(), "app"),
            Index::by_path(&store.reader(), "spec.nodeName".parse().expect("a path")),
        ];
        let mut next = updates(&encoder, &mut version);
        group.throughput(Throughput::Elements(100));
        group.bench_function("batches of 100, two indexes", |b| {
            b.iter_batched(|| next(100), |batch| store.apply(batch).for_each(drop), BatchSize::SmallInput);
        });
    }
}

fn relist(c: &mut Criterion) {
    let encoder = encoder(Keep::Plain);
    let mut store = filled(&encoder);
    let items: Vec<_> = (0..PODS).map(|n| Delta::Listed(pod(&encoder, n, n + 1, Arrival::Listed))).collect();
    let begun = Delta::RelistBegun(Relist { scope: WatchScope::Everything, history: History::Continues });
    let ended = Delta::RelistEnded { scope: WatchScope::Everything, version: Version::from(PODS) };
    let mut group = c.benchmark_group("relist of 100,000 unchanged");
    group.sample_size(10).throughput(Throughput::Elements(PODS));
    group.bench_function("apply", |b| {
        b.iter(|| {
            drop(store.apply([begun.clone()]));
            for batch in items.chunks(1_000) {
                drop(store.apply(batch.iter().cloned()));
            }
            drop(store.apply([ended.clone()]));
        });
    });
}

fn read(c: &mut Criterion) {
    for keep in [Keep::Plain, Keep::Compact, Keep::Decoded] {
        let encoder = encoder(keep);
        let mut store = filled(&encoder);
        let lister = Lister::<Untyped>::new(store.reader());
        let by_app: Index<Untyped, String> = Index::by_label(&store.reader(), "app");
        drop(store.apply([]));
        let mut keys: Vec<ObjectKey> = lister.keys();
        keys.sort_by_key(|key| key.name().bytes().rev().collect::<Vec<_>>());
        let mut at = 0;
        let mut next = move || {
            at = (at + 1) % keys.len();
            keys[at].clone()
        };
        let mut group = c.benchmark_group(format!("read 100,000, {keep:?}"));
        group.bench_function("get", |b| {
            b.iter_batched(&mut next, |key| lister.get(&key), BatchSize::SmallInput);
        });
        group.bench_function("index, 200 objects", |b| b.iter(|| by_app.get("app-7")));
        group.bench_function("list", |b| b.iter(|| lister.list()));
        group.bench_function("walk a snapshot", |b| {
            b.iter(|| lister.snapshot().iter().map(|object| object.name().len()).sum::<usize>());
        });
        group.bench_function("list a namespace of 250", |b| b.iter(|| lister.namespace("namespace-0007").list()));
        group.bench_function("sorted", |b| b.iter(|| lister.sorted()));
        for selector in ["app=app-7", "app in (app-1,app-2),!canary", "none=x"] {
            let selector: Selector = selector.parse().expect("a selector");
            group.bench_function(format!("select {selector}"), |b| b.iter(|| lister.select(&selector)));
        }
    }
}

/// Latency of applying one change while 16 threads list everything in a loop, compared to two
/// controls: the same threads spinning, and the same threads listing another store, which costs the
/// writer only cache capacity. The writer is busy (one change after another) or paced (it sleeps
/// between bursts, so that its first change always finds cold caches). The cost of tidying up after
/// each change is reported next to it.
fn contention(_: &mut Criterion) {
    let encoder = encoder(Keep::Plain);
    let (mut store, other) = (filled(&encoder), filled(&encoder));
    let (lister, elsewhere) = (Lister::<Untyped>::new(store.reader()), Lister::<Untyped>::new(other.reader()));
    let rows: [(&str, &(dyn Fn() + Sync)); 5] = [
        ("16 threads spin", &|| (0..20_000).for_each(|n| _ = black_box(n))),
        ("16 list another store", &|| drop(black_box(elsewhere.list()))),
        ("16 list this store", &|| drop(black_box(lister.list()))),
        ("16 walk this store", &|| {
            black_box(lister.snapshot().iter().map(|object| object.name().len()).sum::<usize>());
        }),
        ("16 get from this store", &|| drop(black_box(lister.get(&ObjectKey::cluster("none"))))),
    ];
    let mut version = PODS;
    let mut next = updates(&encoder, &mut version);
    for (writer, pause) in [("busy", None), ("paced", Some(Duration::from_micros(200)))] {
        // Interleaved, so that other load on the machine affects every row alike.
        let mut figures = vec![[const { Vec::new() }; 4]; rows.len()];
        for _ in 0..ROUNDS {
            for ((_, work), [applied, applied_99, tidied, tidied_99]) in rows.iter().zip(&mut figures) {
                let mut taken = measure_under_load(*work, || next(64), &mut store, pause);
                for (of, medians, tails) in
                    [(&mut taken.applied, applied, applied_99), (&mut taken.tidied, tidied, tidied_99)]
                {
                    of.sort_unstable();
                    medians.push(of[of.len() / 2].as_nanos() as f64 / 1000.0);
                    tails.push(of[of.len() * 99 / 100].as_nanos() as f64 / 1000.0);
                }
            }
        }
        println!("apply one change, {writer} writer, us: median of {ROUNDS} rounds (least to most)");
        for ((what, _), figures) in rows.iter().zip(&mut figures) {
            let [p50, p99, tidied, tidied_99] = figures.each_mut().map(|figures| spread(figures));
            println!("{what:<24} p50 {p50:<22} p99 {p99:<24} tidying p50 {tidied:<22} p99 {tidied_99}");
        }
    }
}

/// Durations of each change and of tidying up after it.
#[derive(Default)]
struct Durations {
    applied: Vec<Duration>,
    tidied: Vec<Duration>,
}

/// Measures changes while 16 threads run `work`.
fn measure_under_load(
    work: &(dyn Fn() + Sync),
    mut next: impl FnMut() -> Vec<Delta>,
    store: &mut Store,
    pause: Option<Duration>,
) -> Durations {
    let stop = AtomicBool::new(false);
    let mut taken = Durations::default();
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    work();
                }
            });
        }
        let end = Instant::now() + Duration::from_millis(1_500);
        while Instant::now() < end {
            for delta in next() {
                let start = Instant::now();
                let events = store.apply([delta]);
                taken.applied.push(start.elapsed());
                drop(events);
                let start = Instant::now();
                store.tidy();
                taken.tidied.push(start.elapsed());
            }
            if let Some(pause) = pause {
                std::thread::sleep(pause);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    taken
}

fn spread(figures: &mut [f64]) -> String {
    figures.sort_unstable_by(f64::total_cmp);
    format!("{:.2} ({:.2} to {:.2})", figures[figures.len() / 2], figures[0], figures[figures.len() - 1])
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = contention, apply, relist, read
}
criterion_main!(benches);
