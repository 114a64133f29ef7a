//! The search: learning runs, plans, verdicts, on as many threads as there are cores.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use parking_lot::Mutex;

use crate::baseline::Baseline;
use crate::oracle::{Violation, judge, judge_alone};
use crate::plan::generate::generate;
use crate::plan::{Fault, FaultClass, FaultKind, Place, Plan};
use crate::report::{ClassCounts, Finding, KindCounts, Report};
use crate::run::{Logs, Setting, run};
use crate::simulation::Simulation;
use crate::trace::Trace;

/// The runs without faults that are compared with each other, with consecutive seeds.
const LEARNING_RUNS: u64 = 3;

/// How often a failing plan is repeated if the controller is not deterministic.
const REPETITIONS: usize = 5;

/// The most findings that a report has.
const MAX_FINDINGS: usize = 20;

/// A plan that failed, and how.
struct Failed {
    plan: Plan,
    violations: Vec<Violation>,
}

/// How a plan ended, and which of its faults happened.
struct Verdict {
    violations: Vec<Violation>,
    reached: Vec<bool>,
}

/// What learning runs show.
struct Learned {
    trace: Trace,
    baseline: Baseline,
    setting: Setting,
    first_difference: Option<String>,
    /// What is wrong without any fault.
    violations: Vec<Violation>,
}

pub(crate) fn search(simulation: &Simulation) -> Report {
    let started = Instant::now();
    let learned = learn(simulation);
    let mut report = Report { first_difference: learned.first_difference.clone(), ..Report::default() };
    if !learned.violations.is_empty() {
        let plan = Plan { seed: simulation.seed, faults: Vec::new() };
        report.findings.push(finding(simulation, &learned, &plan, learned.violations.clone(), 1));
        report.duration = started.elapsed();
        return report;
    }
    let generated =
        generate(&learned.trace, &simulation.steps, simulation.seed, &simulation.classes, simulation.budget);
    for ((class, why), count) in generated.pruned {
        report.classes.entry(class).or_default().pruned.insert(why, count);
    }
    for plan in &generated.plans {
        report.classes.entry(class_of(plan)).or_default().made += 1;
    }
    let failed = run_all(simulation, &learned, &generated.plans, &mut report);
    let mut groups: BTreeMap<String, Vec<Failed>> = BTreeMap::new();
    for failed in failed {
        let key: Vec<String> = failed.violations.iter().map(Violation::group).collect();
        groups.entry(key.join("; ")).or_default().push(failed);
    }
    let mut groups: Vec<Vec<Failed>> = groups.into_values().collect();
    // The most frequent first: it is most probably a bug of its own.
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    for group in groups.into_iter().take(MAX_FINDINGS) {
        let plans = group.len();
        let Some(smallest) = group.into_iter().min_by_key(|failed| size(&failed.plan)) else { continue };
        let smallest = minimise(simulation, &learned, smallest);
        report.findings.push(finding(simulation, &learned, &smallest.plan, smallest.violations, plans));
    }
    report.findings = distinct(report.findings);
    report.duration = started.elapsed();
    report
}

/// Of the findings with the same smallest plan the first.
fn distinct(findings: Vec<Finding>) -> Vec<Finding> {
    let mut plans = HashSet::new();
    findings.into_iter().filter(|finding| plans.insert(finding.plan.clone())).collect()
}

pub(crate) fn replay(simulation: &Simulation, plan: &Plan) -> Report {
    let started = Instant::now();
    let learned = learn(&simulation.clone().seed(plan.seed));
    let mut report = Report { first_difference: learned.first_difference.clone(), ..Report::default() };
    let violations = match plan.faults.is_empty() {
        true => learned.violations.clone(),
        false => {
            let mut violations = Vec::new();
            run_all_into(simulation, &learned, std::slice::from_ref(plan), &mut report, |failed| {
                violations = failed.violations;
            });
            violations
        }
    };
    if !violations.is_empty() {
        report.findings.push(finding(simulation, &learned, plan, violations, 1));
    }
    report.duration = started.elapsed();
    report
}

fn learn(simulation: &Simulation) -> Learned {
    let mut setting = simulation.setting();
    let plan = |seed| Plan { seed, faults: Vec::new() };
    let seeds: Vec<u64> = (0..LEARNING_RUNS).map(|nth| simulation.seed.wrapping_add(nth)).collect();
    let again = run(&setting, &plan(simulation.seed), Logs::Drop);
    let mut violations = judge_alone(&again, &simulation.ignored, &simulation.invariants);
    // A run that is wrong without a fault is not repeated with other seeds.
    let seeds = if violations.is_empty() { &seeds[..] } else { &seeds[..1] };
    let mut traces: Vec<Trace> = seeds.iter().map(|&seed| run(&setting, &plan(seed), Logs::Drop)).collect();
    let first_difference = first_difference(&traces[0], &again);
    if violations.is_empty() {
        violations.extend(
            traces.iter().flat_map(|trace| judge_alone(trace, &simulation.ignored, &simulation.invariants)).take(1),
        );
    }
    violations.extend(again.refused_steps.iter().cloned().map(Violation::StepRefused));
    let baseline = Baseline::learn(&traces, &simulation.ignored);
    // A controller that does twenty times what it does without faults does not come to rest.
    setting.max_writes = (baseline.writes * 20).max(200);
    setting.max_requests = (baseline.requests * 50).max(2_000);
    Learned { trace: traces.swap_remove(0), baseline, setting, first_difference, violations }
}

/// Where two runs with the same seed begin to differ.
fn first_difference(one: &Trace, other: &Trace) -> Option<String> {
    let (mut ones, mut others) = (one.sequence(), other.sequence());
    let mut nth = 0;
    loop {
        nth += 1;
        match (ones.next(), others.next()) {
            (None, None) => return None,
            (one, other) if one == other => {}
            (one, other) => {
                let show = |request: Option<String>| request.unwrap_or_else(|| "nothing".to_owned());
                return Some(format!("request {nth}: {} in one run, {} in the other", show(one), show(other)));
            }
        }
    }
}

/// Runs plans, and returns those that fail, in the order of the plans.
fn run_all(simulation: &Simulation, learned: &Learned, plans: &[Plan], report: &mut Report) -> Vec<Failed> {
    let mut failed = Vec::new();
    run_all_into(simulation, learned, plans, report, |each| failed.push(each));
    failed
}

fn run_all_into(
    simulation: &Simulation,
    learned: &Learned,
    plans: &[Plan],
    report: &mut Report,
    mut failed: impl FnMut(Failed),
) {
    let next = AtomicUsize::new(0);
    let is_done = AtomicBool::new(false);
    let verdicts: Mutex<BTreeMap<usize, Verdict>> = Mutex::default();
    let work = || {
        while !is_done.load(Ordering::Relaxed) {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(plan) = plans.get(nth) else { return };
            let trace = run(&learned.setting, plan, Logs::Drop);
            let violations = judge(&trace, &learned.baseline, &simulation.ignored, &simulation.invariants);
            if !violations.is_empty() && simulation.stops_at_first {
                is_done.store(true, Ordering::Relaxed);
            }
            verdicts.lock().insert(nth, Verdict { violations, reached: trace.reached });
        }
    };
    thread::scope(|scope| {
        for _ in 1..simulation.threads.min(plans.len()) {
            scope.spawn(work);
        }
        work();
    });
    for (nth, Verdict { violations, reached }) in verdicts.into_inner() {
        let plan = &plans[nth];
        report.classes.entry(class_of(plan)).or_default().run += 1;
        for (fault, is_reached) in plan.faults.iter().zip(&reached) {
            let counts: &mut KindCounts = report.kinds.entry(fault.kind.name()).or_default();
            counts.run += 1;
            counts.reached += usize::from(*is_reached);
            counts.failed += usize::from(!violations.is_empty());
        }
        if !violations.is_empty() {
            let class: &mut ClassCounts = report.classes.entry(class_of(plan)).or_default();
            class.failed += 1;
            failed(Failed { plan: plan.clone(), violations });
        }
    }
}

fn class_of(plan: &Plan) -> FaultClass {
    match plan.faults.as_slice() {
        [fault] => fault.kind.class(),
        _ => FaultClass::Pairs,
    }
}

/// The order of plans by what there is to understand in them.
fn size(plan: &Plan) -> (usize, usize, u64) {
    let range = |fault: &Fault| match fault.place {
        Place::Steps(from, until) => until - from,
        Place::Request(..) => 0,
    };
    let behind = |fault: &Fault| match fault.kind {
        FaultKind::StaleRestart(behind) | FaultKind::StaleRelist(behind) => behind,
        _ => 0,
    };
    (plan.faults.len(), plan.faults.iter().map(range).sum(), plan.faults.iter().map(behind).sum())
}

/// Tries smaller plans while they fail.
fn minimise(simulation: &Simulation, learned: &Learned, mut failed: Failed) -> Failed {
    loop {
        let smaller = smaller(&failed.plan).into_iter().find_map(|plan| {
            let trace = run(&learned.setting, &plan, Logs::Drop);
            let violations = judge(&trace, &learned.baseline, &simulation.ignored, &simulation.invariants);
            (!violations.is_empty()).then_some(Failed { plan, violations })
        });
        match smaller {
            Some(smaller) => failed = smaller,
            None => return failed,
        }
    }
}

/// The plans that are one step smaller.
fn smaller(plan: &Plan) -> Vec<Plan> {
    let with = |position: usize, fault: Option<Fault>| {
        let mut faults = plan.faults.clone();
        faults.splice(position..=position, fault);
        Plan { seed: plan.seed, faults }
    };
    let mut plans = Vec::new();
    for (position, fault) in plan.faults.iter().enumerate() {
        if plan.faults.len() > 1 {
            plans.push(with(position, None));
        }
        match (fault.kind, &fault.place) {
            (kind, &Place::Steps(from, until)) if from < until => {
                plans.push(with(position, Some(Fault { kind, place: Place::Steps(from + 1, until) })));
                plans.push(with(position, Some(Fault { kind, place: Place::Steps(from, until - 1) })));
            }
            (FaultKind::StaleRestart(behind), place) if behind > 1 => {
                let kind = FaultKind::StaleRestart(behind - 1);
                plans.push(with(position, Some(Fault { kind, place: place.clone() })));
            }
            _ => {}
        }
    }
    plans
}

/// Runs a failing plan once more, to tell what happens in it.
fn finding(
    simulation: &Simulation,
    learned: &Learned,
    plan: &Plan,
    violations: Vec<Violation>,
    plans: usize,
) -> Finding {
    let trace = run(&learned.setting, plan, Logs::Keep);
    let rate = learned.first_difference.as_ref().map(|_| {
        let fails = (0..REPETITIONS).filter(|_| {
            let trace = run(&learned.setting, plan, Logs::Drop);
            !judge(&trace, &learned.baseline, &simulation.ignored, &simulation.invariants).is_empty()
        });
        (fails.count(), REPETITIONS)
    });
    Finding { plan: plan.clone(), violations, plans, rate, trace }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_with_the_same_smallest_plan_are_one_also_with_others_between_them() {
        let finding = |seed: u64, plans: usize| {
            let plan = Plan { seed, faults: Vec::new() };
            Finding { plan, violations: Vec::new(), plans, rate: None, trace: Trace::default() }
        };
        let findings = distinct(vec![finding(1, 9), finding(2, 5), finding(1, 3), finding(3, 1), finding(2, 1)]);
        let kept: Vec<(u64, usize)> = findings.iter().map(|finding| (finding.plan.seed, finding.plans)).collect();
        assert_eq!(kept, [(1, 9), (2, 5), (3, 1)]);
    }
}
