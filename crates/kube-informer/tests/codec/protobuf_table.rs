//! The protobuf decoding table matches the descriptors and the Go structs of the built-in kinds.
//!
//! `kube-embedded` has both: `data/messages.txt` (numbers and types of the messages' fields) and
//! `data/types.txt` (JSON names and presence of the structs' fields). After a change of either,
//! `WRITE_TABLE=1 cargo test -p kube-informer --test protobuf_table` regenerates the table.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::go_types::{Field, Struct, data, structs};

struct Message {
    name: String,
    /// Number, name, list or map flag, type.
    fields: Vec<(u32, String, char, Of)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Of {
    Letter(char),
    Message(usize),
}

fn table() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/messages.txt")
}

fn messages() -> Vec<Message> {
    data("messages.txt")
        .lines()
        .map(|line| {
            let mut parts = line.split('\t');
            let name = parts.next().unwrap().to_owned();
            let fields = parts
                .map(|part| {
                    let [number, name, of] = part.splitn(3, ':').collect::<Vec<_>>().try_into().unwrap();
                    let (mark, of) = match of.as_bytes()[0] {
                        mark @ (b'*' | b'{') => (char::from(mark), &of[1..]),
                        _ => (' ', of),
                    };
                    let of = match of.parse() {
                        Ok(message) => Of::Message(message),
                        Err(_) => Of::Letter(of.chars().next().unwrap()),
                    };
                    (number.parse().unwrap(), name.to_owned(), mark, of)
                })
                .collect();
            Message { name, fields }
        })
        .collect()
}

struct Merge {
    messages: Vec<Message>,
    structs: Vec<Struct>,
    lines: Vec<String>,
    made: HashMap<(usize, usize), usize>,
}

impl Merge {
    /// The line of a message whose fields have the JSON names of a struct.
    fn line(&mut self, message: usize, of: usize) -> usize {
        if let Some(line) = self.made.get(&(message, of)) {
            return *line;
        }
        let at = self.lines.len();
        self.made.insert((message, of), at);
        self.lines.push(String::new());
        let name = self.messages[message].name.clone();
        let mut text = name.rsplit('.').next().unwrap().to_owned();
        let mut fields = self.messages[message].fields.clone();
        fields.sort_by_key(|field| field.0);
        for (number, field, mark, what) in fields {
            let within = &self.structs[of].fields;
            let Some(known) = named(within, &field).cloned() else {
                let Of::Message(inner) = what else { panic!("{name}.{field} has no name in JSON") };
                assert_eq!(mark, ' ', "{name}.{field}");
                let line = self.line(inner, of);
                write!(text, "\t{number}:^{line}").unwrap();
                continue;
            };
            let Field { name: json, presence, repeats, letter, of: inner } = known;
            let (mark, letter) = match (mark, repeats.as_str()) {
                (' ', "") => ("", letter),
                ('*', "[") => ("[", letter),
                ('{', "{") => ("{", letter),
                // Lists in a map are separate messages.
                ('{', "{[") if letter == 's' => ("{", 'e'),
                ('*' | ' ', _) if letter == 'y' && repeats.is_empty() => ("", 'y'),
                other => panic!("{name}.{field}: {other:?}"),
            };
            let letter = match (letter, what) {
                ('#' | 'o' | 'p' | 'a', Of::Message(message)) => {
                    let schema = match letter {
                        '#' => message,
                        _ => self.schema(message),
                    };
                    let line = self.line(schema, inner);
                    format!("{letter}{line}")
                }
                ('i' | 'l', Of::Letter('i')) => "i".to_owned(),
                ('s' | 'b' | 'f' | 'y', Of::Letter(same)) if same == letter => letter.to_string(),
                ('t' | 'u' | 'd' | 'q' | 'x' | 'r' | 'e', Of::Message(_)) => letter.to_string(),
                _ => panic!("{name}.{field} is {letter} in JSON and something else in protobuf"),
            };
            write!(text, "\t{number}:{json}{presence}{mark}{letter}").unwrap();
        }
        self.lines[at] = text;
        at
    }

    /// The schema within a message that may hold an alternative to it.
    fn schema(&self, message: usize) -> usize {
        let inner = self.messages[message].fields.iter().find_map(|field| match field.3 {
            Of::Message(inner) => Some(inner),
            Of::Letter(_) => None,
        });
        inner.unwrap()
    }
}

/// The field of this name, or a similar one: `ref` is `$ref`, `xKubernetesMapType` is
/// `x-kubernetes-map-type`.
fn named<'a>(fields: &'a [Field], name: &str) -> Option<&'a Field> {
    let kebab = name.chars().fold(String::new(), |mut kebab, letter| {
        if letter.is_ascii_uppercase() {
            kebab.push('-');
        }
        kebab.push(letter.to_ascii_lowercase());
        kebab
    });
    let find = |wanted: &dyn Fn(&str) -> bool| fields.iter().find(|field| wanted(&field.name));
    find(&|field| field == name)
        .or_else(|| find(&|field| field.eq_ignore_ascii_case(name)))
        .or_else(|| find(&|field| field.strip_prefix('$') == Some(name) || field == kebab))
}

fn package(group: &str) -> String {
    match group {
        "" => "k8s.io.api.core".to_owned(),
        "apiextensions.k8s.io" => "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions".to_owned(),
        "apiregistration.k8s.io" => "k8s.io.kube_aggregator.pkg.apis.apiregistration".to_owned(),
        group => format!("k8s.io.api.{}", group.split('.').next().unwrap()),
    }
}

fn merged() -> String {
    let (messages, (structs, kinds)) = (messages(), structs());
    let numbers: HashMap<String, usize> =
        messages.iter().enumerate().map(|(at, message)| (message.name.clone(), at)).collect();
    let mut merge = Merge { messages, structs, lines: Vec::new(), made: HashMap::new() };
    let metadata = merge.line(numbers["k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta"], 0);
    let mut heads = Vec::new();
    for line in data("kinds.txt").lines() {
        let [group, version, kind] = line.split('\t').take(3).collect::<Vec<_>>().try_into().unwrap();
        let of = kinds[&format!("{group}/{version}/{kind}")];
        let message = numbers[&format!("{}.{version}.{kind}", package(group))];
        let line = merge.line(message, of);
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        heads.push(format!("@{api_version}\t{kind}\t{line}"));
    }
    let partial = merge.lines.len();
    merge.lines.push(format!("PartialObjectMetadata\t1:metadata!#{metadata}"));
    heads.push(format!("@meta.k8s.io/v1\tPartialObjectMetadata\t{partial}"));
    heads.sort();
    let mut text = heads.join("\n");
    for line in merge.lines {
        text.push('\n');
        text.push_str(&line);
    }
    text.push('\n');
    text
}

#[test]
fn the_table_is_what_the_descriptors_and_the_go_structs_give() {
    let merged = merged();
    if std::env::var_os("WRITE_TABLE").is_some() {
        std::fs::write(table(), &merged).unwrap();
    }
    let held = std::fs::read_to_string(table()).unwrap();
    assert!(held == merged, "data/messages.txt is out of date: the head of this file says how to write it");
}
