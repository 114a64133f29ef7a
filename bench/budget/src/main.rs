//! Regression guard without a clock: compares the instructions executed by fixed workloads, and the
//! bytes they leave allocated, with the budgets in `budgets.txt`.
//!
//! `budget check` fails if a workload exceeds its budget, and also if a budget is more than 5%
//! above the measured value, so that it stays tight. `budget write` sets every budget 2.5% above
//! the measured value. Instructions are counted by valgrind (callgrind), only within
//! `measured_region`; they depend on the compiler, so `budgets.txt` names the compiler version, and
//! with another one they are printed but not checked.

use std::alloc::System;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

mod work;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum ratio of a budget to the measured value.
const SLACK: f64 = 1.05;
/// Ratio of a new budget to the measured value.
const ROOM: f64 = 1.025;
/// Memory is not checked for workloads that leave fewer bytes than this allocated.
const FEW_BYTES: u64 = 256 << 10;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["check"] => check(),
        ["write"] => write(),
        ["run", name] => run(name).map(|bytes| println!("{bytes}")),
        _ => Err("check, write, or run WORK?".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("budget: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one workload. Returns the bytes it leaves allocated.
fn run(name: &str) -> Result<usize, Box<dyn Error>> {
    let work = work::ALL.iter().find(|(known, _)| *known == name).ok_or("no such work")?.1;
    let mut work = work();
    let region = Region::new(ALLOCATOR);
    let held = measured_region(&mut *work);
    let change = region.change();
    drop(held);
    Ok(change.bytes_allocated.saturating_sub(change.bytes_deallocated))
}

/// The only code that is counted: callgrind identifies it by its name.
#[inline(never)]
fn measured_region(work: &mut dyn FnMut() -> work::Held) -> work::Held {
    work()
}

struct Used {
    name: &'static str,
    instructions: u64,
    bytes: u64,
}

fn check() -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(budgets())?;
    let (compiler, budgets) = parse(&text)?;
    let here = rustc()?;
    let judged = here == compiler;
    if !judged {
        println!("budgets of instructions are for {compiler}; this is {here}: they are not judged");
    }
    println!("{:<28}{:>16}{:>16}{:>14}{:>14}", "", "instructions", "budget", "bytes held", "budget");
    let mut wrong = Vec::new();
    for Used { name, instructions, bytes } in measure()? {
        let (_, may_instructions, may_bytes) =
            *budgets.iter().find(|(known, ..)| *known == name).ok_or_else(|| format!("no budget for {name}"))?;
        println!("{name:<28}{instructions:>16}{may_instructions:>16}{bytes:>14}{may_bytes:>14}");
        for (what, used, budget, judged) in
            [("instructions", instructions, may_instructions, judged), ("bytes", bytes, may_bytes, bytes > FEW_BYTES)]
        {
            if judged && used > budget {
                wrong.push(format!("{name} takes {used} {what}, its budget is {budget}"));
            } else if judged && budget as f64 > used as f64 * SLACK {
                wrong.push(format!("{name} takes only {used} {what}: its budget of {budget} wants lowering"));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(format!("{}\nif it is meant to be so: just budget write", wrong.join("\n")).into())
}

fn write() -> Result<(), Box<dyn Error>> {
    let mut text = format!("# What fixed work may take, written by `just budget write`.\nfor {}\n", rustc()?);
    let room = |used: u64| (used as f64 * ROOM) as u64;
    for Used { name, instructions, bytes } in measure()? {
        writeln!(text, "{name:<28}{:>16}{:>16}", room(instructions), room(bytes))?;
    }
    print!("{text}");
    Ok(fs::write(budgets(), text)?)
}

/// Runs every workload twice: under callgrind, and natively.
fn measure() -> Result<Vec<Used>, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let counting: Vec<_> = work::ALL
        .iter()
        .map(|(name, _)| {
            let own = own.clone();
            (*name, std::thread::spawn(move || callgrind(&own, name)))
        })
        .collect();
    let mut all = Vec::new();
    for (name, counting) in counting {
        let instructions = counting.join().map_err(|_| "a count was cut short")?;
        let output = Command::new(&own).args(["run", name]).output()?;
        let bytes = String::from_utf8(output.stdout)?.trim().parse()?;
        all.push(Used { name, instructions: instructions?, bytes });
    }
    Ok(all)
}

fn callgrind(own: &Path, name: &str) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--collect-atstart=no", "--toggle-collect=*measured_region*"])
        .args(["--callgrind-out-file=/dev/null"])
        .arg(own)
        .args(["run", name])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    let count = collected.and_then(|(_, count)| count.trim().parse().ok()).filter(|count| *count > 0);
    count.ok_or_else(|| format!("valgrind counted nothing for {name}:\n{said}"))
}

type Budget<'t> = (&'t str, u64, u64);

fn parse(text: &str) -> Result<(&str, Vec<Budget<'_>>), Box<dyn Error>> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let compiler = lines.next().and_then(|line| line.strip_prefix("for ")).ok_or("the budgets name no compiler")?;
    let budget = |line: &'_ str| {
        let line = line.trim_end();
        let (rest, bytes) = line.rsplit_once(' ')?;
        let (name, instructions) = rest.trim_end().rsplit_once(' ')?;
        Some((name.trim_end().len(), instructions.parse().ok()?, bytes.parse().ok()?))
    };
    let budgets = lines.map(|line| {
        let (name, instructions, bytes) = budget(line).ok_or_else(|| format!("no budget: {line}"))?;
        Ok((&line[..name], instructions, bytes))
    });
    Ok((compiler, budgets.collect::<Result<_, Box<dyn Error>>>()?))
}

fn budgets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("budgets.txt")
}

fn rustc() -> Result<String, Box<dyn Error>> {
    let output = Command::new("rustc").arg("--version").output()?;
    let host = std::env::consts::ARCH;
    Ok(format!("{} on {host}", String::from_utf8(output.stdout)?.trim()))
}
