//! Checks the documentation: types have examples, every guarantee has a test and a row that says
//! what ensures it, and the tests that the pages name exist.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_public_type_has_an_example() {
    let source = Source::read();
    assert!(source.public.len() > 70, "{:?}", source.public);
    let mut examples: BTreeMap<String, bool> = BTreeMap::new();
    for (name, has_example) in source.files.iter().flat_map(|text| types(text)) {
        *examples.entry(name).or_default() |= has_example;
    }
    let without: Vec<_> = source.public.iter().filter(|name| examples.get(*name) == Some(&false)).collect();
    assert!(without.is_empty(), "no example: {without:?}");
}

#[test]
fn every_guarantee_has_a_test_of_its_name() {
    let text = fs::read_to_string(crate_folder().join("src/lib.rs")).unwrap();
    let tests = fs::read_to_string(crate_folder().join("tests/informer/guarantees.rs")).unwrap();
    let promised: Vec<String> = text.lines().filter_map(guarantee).collect();
    assert!(promised.len() >= 17, "{promised:?}");
    let without: Vec<_> = promised.iter().filter(|name| !tests.contains(&format!("fn {name}()"))).collect();
    assert!(without.is_empty(), "no test: {without:?}");
}

#[test]
fn every_guarantee_has_a_row_that_says_what_ensures_it() {
    let text = fs::read_to_string(crate_folder().join("src/lib.rs")).unwrap();
    let guarantees = text.lines().filter_map(guarantee).count();
    let rows: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("//! | ")).collect();
    for number in 1..=guarantees {
        let row = rows.iter().find(|row| row.starts_with(&format!("{number} | ")));
        assert!(row.is_some_and(|row| row.contains("| `")), "guarantee {number}: {row:?}");
    }
}

/// The test name of a numbered guarantee, from the text between asterisks.
fn guarantee(line: &str) -> Option<String> {
    let (number, rest) = line.strip_prefix("//! ")?.split_once(". *")?;
    number.parse::<u32>().ok()?;
    let (promise, _) = rest.split_once('*')?;
    let words = promise.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    Some(words.map(str::to_lowercase).collect::<Vec<_>>().join("_"))
}

#[test]
fn every_test_that_the_tables_name_is_there() {
    let mut files = Vec::new();
    find(&crate_folder(), &mut files);
    let code: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let pages = ["tests/README.md", "docs/hostile-server.md", "src/lib.rs"];
    let text = pages.map(|page| fs::read_to_string(crate_folder().join(page)).unwrap()).concat();
    let words = text.split('`').skip(1).step_by(2);
    // Test names are sentences of at least four words.
    let is_sentence = |word: &&str| {
        word.matches('_').count() >= 3 && word.chars().all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    let named: BTreeSet<&str> = words.filter(is_sentence).collect();
    assert!(named.len() > 150, "{}", named.len());
    let is_there = |name: &str| code.iter().any(|text| text.contains(&format!("fn {name}(")));
    let missing: Vec<_> = named.iter().filter(|name| !is_there(name)).collect();
    assert!(missing.is_empty(), "not there: {missing:?}");
}

#[test]
fn each_row_of_what_happens_if_names_a_test() {
    let mut files = Vec::new();
    find(&crate_folder().join("src"), &mut files);
    find(&crate_folder().join("tests"), &mut files);
    let code: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let text = fs::read_to_string(crate_folder().join("docs/what-happens-if.md")).unwrap();
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| if |");
    let rows: Vec<&str> = text.lines().filter(is_row).collect();
    assert!(rows.len() >= 39, "{}", rows.len());
    let is_tested = |row: &&str| {
        let last = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        let test = last.strip_prefix('`').and_then(|test| test.strip_suffix('`'));
        test.is_some_and(|test| code.iter().any(|text| text.contains(&format!("fn {test}("))))
    };
    let without: Vec<&&str> = rows.iter().filter(|row| !is_tested(row)).collect();
    assert!(without.is_empty(), "no test: {without:#?}");
}

fn crate_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The source of the crate.
struct Source {
    files: Vec<String>,
    /// Names of exported types.
    public: BTreeSet<String>,
}

impl Source {
    fn read() -> Self {
        let folder = crate_folder().join("src");
        let mut files = Vec::new();
        find(&folder, &mut files);
        // The types at the root and those of the modules; the types of the advanced layer need no
        // example.
        let mut public: BTreeSet<String> = exported(&fs::read_to_string(folder.join("lib.rs")).unwrap());
        for room in ["client", "factory", "informer", "object", "one_shot", "pipeline", "reflector", "workqueue"] {
            let text = fs::read_to_string(folder.join(room).with_extension("rs")).unwrap();
            public.extend(exported(&text).into_iter().chain(types(&text).into_iter().map(|(name, _)| name)));
        }
        for advanced in ["DeltaFifo", "DeltaFifoBounds", "DeltaFifoFull"] {
            public.remove(advanced);
        }
        Self { files: files.iter().map(|file| fs::read_to_string(file).unwrap()).collect(), public }
    }
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The names in `pub use self::…;`.
fn exported(text: &str) -> BTreeSet<String> {
    let uses = text.split("\npub use self::").skip(1).filter_map(|rest| rest.split_once(';'));
    let names = uses.flat_map(|(names, _)| names.split(|c: char| !c.is_alphanumeric()));
    names.filter(|name| name.starts_with(char::is_uppercase)).map(str::to_owned).collect()
}

/// The public types of a file, and whether their documentation has an example.
fn types(text: &str) -> Vec<(String, bool)> {
    let (mut found, mut has_example) = (Vec::new(), false);
    for line in text.lines() {
        let item = ["pub struct ", "pub enum ", "pub trait "].iter().find_map(|item| line.strip_prefix(item));
        if let Some(rest) = item {
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            found.push((name.to_owned(), has_example));
        } else if line.starts_with("///") {
            has_example |= line.contains("```");
            continue;
        } else if !line.is_empty() && line != "}" {
            // Attributes, possibly on several lines, may follow the documentation.
            continue;
        }
        has_example = false;
    }
    found
}
