//! The zoo is searched: each bug is found by its classes of plans and by no other, and no twin
//! raises an alarm.

use std::collections::BTreeSet;

use kube_simulation::{FaultClass, Report, Simulation};
use serde_json::Value;

use crate::zoo::{Exhibit, Step, Variant, definition, exhibits};

const SINGLES: [FaultClass; 4] =
    [FaultClass::Intermediate, FaultClass::Stale, FaultClass::Unobserved, FaultClass::Failures];

fn api_version(kind: &str) -> &'static str {
    if kind == "Thing" { "zoo.example.com/v1" } else { "v1" }
}

/// At most one member has the role of the primary.
fn one_primary(state: &kube_simulation::State) -> Result<(), String> {
    let maps = state.objects("v1", "ConfigMap");
    let primaries: Vec<&Value> = maps.filter(|map| map["data"]["role"] == "primary").collect();
    if primaries.len() > 1 { Err(format!("{} primaries", primaries.len())) } else { Ok(()) }
}

pub(crate) fn simulation(exhibit: &'static Exhibit, variant: Variant) -> Simulation {
    let simulation = Simulation::new(move |client| (exhibit.run)(client, variant))
        .object(&definition())
        .invariant("never two primaries", one_primary);
    (exhibit.workload)().into_iter().fold(simulation, |simulation, step| match step {
        Step::Create(object) => simulation.create(&object),
        Step::Patch(kind, name, patch) => simulation.change(api_version(kind), kind, name, &patch),
        Step::Delete(kind, name) => simulation.delete(api_version(kind), kind, name),
        Step::Quiet => simulation.until_quiet(),
    })
}

fn search(exhibit: &'static Exhibit, class: FaultClass) -> Report {
    simulation(exhibit, Variant::Buggy).classes([class]).stop_at_first().search()
}

#[test]
fn each_bug_is_found_by_its_classes_of_plans_and_by_no_other() {
    let mut alone = BTreeSet::new();
    let mut wrong = Vec::new();
    for exhibit in exhibits() {
        let found: Vec<&str> = SINGLES
            .iter()
            .filter(|&&class| !search(exhibit, class).findings().is_empty())
            .map(|class| class.name())
            .collect();
        if found != exhibit.found_by {
            wrong.push(format!("{}: found by {found:?}, and not by {:?}", exhibit.name, exhibit.found_by));
        }
        if let [class] = found.as_slice() {
            alone.insert(*class);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let classes: BTreeSet<&str> = SINGLES.iter().map(|class| class.name()).collect();
    assert_eq!(alone, classes, "each class is the only one that finds some bug");
}

/// A number of the environment: `just search` sets more than the gate has.
pub(crate) fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

#[test]
fn no_twin_raises_an_alarm() {
    let mut alarms = Vec::new();
    let mut plans = 0;
    let (seeds, budget) = (setting("KUBE_SIMULATION_SEEDS", 1), setting("KUBE_SIMULATION_PLANS", 40));
    for seed in 1..=seeds {
        for exhibit in exhibits() {
            let report = simulation(exhibit, Variant::Correct).seed(seed).budget(budget as usize).search();
            plans += report.plans_run();
            if !report.findings().is_empty() || report.first_difference().is_some() {
                alarms.push(format!("{}, seed {seed}: {report}", exhibit.name));
            }
        }
    }
    println!("the twins: {} alarms in {plans} plans over {seeds} seeds", alarms.len());
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
}
