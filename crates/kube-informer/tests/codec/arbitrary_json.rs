//! Generators of arbitrary JSON text (escapes, white space, numbers and names that no server
//! writes), and ways to split and to corrupt it.

#![allow(dead_code, reason = "each test uses its part")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;

/// A value and one of its spellings.
#[derive(Debug, Clone)]
pub(crate) struct JsonText {
    pub(crate) text: String,
    pub(crate) value: Value,
}

impl JsonText {
    fn of(text: String) -> Self {
        let value = serde_json::from_str(&text).expect("the generator writes JSON");
        Self { text, value }
    }
}

/// White space between tokens.
fn blank() -> impl Strategy<Value = String> {
    prop_oneof![6 => Just(String::new()), 1 => "[ \t\r\n]{1,3}"]
}

/// The same without newlines, for watch frames.
pub(crate) fn blank_in_line() -> impl Strategy<Value = String> {
    prop_oneof![6 => Just(String::new()), 1 => "[ \t\r]{1,3}"]
}

/// A quoted string with all sorts of escapes.
pub(crate) fn quoted() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-z]{1,4}",
        2 => r#"[{}\[\]:, ]{1,3}"#,
        2 => Just(r#"\""#.to_owned()),
        2 => Just(r"\\".to_owned()),
        1 => Just(r"\/".to_owned()),
        1 => Just(r"\n\t\r\b\f".to_owned()),
        1 => Just(r"\u00e9".to_owned()),
        1 => Just(r"\ud83d\ude00".to_owned()),
        1 => Just("é日😀".to_owned()),
        1 => Just("x".repeat(70)),
        1 => Just(r"\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\".to_owned()),
    ];
    prop::collection::vec(piece, 0..5).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        Just("-0.5e-3".to_owned()),
        Just("1E+2".to_owned()),
        quoted(),
    ]
}

/// Field names of generated objects: some plain, some with escapes, without duplicates.
const NAMES: [&str; 10] = [
    r#""a""#,
    r#""b""#,
    r#""c""#,
    r#""metadata""#,
    r#""name""#,
    r#""k\"}""#,
    r#""sp\u0065c""#,
    r#""""#,
    r#""x.y""#,
    r#""items""#,
];

fn text() -> impl Strategy<Value = String> {
    scalar().prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            (prop::collection::vec((inner.clone(), blank(), blank()), 0..6)).prop_map(|elements| {
                let elements: Vec<String> = elements.into_iter().map(|(e, a, b)| format!("{a}{e}{b}")).collect();
                format!("[{}]", elements.join(","))
            }),
            members(inner),
            // Nested deeply, but within serde_json's recursion limit.
            (1..40_usize).prop_map(|depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth))),
        ]
    })
}

fn members(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let names = prop::sample::subsequence(NAMES.to_vec(), 0..=6).prop_shuffle();
    (names, prop::collection::vec((value, blank(), blank(), blank()), 6)).prop_map(|(names, values)| {
        let members: Vec<String> = names
            .into_iter()
            .zip(values)
            .map(|(name, (value, a, b, c))| format!("{a}{name}{b}:{c}{value}{a}"))
            .collect();
        format!("{{{}}}", members.join(","))
    })
}

/// Any value.
pub(crate) fn any_json() -> impl Strategy<Value = JsonText> {
    text().prop_map(JsonText::of)
}

/// Any object.
pub(crate) fn any_object() -> impl Strategy<Value = JsonText> {
    members(text()).prop_map(JsonText::of)
}

/// A Kubernetes object, with metadata in any spelling.
pub(crate) fn any_resource() -> impl Strategy<Value = JsonText> {
    let types = prop_oneof![
        2 => Just(vec![]),
        2 => Just(vec![r#""kind":"Thing""#.to_owned(), r#""apiVersion":"g/v1""#.to_owned()]),
    ];
    let labels = prop::collection::btree_map("[a-z./]{1,12}", quoted(), 0..4).prop_map(|labels| {
        let labels: Vec<String> = labels.into_iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
        format!(r#""labels":{{{}}}"#, labels.join(","))
    });
    let owners = prop::collection::vec(("[a-z]{1,5}", any::<bool>()), 0..3).prop_map(|owners| {
        let owners: Vec<String> = owners
            .into_iter()
            .map(|(name, controls)| {
                format!(r#"{{"uid":"u-{name}","controller":{controls},"name":"{name}","apiVersion":"apps/v1","kind":"ReplicaSet"}}"#)
            })
            .collect();
        format!(r#""ownerReferences":[{}]"#, owners.join(","))
    });
    let metadata = (quoted(), prop::option::of(quoted()), any::<u32>(), labels, owners, any_json(), any::<bool>())
        .prop_map(|(name, namespace, version, labels, owners, other, deleted)| {
            let mut fields = vec![
                format!(r#""name":{name}"#),
                format!(r#""resourceVersion":"{version}""#),
                format!(r#""generation":{version}"#),
                r#""uid":"0b2f3c4d-5e6f-7081-92a3-b4c5d6e7f809""#.to_owned(),
                labels,
                owners,
                format!(r#""managedFields":{}"#, other.text),
            ];
            fields.extend(namespace.map(|namespace| format!(r#""namespace":{namespace}"#)));
            fields.extend(deleted.then(|| r#""deletionTimestamp":"2026-01-02T03:04:05Z""#.to_owned()));
            fields
        })
        .prop_flat_map(|fields| Just(fields).prop_shuffle())
        .prop_map(|fields| format!(r#""metadata":{{{}}}"#, fields.join(",")));
    (types, metadata, any_json(), any_json(), any::<bool>())
        .prop_flat_map(|(mut fields, metadata, spec, status, shuffled)| {
            fields.push(metadata);
            fields.push(format!(r#""spec": {}"#, spec.text));
            fields.push(format!(r#""status":{}"#, status.text));
            if shuffled { Just(fields).prop_shuffle().boxed() } else { Just(fields).boxed() }
        })
        .prop_map(|fields| JsonText::of(format!("{{{}}}", fields.join(" , "))))
}

/// The bytes in two chunks, split at every position, and then byte by byte.
pub(crate) fn cut_everywhere(bytes: &[u8]) -> impl Iterator<Item = Vec<Bytes>> {
    let in_two = (0..=bytes.len()).map(|at| {
        let (a, b) = bytes.split_at(at);
        vec![Bytes::copy_from_slice(a), Bytes::copy_from_slice(b)]
    });
    let singly = bytes.chunks(1).map(Bytes::copy_from_slice).collect();
    in_two.chain([singly])
}

/// A corruption: truncation, or one byte replaced.
#[derive(Debug, Clone)]
pub(crate) enum Corruption {
    Truncate(prop::sample::Index),
    Replace(prop::sample::Index, u8),
}

pub(crate) fn corrupt() -> impl Strategy<Value = Corruption> {
    let byte = prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\",:\\ 0n".to_vec())];
    prop_oneof![
        any::<prop::sample::Index>().prop_map(Corruption::Truncate),
        (any::<prop::sample::Index>(), byte).prop_map(|(at, byte)| Corruption::Replace(at, byte)),
    ]
}

impl Corruption {
    pub(crate) fn apply(&self, text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        match self {
            Self::Truncate(at) => bytes.truncate(at.index(bytes.len() + 1)),
            Self::Replace(at, byte) => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
        }
        bytes
    }
}

/// A fixed seed makes failures reproducible.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x5eed),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}
