//! The result of a search, for people and for tests.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::oracle::Violation;
use crate::plan::{FaultClass, Plan};
use crate::trace::{NoteKind, Request, Seconds, Trace};

mod timeline;

/// The result of a search.
#[derive(Debug, Default)]
pub struct Report {
    pub(crate) findings: Vec<Finding>,
    pub(crate) classes: BTreeMap<FaultClass, ClassCounts>,
    pub(crate) kinds: BTreeMap<&'static str, KindCounts>,
    pub(crate) first_difference: Option<String>,
    pub(crate) duration: Duration,
}

/// How many plans of a class there were.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClassCounts {
    /// Plans that were made.
    pub made: usize,
    /// Plans that were not made, by the reason.
    pub pruned: BTreeMap<&'static str, usize>,
    /// Plans that were run.
    pub run: usize,
    /// Plans that failed.
    pub failed: usize,
}

/// How often a kind of fault was tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KindCounts {
    pub(crate) run: usize,
    /// Runs in which the fault happened: the place was reached.
    pub(crate) reached: usize,
    pub(crate) failed: usize,
}

/// A bug: the smallest plan that shows it.
#[derive(Debug)]
pub struct Finding {
    pub(crate) plan: Plan,
    pub(crate) violations: Vec<Violation>,
    pub(crate) plans: usize,
    pub(crate) rate: Option<(usize, usize)>,
    pub(crate) trace: Trace,
}

impl Report {
    /// What was found, the most frequent first.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many plans of each class there were.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<FaultClass, ClassCounts> {
        &self.classes
    }

    /// The number of plans that were run.
    #[must_use]
    pub fn plans_run(&self) -> usize {
        self.classes.values().map(|counts| counts.run).sum()
    }

    /// How long the search took.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Where two runs with the same seed began to differ; `None` if the controller is
    /// deterministic.
    #[must_use]
    pub fn first_difference(&self) -> Option<&str> {
        self.first_difference.as_deref()
    }

    /// Fails a test if anything was found.
    ///
    /// # Panics
    ///
    /// With the report, if there is a finding.
    #[expect(clippy::panic, reason = "that is how a test fails")]
    pub fn expect_no_findings(&self) {
        if !self.findings.is_empty() {
            panic!("{self}");
        }
    }
}

impl Finding {
    /// The smallest plan that fails.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What must not happen, and did.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The number of plans that fail in the same way.
    #[must_use]
    pub fn plans(&self) -> usize {
        self.plans
    }

    /// How many of how many repetitions failed, if the controller is not deterministic.
    #[must_use]
    pub fn rate(&self) -> Option<(usize, usize)> {
        self.rate
    }

    /// A line of code that runs the plan again.
    #[must_use]
    pub fn replay_line(&self) -> String {
        format!("simulation.replay({:?}).unwrap().expect_no_findings();", self.plan.to_string())
    }

    /// The writes, events and faults of the run over its time, as an SVG picture.
    #[must_use]
    pub fn timeline(&self) -> String {
        timeline::svg(self)
    }
}

/// How many lines of each kind a report shows before and after a fault.
const AROUND: usize = 6;

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "plan: {}", self.plan)?;
        for violation in &self.violations {
            writeln!(f, "  {violation}")?;
        }
        writeln!(f, "  {} plans fail in this way", self.plans)?;
        if let Some((failed, of)) = self.rate {
            writeln!(f, "  it failed in {failed} of {of} repetitions: the controller is not deterministic")?;
        }
        writeln!(f, "  what happens:")?;
        for line in around(&lines(&self.trace)) {
            writeln!(f, "    {line}")?;
        }
        writeln!(f, "  to run it again:\n    {}", self.replay_line())
    }
}

/// A line of what happened.
struct Line {
    at: Duration,
    is_fault: bool,
    text: String,
}

/// Steps, processes, faults, writes and log lines, in the order of time.
fn lines(trace: &Trace) -> Vec<Line> {
    let notes = trace.notes.iter().chain(&trace.logs).map(|note| {
        let mark = match note.kind {
            NoteKind::Step => "STEP ",
            NoteKind::Fault => "FAULT ",
            NoteKind::Process => "",
            NoteKind::Log => "log: ",
        };
        Line { at: note.at, is_fault: note.kind == NoteKind::Fault, text: format!("{mark}{}", note.text) }
    });
    let writes = trace.requests.iter().filter(|request| request.kind.is_write() && !request.is_background());
    let writes = writes.map(|request| Line { at: request.sent, is_fault: false, text: write_line(request) });
    let mut lines: Vec<Line> = notes.chain(writes).collect();
    lines.sort_by_key(|line| line.at);
    lines
}

fn write_line(request: &Request) -> String {
    let answer = request.code.map_or_else(|| "no answer".to_owned(), |code| code.to_string());
    let stored = match request.revisions {
        Some((before, after)) if before != after => format!(", revision {after}"),
        _ => String::new(),
    };
    format!("{}#{}: {answer}{stored}", request.signature, request.nth)
}

/// The lines before and after the faults; the others are counted.
fn around(lines: &[Line]) -> Vec<String> {
    let faults: Vec<usize> = (0..lines.len()).filter(|&nth| lines[nth].is_fault).collect();
    let near =
        |nth: usize| faults.is_empty() && nth < 4 * AROUND || faults.iter().any(|&fault| nth.abs_diff(fault) <= AROUND);
    let mut shown = Vec::new();
    let mut hidden = 0;
    for (nth, line) in lines.iter().enumerate() {
        if near(nth) {
            if hidden > 0 {
                shown.push(format!("… {hidden} lines"));
            }
            hidden = 0;
            shown.push(format!("{} {}", Seconds(line.at), line.text));
        } else {
            hidden += 1;
        }
    }
    if hidden > 0 {
        shown.push(format!("… {hidden} lines"));
    }
    shown
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} findings in {} plans, {:.1} s",
            self.findings.len(),
            self.plans_run(),
            self.duration.as_secs_f64()
        )?;
        for (nth, finding) in self.findings.iter().enumerate() {
            writeln!(f, "\n{}. {finding}", nth + 1)?;
        }
        if let Some(difference) = &self.first_difference {
            writeln!(f, "\nthe controller is not deterministic: {difference}")?;
        }
        writeln!(f, "\nclass          made    run failed pruned")?;
        for (class, counts) in &self.classes {
            let ClassCounts { made, run, failed, pruned } = counts;
            writeln!(f, "{:12} {made:6} {run:6} {failed:6} {:6}", class.name(), pruned.values().sum::<usize>())?;
            for (why, count) in pruned {
                writeln!(f, "{:34}{count:6} {why}", "")?;
            }
        }
        writeln!(f, "\nfault             run reached failed")?;
        for (name, KindCounts { run, reached, failed }) in &self.kinds {
            writeln!(f, "{name:15} {run:5} {reached:7} {failed:6}")?;
        }
        Ok(())
    }
}
