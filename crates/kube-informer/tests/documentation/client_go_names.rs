//! The table of client-go's names is complete, and searching the docs for one finds our equivalent.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const PAGE: &str = include_str!("../../docs/client-go.md");
const NAMES: &str = include_str!("../../docs/client-go-names.txt");

/// Start of the heading under which a package's names are listed.
fn heading(package: &str) -> &'static str {
    match package {
        "cache" | "synctrack" | "testing" => "`tools/cache`",
        "informers" | "dynamicinformer" | "metadatainformer" => "`informers`",
        "workqueue" => "`util/workqueue`",
        "watch" => "`tools/watch`",
        "pager" => "`tools/pager`",
        other => panic!("{other} has no place on the page"),
    }
}

/// A heading and a name below it.
type RowKey = (&'static str, String);

/// The row of each name on the page.
fn rows() -> BTreeMap<RowKey, &'static str> {
    let mut rows = BTreeMap::new();
    for section in PAGE.split("\n## ").skip(1) {
        let heading = section.split(['\n', ':', ',']).next().unwrap();
        for line in section.lines() {
            let Some((names, ours)) = line.strip_prefix("| ").and_then(|line| line.split_once(" | ")) else { continue };
            for name in names.split('`').skip(1).step_by(2) {
                rows.insert((heading, name.to_owned()), ours);
            }
        }
    }
    rows
}

/// Finds the row of a name: its own, that of all members of its type, or that of its type if the
/// type has no equivalent.
fn find_row(rows: &BTreeMap<RowKey, &'static str>, package: &str, name: &str) -> Option<RowKey> {
    let find = |name: &str| {
        let places = [name.to_owned(), format!("{package}.{name}")].map(|name| (heading(package), name));
        places.into_iter().find(|place| rows.contains_key(place))
    };
    let own = find(name);
    let Some((owner, _)) = name.split_once('.') else { return own };
    own.or_else(|| find(&format!("{owner}.*"))).or_else(|| find(owner).filter(|place| rows[place].starts_with("none")))
}

#[test]
fn every_public_name_is_on_the_page_and_no_other() {
    let rows = rows();
    let mut used = BTreeSet::new();
    let mut missing = Vec::new();
    for line in NAMES.lines() {
        let (package, name) = line.split_once(' ').unwrap();
        match find_row(&rows, package, name) {
            Some(place) => drop(used.insert(place)),
            None => missing.push(line),
        }
    }
    assert!(missing.is_empty(), "not on the page: {missing:#?}");
    let invented: Vec<_> = rows.keys().filter(|place| place.0.starts_with('`') && !used.contains(*place)).collect();
    assert!(invented.is_empty(), "client-go has none of these: {invented:#?}");
}

#[test]
fn searching_for_a_name_finds_ours() {
    let found = searchable();
    let mut lost = Vec::new();
    for ((heading, name), ours) in rows() {
        let last = name.rsplit('.').next().unwrap();
        if heading.starts_with('`') && last != "*" && !ours.starts_with("none") && !found.contains(&plain(last)) {
            lost.push(format!("{name}: {ours}"));
        }
    }
    assert!(lost.is_empty(), "no alias: {lost:#?}");
}

/// Names that a search in the documentation finds: public items and aliases. All items that are
/// `pub` are documented: the lint `unreachable_pub` warns of others.
fn searchable() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            let aliases = source.split("doc(alias").skip(1).flat_map(|rest| {
                let end = rest.find(")]").unwrap();
                rest[..end].split('"').skip(1).step_by(2)
            });
            let items = source.split_whitespace().collect::<Vec<_>>();
            let items = items.windows(3).filter(|words| words[0] == "pub" && is_item(words[1])).map(|words| words[2]);
            let items = items.map(|name| name.split(['(', '<', '{', ';', ':']).next().unwrap());
            found.extend(aliases.chain(items).map(plain));
        }
    }
    found
}

fn is_item(word: &str) -> bool {
    ["fn", "struct", "enum", "trait", "type"].contains(&word)
}

/// Rustdoc's search ignores case and underscores.
fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}
