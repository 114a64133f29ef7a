//! The Go structs of the built-in kinds, from `kube-embedded/data/types.txt`.

#![allow(dead_code, reason = "every test file takes what it needs")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::HashMap;
use std::path::Path;

pub(crate) struct Struct {
    pub(crate) fields: Vec<Field>,
}

#[derive(Clone)]
pub(crate) struct Field {
    /// Name in JSON.
    pub(crate) name: String,
    /// Presence flag: when the field is written.
    pub(crate) presence: char,
    /// `[` for each list and `{` for each map around the type.
    pub(crate) repeats: String,
    /// Type code.
    pub(crate) letter: char,
    /// Index of its struct, or `usize::MAX`.
    pub(crate) of: usize,
}

pub(crate) fn data(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kube-embedded/data").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the structs, and the struct index of each kind (`group/version/Kind`).
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
