//! Random servers and faults on paused time: the cache converges, every event sequence is valid,
//! and the request rate stays within the backoff.
//!
//! `KUBE_INFORMER_SEEDS=100000` runs more seeds. A failing seed is printed; `KUBE_INFORMER_SEED=…`
//! replays it alone.

use std::time::Duration;

use crate::rig::{Rig, server};
use bytes::Bytes;
use kube_embedded::Verb;
use kube_embedded::faults::{Fault, Rule};
use kube_informer::reflector::{ReflectorSettings, Streaming};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

#[test]
fn the_cache_converges_on_every_seed() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match (number("KUBE_INFORMER_SEED"), number("KUBE_INFORMER_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(300),
    };
    for seed in seeds {
        let run = std::panic::catch_unwind(|| play(seed));
        if let Err(panic) = run {
            eprintln!("KUBE_INFORMER_SEED={seed} fails");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..60 {
        let [first, second] = [(); 2].map(|()| play(seed));
        assert!(!first.is_empty());
        assert_eq!(first, second, "seed {seed} goes another way");
    }
}

fn play(seed: u64) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    runtime.block_on(simulate(seed))
}

/// Returns a transcript of all events and requests.
async fn simulate(seed: u64) -> Vec<String> {
    let mut rng = Pcg64::seed_from_u64(seed);
    let settings = ReflectorSettings {
        streaming: if rng.random_bool(0.5) { Streaming::Preferred } else { Streaming::Never },
        page_size: rng.random_bool(0.3).then(|| rng.random_range(1..5)),
        ..ReflectorSettings::default()
    };
    let mut rig = Rig::start(server().await, settings);
    let mut made = 0;
    let mut backup = None;
    for _ in 0..rng.random_range(5..40) {
        match rng.random_range(0..100) {
            0..30 => {
                made += 1;
                // Names are reused, so that deleted objects are recreated.
                let name = format!("m{}", rng.random_range(0..12));
                if rig.truth().contains_key(&format!("default/{name}")) {
                    rig.change(&name, made);
                } else {
                    rig.put(&name);
                }
            }
            30..45 => {
                let there: Vec<String> = rig.truth().into_keys().collect();
                let mine = there.iter().filter_map(|key| key.strip_prefix("default/m")).collect::<Vec<_>>();
                if !mine.is_empty() {
                    rig.delete(&format!("m{}", mine[rng.random_range(0..mine.len())]));
                }
            }
            45..60 => {
                let rule = Rule::new(random_fault(&mut rng)).times(rng.random_range(1..4));
                let rule = match rng.random_range(0..3) {
                    0 => rule.verb(Verb::Watch),
                    1 => rule.verb(Verb::List),
                    _ => rule,
                };
                rig.server.faults().inject(rule);
            }
            60..65 => rig.server.cut(),
            65..70 => rig.server.restart(),
            70..73 => rig.server.compact_now(),
            73..76 => backup = Some(rig.server.backup()),
            76..79 => {
                if let Some(backup) = &backup {
                    rig.server.restore(backup);
                    // Until the reflector notices the restore, new writes may reuse versions that
                    // it has seen with other content.
                    rig.pass(200).await;
                    rig.server.faults().clear();
                    rig.converges().await;
                }
            }
            79..82 => {
                rig.server.refuse().await;
                rig.server.cut();
                rig.pass(rng.random_range(1..100)).await;
                rig.server.accept().await;
            }
            82..92 => rig.pass(rng.random_range(1..120)).await,
            _ => tokio::time::sleep(Duration::from_millis(rng.random_range(1..500))).await,
        }
    }
    rig.server.faults().clear();
    rig.converges().await;
    let passed = rig.started.elapsed().as_secs_f64();
    let requests = rig.server.request_count();
    // Each action may cost a few immediate retries; beyond that, the backoff cap and the probes
    // bound the rate.
    assert!((requests as f64) < 300.0 + passed / 5.0, "{requests} requests in {passed} s");
    rig.transcript()
}

fn random_fault(rng: &mut impl Rng) -> Fault {
    let events = rng.random_range(0..3);
    match rng.random_range(0..16) {
        0 => Fault::Disconnect,
        1 => Fault::status([401, 403, 404, 500, 503, 504][rng.random_range(0..6)]),
        2 => Fault::TooManyRequests,
        3 => Fault::GoneAtOpen,
        4 => Fault::Delay(Duration::from_secs(rng.random_range(1..100))),
        5 => Fault::StallAfterBytes(rng.random_range(0..500)),
        6 => Fault::StallAfterEvents(events),
        7 => Fault::CutAfterBytes(rng.random_range(0..500)),
        8 => Fault::CutAfterEvents(events),
        9 => Fault::CutWithinEvent(events),
        10 => Fault::EndAfterEvents(events),
        11 => Fault::GarbageAfterEvents(events, Bytes::from_static(b"garbage\n")),
        12 => Fault::GoneAfterEvents(events),
        13 => Fault::OmitInitialEventsEnd,
        14 => Fault::OmitBookmarks,
        _ => Fault::DuplicateAfterEvents(events.max(1)),
    }
}
