//! Runs everything, and writes a table, a plot and the raw figures: `just bench [--quick] [--only pods,queue] [--reps N] [--count N] [--out FOLDER]`.
//!
//! Repetitions are interleaved: every client does its work once before any does it a second time.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use self::launch::Workshop;
use self::machine::Machine;
use self::plan::{Options, Plan};
use self::summary::{Run, Summary};

mod launch;
mod machine;
mod plan;
mod plot;
mod summary;
mod table;

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
    let machine = Machine::look(&root);
    let mut runs = Vec::new();
    for rep in 0..plan.reps() {
        for job in plan.jobs.iter().filter(|job| rep < job.reps) {
            eprint!("{}/{} {:<16} {:<22}", rep + 1, job.reps, job.group, job.name());
            match workshop.run(job) {
                Ok((figures, seconds)) => {
                    eprintln!("{seconds:6.1} s");
                    runs.push(Run { group: job.group.to_owned(), name: job.name(), rep, figures });
                }
                Err(error) => eprintln!(" FAILED: {error}"),
            }
        }
    }
    let summary = Summary::of(&runs);
    fs::create_dir_all(&options.out)?;
    let raw = serde_json::json!({ "machine": machine, "options": options.words, "runs": runs });
    fs::write(options.out.join("raw.json"), serde_json::to_vec_pretty(&raw)?)?;
    let table = table::write(&summary, &machine, &options);
    fs::write(options.out.join("README.md"), &table)?;
    fs::write(options.out.join("plot.svg"), plot::draw(&summary))?;
    println!("{table}");
    let missing = plan.jobs.iter().any(|job| !runs.iter().any(|run| run.group == job.group && run.name == job.name()));
    if missing { Err("some clients did not finish their work".into()) } else { Ok(()) }
}
