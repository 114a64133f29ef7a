//! The results page of a run.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;
use crate::choice::Choice;

/// The results of all steps. Written after every step, so that an aborted run leaves its results.
#[derive(Debug)]
pub(crate) struct Results {
    path: PathBuf,
    choice: Choice,
    began: Instant,
    page: Mutex<Page>,
}

#[derive(Debug)]
struct Page {
    facts: Vec<(&'static str, String)>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    step: &'static str,
    verdict: Verdict,
    took: Duration,
}

#[derive(Debug)]
enum Verdict {
    /// With a summary.
    Agrees(String),
    Fails(String),
    /// With the reason.
    Skipped(&'static str),
}

impl Results {
    pub(crate) fn new(path: PathBuf, choice: Choice) -> Self {
        let judged = ("judged", format!("kube-informer and kube-embedded {}", env!("CARGO_PKG_VERSION")));
        let page = Mutex::new(Page { facts: vec![judged], rows: Vec::new() });
        Self { path, choice, began: Instant::now(), page }
    }

    pub(crate) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// Adds a fact about the run, such as a version.
    pub(crate) fn fact(&self, what: &'static str, fact: impl Into<String>) -> Result<(), Error> {
        self.change(|page| page.facts.push((what, fact.into())))
    }

    /// Runs a step, if it is selected. It returns a summary.
    pub(crate) fn step(
        &self,
        name: &'static str,
        step: impl Future<Output = Result<String, Error>>,
    ) -> impl Future<Output = Result<(), Error>> {
        let step = Box::pin(step);
        async move {
            if !self.choice.wants(name) {
                return Ok(());
            }
            println!("e2e: {name}");
            let began = Instant::now();
            let outcome = step.await;
            let took = began.elapsed();
            let (verdict, outcome) = match outcome {
                Ok(counted) => {
                    println!("e2e: {name} agrees after {:.1} s: {counted}", took.as_secs_f64());
                    (Verdict::Agrees(counted), Ok(()))
                }
                Err(error) => (Verdict::Fails(error.to_string()), Err(format!("{name}: {error}").into())),
            };
            self.change(|page| page.rows.push(Row { step: name, verdict, took }))?;
            outcome
        }
    }

    /// Records why a selected step cannot run.
    pub(crate) fn skip(&self, name: &'static str, why: &'static str) -> Result<(), Error> {
        if !self.choice.wants(name) {
            return Ok(());
        }
        println!("e2e: {name} is left out: {why}");
        self.change(|page| page.rows.push(Row { step: name, verdict: Verdict::Skipped(why), took: Duration::ZERO }))
    }

    /// Records the result of the whole run.
    pub(crate) fn finish(&self, outcome: &Result<(), Error>) -> Result<(), Error> {
        let whole = match outcome {
            Ok(()) => format!("everything agrees, in {:.0} s", self.began.elapsed().as_secs_f64()),
            Err(error) => {
                format!("**failed** after {:.0} s: {}", self.began.elapsed().as_secs_f64(), cell(&error.to_string()))
            }
        };
        self.fact("the whole", whole)?;
        println!("e2e: results are in {}", self.path.display());
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Page)) -> Result<(), Error> {
        let mut page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut page);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(&self.path, page.markdown()?)?;
        Ok(())
    }
}

impl Page {
    fn markdown(&self) -> Result<String, Error> {
        let mut text = "# Judged by the real thing\n\nWritten by `cargo run -p e2e`.\n\n| | |\n|---|---|\n".to_owned();
        for (what, fact) in &self.facts {
            writeln!(text, "| {what} | {fact} |")?;
        }
        text.push_str("\n| step | verdict | what was counted | seconds |\n|---|---|---|---:|\n");
        for Row { step, verdict, took } in &self.rows {
            let (verdict, counted) = match verdict {
                Verdict::Agrees(counted) => ("agrees", cell(counted)),
                Verdict::Fails(error) => ("**fails**", cell(error)),
                Verdict::Skipped(why) => ("left out", cell(why)),
            };
            writeln!(text, "| {step} | {verdict} | {counted} | {:.1} |", took.as_secs_f64())?;
        }
        Ok(text)
    }
}

/// Text for a table cell: its first line, with bars escaped.
fn cell(text: &str) -> String {
    text.lines().next().unwrap_or_default().replace('|', "\\|")
}
