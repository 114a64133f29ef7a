//! The model test: random servers, broken watches and lagging consumers, through both queue
//! disciplines, compared with a plain map.
//!
//! `KUBE_INFORMER_SEEDS` sets the number of seeds, `KUBE_INFORMER_SEED` replays one seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::fault::Fault;
use self::pipeline::Pipeline;
use self::reflector::Reflector;
use self::rng::Rng;
use self::server::Server;
use super::WatchScope;
use crate::pipeline::Discipline;

mod fault;
mod pipeline;
mod reflector;
mod rng;
mod server;

const SEEDS: u64 = 10_000;

#[test]
fn both_disciplines_report_the_same_correct_events() {
    if let Some(seed) = number("KUBE_INFORMER_SEED") {
        return run(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    let seeds = number("KUBE_INFORMER_SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    std::thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || {
                for seed in (first..seeds).step_by(threads as usize) {
                    let result = catch_unwind(AssertUnwindSafe(|| run(seed, None)));
                    match result {
                        Ok(Ok(())) => {}
                        Ok(Err(why)) => panic!("KUBE_INFORMER_SEED={seed}: {why}"),
                        Err(_) => panic!("KUBE_INFORMER_SEED={seed}: panicked"),
                    }
                }
            });
        }
    });
}

#[test]
fn the_model_detects_every_fault() {
    for fault in Fault::ALL {
        let found = (0..500).find_map(|seed| run(seed, Some(fault)).err());
        assert!(found.is_some(), "{fault:?} was not detected");
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs one server, watched by one or two reflectors whose deltas go through both disciplines.
fn run(seed: u64, fault: Option<Fault>) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let namespaces: &[Option<&str>] = match rng.below(3) {
        0 => &[None],
        1 => &[Some("a"), Some("b")],
        _ => &[Some("a"), Some("b"), None],
    };
    let mut server = Server::new(namespaces);
    let scopes = match rng.below(3) {
        0 if !namespaces.contains(&None) => ["a", "b"].map(|name| WatchScope::Namespace(name.into())).to_vec(),
        _ => vec![WatchScope::Everything],
    };
    let filters = rng.one_in(3);
    let mut reflectors: Vec<_> = scopes.into_iter().map(Reflector::new).collect();
    let mut pipelines =
        [Discipline::Ordered, Discipline::Keyed].map(|discipline| Pipeline::new(discipline, filters, fault, &mut rng));
    for _ in 0..rng.between(10, 50) {
        for _ in 0..rng.below(4) {
            server.write(&mut rng);
        }
        if rng.one_in(40) {
            server.go_back(&mut rng);
            reflectors.iter_mut().for_each(Reflector::server_went_back);
        }
        let mut deltas = Vec::new();
        for reflector in &mut reflectors {
            reflector.step(&server, &mut rng, &mut deltas);
        }
        for pipeline in &mut pipelines {
            pipeline.push(&deltas, &mut rng)?;
        }
    }
    let mut deltas = Vec::new();
    for reflector in &mut reflectors {
        reflector.finish(&server, &mut deltas);
    }
    for pipeline in &mut pipelines {
        pipeline.push(&deltas, &mut rng)?;
        pipeline.finish(&server, &reflectors)?;
    }
    let [ordered, keyed] = pipelines;
    (ordered.reported == keyed.reported).then_some(()).ok_or_else(|| {
        let differs = ordered.reported.iter().find(|(key, events)| keyed.reported.get(*key) != Some(*events));
        format!("the disciplines differ: {differs:?} {:?}", differs.map(|(key, _)| keyed.reported.get(key)))
    })
}
