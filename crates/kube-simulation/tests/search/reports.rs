//! What a search reports.

use std::pin::pin;

use futures_util::StreamExt as _;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams, WatchEvent, WatchParams};
use kube_simulation::{FaultClass, Simulation, Violation};
use serde_json::json;

use crate::zoo::operator::resource;
use crate::zoo::{Exhibit, Variant, exhibits};
use crate::zoo_search::simulation;

/// The annotation of the bookmark after the initial events.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

fn exhibit(name: &str) -> &'static Exhibit {
    exhibits().find(|exhibit| exhibit.name == name).unwrap()
}

/// Creates a config map of this name. Returns whether that succeeded.
async fn create(client: &Client, name: &str) -> bool {
    let maps: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource("ConfigMap"));
    maps.create(&PostParams::default(), &DynamicObject::new(name, &resource("ConfigMap"))).await.is_ok()
}

#[test]
fn a_finding_has_the_smallest_plan_what_happens_around_it_and_a_line_that_replays_it() {
    let searched = simulation(exhibit("owner in a second write"), Variant::Buggy).budget(150);
    let report = searched.search();
    let [finding] = report.findings() else { panic!("{report}") };
    assert_eq!(finding.plan().to_string(), "seed=1 + crash-during@create:configmaps/default/a#1");
    assert!(finding.plans() > 1, "pairs with this fault fail in the same way");
    let text = finding.to_string();
    let lines = [
        "+ ConfigMap default/a is left over",
        "STEP step 0: create Thing.zoo.example.com default/a",
        "create:configmaps/default/a#1: no answer, revision",
        "FAULT crash-during at create:configmaps/default/a",
        "process 1 starts",
        r#"simulation.replay("seed=1 + crash-during@create:configmaps/default/a#1").unwrap().expect_no_findings();"#,
    ];
    for line in lines {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let again = searched.replay(&finding.plan().to_string()).unwrap();
    assert_eq!(again.findings()[0].violations(), finding.violations());
    let fixed = simulation(exhibit("owner in a second write"), Variant::Correct);
    fixed.replay(&finding.plan().to_string()).unwrap().expect_no_findings();
}

#[test]
fn log_lines_are_shown_beside_the_faults() {
    let searched = simulation(exhibit("no retry"), Variant::Buggy).classes([FaultClass::Failures]);
    let text = searched.stop_at_first().search().findings()[0].to_string();
    assert!(text.contains("log: ") && text.contains("reconciliation failed"), "{text}");
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let searched = simulation(exhibit("blind overwrite"), Variant::Buggy).budget(40);
    let without_duration = |simulation: &Simulation| {
        let text = simulation.search().to_string();
        text.split_once('\n').unwrap().1.to_owned()
    };
    assert_eq!(without_duration(&searched), without_duration(&searched.clone().threads(1)));
    assert_ne!(without_duration(&searched), without_duration(&searched.clone().seed(2)), "the text names the seed");
}

#[test]
fn plans_are_counted_by_class_and_pruned_ones_by_the_reason() {
    let report = simulation(exhibit("no retry"), Variant::Correct).budget(60).search();
    let counts = report.counts();
    assert!(counts.values().all(|counts| counts.run == counts.made && counts.failed == 0), "{report}");
    assert_eq!(counts.values().map(|counts| counts.run).sum::<usize>(), report.plans_run());
    assert!(report.plans_run() <= 60);
    let pruned = &counts[&FaultClass::Stale].pruned;
    assert!(pruned.contains_key("no read allows a view that is behind"), "{pruned:?}");
    assert!(report.to_string().contains("crash-during"), "coverage by the kind of fault: {report}");
}

#[test]
fn a_broken_invariant_is_reported_with_its_revision() {
    let count = |state: &kube_simulation::State| state.objects("v1", "ConfigMap").count();
    let report = Simulation::new(async |client: Client| create(&client, "a").await)
        .invariant("no config maps", move |state| match count(state) {
            0 => Ok(()),
            some => Err(format!("{some} at {}", state.revision())),
        })
        .until_quiet()
        .search();
    let Violation::Invariant { name, revision, why } = &report.findings()[0].violations()[0] else {
        panic!("{report}")
    };
    assert_eq!((name.as_str(), why.as_str()), ("no config maps", format!("1 at {revision}").as_str()));
    assert_eq!(report.findings()[0].plan().to_string(), "seed=1", "no fault is needed");
}

#[test]
fn a_controller_that_draws_random_names_is_not_deterministic_and_failures_have_a_rate() {
    let controller = async |client: Client| {
        // What a hash map with random keys or a jitter does.
        let name = format!("r{}", rand::random::<u64>());
        create(&client, &name).await;
        std::future::pending::<()>().await;
    };
    let searched = Simulation::new(controller).until_quiet().classes([FaultClass::Failures]).budget(10);
    let report = searched.search();
    let difference = report.first_difference().unwrap();
    assert!(difference.starts_with("request 1: create:configmaps/default/r"), "{difference}");
    let panics = async |client: Client| {
        let name = format!("r{}", rand::random::<u64>());
        create(&client, "a").await;
        create(&client, &name).await;
        assert_eq!(client.default_namespace(), "", "always");
    };
    let report = Simulation::new(panics).until_quiet().search();
    assert_eq!(report.findings()[0].rate(), Some((5, 5)), "{report}");
    assert!(report.to_string().contains("always"), "the place of the panic: {report}");
}

#[test]
fn writes_that_never_end_are_found_without_a_fault() {
    let controller = async |client: Client| {
        for nth in 0_u64.. {
            create(&client, &format!("a{nth}")).await;
        }
    };
    let report = Simulation::new(controller).until_quiet().search();
    assert_eq!(report.findings()[0].violations(), [Violation::NeverSettles]);
}

#[test]
fn a_step_that_the_server_refuses_without_faults_is_reported() {
    let idle = async |_: Client| std::future::pending::<()>().await;
    let report = Simulation::new(idle).change("v1", "ConfigMap", "a", &json!({"data": {}})).search();
    let text = report.findings()[0].violations()[0].to_string();
    assert!(text.contains("step 0: change ConfigMap default/a") && text.contains("not found"), "{text}");
    assert!(Simulation::new(idle).replay("seed=1 + nonsense@x#1").is_err());
}

#[test]
fn the_timeline_is_a_picture_of_steps_faults_processes_writes_and_objects() {
    let report =
        simulation(exhibit("finalizer before the cleanup"), Variant::Buggy).budget(40).stop_at_first().search();
    let picture = report.findings()[0].timeline();
    if let Some(path) = std::env::var_os("KUBE_SIMULATION_PICTURE") {
        std::fs::write(path, &picture).unwrap();
    }
    for part in
        ["<svg ", ">steps<", ">faults<", ">processes<", ">writes of the controller<", "ConfigMap default/a", "</svg>"]
    {
        assert!(picture.contains(part), "{part} is not in\n{picture}");
    }
    let (opened, closed) = (picture.matches("<title>").count(), picture.matches("</title>").count());
    assert!(opened > 5 && opened == closed);
}

#[test]
fn a_watch_that_begins_with_a_state_of_any_version_begins_behind_after_a_restart() {
    // Makes a config map, unless there is one among the initial events of its watch.
    let controller = |version: &'static str| {
        move |client: Client| async move {
            let maps: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource("ConfigMap"));
            let mut events = pin!(maps.watch(&WatchParams::default().initial_events(), version).await.unwrap());
            let mut count = 0;
            while let Some(Ok(event)) = events.next().await {
                match event {
                    WatchEvent::Added(_) => count += 1,
                    WatchEvent::Bookmark(bookmark)
                        if bookmark.metadata.annotations.contains_key(INITIAL_EVENTS_END) =>
                    {
                        if count == 0 {
                            let mut map = DynamicObject::new("", &resource("ConfigMap"));
                            map.metadata.generate_name = Some("a-".to_owned());
                            maps.create(&PostParams::default(), &map).await.unwrap();
                        }
                        std::future::pending::<()>().await;
                    }
                    _ => {}
                }
            }
        }
    };
    let search = |version| Simulation::new(controller(version)).until_quiet().classes([FaultClass::Stale]).search();
    let report = search("0");
    let finding = &report.findings().first().unwrap_or_else(|| panic!("{report}"));
    assert_eq!(finding.plan().to_string(), "seed=1 + stale-restart=1@create:configmaps/default/a-*#1");
    assert!(finding.to_string().contains("ConfigMap default/a-* was created 2 times"), "{report}");
    // Without a version the initial events are the latest state.
    search("").expect_no_findings();
}

#[test]
fn a_process_that_has_crashed_sends_nothing_more() {
    // The first process leaves a task that writes later, and that outlives the crash.
    let controller = async |client: Client| {
        if create(&client, "first").await {
            tokio::spawn(async move {
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
                create(&client, "later").await;
            });
        }
        std::future::pending::<()>().await;
    };
    let searched = Simulation::new(controller).until_quiet();
    let report = searched.replay("seed=1 + crash-after@create:configmaps/default/first#1").unwrap();
    let missing = "- ConfigMap default/later is missing".to_owned();
    assert_eq!(report.findings()[0].violations(), [Violation::FinalState(vec![missing])]);
}
