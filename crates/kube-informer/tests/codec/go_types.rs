//! What is known about the Go structs of the built-in kinds.

#![allow(dead_code, reason = "every test file takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::HashMap;
use std::path::Path;

pub(crate) struct Struct {
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone)]
pub(crate) struct Field {
    /// In JSON.
    pub(crate) name: String,
    /// When it is there.
    pub(crate) presence: char,
    /// Marks of lists and maps.
    pub(crate) repeats: String,
    /// Its type.
    pub(crate) letter: char,
    /// The struct it is, if it is one.
    pub(crate) of: usize,
}

pub(crate) fn data(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kube-embedded/data").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The structs, and which of them the kinds are: `group/version/Kind`.
pub(crate) fn structs() -> (Vec<Struct>, HashMap<String, usize>) {
    let (mut structs, mut kinds) = (Vec::new(), HashMap::new());
    for line in data("types.txt").lines() {
        if let Some(kind) = line.strip_prefix('@') {
            let (name, number) = kind.split_once('\t').unwrap();
            kinds.insert(name.to_owned(), number.parse().unwrap());
            continue;
        }
        let fields = line.split('\t').skip(1).map(|text| {
            let mark = text.find(['!', '?', '*', '+']).unwrap();
            let shape = text[mark + 1..].split('~').next().unwrap();
            let leaf = shape.trim_start_matches(['[', '{']);
            Field {
                name: text[..mark].to_owned(),
                presence: text[mark..].chars().next().unwrap(),
                repeats: shape[..shape.len() - leaf.len()].to_owned(),
                letter: leaf.chars().next().unwrap(),
                of: leaf[1..].parse().unwrap_or(usize::MAX),
            }
        });
        structs.push(Struct { fields: fields.collect() });
    }
    (structs, kinds)
}
