//! Plans from a learning run: each fault at every place where it can matter, and not where it
//! cannot.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::{Fault, FaultClass, FaultKind, Place, Plan};
use crate::trace::{Request, RequestKind, Trace};
use crate::workload::Step;

/// The most places of one signature: later ones repeat what was tried.
const MAX_SAME_WRITES: usize = 4;
const MAX_SAME_READS: usize = 2;

/// The most steps that a controller does not observe.
const MAX_STEPS: usize = 4;

/// The most views that a restart is tried with.
const MAX_VIEWS: usize = 12;

/// Plans, and how many were not made, by class and reason.
#[derive(Debug, Default)]
pub(crate) struct Generated {
    pub(crate) plans: Vec<Plan>,
    pub(crate) pruned: BTreeMap<(FaultClass, &'static str), usize>,
}

/// Makes the plans of these classes, at most `budget`.
pub(crate) fn generate(
    trace: &Trace,
    steps: &[Step],
    seed: u64,
    classes: &BTreeSet<FaultClass>,
    budget: usize,
) -> Generated {
    let mut generator = Generator { trace, seed, made: Generated::default(), writes_before: HashMap::new() };
    if classes.contains(&FaultClass::Intermediate) {
        generator.intermediate();
    }
    if classes.contains(&FaultClass::Stale) {
        generator.stale();
    }
    if classes.contains(&FaultClass::Unobserved) {
        generator.unobserved(steps);
    }
    if classes.contains(&FaultClass::Failures) {
        generator.failures(steps);
    }
    generator.limit(budget);
    if classes.contains(&FaultClass::Pairs) {
        generator.pairs(budget);
    }
    generator.made
}

struct Generator<'t> {
    trace: &'t Trace,
    seed: u64,
    made: Generated,
    /// How many plans each signature has.
    writes_before: HashMap<String, usize>,
}

impl<'t> Generator<'t> {
    fn add(&mut self, kind: FaultKind, place: Place) {
        self.made.plans.push(Plan { seed: self.seed, faults: vec![Fault { kind, place }] });
    }

    fn prune(&mut self, class: FaultClass, why: &'static str) {
        *self.made.pruned.entry((class, why)).or_default() += 1;
    }

    /// The writes that changed something, each with whether another client wrote since the one
    /// before.
    fn effective_writes(&mut self, class: FaultClass) -> Vec<(&'t Request, bool)> {
        let mut writes = Vec::new();
        let mut revision = 0;
        let mut same: HashMap<&str, usize> = HashMap::new();
        for request in self.trace.requests.iter().filter(|request| request.kind.is_write()) {
            let Some((before, after)) = request.revisions else { continue };
            if request.is_background() {
                self.prune(class, "a lease or an event");
                continue;
            }
            if after == before {
                self.prune(class, "the write changed nothing");
                continue;
            }
            let count = same.entry(&request.signature).or_default();
            *count += 1;
            if *count > MAX_SAME_WRITES {
                self.prune(class, "a place like others before");
                continue;
            }
            writes.push((request, before != revision));
            revision = after;
        }
        writes
    }

    fn intermediate(&mut self) {
        const CLASS: FaultClass = FaultClass::Intermediate;
        for (write, is_first) in self.effective_writes(CLASS) {
            match is_first {
                true => self.add(FaultKind::CrashBefore, place(write)),
                // The cluster is as it was after the write before.
                false => self.prune(CLASS, "the same state as after the write before"),
            }
            self.add(FaultKind::CrashDuring, place(write));
            let overlaps = |other: &&Request| {
                !std::ptr::eq(*other, write) && other.kind != RequestKind::Watch && is_concurrent(write, other)
            };
            match self.trace.requests.iter().any(|other| overlaps(&other)) {
                true => self.add(FaultKind::CrashAfter, place(write)),
                false => self.prune(CLASS, "the same state as during the write"),
            }
        }
    }

    fn stale(&mut self) {
        const CLASS: FaultClass = FaultClass::Stale;
        let any = self.trace.requests.iter().any(|request| request.allows_any);
        let first = self.trace.start;
        let mut rng = Pcg64Mcg::seed_from_u64(self.seed);
        for (write, _) in self.effective_writes(CLASS) {
            self.add(FaultKind::SlowView, place(write));
            let Some((_, after)) = write.revisions else { continue };
            let views: Vec<u64> = (1..=after.saturating_sub(first)).collect();
            if !any {
                // A restarted process has no version to name, and a read without one is up to date.
                (0..views.len()).for_each(|_| self.prune(CLASS, "no read allows a view that is behind"));
                continue;
            }
            let mut chosen: Vec<u64> = views.sample(&mut rng, MAX_VIEWS).copied().collect();
            chosen.sort_unstable();
            (chosen.len()..views.len()).for_each(|_| self.prune(CLASS, "other views of the same write were chosen"));
            for behind in chosen {
                self.add(FaultKind::StaleRestart(behind), place(write));
            }
            self.add(FaultKind::StaleRelist(3.min(after - first).max(1)), place(write));
        }
    }

    fn unobserved(&mut self, steps: &[Step]) {
        let changes: Vec<usize> = (0..steps.len()).filter(|&nth| steps[nth].is_change()).collect();
        for (position, &from) in changes.iter().enumerate() {
            for &until in changes[position..].iter().take(MAX_STEPS) {
                for kind in [FaultKind::Down, FaultKind::Disconnected, FaultKind::Overwritten] {
                    self.add(kind, Place::Steps(from, until));
                }
            }
        }
    }

    fn failures(&mut self, steps: &[Step]) {
        const CLASS: FaultClass = FaultClass::Failures;
        use FaultKind::{ClockJump, Disconnect, Late, LeadershipLost, LoseResponse, Status, TimeoutAfter, WatchCut};
        for nth in (0..steps.len()).filter(|&nth| steps[nth].is_change()) {
            self.add(ClockJump, Place::Steps(nth, nth));
        }
        let has_lease = self.trace.requests.iter().any(|request| request.is_lease() && request.kind.is_write());
        for request in &self.trace.requests {
            let is_write = request.kind.is_write();
            let most = if is_write && !request.is_background() { MAX_SAME_WRITES } else { MAX_SAME_READS };
            let count = self.writes_before.entry(request.signature.clone()).or_default();
            *count += 1;
            if *count > most {
                self.prune(CLASS, "a place like others before");
                continue;
            }
            for kind in [Status(429), Status(500), Status(504), Disconnect, Late] {
                self.add(kind, place(request));
            }
            match request.kind {
                RequestKind::Watch => self.add(WatchCut, place(request)),
                RequestKind::Create | RequestKind::Write => {
                    match request.kind {
                        RequestKind::Write => self.add(Status(409), place(request)),
                        _ => self.prune(CLASS, "409 of a create means that the object exists"),
                    }
                    self.add(LoseResponse, place(request));
                    self.add(TimeoutAfter, place(request));
                    self.add(ClockJump, place(request));
                    match has_lease {
                        true => self.add(LeadershipLost, place(request)),
                        false => self.prune(CLASS, "there is no lease to lose"),
                    }
                }
                RequestKind::Read => {}
            }
        }
    }

    /// Keeps a sample of the plans, drawn by the seed, if there are more than the budget.
    fn limit(&mut self, budget: usize) {
        let mut rng = Pcg64Mcg::seed_from_u64(self.seed);
        while self.made.plans.len() > budget {
            let plan = self.made.plans.remove(rng.random_range(0..self.made.plans.len()));
            self.prune(plan.faults[0].kind.class(), "over the budget");
        }
    }

    /// Pairs of faults at different places, drawn by the seed, with what is left of the budget.
    fn pairs(&mut self, budget: usize) {
        let singles: Vec<Fault> = self.made.plans.iter().flat_map(|plan| plan.faults.clone()).collect();
        let mut rng = Pcg64Mcg::seed_from_u64(self.seed);
        let mut made = BTreeSet::new();
        // A pair that was drawn before is drawn again, so that the number of draws is limited.
        for _ in 0..2 * budget.saturating_sub(singles.len()) {
            let (Some(one), Some(other)) = (singles.choose(&mut rng), singles.choose(&mut rng)) else { return };
            if self.made.plans.len() >= budget || one.place == other.place {
                continue;
            }
            let plan = Plan { seed: self.seed, faults: vec![one.clone(), other.clone()] };
            match made.insert(plan.to_string()) {
                true => self.made.plans.push(plan),
                false => self.prune(FaultClass::Pairs, "drawn before"),
            }
        }
    }
}

fn place(request: &Request) -> Place {
    Place::Request(request.signature.clone(), request.nth)
}

/// Whether a request was on its way when the other was.
fn is_concurrent(one: &Request, other: &Request) -> bool {
    let end = |request: &Request| request.answered.unwrap_or(request.sent);
    one.sent < end(other) && other.sent < end(one)
}
