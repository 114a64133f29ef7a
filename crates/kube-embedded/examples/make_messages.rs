//! Makes `data/messages.txt`, the protobuf messages of the built-in kinds.
//!
//! ```text
//! cargo run -p kube-embedded --example make_messages -- FILE > crates/kube-embedded/data/messages.txt
//! ```
//!
//! FILE is a `FileDescriptorSet` of k8s.io/api, apimachinery, apiextensions-apiserver and kube-aggregator, made by protoc.
//!
//! One line for each message that the kinds of `data/kinds.txt` and what else goes over the wire are made of, its parts
//! separated by tabs: its full name, and for each field `number:name:type`. Types: `i` a whole number, `b` a bool, `f` a double, `s` a
//! string, `y` bytes, or the number of another message's line; in front of it `*` for a list, `{` for a map whose keys are
//! strings.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;

/// What requests and answers are made of beside the kinds.
const PASSING: [&str; 15] = [
    "k8s.io.api.apidiscovery.v2.APIGroupDiscoveryList",
    "k8s.io.api.authentication.v1.SelfSubjectReview",
    "k8s.io.api.authorization.v1.LocalSubjectAccessReview",
    "k8s.io.api.authorization.v1.SelfSubjectAccessReview",
    "k8s.io.api.authorization.v1.SelfSubjectRulesReview",
    "k8s.io.api.authorization.v1.SubjectAccessReview",
    "k8s.io.api.autoscaling.v1.Scale",
    "k8s.io.apimachinery.pkg.apis.meta.v1.APIGroup",
    "k8s.io.apimachinery.pkg.apis.meta.v1.APIGroupList",
    "k8s.io.apimachinery.pkg.apis.meta.v1.APIResourceList",
    "k8s.io.apimachinery.pkg.apis.meta.v1.APIVersions",
    "k8s.io.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "k8s.io.apimachinery.pkg.apis.meta.v1.PartialObjectMetadata",
    "k8s.io.apimachinery.pkg.apis.meta.v1.PartialObjectMetadataList",
    "k8s.io.apimachinery.pkg.apis.meta.v1.Status",
];

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the file of descriptors is missing")?;
    let set = std::fs::read(file)?;
    let mut messages = HashMap::new();
    for (_, file) in fields(&set) {
        let parts = fields(file.bytes());
        let package = parts.iter().find(|(number, _)| *number == 2).map(|(_, value)| value.text()).unwrap_or_default();
        for (_, message) in parts.iter().filter(|(number, _)| *number == 4) {
            read(&package, message.bytes(), &mut messages);
        }
    }
    let mut wanted: Vec<String> = PASSING.map(str::to_owned).to_vec();
    for line in include_str!("../data/kinds.txt").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let package = match columns[0] {
            "" => "k8s.io.api.core".to_owned(),
            "apiextensions.k8s.io" => "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions".to_owned(),
            "apiregistration.k8s.io" => "k8s.io.kube_aggregator.pkg.apis.apiregistration".to_owned(),
            group => format!("k8s.io.api.{}", group.split('.').next().unwrap_or_default()),
        };
        wanted.push(format!("{package}.{}.{}", columns[1], columns[2]));
    }
    let mut order: Vec<String> = Vec::new();
    let mut number: BTreeMap<String, usize> = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        if number.contains_key(&name) {
            continue;
        }
        number.insert(name.clone(), order.len());
        let message = messages.get(&name).ok_or_else(|| format!("no message {name}"))?;
        for field in &message.fields {
            let entry = messages.get(&field.of).filter(|of| of.is_map_entry);
            let of = entry.map_or(&field.of, |entry| &entry.fields[1].of);
            if !of.is_empty() {
                wanted.push(of.clone());
            }
        }
        order.push(name);
    }
    for name in &order {
        let mut line = name.clone();
        for field in &messages[name].fields {
            let entry = messages.get(&field.of).filter(|of| of.is_map_entry);
            let (mark, of) = match (entry, field.repeated) {
                (Some(entry), _) => ("{", &entry.fields[1]),
                (None, true) => ("*", field),
                (None, false) => ("", field),
            };
            // A map of lists has its lists in a message of their own.
            let kind = match of.kind {
                11 => number[&of.of].to_string(),
                kind => letter(kind).to_owned(),
            };
            line += &format!("\t{}:{}:{mark}{kind}", field.number, field.name);
        }
        println!("{line}");
    }
    Ok(())
}

fn letter(kind: u64) -> &'static str {
    match kind {
        1 => "f",
        3 | 5 => "i",
        8 => "b",
        9 => "s",
        12 => "y",
        other => panic!("no letter for type {other}"),
    }
}

struct Message {
    fields: Vec<Field>,
    is_map_entry: bool,
}

struct Field {
    name: String,
    number: u64,
    repeated: bool,
    kind: u64,
    of: String,
}

fn read(prefix: &str, bytes: &[u8], messages: &mut HashMap<String, Message>) {
    let parts = fields(bytes);
    let name = parts.iter().find(|(number, _)| *number == 1).map(|(_, value)| value.text()).unwrap_or_default();
    let full = format!("{prefix}.{name}");
    let mut message = Message { fields: Vec::new(), is_map_entry: false };
    for (number, value) in &parts {
        match number {
            2 => {
                let parts: HashMap<u64, Wire<'_>> = fields(value.bytes()).into_iter().collect();
                message.fields.push(Field {
                    name: parts[&1].text(),
                    number: parts[&3].number(),
                    repeated: parts.get(&4).map(Wire::number) == Some(3),
                    kind: parts[&5].number(),
                    of: parts.get(&6).map(|of| of.text().trim_start_matches('.').to_owned()).unwrap_or_default(),
                });
            }
            3 => read(&full, value.bytes(), messages),
            7 => message.is_map_entry = fields(value.bytes()).iter().any(|(number, _)| *number == 7),
            _ => {}
        }
    }
    messages.insert(full, message);
}

enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Wire<'a> {
    fn number(&self) -> u64 {
        if let Self::Number(number) = self { *number } else { 0 }
    }

    fn bytes(&self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { &[] }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Wire<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let wire = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (content, rest) = bytes.split_at(length);
                bytes = rest;
                Wire::Bytes(content)
            }
            other => panic!("descriptors have no wire type {other}"),
        };
        all.push((tag >> 3, wire));
    }
    all
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return value;
        }
    }
}
