mod filled;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use self::filled::{Fullness, Maker};
use super::*;
use crate::kinds::schema::{StructId, Structs};
use crate::kinds::{Kind, Registry};

/// Objects of every kind as kube-apiserver returned them, in both encodings:
/// `{"json", "protobuf"}`.
fn recorded() -> impl Iterator<Item = (Value, Vec<u8>)> {
    include_str!("recorded.jsonl").lines().map(|line| {
        let mut recorded: Value = serde_json::from_str(line).unwrap();
        let bytes = STANDARD.decode(recorded["protobuf"].as_str().unwrap()).unwrap();
        (recorded["json"].take(), bytes)
    })
}

fn kind_of(registry: &Registry, object: &Value) -> std::sync::Arc<Kind> {
    let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    registry.by_kind(group, version, kind).unwrap()
}

/// Decodes a body whose envelope names its kind.
fn read_any(body: &[u8]) -> Result<Value, Problem> {
    read(body, "", "")
}

#[test]
fn every_recorded_object_reads_as_its_json() {
    let registry = Registry::new();
    for (mut expected, bytes) in recorded() {
        let mut object = read_any(&bytes).unwrap();
        let kind = kind_of(&registry, &expected);
        for each in [&mut expected, &mut object] {
            assert!(crate::kinds::prune(&kind, each).unwrap().is_empty(), "{each}");
        }
        assert_eq!(object, expected);
    }
}

#[test]
fn every_recorded_object_is_written_as_the_real_server_wrote_it() {
    for (json, bytes) in recorded() {
        let text = serde_json::to_vec(&json).unwrap();
        assert_eq!(shown(&transcode(&text).unwrap()), shown(&bytes), "{json}");
    }
}

/// Every struct that has a message, in a fixed order: `group/version/Kind` and its struct.
fn everything() -> Vec<(&'static str, StructId)> {
    let mut all: Vec<_> =
        Structs::get().named().filter(|(name, _)| Plans::get().names().any(|planned| planned == *name)).collect();
    all.sort_unstable_by_key(|(name, _)| *name);
    all
}

fn named(name: &str) -> (String, &str) {
    let (api_version, kind) = name.rsplit_once('/').unwrap();
    (api_version.trim_start_matches('/').to_owned(), kind)
}

/// The JSON of an object as the server would store it.
fn stored(of: StructId, mut object: Value) -> String {
    crate::kinds::prune_struct(of.resolve(), &mut object).unwrap();
    String::from_utf8(crate::encoding::json::encode_list(of.resolve(), &[object])).unwrap()
}

fn comes_back(name: &str, of: StructId, object: &Value) {
    let (api_version, kind) = named(name);
    let bytes = message(&api_version, kind, object).unwrap();
    let mut read = read(&enclose(&api_version, kind, &bytes), "", "").unwrap();
    for part in ["apiVersion", "kind"] {
        read.as_object_mut().unwrap().remove(part);
    }
    assert_eq!(stored(of, read), stored(of, object.clone()), "{name}");
}

#[test]
fn every_field_of_every_kind_comes_back() {
    for (name, of) in everything() {
        comes_back(name, of, &Maker::new(1, Fullness::Full).object(of));
    }
}

/// The objects whose Go encodings are recorded in `filled.txt` as hashes.
fn filled_objects() -> impl Iterator<Item = (&'static str, Value)> {
    let objects = |(name, of)| {
        let full = Maker::new(1, Fullness::Full).object(of);
        let some = (1..=3).map(move |seed| Maker::new(seed, Fullness::Some).object(of));
        std::iter::once(full).chain(some).map(move |mut object| {
            crate::kinds::prune_struct(of.resolve(), &mut object).unwrap();
            (name, object)
        })
    };
    everything().into_iter().flat_map(objects)
}

#[test]
fn every_field_of_every_kind_is_written_as_go_writes_it() {
    let mut recorded = include_str!("tests/filled.txt").lines();
    for (name, object) in filled_objects() {
        let (api_version, kind) = named(name);
        let bytes = message(&api_version, kind, &object).unwrap();
        let hash = ring::digest::digest(&ring::digest::SHA256, &bytes);
        let hash: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(recorded.next(), Some(&*format!("{name}\t{hash}")), "{object}");
    }
    assert_eq!(recorded.next(), None);
}

/// Regenerates `tests/filled.txt`, together with the program in `data/types`:
///
/// ```text
/// cargo test -p kube-embedded --lib prints_what_is_filled -- --ignored --nocapture | grep -P '^[^ ]*/v' \
///     | (cd crates/kube-embedded/data/types && go run -mod=mod . messages) > crates/kube-embedded/src/encoding/protobuf/tests/filled.txt
/// ```
#[test]
#[ignore = "prints what another program reads"]
fn prints_what_is_filled() {
    println!();
    for (name, object) in filled_objects() {
        println!("{name}\t{}", String::from_utf8(crate::encoding::json::encode_sorted(&object)).unwrap());
    }
}

#[test]
fn what_the_generator_makes_comes_back() {
    let structs = Structs::get().named().collect::<std::collections::HashMap<_, _>>();
    let generator = crate::generate::Generator::new(7);
    let each = |index| {
        let workload = [generator.pod(index), generator.deployment(index), generator.replica_set(index)];
        let network = [generator.service(index), generator.endpoint_slice(index), generator.event(index)];
        let others = [generator.pod_at(index, 3), generator.node(index), generator.config_map(index, 900)];
        workload.into_iter().chain(network).chain(others)
    };
    for sample in (0..20).flat_map(each).chain(generator.namespaces()) {
        let object = sample.to_value();
        let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let group = if api_version.contains('/') { api_version.to_owned() } else { format!("/{api_version}") };
        let name = format!("{group}/{kind}");
        let mut object = object.clone();
        for part in ["apiVersion", "kind"] {
            object.as_object_mut().unwrap().remove(part);
        }
        comes_back(&name, structs[&*name], &object);
    }
}

/// Bytes in readable form for assertion messages.
fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

#[test]
fn metadata_alone_is_a_part_of_the_whole() {
    for (json, _) in recorded() {
        let (api_version, kind) = (json["apiVersion"].as_str().unwrap(), json["kind"].as_str().unwrap());
        let whole = message(api_version, kind, &json).unwrap();
        assert_eq!(metadata_of(&whole), metadata_message(&json));
    }
    assert_eq!(metadata_of(b""), b"");
    assert_eq!(metadata_of(b"\x0a\xff"), b"");
}

#[test]
fn a_status_is_written_as_the_real_server_writes_it() {
    let status = crate::http::status::Status::not_found("", "configmaps", "nope").to_json();
    let expected = b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12U\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x1bconfigmaps \"nope\" not found\"\x08NotFound*\x18\n\x04nope\x12\x00\x1a\nconfigmaps(\x002\x000\x94\x03\x1a\x00\"\x00";
    assert_eq!(shown(&transcode(&status).unwrap()), shown(expected));
}

#[test]
fn an_event_is_framed_as_the_real_server_frames_it() {
    let metadata =
        json!({"metadata": {"resourceVersion": "234", "annotations": {"k8s.io/initial-events-end": "true"}}});
    let mut out = Vec::new();
    push_frame(&mut out, "BOOKMARK", &enclose("v1", "ConfigMap", &message("v1", "ConfigMap", &metadata).unwrap()));
    let expected = b"\x00\x00\x00a\n\x08BOOKMARK\x12U\nSk8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x128\n6\n\x00\x12\x00\x1a\x00\"\x00*\x002\x032348\x00B\x00b!\n\x19k8s.io/initial-events-end\x12\x04true\x1a\x00\"\x00";
    assert_eq!(shown(&out), shown(expected));
}

#[test]
fn an_empty_list_is_written_as_the_real_server_writes_it() {
    let list = |named, fields| {
        let metadata = ListMetadata { revision: 234, continue_token: None, remaining: None, shard_info: None };
        let (mut out, tail) = list(named, fields, &metadata, std::iter::empty());
        out.extend_from_slice(&tail);
        out
    };
    let expected = b"k8s\x00\n\x13\n\x02v1\x12\rConfigMapList\x12\x0b\n\t\n\x00\x12\x03234\x1a\x00\x1a\x00\"\x00";
    assert_eq!(shown(&list(("v1", "ConfigMapList"), ListFields::USUAL)), shown(expected));
    let older = b"k8s\x00\n0\n\x13meta.k8s.io/v1beta1\x12\x19PartialObjectMetadataList\x12\x0b\x12\t\n\x00\x12\x03234\x1a\x00\x1a\x00\"\x00";
    let named = ("meta.k8s.io/v1beta1", "PartialObjectMetadataList");
    assert_eq!(shown(&list(named, ListFields::ITEMS_FIRST)), shown(older));
}

#[test]
fn what_is_no_message_is_refused() {
    assert_eq!(read_any(b""), Err(Problem::Body("empty data".into())));
    assert_eq!(read_any(b"k8s\0"), Err(Problem::Body("empty body".into())));
    assert_eq!(read_any(b"k8s\0\x0a\xff"), Err(Problem::Body("unexpected EOF".into())));
    assert!(matches!(read_any(b"{}"), Err(Problem::Body(_))));
}

#[test]
fn what_a_body_does_not_say_is_as_expected() {
    let read = read(b"k8s\x00\x12\x05\n\x03\n\x01r", "v1", "ConfigMap").unwrap();
    assert_eq!(read, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "r"}}));
}

#[test]
fn a_message_in_parts_is_one_and_numbers_may_be_packed() {
    let mut pod = Vec::new();
    push_message(&mut pod, 1, |out| push_bytes(out, 1, b"a"));
    push_message(&mut pod, 1, |out| push_bytes(out, 3, b"ns"));
    push_message(&mut pod, 2, |out| {
        push_message(out, 14, |out| {
            push_number(out, 4, 7);
            push_bytes(out, 4, &[8, 0x80, 1]);
        });
    });
    let read = read(&enclose("v1", "Pod", &pod), "", "").unwrap();
    assert_eq!(read["metadata"], json!({"name": "a", "namespace": "ns"}));
    assert_eq!(read["spec"]["securityContext"]["supplementalGroups"], json!([7, 8, 128]));
}

proptest::proptest! {
    #[test]
    fn whatever_a_kind_holds_comes_back(seed: u64, which in 0..everything().len()) {
        let (name, of) = everything()[which];
        comes_back(name, of, &Maker::new(seed, Fullness::Some).object(of));
    }

    #[test]
    fn no_bytes_make_reading_panic(at in 0..2000_usize, byte: u8, cut in 0..3000_usize, which in 0..60_usize) {
        let (_, mut bytes) = recorded().nth(which).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        bytes.truncate(cut.max(4));
        drop(read_any(&bytes));
    }

    #[test]
    fn no_message_makes_reading_panic(bytes: Vec<u8>) {
        for (api_version, kind) in [("v1", "Pod"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")] {
            drop(read(&enclose(api_version, kind, &bytes), "", ""));
        }
    }
}
