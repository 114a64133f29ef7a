//! An informer on a hostile server: what it reports, how much it holds, and that it recovers.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, Config};
use kube_informer::informer::WhenRefused;
use kube_informer::reflector::{BackoffSettings, ReflectorSettings, Streaming};
use kube_informer::{Informer, ObjectKey};
use tokio::sync::Notify;

use crate::hostile_server::{Exchange, HostileServer, list};
use crate::{alone, held};

const MIB: isize = 1 << 20;

/// The most that one endless object may take: the longest object there can be, in a buffer that has
/// doubled, and a copy.
pub(crate) const ONE_OBJECT: isize = 64 * MIB;

/// The most that anything else may take.
pub(crate) const SMALL: isize = 8 * MIB;

/// A hang fails after this.
const GUARD: Duration = Duration::from_secs(300);

/// Short waits: the time of these tests is real, because sockets know no other.
pub(crate) fn settings() -> ReflectorSettings {
    let millis = Duration::from_millis;
    ReflectorSettings {
        streaming: Streaming::Never,
        streaming_deadline: millis(500),
        watch_timeout: Duration::from_secs(1),
        watch_overtime: millis(500),
        short_watch: millis(20),
        answer_timeout: millis(500),
        list_idle_timeout: millis(500),
        max_list_bytes: 2 << 20,
        max_watch_bytes: 2 << 20,
        quiet_after: millis(500),
        probe_window: millis(200),
        stall_grace: millis(100),
        backoff: BackoffSettings { first: millis(1), cap: millis(20), ..BackoffSettings::default() },
        ..ReflectorSettings::default()
    }
}

/// The same, with lists that may not take long.
pub(crate) fn hasty() -> ReflectorSettings {
    ReflectorSettings { list_timeout: Duration::from_secs(1), ..settings() }
}

/// An informer on a hostile server.
pub(crate) struct Trial {
    pub(crate) server: HostileServer,
    pub(crate) maps: Informer<ConfigMap>,
    errors: Arc<Errors>,
    held_before: isize,
    /// The most that was held, as a thread has sampled it.
    peak: Arc<AtomicIsize>,
}

/// The distinct errors that were reported.
#[derive(Default)]
struct Errors {
    texts: Mutex<BTreeSet<String>>,
    changed: Notify,
}

impl Trial {
    pub(crate) async fn begin<F>(
        settings: ReflectorSettings,
        attack: impl Fn(Exchange) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let held_before = held();
        let server = HostileServer::start(held, attack).await;
        let errors: Arc<Errors> = Arc::default();
        let reported = Arc::clone(&errors);
        let maps = Informer::<ConfigMap>::builder(client(&server))
            .reflector(settings)
            .when_refused(WhenRefused::Wait)
            .on_watch_error(move |error| {
                let text = error.to_string();
                assert!(text.len() < 4_000, "an error may not be as long as an answer");
                reported.texts.lock().unwrap().insert(text);
                reported.changed.notify_one();
            })
            .start();
        Self { server, maps, errors, held_before, peak: sample_peak() }
    }

    /// Waits until an error with this text has been reported.
    pub(crate) async fn reports(&self, text: &str) {
        while !self.errors.texts.lock().unwrap().iter().any(|error| error.contains(text)) {
            self.errors.changed.notified().await;
        }
    }

    /// The server behaves; waits until the cache is what it has, and checks the peak of the heap.
    pub(crate) async fn recovers(self, bound: isize) {
        self.server.behave();
        self.maps.synced().await.unwrap();
        let mut events = self.maps.subscribe();
        let lister = self.maps.lister();
        let honest = ObjectKey::namespaced("default", "honest");
        while lister.len() != 1 || lister.get(&honest).is_none() {
            events.next().await.unwrap();
        }
        let peak = self.server.peak().max(self.peak.load(Ordering::Relaxed)) - self.held_before;
        let errors = self.errors.texts.lock().unwrap().clone();
        println!("{} KiB at most; {errors:#?}", peak / 1024);
        assert!(peak < bound, "{peak} bytes");
        self.maps.shutdown().await;
    }
}

/// Samples the heap about once in a millisecond, until the result is dropped: decompression goes on
/// for long while the server sends nothing.
fn sample_peak() -> Arc<AtomicIsize> {
    let peak = Arc::new(AtomicIsize::new(0));
    let sampled = Arc::downgrade(&peak);
    std::thread::spawn(move || {
        while let Some(peak) = sampled.upgrade() {
            peak.fetch_max(held(), Ordering::Relaxed);
            drop(peak);
            std::thread::park_timeout(Duration::from_millis(1));
        }
    });
    peak
}

pub(crate) fn client(server: &HostileServer) -> Client {
    kube_informer::client(Config::new(server.url().parse().unwrap())).unwrap()
}

/// Runs a test while no other allocates.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let _alone = alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(GUARD, test).await.expect("the informer hangs") });
}

/// An attack on lists.
pub(crate) fn on_lists<F>(
    settings: ReflectorSettings,
    says: &'static str,
    bound: isize,
    attack: impl Fn(Exchange) -> F + Send + Sync + 'static,
) where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    run(async {
        let trial = Trial::begin(settings, attack).await;
        trial.reports(says).await;
        trial.server.attacked(3).await;
        trial.recovers(bound).await;
    });
}

/// An attack on the watch that follows an empty list of version 10.
pub(crate) async fn on_watches<F>(attack: impl Fn(Exchange) -> F + Send + Sync + 'static) -> Trial
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let attack = Arc::new(attack);
    Trial::begin(settings(), move |mut exchange| {
        let attack = Arc::clone(&attack);
        async move {
            if exchange.is_watch() {
                return attack(exchange).await;
            }
            exchange.json().await?;
            exchange.send(list("10", "", "")).await?;
            exchange.end().await
        }
    })
    .await
}

/// A number that was never used before.
pub(crate) fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(2_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A config map that no list had before.
pub(crate) fn new_map() -> String {
    let nth = next();
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m{nth}","namespace":"default","uid":"{nth}","resourceVersion":"{nth}"}}}}"#
    )
}

pub(crate) fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

pub(crate) const TOO_LONG: &str = "longer than 16777216 bytes";
