//! The test function: [`Simulation`].

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use futures_util::FutureExt as _;
use kube::Client;
use serde::Serialize;
use serde_json::Value;

use crate::canonical::Ignored;
use crate::oracle::Invariant;
use crate::plan::{FaultClass, NotAPlan, Plan};
use crate::report::Report;
use crate::run::{Setting, Start};
use crate::search;
use crate::state::State;
use crate::workload::{Part, Step, target};

/// A controller, the objects it begins with and what its users do: everything that a search for
/// bugs needs.
///
/// Each run has a server of its own and a paused clock, on a thread of its own; the same seed gives
/// the same run.
#[must_use = "a simulation does nothing until it is searched"]
#[derive(Clone)]
pub struct Simulation {
    pub(crate) start: Start,
    pub(crate) objects: Vec<Value>,
    pub(crate) steps: Vec<Step>,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) ignored: Ignored,
    pub(crate) seed: u64,
    pub(crate) budget: usize,
    pub(crate) classes: BTreeSet<FaultClass>,
    pub(crate) threads: usize,
    pub(crate) quiet: Duration,
    pub(crate) settle: Duration,
    pub(crate) max_writes: usize,
    pub(crate) stops_at_first: bool,
}

impl Simulation {
    /// A controller: a function that runs it with a client until it is dropped.
    ///
    /// It is called at the start of each process of the controller, also after a crash. A future
    /// that completes is a process that ends, and is started again after ten seconds.
    pub fn new<F>(controller: impl Fn(Client) -> F + Send + Sync + 'static) -> Self
    where
        F: Future + 'static,
    {
        Self {
            start: Arc::new(move |client| controller(client).map(drop).boxed_local()),
            objects: Vec::new(),
            steps: Vec::new(),
            invariants: Vec::new(),
            ignored: Ignored::default(),
            seed: 1,
            budget: 1000,
            classes: FaultClass::ALL.into(),
            threads: thread::available_parallelism().map_or(1, usize::from),
            quiet: Duration::from_secs(30),
            settle: Duration::from_secs(600),
            max_writes: 500,
            stops_at_first: false,
        }
    }

    /// Adds an object that exists before the controller starts, such as the definition of its kind.
    pub fn object(mut self, object: &impl Serialize) -> Self {
        self.objects.push(value(object));
        self
    }

    /// Step: a user creates an object.
    pub fn create(self, object: &impl Serialize) -> Self {
        let object = value(object);
        self.step(Step::Create(object))
    }

    /// Step: a user changes an object by a JSON merge patch. A name may have the form
    /// `NAMESPACE/NAME`; without a namespace it is `default`.
    pub fn change(self, api_version: &str, kind: &str, name: &str, merge: &impl Serialize) -> Self {
        let (target, merge) = (target(api_version, kind, name), value(merge));
        self.step(Step::Patch { target, merge, part: Part::Main })
    }

    /// Step: another program changes the status of an object by a JSON merge patch.
    pub fn change_status(self, api_version: &str, kind: &str, name: &str, merge: &impl Serialize) -> Self {
        let (target, merge) = (target(api_version, kind, name), value(merge));
        self.step(Step::Patch { target, merge, part: Part::Status })
    }

    /// Step: a user deletes an object.
    pub fn delete(self, api_version: &str, kind: &str, name: &str) -> Self {
        self.step(Step::Delete(target(api_version, kind, name)))
    }

    /// Step: waits until nothing was written for half a minute.
    pub fn until_quiet(self) -> Self {
        self.step(Step::UntilQuiet)
    }

    /// Adds an invariant, which is checked at every revision of every run. It returns why it does
    /// not hold.
    pub fn invariant(
        mut self,
        name: impl Into<String>,
        check: impl Fn(&State) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.invariants.push(Invariant { name: name.into(), check: Arc::new(check) });
        self
    }

    /// Leaves objects of a kind out of comparisons, as leases and events are.
    pub fn ignore_kind(mut self, api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        self.ignored.kinds.insert((api_version.into(), kind.into()));
        self
    }

    /// Leaves a field of a kind out of comparisons, by its JSON pointer, such as
    /// `/status/attempts`. What differs between runs without faults is left out without being
    /// declared.
    pub fn ignore_field(mut self, kind: impl Into<String>, pointer: impl Into<String>) -> Self {
        self.ignored.fields.insert((kind.into(), pointer.into()));
        self
    }

    /// Sets the seed (default 1).
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the most plans that are run (default 1000).
    pub fn budget(mut self, plans: usize) -> Self {
        self.budget = plans;
        self
    }

    /// Searches with these classes of faults only. By default with all.
    pub fn classes(mut self, classes: impl IntoIterator<Item = FaultClass>) -> Self {
        self.classes = classes.into_iter().collect();
        self
    }

    /// Sets how many threads run plans (by default one for each core).
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Sets how long nothing may be written before a run is over (default ten minutes, on the
    /// paused clock). It has to be longer than the longest wait of the controller before it tries
    /// again.
    pub fn settle(mut self, duration: Duration) -> Self {
        self.settle = duration;
        self
    }

    /// Sets after how many writes a run without faults counts as one that never comes to rest
    /// (default 500).
    pub fn max_writes(mut self, writes: usize) -> Self {
        self.max_writes = writes;
        self
    }

    /// Ends the search at the first plan that fails.
    pub fn stop_at_first(mut self) -> Self {
        self.stops_at_first = true;
        self
    }

    /// Learns what the controller does without faults, and runs it with each plan.
    ///
    /// Blocks the thread; the runs are on threads of their own.
    #[must_use]
    pub fn search(&self) -> Report {
        search::search(self)
    }

    /// Runs one plan, in the form in which a report shows it.
    ///
    /// # Errors
    ///
    /// If the text is not a plan.
    pub fn replay(&self, plan: &str) -> Result<Report, NotAPlan> {
        let plan: Plan = plan.parse()?;
        Ok(search::replay(self, &plan))
    }

    pub(crate) fn setting(&self) -> Setting {
        Setting {
            start: self.start.clone(),
            objects: self.objects.clone(),
            steps: self.steps.clone(),
            quiet: self.quiet,
            settle: self.settle,
            max_writes: self.max_writes,
            max_requests: 20_000,
        }
    }

    fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("steps", &self.steps).field("seed", &self.seed).finish_non_exhaustive()
    }
}

/// An object as JSON.
///
/// # Panics
///
/// If it cannot be written as JSON, as a map whose keys are no texts.
fn value(object: &impl Serialize) -> Value {
    serde_json::to_value(object).unwrap_or_else(|error| panic!("an object of a simulation is not JSON: {error}"))
}
