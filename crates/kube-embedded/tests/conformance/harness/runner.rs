//! Runs cases concurrently and reports like the standard test runner.

use super::documentation;
use super::target::Target;
use super::{Api, Case, Pace};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Number of concurrent cases. More would only queue inside the server.
const SIDE_BY_SIDE: usize = 12;
const CASE_TIMEOUT: Duration = Duration::from_secs(400);

/// Panic messages of failed cases, by name.
static SAID: Mutex<BTreeMap<&'static str, String>> = Mutex::new(BTreeMap::new());

tokio::task_local! {
    static RUNNING: &'static str;
}

/// Runs the cases selected on the command line.
pub(crate) fn run(cases: &[Case]) -> ExitCode {
    let options = Options::parse(std::env::args().skip(1));
    let mut chosen: Vec<_> = cases.iter().copied().filter(|case| options.wants(case)).collect();
    if options.list {
        for case in chosen {
            println!("{}: test", case.short_name());
        }
        return ExitCode::SUCCESS;
    }
    let outdated: Vec<_> = documentation::pages(cases).into_iter().filter(|(_, wanted, is)| wanted != is).collect();
    if options.writes {
        for (path, page, _) in &outdated {
            std::fs::write(path, page).expect("the pages can be written");
        }
        return ExitCode::SUCCESS;
    }
    if options.wants_all() && !outdated.is_empty() {
        let paths: Vec<_> = outdated.iter().map(|(path, ..)| path.display().to_string()).collect();
        eprintln!("not up to date: {}; `just conformance-pages` writes them", paths.join(", "));
        return ExitCode::FAILURE;
    }
    // Slow cases first, so that they wait while the others run.
    chosen.sort_by_key(|case| (case.pace == Pace::Quick, case.name));
    std::panic::set_hook(Box::new(|panic| {
        let said = panic.to_string();
        match RUNNING.try_with(|name| *name) {
            Ok(name) => drop(SAID.lock().unwrap().insert(name, said)),
            Err(_) => eprintln!("{said}"),
        }
    }));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads can be started");
    runtime.block_on(async {
        let mut verdict = ExitCode::SUCCESS;
        for target in Target::from_environment().await {
            if run_all(target, &chosen, cases.len()).await == ExitCode::FAILURE {
                verdict = ExitCode::FAILURE;
            }
        }
        verdict
    })
}

async fn run_all(target: Target, chosen: &[Case], of: usize) -> ExitCode {
    let began = Instant::now();
    let target = Arc::new(target);
    let expected = expected_failures(target.expected_failures());
    println!("\nrunning {} of {of} cases", chosen.len());

    let seats = Arc::new(Semaphore::new(SIDE_BY_SIDE));
    let mut running = JoinSet::new();
    for &case in chosen {
        let (seats, target) = (Arc::clone(&seats), Arc::clone(&target));
        running.spawn(async move {
            // A case that only waits needs no permit.
            let _seat = match case.pace {
                Pace::Quick => Some(seats.acquire_owned().await.expect("never closed")),
                Pace::Slow | Pace::Minute => None,
            };
            (case, outcome(case, target).await)
        });
    }

    let (mut passed, mut expected_to_fail, mut failures) = (0, 0, Vec::new());
    while let Some(done) = running.join_next().await {
        let (case, outcome) = done.expect("cases run in tasks of their own");
        let name = case.short_name();
        match (outcome, expected.get(name)) {
            (Outcome::Passed, None) => {
                passed += 1;
                println!("test {name} ... ok");
            }
            (Outcome::Failed(_), Some(reason)) => {
                expected_to_fail += 1;
                println!("test {name} ... failed as expected ({reason})");
            }
            (Outcome::Failed(said), None) => {
                println!("test {name} ... FAILED");
                failures.push((case, said));
            }
            (Outcome::Passed, Some(reason)) => {
                println!("test {name} ... PASSED UNEXPECTEDLY");
                failures.push((case, format!("this was expected to fail: {reason}")));
            }
        }
    }

    failures.sort_by_key(|(case, _)| case.name);
    for (case, said) in &failures {
        println!("\n---- {}\n  fact: {}\n{said}", case.short_name(), case.fact);
    }
    println!(
        "\ntest result: {}. {passed} passed; {} failed; {expected_to_fail} failed as expected; finished in {:.2}s\n",
        if failures.is_empty() { "ok" } else { "FAILED" },
        failures.len(),
        began.elapsed().as_secs_f32(),
    );
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

enum Outcome {
    Passed,
    Failed(String),
}

async fn outcome(case: Case, target: Arc<Target>) -> Outcome {
    let api = Api::new(target);
    let check = tokio::time::timeout(CASE_TIMEOUT, (case.check)(api.clone()));
    let outcome = tokio::spawn(RUNNING.scope(case.name, check)).await;
    // Cleanup is for shared servers only; its failures do not fail the case.
    tokio::spawn(RUNNING.scope("clean-up", async move { api.clean_up().await })).await.ok();
    match outcome {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(_)) => Outcome::Failed(format!("not done within {CASE_TIMEOUT:?}")),
        Err(_) => Outcome::Failed(SAID.lock().unwrap().remove(case.name).unwrap_or_default()),
    }
}

/// Parses names of cases with the reason why they fail: lines of `name: reason`; `#` begins a
/// comment.
fn expected_failures(text: &str) -> BTreeMap<&str, &str> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("an expected failure needs a reason: {line}")))
        .collect()
}

impl Case {
    /// The name without that of the suite.
    pub(super) fn short_name(&self) -> &'static str {
        self.name.split_once("::").map_or(self.name, |(_, name)| name)
    }
}

/// Whether cases that take a minute are run.
#[derive(Default, PartialEq)]
enum Minutes {
    #[default]
    LeftOut,
    Only,
    Too,
}

/// The supported options of the standard test runner.
#[derive(Default)]
struct Options {
    list: bool,
    /// Whether the pages that list the cases are written instead.
    writes: bool,
    exact: bool,
    minutes: Minutes,
    only: Vec<String>,
    skip: Vec<String>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--list" => options.list = true,
                "--write-documentation" => options.writes = true,
                "--exact" => options.exact = true,
                "--ignored" => options.minutes = Minutes::Only,
                "--include-ignored" => options.minutes = Minutes::Too,
                "--skip" => options.skip.extend(arguments.next()),
                "--format" | "--test-threads" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                other if other.starts_with('-') => {}
                only => options.only.push(only.to_owned()),
            }
        }
        options
    }

    fn wants_all(&self) -> bool {
        self.only.is_empty() && self.skip.is_empty() && self.minutes != Minutes::Only
    }

    fn wants(&self, case: &Case) -> bool {
        let name = case.short_name();
        let is = |pattern: &String| if self.exact { name == pattern } else { name.contains(pattern.as_str()) };
        let in_time = match self.minutes {
            Minutes::LeftOut => case.pace != Pace::Minute,
            Minutes::Only => case.pace == Pace::Minute,
            Minutes::Too => true,
        };
        in_time && (self.only.is_empty() || self.only.iter().any(is)) && !self.skip.iter().any(is)
    }
}
