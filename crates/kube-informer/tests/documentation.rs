//! Every public type has an example that runs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_public_type_has_an_example() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    find(&source, &mut files);
    let mut examples: BTreeMap<String, bool> = BTreeMap::new();
    for file in &files {
        for (name, has_example) in types(&fs::read_to_string(file).unwrap()) {
            *examples.entry(name).or_default() |= has_example;
        }
    }
    let mut public: BTreeSet<String> = exported(&fs::read_to_string(source.join("lib.rs")).unwrap());
    let reflector = fs::read_to_string(source.join("reflector.rs")).unwrap();
    public.extend(exported(&reflector).into_iter().chain(types(&reflector).into_iter().map(|(name, _)| name)));
    assert!(public.len() > 70, "{public:?}");
    let without: Vec<_> = public.iter().filter(|name| examples.get(*name) == Some(&false)).collect();
    assert!(without.is_empty(), "no example: {without:?}");
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
            // Attributes, also on several lines, stand between the documentation and its type.
            continue;
        }
        has_example = false;
    }
    found
}
