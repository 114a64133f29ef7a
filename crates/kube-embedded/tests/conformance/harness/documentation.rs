//! The pages that list the cases: a table in the README, and every fact in `CONFORMANCE.md`.
//!
//! `just conformance-pages` writes them.

use super::Case;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The line before the table in the README; an empty line follows the table.
const MARK: &str = "<!-- made by `just conformance-pages` -->\n";

/// The pages with their paths, as they should be and as they are.
pub(super) fn pages(cases: &[Case]) -> Vec<(PathBuf, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let areas = areas(cases);
    let readme = folder.join("README.md");
    let is = fs::read_to_string(&readme).unwrap_or_default();
    let wanted = with_table(&is, &table(&areas));
    let facts = folder.join("CONFORMANCE.md");
    let listed = fs::read_to_string(&facts).unwrap_or_default();
    vec![(readme, wanted, is), (facts, list(&areas), listed)]
}

/// The cases of a module, and what it says about itself.
struct Area {
    title: String,
    facts: Vec<&'static str>,
}

fn areas(cases: &[Case]) -> BTreeMap<&'static str, Area> {
    let mut areas: BTreeMap<&str, Area> = BTreeMap::new();
    for case in cases {
        let module = case.short_name().split("::").next().unwrap_or_default();
        let area = areas.entry(module).or_insert_with(|| Area { title: title(module), facts: Vec::new() });
        area.facts.push(case.fact);
    }
    areas
}

/// The first sentence of a module.
fn title(module: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(format!("{module}.rs"));
    let text = fs::read_to_string(&path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//! ")).collect();
    let text = lines.join(" ");
    text.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned()
}

fn table(areas: &BTreeMap<&str, Area>) -> String {
    let mut out = "| area | cases | about |\n|---|---|---|\n".to_owned();
    for (module, area) in areas {
        let link = format!("[{module}](CONFORMANCE.md#{module})");
        writeln!(out, "| {link} | {} | {} |", area.facts.len(), area.title).expect("a string takes every line");
    }
    let total: usize = areas.values().map(|area| area.facts.len()).sum();
    writeln!(out, "| all | {total} | |").expect("a string takes every line");
    out
}

fn list(areas: &BTreeMap<&str, Area>) -> String {
    let mut out = "# Conformance\n\nWhat kube-embedded serves as kube-apiserver 1.37 does: the facts that \
                   `tests/conformance` checks on both servers.\n"
        .to_owned();
    for (module, area) in areas {
        write!(out, "\n## {module}\n\n{}.\n\n", area.title).expect("a string takes every line");
        for fact in &area.facts {
            // What looks like a tag is text.
            out.push_str(&wrapped(&fact.replace('<', "\\<")));
        }
    }
    out
}

/// An item of a list, in lines of at most 110 characters.
fn wrapped(item: &str) -> String {
    let (mut out, mut line) = (String::new(), "-".to_owned());
    for word in item.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > 110 {
            out += &line;
            out.push('\n');
            line = " ".to_owned();
        }
        line.push(' ');
        line += word;
    }
    out + &line + "\n"
}

/// The page with another table. Without its mark the page stays as it is.
fn with_table(page: &str, table: &str) -> String {
    let Some((before, after)) = page.split_once(MARK) else { return page.to_owned() };
    let rest = after.trim_start_matches('\n').split_once("\n\n").map_or("", |(_, rest)| rest);
    format!("{before}{MARK}\n{table}\n{rest}")
}
