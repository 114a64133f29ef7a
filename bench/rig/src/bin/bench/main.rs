//! Runs all benchmarks, and writes a table, a plot and the raw figures: `just bench [--quick]
//! [--only pods,queue] [--reps N] [--count N] [--out FOLDER]`. With `growth` as the first argument
//! it measures increasing numbers of objects and handlers instead: `just growth`.
//!
//! Repetitions are interleaved: every client runs once before any client runs a second time.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use self::launch::Workshop;
use self::plan::{Job, Options, Plan, Question, Who};
use self::summary::{Run, Summary};
use rig::machine::Machine;
use rig::prose;

mod goals;
mod growth;
mod launch;
mod many;
mod plan;
mod plot;
mod pretended;
mod summary;
mod table;
mod websites;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Box<dyn std::error::Error>> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let options = Options::parse(&root)?;
    let plan = Plan::new(&options);
    let workshop = Workshop::open(&root, &plan)?;
    let machine = Machine::detect(&root);
    let mut runs = Vec::new();
    for rep in 0..plan.reps() {
        for job in plan.jobs.iter().filter(|job| rep < job.reps) {
            eprint!("{}/{} {:<16} {:<22}", rep + 1, job.reps, job.group, job.name());
            match workshop.run(job) {
                Ok((found, seconds)) => {
                    eprintln!("{seconds:6.1} s");
                    let run = |(name, figures)| Run { group: job.group.clone(), name, rep, figures };
                    runs.extend(found.into_iter().map(run));
                }
                Err(error) => eprintln!(" FAILED: {error}"),
            }
        }
    }
    runs.extend(summary::one_more_handler(&runs));
    let summary = Summary::of(&runs);
    let (raw_name, page_name, plot_name, page, plot) = match options.question {
        Question::SideBySide => {
            ("raw.json", "README.md", "plot.svg", table::write(&summary, &machine, &options), plot::draw(&summary))
        }
        Question::Growth => {
            let growth = growth::Growth::of(&summary, &options);
            ("growth.json", "growth.md", "growth.svg", growth.page(&machine, &options), growth.draw())
        }
    };
    fs::create_dir_all(&options.out)?;
    let raw = serde_json::json!({ "machine": machine, "options": options.words, "runs": runs });
    fs::write(options.out.join(raw_name), serde_json::to_vec_pretty(&raw)?)?;
    let page = prose::wrap(&page);
    fs::write(options.out.join(page_name), &page)?;
    fs::write(options.out.join(plot_name), plot)?;
    println!("{page}");
    let is_done = |job: &Job| {
        let of_job = |run: &Run| run.name == job.name() || job.who == Who::Everybody;
        runs.iter().any(|run| run.group == job.group && of_job(run))
    };
    let missing = !plan.jobs.iter().all(is_done);
    if missing { Err("some clients did not finish their work".into()) } else { Ok(()) }
}
