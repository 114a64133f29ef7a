//! Compares four candidate data structures of the store, with 100,000 keys.
//!
//! Measures get, update and list alone; then the latency of an update while 16 threads list
//! everything in a loop, compared to a control in which the same 16 threads spin. All values but
//! the latency are means; ratios are relative to the spinning control. Machines are noisy: compare
//! ratios, and run it twice.

#![allow(missing_docs, reason = "a benchmark has no users")]
#![allow(dead_code, reason = "the HAMT is compiled into this benchmark whole")]

use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use parking_lot::{Mutex, RwLock};

#[path = "../src/store/hamt.rs"]
mod hamt;

use hamt::Hamt;

const KEYS: usize = 100_000;
const READERS: usize = 16;

struct Object {
    key: Box<str>,
    body: [u64; 8],
}

impl Object {
    fn split(&self) -> (&str, &str) {
        self.key.split_once('/').unwrap_or(("", &self.key))
    }
}

type Shared = Arc<Object>;
type Build = fn(&[Shared]) -> Box<dyn Structure>;

/// Interface of the candidates. Only one thread calls `update`.
trait Structure: Sync {
    /// `at`: position of the slash, which a parsed key knows.
    fn get(&self, key: &str, at: usize) -> Option<Shared>;
    fn update(&self, object: Shared);
    /// Visits each object of one snapshot.
    fn walk(&self, each: &mut dyn FnMut(&Shared));
    /// Deferred cleanup, after an update is delivered.
    fn tidy(&self) {}
    fn list(&self) -> Vec<Shared> {
        let mut all = Vec::with_capacity(KEYS);
        self.walk(&mut |object| all.push(Arc::clone(object)));
        all
    }
}

fn main() {
    let objects = objects();
    let order = shuffled();
    // Probes are created before anything is timed.
    let probes: Vec<String> = order.iter().map(|&at| objects[at].key.to_string()).collect();
    let builds: [(&str, Build); 4] = [
        ("hash map behind a lock", |all| Box::new(LockedMap::new(all))),
        ("two maps in turn", |all| Box::new(DoubleBuffer::new(all))),
        ("shards, copied on write", |all| Box::new(Shards::new(all))),
        ("trie of shared nodes", |all| Box::new(NestedHamt::new(all))),
    ];
    println!("{:<26}{:>10}{:>10}{:>10}{:>10}{:>8}", "ns (list, walk: us)", "get", "update", "list", "walk", "B/key");
    for (name, build) in &builds {
        let before = resident();
        // Ten instances, because the resident size is measured in pages.
        let all: Vec<_> = (0..10).map(|_| build(&objects)).collect();
        let bytes = resident().saturating_sub(before) / (10 * KEYS);
        drop(all);
        let structure = build(&objects);
        let get = mean(3, KEYS, || probes.iter().for_each(|key| drop(black_box(structure.get(key, 14)))));
        let update = mean(3, KEYS, || order.iter().for_each(|&at| structure.update(fresh(&objects[at]))));
        let list = mean(20, 1000, || drop(black_box(structure.list())));
        let walk = mean(20, 1000, || {
            let mut sum = 0;
            structure.walk(&mut |object| sum += object.body[0]);
            black_box(sum);
        });
        println!("{name:<26}{get:>10.1}{update:>10.1}{list:>10.1}{walk:>10.1}{bytes:>8}");
    }
    println!("\n{:<26}{:>10}{:>10}{:>10}{:>10}{:>8}", "update, us", "readers", "p50", "p99", "max", "ratio");
    for (name, build) in &builds {
        let (structure, elsewhere) = (build(&objects), build(&objects));
        let mut control = 0.0;
        for (label, work) in [
            ("spin", &(|| (0..20_000).for_each(|n| _ = black_box(n))) as &(dyn Fn() + Sync)),
            ("list elsewhere", &|| drop(black_box(elsewhere.list()))),
            ("list", &|| drop(black_box(structure.list()))),
            ("walk", &|| structure.walk(&mut |object| _ = black_box(object.body[0]))),
        ] {
            let (p50, p99, max) = latency(&*structure, &objects, &order, work);
            if label == "spin" {
                control = p99;
            }
            println!("{name:<26}{label:>14}{p50:>10.2}{p99:>10.2}{max:>10.0}{:>8.2}", p99 / control);
        }
    }
}

/// Percentiles of single updates in microseconds, paced like watch events.
fn latency(
    structure: &dyn Structure,
    objects: &[Shared],
    order: &[usize],
    work: &(dyn Fn() + Sync),
) -> (f64, f64, f64) {
    let stop = AtomicBool::new(false);
    let mut taken = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..READERS {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    work();
                }
            });
        }
        let end = Instant::now() + Duration::from_secs(5);
        for &at in order.iter().cycle() {
            let object = fresh(&objects[at]);
            let start = Instant::now();
            structure.update(object);
            taken.push(start.elapsed().as_nanos() as f64 / 1000.0);
            structure.tidy();
            if Instant::now() > end {
                break;
            }
            if taken.len() % 64 == 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    taken.sort_by(f64::total_cmp);
    (taken[taken.len() / 2], taken[taken.len() * 99 / 100], taken[taken.len() - 1])
}

/// Nanoseconds per item, best of several rounds.
fn mean(rounds: usize, items: usize, mut run: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        run();
        best = best.min(start.elapsed().as_nanos() as f64 / items as f64);
    }
    best
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn objects() -> Vec<Shared> {
    (0..KEYS)
        .map(|n| {
            let key = format!("namespace-{:04}/deployment-{:06}-7c9f5b{:05}", n % 400, n, n * 7919 % 99_991);
            Arc::new(Object { key: key.into(), body: [n as u64; 8] })
        })
        .collect()
}

fn fresh(object: &Object) -> Shared {
    Arc::new(Object { key: object.key.clone(), body: object.body })
}

fn shuffled() -> Vec<usize> {
    let mut order: Vec<usize> = (0..KEYS).collect();
    let mut state = 42_u64;
    for at in (1..KEYS).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    order
}

struct LockedMap(RwLock<HashMap<Box<str>, Shared>>);

impl LockedMap {
    fn new(all: &[Shared]) -> Self {
        let structure = Self(RwLock::default());
        all.iter().for_each(|object| structure.update(Arc::clone(object)));
        structure
    }
}

impl Structure for LockedMap {
    fn get(&self, key: &str, _at: usize) -> Option<Shared> {
        self.0.read().get(key).cloned()
    }

    fn update(&self, object: Shared) {
        let mut map = self.0.write();
        let old = match map.get_mut(&*object.key) {
            Some(slot) => Some(std::mem::replace(slot, object)),
            None => map.insert(object.key.clone(), object),
        };
        drop(map);
        drop(old);
    }

    fn walk(&self, each: &mut dyn FnMut(&Shared)) {
        self.0.read().values().for_each(each);
    }
}

fn put(map: &mut HashTable<Shared>, hasher: &DefaultHashBuilder, hash: u64, object: Shared) -> Option<Shared> {
    match map.find_mut(hash, |other| other.key == object.key) {
        Some(slot) => Some(std::mem::replace(slot, object)),
        None => {
            map.insert_unique(hash, object, |other| hasher.hash_one(&*other.key));
            None
        }
    }
}

/// Double buffering: the writer updates the map that readers do not see, swaps, and brings the
/// other one up to date before the next write: by replaying the missed updates, or by a copy if a
/// slow reader still holds it.
struct DoubleBuffer {
    hasher: DefaultHashBuilder,
    front: ArcSwap<HashTable<Shared>>,
    back: Mutex<(Arc<HashTable<Shared>>, Vec<Shared>)>,
}

impl DoubleBuffer {
    fn new(all: &[Shared]) -> Self {
        let (hasher, mut map) = (DefaultHashBuilder::default(), HashTable::new());
        for object in all {
            put(&mut map, &hasher, hasher.hash_one(&*object.key), Arc::clone(object));
        }
        let front = ArcSwap::from_pointee(map.clone());
        Self { hasher, front, back: Mutex::new((Arc::new(map), Vec::new())) }
    }
}

impl Structure for DoubleBuffer {
    fn get(&self, key: &str, _at: usize) -> Option<Shared> {
        let hash = self.hasher.hash_one(key);
        self.front.load().find(hash, |object| *object.key == *key).cloned()
    }

    fn update(&self, object: Shared) {
        let mut back = self.back.lock();
        let (map, missed) = &mut *back;
        if Arc::get_mut(map).is_none() {
            *map = Arc::new((**self.front.load()).clone());
            missed.clear();
        }
        let filled = Arc::get_mut(map).expect("not shared yet");
        for object in missed.drain(..).chain([Arc::clone(&object)]) {
            put(filled, &self.hasher, self.hasher.hash_one(&*object.key), object);
        }
        missed.push(object);
        *map = self.front.swap(Arc::clone(map));
    }

    fn walk(&self, each: &mut dyn FnMut(&Shared)) {
        self.front.load_full().iter().for_each(each);
    }
}

/// Copy-on-write shards: a directory of small hash maps, each shared with snapshots until it is
/// written.
struct Shards {
    hasher: DefaultHashBuilder,
    all: ArcSwap<Vec<Arc<HashTable<Shared>>>>,
}

const SHARDS: usize = 1024;

impl Shards {
    fn new(all: &[Shared]) -> Self {
        let hasher = DefaultHashBuilder::default();
        let mut shards = vec![HashTable::new(); SHARDS];
        for object in all {
            let hash = hasher.hash_one(&*object.key);
            put(&mut shards[hash as usize % SHARDS], &hasher, hash, Arc::clone(object));
        }
        Self { hasher, all: ArcSwap::from_pointee(shards.into_iter().map(Arc::new).collect()) }
    }
}

impl Structure for Shards {
    fn get(&self, key: &str, _at: usize) -> Option<Shared> {
        let hash = self.hasher.hash_one(key);
        self.all.load()[hash as usize % SHARDS].find(hash, |object| *object.key == *key).cloned()
    }

    fn update(&self, object: Shared) {
        let hash = self.hasher.hash_one(&*object.key);
        let mut all = (**self.all.load()).clone();
        put(Arc::make_mut(&mut all[hash as usize % SHARDS]), &self.hasher, hash, object);
        self.all.store(Arc::new(all));
    }

    fn walk(&self, each: &mut dyn FnMut(&Shared)) {
        self.all.load_full().iter().flat_map(|shard| shard.iter()).for_each(each);
    }
}

/// The chosen one, as in the store: a HAMT of namespaces, each with a HAMT of names.
struct NestedHamt {
    hasher: DefaultHashBuilder,
    front: ArcSwap<Hamt<Namespace>>,
    back: Mutex<(Hamt<Namespace>, DeferredDrops)>,
}

type DeferredDrops = Vec<Arc<Hamt<Namespace>>>;

#[derive(Clone)]
struct Namespace {
    name: Arc<str>,
    entries: Hamt<Entry>,
}

#[derive(Clone)]
struct Entry {
    object: Shared,
    labels: u32,
    slot: u32,
}

impl NestedHamt {
    fn new(all: &[Shared]) -> Self {
        let (hasher, mut trie) = (DefaultHashBuilder::default(), Hamt::new());
        all.iter().for_each(|object| Self::put(&hasher, &mut trie, object));
        Self { hasher, front: ArcSwap::from_pointee(trie.clone()), back: Mutex::new((trie, Vec::new())) }
    }

    fn put(hasher: &DefaultHashBuilder, spaces: &mut Hamt<Namespace>, object: &Shared) {
        let (namespace, name) = object.split();
        let hash = hasher.hash_one(namespace) as u32;
        if spaces.get(hash, |space| *space.name == *namespace).is_none() {
            spaces.insert(hash, Namespace { name: namespace.into(), entries: Hamt::new() }, |_| false);
        }
        let space = spaces.get_mut(hash, |space| *space.name == *namespace).expect("was put in");
        let entry = Entry { object: Arc::clone(object), labels: 0, slot: 0 };
        space.entries.insert(hasher.hash_one(name) as u32, entry, |other| other.object.key == object.key);
    }
}

impl Structure for NestedHamt {
    fn get(&self, key: &str, at: usize) -> Option<Shared> {
        let (namespace, name) = (&key[..at], &key[at + 1..]);
        let all = self.front.load();
        let space = all.get(self.hasher.hash_one(namespace) as u32, |space| *space.name == *namespace)?;
        let entry = space.entries.get(self.hasher.hash_one(name) as u32, |entry| *entry.object.key == *key)?;
        Some(Arc::clone(&entry.object))
    }

    fn update(&self, object: Shared) {
        let mut back = self.back.lock();
        let (back, deferred) = &mut *back;
        Self::put(&self.hasher, back, &object);
        let before = self.front.swap(Arc::new(back.clone()));
        if Arc::strong_count(&before) > 1 {
            deferred.push(before);
        }
    }

    fn tidy(&self) {
        self.back.lock().1.retain(|state| Arc::strong_count(state) > 1);
    }

    fn walk(&self, each: &mut dyn FnMut(&Shared)) {
        self.front.load_full().iter().flat_map(|space| &space.entries).for_each(|entry| each(&entry.object));
    }
}
