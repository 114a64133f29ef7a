//! What a hostile server can do: under each row of `docs/hostile-server.md` the heap stays below
//! its bound, and the informer recovers once the server behaves.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Client, Config};
use kube_informer::informer::WhenRefused;
use kube_informer::reflector::{BackoffSettings, ReflectorSettings, Streaming};
use kube_informer::{Factory, Informer, ObjectKey, Version};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::hostile_server::{Exchange, HostileServer, bookmark, list};
use crate::{alone, held};

const MIB: isize = 1 << 20;

/// The most that one endless object may take: the longest object there can be, in a buffer that has
/// doubled, and a copy.
const ONE_OBJECT: isize = 64 * MIB;

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
fn hasty() -> ReflectorSettings {
    ReflectorSettings { list_timeout: Duration::from_secs(1), ..settings() }
}

/// An informer on a hostile server.
struct Trial {
    server: HostileServer,
    maps: Informer<ConfigMap>,
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
    async fn begin<F>(settings: ReflectorSettings, attack: impl Fn(Exchange) -> F + Send + Sync + 'static) -> Self
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
    async fn reports(&self, text: &str) {
        while !self.errors.texts.lock().unwrap().iter().any(|error| error.contains(text)) {
            self.errors.changed.notified().await;
        }
    }

    /// The server behaves; waits until the cache is what it has, and checks the peak of the heap.
    async fn recovers(self, bound: isize) {
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

fn client(server: &HostileServer) -> Client {
    kube_informer::client(Config::new(server.url().parse().unwrap())).unwrap()
}

/// Runs a test while no other allocates.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let _alone = alone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(GUARD, test).await.expect("the informer hangs") });
}

/// An attack on lists.
fn on_lists<F>(
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
async fn on_watches<F>(attack: impl Fn(Exchange) -> F + Send + Sync + 'static) -> Trial
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
fn next() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(2_000);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A config map that no list had before.
fn new_map() -> String {
    let nth = next();
    format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"m{nth}","namespace":"default","uid":"{nth}","resourceVersion":"{nth}"}}}}"#
    )
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

const TOO_LONG: &str = "longer than 16777216 bytes";

#[test]
fn an_endless_frame_is_cut_off_at_the_longest_object() {
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            exchange.send(r#"{"type":"ADDED","object":{"metadata":{"name":""#).await?;
            exchange.repeat(vec![b'a'; 1 << 16]).await
        })
        .await;
        trial.reports(TOO_LONG).await;
        trial.recovers(ONE_OBJECT).await;
    });
}

#[test]
fn an_endless_list_item_is_cut_off_at_the_longest_object() {
    on_lists(settings(), TOO_LONG, ONE_OBJECT, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(r#"{"items":[{"metadata":{"name":""#).await?;
        exchange.repeat(vec![b'a'; 1 << 16]).await
    });
}

#[test]
fn a_gzip_bomb_is_cut_off_at_the_longest_object() {
    let bomb = Arc::new(gzip(&[b'a'; 8 << 20]));
    on_lists(settings(), TOO_LONG, ONE_OBJECT, move |mut exchange| {
        let bomb = Arc::clone(&bomb);
        async move {
            exchange.begin("Content-Type: application/json\r\nContent-Encoding: gzip").await?;
            exchange.send(gzip(br#"{"items":[{"metadata":{"name":""#)).await?;
            exchange.repeat(&bomb[..]).await
        }
    });
}

#[test]
fn lists_of_ever_new_objects_end_at_the_limit_of_a_list_however_often() {
    for streaming in [Streaming::Never, Streaming::Preferred] {
        run(async {
            let trial = Trial::begin(ReflectorSettings { streaming, ..settings() }, |mut exchange| async move {
                exchange.json().await?;
                if exchange.is_streaming_list() {
                    let frame = || format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", new_map());
                    return exchange.generate(|_| (0..20).map(|_| frame()).collect::<String>().into_bytes()).await;
                }
                exchange.send(r#"{"kind":"ConfigMapList","apiVersion":"v1","items":["#).await?;
                exchange.generate(|_| (0..20).map(|_| new_map() + ",").collect::<String>().into_bytes()).await
            })
            .await;
            trial.reports("ReflectorSettings::max_list_bytes").await;
            trial.server.attacked(12).await;
            trial.recovers(2 * SMALL).await;
        });
    }
}

#[test]
fn watches_that_add_objects_without_end_end_at_their_limit_however_often() {
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            let frame = || format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", new_map());
            exchange.generate(|_| (0..20).map(|_| frame()).collect::<String>().into_bytes()).await
        })
        .await;
        trial.reports("ReflectorSettings::max_watch_bytes").await;
        trial.server.attacked(40).await;
        trial.recovers(2 * SMALL).await;
    });
}

#[test]
fn pages_without_end_end_at_the_limit_of_a_list() {
    on_lists(settings(), "ReflectorSettings::max_list_bytes", 2 * SMALL, |mut exchange| async move {
        let items: Vec<String> = (0..200).map(|_| new_map()).collect();
        exchange.json().await?;
        exchange.send(list("10", &format!(r#","continue":"{}""#, next()), &items.join(","))).await?;
        exchange.end().await
    });
}

#[test]
fn a_page_that_repeats_its_continue_token_ends_the_list() {
    on_lists(settings(), "continue token", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(list("10", r#","continue":"again""#, &new_map())).await?;
        exchange.end().await
    });
}

#[test]
fn empty_pages_without_end_end_at_the_time_limit_of_a_list() {
    on_lists(hasty(), "ReflectorSettings::list_timeout", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(list("10", &format!(r#","continue":"{}""#, next()), "")).await?;
        exchange.end().await
    });
}

#[test]
fn a_body_without_end_ends_at_the_time_limit_of_a_list() {
    for beginning in ["", r#"{"unknown":""#] {
        on_lists(hasty(), "ReflectorSettings::list_timeout", SMALL, move |mut exchange| async move {
            exchange.json().await?;
            exchange.send(beginning.to_owned() + " ").await?;
            exchange.repeat(vec![b' '; 1 << 16]).await
        });
    }
}

#[test]
fn a_gzip_bomb_of_nothing_ends_at_the_time_limit_of_a_list() {
    let bomb = Arc::new(gzip(&[b' '; 8 << 20]));
    on_lists(hasty(), "ReflectorSettings::list_timeout", SMALL, move |mut exchange| {
        let bomb = Arc::clone(&bomb);
        async move {
            exchange.begin("Content-Type: application/json\r\nContent-Encoding: gzip").await?;
            exchange.repeat(&bomb[..]).await
        }
    });
}

#[test]
fn a_list_byte_by_byte_ends_at_its_time_limit() {
    on_lists(hasty(), "ReflectorSettings::list_timeout", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(r#"{"items":[{"metadata":{"name":""#).await?;
        exchange.repeat("a").await
    });
}

#[test]
fn a_watch_byte_by_byte_ends_at_its_time_limit() {
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            exchange.repeat(" ").await
        })
        .await;
        let watches = || trial.server.queries().iter().filter(|query| query.contains("watch=true")).count();
        while watches() < 3 {
            trial.server.attacked(trial.server.queries().len() + 1).await;
        }
        trial.recovers(SMALL).await;
    });
}

#[test]
fn nesting_without_end_is_refused() {
    on_lists(settings(), "nested too deep", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(r#"{"items":[{"metadata":{"name":"deep"},"data":"#).await?;
        exchange.repeat(vec![b'['; 1 << 16]).await
    });
    run(async {
        let trial = on_watches(|mut exchange| async move {
            let deep = "[".repeat(1 << 20);
            exchange.json().await?;
            exchange.send(format!("{{\"type\":\"ADDED\",\"object\":{{\"data\":{deep}}}}}\n")).await?;
            exchange.hang().await
        })
        .await;
        trial.reports("cannot be read").await;
        trial.recovers(SMALL).await;
    });
}

#[test]
fn nesting_that_is_just_allowed_fails_only_the_reader_of_that_object() {
    run(async {
        let trial = Trial::begin(settings(), |mut exchange| async move {
            exchange.json().await?;
            if exchange.is_watch() {
                return exchange.hang().await;
            }
            let nested = "[".repeat(9_000) + &"]".repeat(9_000);
            let deep = format!(
                r#"{{"metadata":{{"name":"deep","namespace":"default","resourceVersion":"9"}},"data":{nested}}}"#
            );
            exchange.send(list("10", "", &deep)).await?;
            exchange.end().await
        })
        .await;
        trial.maps.synced().await.unwrap();
        let deep = trial.maps.lister().get(&ObjectKey::namespaced("default", "deep")).unwrap();
        assert!(deep.get().is_err());
        trial.recovers(SMALL).await;
    });
}

/// How many label sets, owners, namespaces and names come and go; a million by hand.
fn many() -> u64 {
    std::env::var("KUBE_INFORMER_MANY").ok().and_then(|many| many.parse().ok()).unwrap_or(20_000)
}

/// Sends frames, a hundred at a time, until the informer has received [`many`].
fn receives_many(frame: impl Fn(u64) -> String + Copy + Send + Sync + 'static) {
    run(async {
        let sent = Arc::new(AtomicU64::new(0));
        let trial = on_watches(move |mut exchange| {
            let sent = Arc::clone(&sent);
            async move {
                exchange.json().await?;
                let frames = |_| (0..100).map(|_| frame(sent.fetch_add(1, Ordering::Relaxed))).collect::<String>();
                exchange.generate(|nth| frames(nth).into_bytes()).await
            }
        })
        .await;
        trial.maps.wait_for(Version::from(2_000 + many())).await.unwrap();
        trial.recovers(2 * SMALL).await;
    });
}

#[test]
fn label_sets_and_owners_without_end_are_forgotten() {
    receives_many(|nth| {
        let (name, version) = (nth % 100, 2_000 + nth);
        let labels = format!(r#""labels":{{"key-{nth}":"value-{nth}"}}"#);
        let owners = format!(r#""ownerReferences":[{{"apiVersion":"v1","kind":"Pod","name":"p{nth}","uid":"{nth}"}}]"#);
        let metadata = format!(
            r#""name":"m{name}","namespace":"default","uid":"{name}","resourceVersion":"{version}",{labels},{owners}"#
        );
        format!(
            "{{\"type\":\"MODIFIED\",\"object\":{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{{metadata}}}}}}}\n"
        )
    });
}

#[test]
fn namespaces_and_names_that_come_and_go_without_end_are_forgotten() {
    receives_many(|nth| {
        let (change, object, version) = (["ADDED", "DELETED"][nth as usize % 2], nth / 2, 2_000 + nth);
        let metadata =
            format!(r#""name":"m{object}","namespace":"n{object}","uid":"{object}","resourceVersion":"{version}""#);
        format!(
            "{{\"type\":\"{change}\",\"object\":{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{{metadata}}}}}}}\n"
        )
    });
}

#[test]
fn an_answer_of_another_type_is_an_error_that_names_it() {
    for content_type in ["text/html", "application/octet-stream", "image/png"] {
        on_lists(settings(), content_type, SMALL, move |mut exchange| async move {
            exchange.begin(&format!("Content-Type: {content_type}")).await?;
            exchange.repeat(vec![b'a'; 1 << 16]).await
        });
    }
    on_lists(settings(), "gzip", SMALL, |mut exchange| async move {
        exchange.begin("Content-Type: application/json\r\nContent-Encoding: br").await?;
        exchange.repeat(vec![b'a'; 1 << 16]).await
    });
}

#[test]
fn a_redirect_is_an_error_and_not_followed() {
    run(async {
        let elsewhere = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = elsewhere.local_addr().unwrap();
        let trial = Trial::begin(settings(), move |mut exchange| async move {
            let head = format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{address}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            exchange.raw(head).await
        })
        .await;
        trial.reports("307").await;
        trial.recovers(SMALL).await;
        let followed = tokio::time::timeout(Duration::ZERO, elsewhere.accept()).await;
        assert!(followed.is_err(), "{followed:?}");
    });
}

#[test]
fn a_response_head_without_end_is_an_error() {
    on_lists(settings(), "no connection", SMALL, |mut exchange| async move {
        exchange.raw("HTTP/1.1 200 OK\r\n").await?;
        loop {
            exchange.raw("Header: value\r\n").await?;
        }
    });
}

#[test]
fn a_connection_without_an_answer_is_given_up() {
    on_lists(settings(), "nothing came for", SMALL, Exchange::hang);
}

#[test]
fn a_list_that_stops_in_the_middle_is_given_up() {
    on_lists(settings(), "nothing came for", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(r#"{"items":["#).await?;
        exchange.hang().await
    });
}

#[test]
fn a_watch_that_is_silent_although_the_server_has_changed_is_replaced() {
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            exchange.hang().await
        })
        .await;
        trial.maps.synced().await.unwrap();
        trial.server.attacked(3).await;
        trial.recovers(SMALL).await;
    });
}

#[test]
fn watches_that_close_at_once_are_opened_seldom_whether_they_deliver_or_not() {
    for delivers in [true, false] {
        run(async {
            let begun = Instant::now();
            let trial = on_watches(move |mut exchange| async move {
                exchange.json().await?;
                if delivers {
                    exchange.send(bookmark(&next().to_string(), "")).await?;
                }
                exchange.end().await
            })
            .await;
            trial.reports("closed at once").await;
            trial.server.attacked(20).await;
            let watches = trial.server.queries().iter().filter(|query| query.contains("watch=true")).count();
            let least = if delivers { settings().short_watch } else { Duration::ZERO };
            assert!(begun.elapsed() >= least * u32::try_from(watches - 3).unwrap(), "{watches} watches");
            trial.recovers(SMALL).await;
        });
    }
}

#[test]
fn undecodable_frames_are_reported_and_corrected_by_the_next_list() {
    const RUBBISH: [&[u8]; 16] = [
        br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"rubbish"}}}"#,
        br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"99999999999999999999"}}}"#,
        br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":""}}}"#,
        br#"{"type":"BOOKMARK","object":{}}"#,
        br#"{"type":"ADDED","object":{}}"#,
        br#"{"type":"ADDED","object":{"metadata":null}}"#,
        br#"{"type":"ADDED","object":{"metadata":{"name":7}}}"#,
        br#"{"type":"ADDED","object":{"metadata":{"name":"no-version","namespace":"default"}}}"#,
        br#"{"type":"ADDED","type":"DELETED","object":{"metadata":{"name":"a"}},"object":{"metadata":{"name":"b"}}}"#,
        br#"{"type":"DELETED","object":{"metadata":{"name":"a","name":"b","resourceVersion":"1","resourceVersion":"x"}}}"#,
        br#"{"type":"ADDED"}"#,
        br#"{"type":"UNKNOWN","object":{}}"#,
        br#"{"type":"ERROR","object":"text"}"#,
        b"{}",
        b"[null]",
        b"\xff\xfe",
    ];
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            let rubbish = RUBBISH[next() as usize % RUBBISH.len()];
            exchange.send([rubbish, b"\n"].concat()).await?;
            exchange.end().await
        })
        .await;
        trial.reports("cannot be read").await;
        let watches = || trial.server.queries().iter().filter(|query| query.contains("watch=true")).count();
        while watches() < 3 * RUBBISH.len() {
            trial.server.attacked(trial.server.queries().len() + 1).await;
        }
        let queries = trial.server.queries();
        assert!(queries.iter().all(|query| !query.contains("rubbish")), "{queries:?}");
        trial.recovers(SMALL).await;
    });
}

#[test]
fn the_same_object_without_end_is_one_object_and_ends_at_the_limit_of_a_list() {
    on_lists(settings(), "ReflectorSettings::max_list_bytes", SMALL, |mut exchange| async move {
        let map = new_map() + ",";
        exchange.json().await?;
        exchange.send(r#"{"kind":"ConfigMapList","apiVersion":"v1","items":["#).await?;
        exchange.repeat(map.repeat(20)).await
    });
}

#[test]
fn a_list_version_that_no_server_accepts_is_given_up() {
    for version in ["rubbish".to_owned(), "9".repeat(100_000)] {
        run(async {
            let trial = Trial::begin(settings(), move |mut exchange| {
                let version = version.clone();
                async move {
                    let is_first = !exchange.query().contains("resourceVersion=r") && !exchange.query().contains("=99");
                    if is_first && !exchange.is_watch() {
                        exchange.json().await?;
                        exchange.send(list(&version, "", "")).await?;
                        return exchange.end().await;
                    }
                    exchange.raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await
                }
            })
            .await;
            trial.maps.synced().await.unwrap();
            trial.server.attacked(3).await;
            trial.recovers(SMALL).await;
        });
    }
}

#[test]
fn errors_as_long_as_an_object_are_shortened() {
    on_lists(settings(), "500", SMALL, |mut exchange| async move {
        exchange.raw("HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n").await?;
        exchange.repeat(vec![b'a'; 1 << 16]).await
    });
    run(async {
        let trial = on_watches(|mut exchange| async move {
            let long = "a".repeat(1 << 20);
            exchange.json().await?;
            let status = format!(r#"{{"kind":"Status","code":500,"reason":"{long}","message":"{long}"}}"#);
            exchange.send(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n")).await?;
            exchange.end().await
        })
        .await;
        trial.reports("aaa…").await;
        trial.recovers(2 * SMALL).await;
    });
}

#[test]
fn a_discovery_document_without_end_is_an_error_that_names_the_limit() {
    run(async {
        let server = HostileServer::start(held, |mut exchange| async move {
            exchange.json().await?;
            exchange.repeat(vec![b' '; 1 << 16]).await
        })
        .await;
        let before = held();
        let error = Factory::new(client(&server)).resources().await.unwrap_err();
        assert!(error.to_string().contains(TOO_LONG), "{error}");
        assert!(server.peak() - before < ONE_OBJECT);
    });
}
