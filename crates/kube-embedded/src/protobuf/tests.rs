use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::kinds::{Kind, Registry};

/// What a real server answered for objects of every kind: `{"json", "protobuf"}`.
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

/// Reads a body that says what it is.
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

/// Bytes for people, so that a failure can be read.
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
    let status = crate::status::Status::not_found("", "configmaps", "nope").to_json();
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
        let (mut out, tail) = list(named, fields, 234, None, None, std::iter::empty());
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

proptest::proptest! {
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
