//! Objects in protobuf equal those in JSON: as every type, at every path, in every storage policy,
//! however the bytes are split.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::fmt::Debug;
use std::path::Path;

use crate::go_types::{Struct, data, structs};
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use kube::core::DynamicObject;
use kube_embedded::Server;
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings};
use kube_informer::codec::{
    Change, Envelope, FieldCutter, ListError, ProtobufFrames, ProtobufList, WatchFrame, decode_protobuf,
};
use kube_informer::object::{Encoded, FieldPath};
use kube_informer::{Keep, Obj, Object, Untyped};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Recorded responses of a real server for objects of every kind: JSON and protobuf.
pub(crate) fn recorded() -> Vec<(Value, Bytes)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kube-embedded/src/encoding/protobuf/recorded.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let all = text.lines().map(|line| {
        let mut recorded: Value = serde_json::from_str(line).unwrap();
        let protobuf: k8s_openapi::ByteString = serde_json::from_value(recorded["protobuf"].take()).unwrap();
        (recorded["json"].take(), Bytes::from(protobuf.0))
    });
    let all: Vec<_> = all.filter(|(_, protobuf)| protobuf.starts_with(b"k8s\0")).collect();
    assert!(all.len() > 60);
    // Skips request bodies and error statuses.
    let objects: Vec<_> = all.into_iter().filter(|(json, _)| json["metadata"]["name"].is_string()).collect();
    assert!(objects.len() > 50, "{}", objects.len());
    objects
}

/// Decoded as its own type, an object is the same in both encodings, without going through JSON.
fn same<T: Object + DeserializeOwned + PartialEq + Debug>(json: &[u8], protobuf: &[u8]) {
    let expected = T::decode(Encoded::Json(json)).unwrap();
    assert_eq!(decode_protobuf::<T>(protobuf).unwrap(), expected);
    assert_eq!(T::decode(Encoded::Protobuf(protobuf)).unwrap(), expected);
}

/// Types that cover all sorts of fields and compile quickly. The others come from the same
/// generator and are compared as trees.
fn same_as_its_type(object: &Value, json: &[u8], protobuf: &[u8]) {
    use k8s_openapi::api::{certificates, coordination, core, networking};
    match object["kind"].as_str().unwrap() {
        "Secret" => same::<core::v1::Secret>(json, protobuf),
        "Event" if object["apiVersion"] == "v1" => same::<core::v1::Event>(json, protobuf),
        "Lease" => same::<coordination::v1::Lease>(json, protobuf),
        "CertificateSigningRequest" => same::<certificates::v1::CertificateSigningRequest>(json, protobuf),
        "NetworkPolicy" => same::<networking::v1::NetworkPolicy>(json, protobuf),
        _ => {}
    }
}

/// Compares everything the API returns for an object.
fn same_to_users(object: &Value, protobuf: &Bytes) {
    let json = Bytes::from(object.to_string());
    same_as_its_type(object, &json, protobuf);
    same::<Value>(&json, protobuf);
    same::<DynamicObject>(&json, protobuf);
    let (ours, theirs) = (held(protobuf), held(&json));
    assert_eq!(serde_json::from_slice::<Value>(&ours.json()).unwrap(), *object);
    assert_eq!((ours.key(), ours.uid(), ours.version()), (theirs.key(), theirs.uid(), theirs.version()));
    assert_eq!((ours.generation(), ours.deletion_timestamp()), (theirs.generation(), theirs.deletion_timestamp()));
    assert!(ours.labels().iter().eq(theirs.labels().iter()));
    let owners = |object: &Obj<Untyped>| object.owners().map(|owner| format!("{owner:?}")).collect::<Vec<_>>();
    assert_eq!(owners(&ours), owners(&theirs));
    for name in object["metadata"]["annotations"].as_object().into_iter().flat_map(Map::keys) {
        assert_eq!(ours.annotation(name), theirs.annotation(name));
    }
    for path in paths(object) {
        assert_eq!(ours.values_at(&path), theirs.values_at(&path), "{path}");
        assert_eq!(ours.value_at(&path), theirs.value_at(&path), "{path}");
    }
}

fn held(bytes: &Bytes) -> Obj<Untyped> {
    Obj::from_json(bytes.clone()).unwrap()
}

/// The path of every field and every list element in an object.
fn paths(object: &Value) -> Vec<FieldPath> {
    fn below(value: &Value, path: &str, all: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let path = format!("{path}['{}']", name.replace('\\', r"\\").replace('\'', r"\'"));
                    all.push(path.clone());
                    below(value, &path, all);
                }
            }
            Value::Array(elements) => {
                for (nth, value) in elements.iter().enumerate() {
                    for step in [format!("[{nth}]"), "[*]".to_owned()] {
                        let path = format!("{path}{step}");
                        all.push(path.clone());
                        below(value, &path, all);
                    }
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    below(object, "", &mut all);
    all.sort();
    all.dedup();
    // Some are deeper than a path allows.
    all.iter().filter_map(|path| path.parse().ok()).collect()
}

#[test]
fn what_a_real_server_sends_is_the_same_in_both_forms() {
    for (object, protobuf) in recorded() {
        same_to_users(&object, &protobuf);
    }
}

#[test]
fn a_field_is_dropped_out_of_protobuf_as_out_of_json() {
    for (object, protobuf) in recorded() {
        let json = Bytes::from(object.to_string());
        let all = paths(&object);
        // Testing every path would take minutes.
        for path in all.iter().step_by(1 + all.len() / 150) {
            let cutter = FieldCutter::new([path.clone()]);
            let (Ok(expected), ours) = (cutter.cut(&json), cutter.cut(&protobuf).unwrap()) else { continue };
            let expected: Value = serde_json::from_slice(&expected).unwrap();
            let ours: Value = match decode_protobuf(&ours) {
                Some(value) => value,
                None => serde_json::from_slice(&ours).unwrap(),
            };
            assert_eq!(ours, expected, "{path}");
        }
    }
}

#[test]
fn managed_fields_and_annotations_are_dropped_without_json() {
    let (mut object, protobuf) = recorded().swap_remove(0);
    let cutter =
        FieldCutter::new(["metadata.managedFields".parse().unwrap(), "spec.containers[*].image".parse().unwrap()]);
    let cut = cutter.cut(&protobuf).unwrap();
    assert!(cut.starts_with(b"k8s\0") && cut.len() < protobuf.len());
    object["metadata"].as_object_mut().unwrap().remove("managedFields").unwrap();
    for container in object["spec"]["containers"].as_array_mut().unwrap() {
        container.as_object_mut().unwrap().remove("image").unwrap();
    }
    assert_eq!(decode_protobuf::<Value>(&cut), Some(object));
}

#[test]
fn a_packed_object_is_the_same_again_and_both_forms_can_be_held_together() {
    let all = recorded();
    let mut settings = BodyEncoderSettings::default();
    settings.keep = Keep::Compact;
    settings.decode_managed_fields = true;
    let encoder = BodyEncoder::new(settings);
    let mut objects = Vec::new();
    for round in 0..3 {
        for (object, protobuf) in &all {
            let bytes = if round == 1 { Bytes::from(object.to_string()) } else { protobuf.clone() };
            let arrival = if round == 2 { Arrival::Changed(0) } else { Arrival::Listed };
            objects.push((object, encoder.accept(&bytes, arrival).unwrap()));
        }
    }
    let samples = encoder.take_training_samples();
    let dictionary = samples.or_else(|| {
        encoder.pack_cold(10, usize::MAX);
        encoder.pack_cold(11, usize::MAX);
        encoder.take_training_samples()
    });
    encoder.install(dictionary.unwrap().train().unwrap());
    encoder.pack_cold(20, usize::MAX);
    encoder.pack_cold(21, usize::MAX);
    for (object, kept) in &objects {
        assert_eq!(serde_json::from_slice::<Value>(&kept.json()).unwrap(), **object);
        assert_eq!(kept.view::<DynamicObject>().get().unwrap(), &serde_json::from_value((*object).clone()).unwrap());
    }
}

/// A length-delimited field.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        field.push(length as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    [&field, bytes].concat()
}

fn object(kind: &str, raw: &[u8]) -> Bytes {
    Envelope { api_version: b"v1", kind: kind.as_bytes(), raw }.close().into()
}

#[test]
fn fields_in_any_order_are_read_as_in_theirs() {
    let label = |key: &str, value: &str| field(11, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat());
    let entry = |key: &str, value: &str| field(2, &[field(2, value.as_bytes()), field(1, key.as_bytes())].concat());
    let metadata = [label("a", "1"), field(3, b"ns"), label("b", "2"), field(1, b"old"), field(1, b"m")].concat();
    // Protobuf merges a message field that occurs twice.
    let raw = [entry("x", "1"), field(1, &metadata), entry("y", "2"), field(1, &field(6, b"7"))].concat();
    let map = held(&object("ConfigMap", &raw));
    assert_eq!((map.key().to_string(), map.version().to_string()), ("ns/m".to_owned(), "7".to_owned()));
    assert_eq!(map.labels().iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
    let json: Value = serde_json::from_slice(&map.json()).unwrap();
    assert_eq!(json["data"], json!({"x": "1", "y": "2"}));
    // The same where only fields after the metadata are out of order.
    let raw = [field(1, &field(1, b"m")), entry("x", "1"), field(3, &field(1, b"b")), entry("y", "2")].concat();
    let map = held(&object("ConfigMap", &raw));
    assert_eq!(map.view::<Value>().get().unwrap()["data"], json!({"x": "1", "y": "2"}));
    assert_eq!(map.value_at("data.y").unwrap().as_deref(), Some("2"));
}

#[test]
fn a_field_that_is_newer_than_the_table_is_passed_over() {
    let raw = [field(1, &[field(1, b"m"), field(15, b"new")].concat()), field(15, b"new"), field(15, b"new")].concat();
    let map = held(&object("ConfigMap", &raw));
    assert_eq!(
        *map.view::<Value>().get().unwrap(),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})
    );
}

#[test]
fn a_projection_reads_what_it_names_and_enums_and_raw_json_too() {
    #[derive(Deserialize, Debug, PartialEq)]
    enum Policy {
        Always,
        #[serde(other)]
        Other,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        restart_policy: Policy,
        containers: Vec<Container>,
        security_context: Box<serde_json::value::RawValue>,
    }
    #[derive(Deserialize)]
    struct Container {
        name: String,
    }
    #[derive(Deserialize)]
    struct Pod {
        spec: Spec,
    }
    let (_, protobuf) = recorded().swap_remove(0);
    let pod = held(&protobuf).view::<Pod>();
    let spec = &pod.get().unwrap().spec;
    assert_eq!(spec.restart_policy, Policy::Always);
    assert_eq!(spec.containers.iter().map(|container| &*container.name).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(spec.security_context.get(), "{}");
}

#[test]
fn what_does_not_fit_is_named_by_its_path_and_not_by_its_contents() {
    #[derive(Deserialize, Debug)]
    struct Wrong {
        #[allow(dead_code, reason = "never read")]
        spec: Spec,
    }
    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[allow(dead_code, reason = "never read")]
        restart_policy: u8,
    }
    let (_, protobuf) = recorded().swap_remove(0);
    let error = held(&protobuf).view::<Wrong>().get().unwrap_err();
    assert_eq!(error.path().unwrap().to_string(), "spec.restartPolicy");
    assert!(!error.to_string().contains("Always"));
}

#[test]
fn what_cannot_be_read_still_has_its_name() {
    let raw = [field(1, &field(1, b"m")), vec![2 << 3 | 2, 0x7f, 1]].concat();
    for kind in ["ConfigMap", "Unheard"] {
        let map = held(&object(kind, &raw));
        assert_eq!(map.name(), "m");
        assert!(map.view::<Value>().get().is_err());
        let json: Value = serde_json::from_slice(&map.json()).unwrap();
        assert_eq!(json["metadata"]["name"], "m");
    }
}

#[test]
fn messages_nested_without_end_are_refused() {
    let mut schema = field(4, b"deep");
    for _ in 0..10_000 {
        schema = field(28, &schema).into_iter().collect();
        // The tag of field 28 takes two bytes.
        schema.splice(0..1, [0xe2, 0x01]);
    }
    let version = field(4, &field(1, &schema));
    let raw = [field(1, &field(1, b"m")), field(2, &field(7, &version))].concat();
    let object =
        Envelope { api_version: b"apiextensions.k8s.io/v1", kind: b"CustomResourceDefinition", raw: &raw }.close();
    assert!(Value::decode(Encoded::Protobuf(&object)).is_err());
    assert!(FieldCutter::new(["spec.versions[*].schema.x".parse().unwrap()]).cut(&object.into()).is_ok());
}

/// A list in its envelope, as a server writes it.
fn list(items: &[Bytes]) -> Vec<u8> {
    let metadata = [field(1, b""), field(2, b"42"), field(3, b"next"), vec![4 << 3, 9]].concat();
    let mut raw = field(1, &metadata);
    for item in items {
        raw.extend(field(2, Envelope::open(item).unwrap().raw));
    }
    let mut list = Envelope { api_version: b"v1", kind: b"ConfigMapList", raw: &raw }.close();
    list.extend(b"\x1a\0\x22\0");
    list
}

fn maps() -> Vec<Bytes> {
    let map = |nth: usize| {
        let data = field(2, &[field(1, b"key"), field(2, &vec![b'x'; nth * 70])].concat());
        object(
            "ConfigMap",
            &[field(1, &[field(1, format!("m{nth}").as_bytes()), field(6, b"7")].concat()), data].concat(),
        )
    };
    (0..4).map(map).collect()
}

fn split(chunks: &[&[u8]], limit: usize) -> Result<(Vec<Bytes>, kube_informer::codec::ListEnd), ListError> {
    let (mut splitter, mut items) = (ProtobufList::new(limit), Vec::new());
    for chunk in chunks {
        splitter.push(Bytes::copy_from_slice(chunk));
        while let Some(item) = splitter.next() {
            items.push(item?);
        }
    }
    splitter.finish().map(|end| (items, end))
}

#[test]
fn a_list_is_split_wherever_it_is_cut() {
    let (maps, list) = (maps(), list(&maps()));
    for cut in 0..list.len() {
        let (before, after) = list.split_at(cut);
        for chunks in [&[before, after][..], &[before, &after[..1], &after[1..]]] {
            let (items, end) = split(chunks, 1000).unwrap();
            assert_eq!(items, maps, "cut at {cut}");
            assert_eq!((end.kind.as_deref(), end.api_version.as_deref()), (Some("ConfigMapList"), Some("v1")));
            assert_eq!(
                (end.version.unwrap().to_string(), end.continue_token.as_deref()),
                ("42".to_owned(), Some("next"))
            );
            assert_eq!(end.remaining, Some(9));
        }
        // The envelope's fields after the list carry no information.
        assert!(cut + 4 >= list.len() || split(&[before], 1000).is_err(), "a list of {cut} bytes is not whole");
    }
    let single: Vec<&[u8]> = list.chunks(1).collect();
    assert_eq!(split(&single, 1000).unwrap().0, maps);
    assert_eq!(split(&[&list], 100).unwrap_err(), ListError::TooLong { limit: 100 });
}

#[test]
fn what_is_no_list_has_no_items() {
    let raw = [field(1, &field(1, b"m")), field(2, &[field(1, b"k"), field(2, b"v")].concat())].concat();
    let (items, end) = split(&[&object("ConfigMap", &raw)], 1000).unwrap();
    assert_eq!((items.len(), end.kind.as_deref()), (0, Some("ConfigMap")));
}

fn frame(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind.as_bytes()), field(2, &field(1, object))].concat();
    [&u32::try_from(event.len()).unwrap().to_be_bytes()[..], &event].concat()
}

#[test]
fn a_watch_is_cut_into_its_frames_wherever_it_is_cut() {
    let maps = maps();
    let annotation = field(12, &[field(1, b"k8s.io/initial-events-end"), field(2, b"true")].concat());
    let bookmark = object("ConfigMap", &field(1, &[field(1, b""), field(6, b"9"), annotation].concat()));
    let status = [field(2, b"Failure"), field(3, b"too old"), field(4, b"Expired"), vec![6 << 3, 0x9a, 0x03]].concat();
    let watch = [
        frame("ADDED", &maps[0]),
        frame("MODIFIED", &maps[1]),
        frame("DELETED", &maps[2]),
        frame("BOOKMARK", &bookmark),
        frame("ERROR", &object("Status", &status)),
    ]
    .concat();
    for cut in 0..watch.len() {
        let (mut frames, mut read) = (ProtobufFrames::new(1000), Vec::new());
        for chunk in [&watch[..cut], &watch[cut..]] {
            frames.push(Bytes::copy_from_slice(chunk));
            while let Some(frame) = frames.next() {
                read.push(WatchFrame::read_protobuf(&frame.unwrap()).unwrap());
            }
        }
        assert!(!frames.is_within());
        let changes: Vec<_> = read
            .iter()
            .filter_map(|frame| match frame {
                WatchFrame::Changed(change, object) => Some((*change, object.clone())),
                _ => None,
            })
            .collect();
        let expected = [(Change::Added, &maps[0]), (Change::Modified, &maps[1]), (Change::Deleted, &maps[2])];
        assert_eq!(changes, expected.map(|(change, map)| (change, map.clone())), "cut at {cut}");
        let [.., WatchFrame::Bookmark { version, initial_events_end: true }, WatchFrame::Failed(status)] = &read[..]
        else {
            panic!("{read:?}");
        };
        assert_eq!((version.to_string(), status.code, &*status.reason), ("9".to_owned(), 410, "Expired"));
    }
    let mut frames = ProtobufFrames::new(50);
    frames.push(watch.into());
    assert!(frames.next().unwrap().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_make_anything_panic(which: prop::sample::Index, at: prop::sample::Index, change: Option<u8>, bytes: Vec<u8>) {
        let all = recorded();
        let (_, whole) = &all[which.index(all.len())];
        let at = at.index(whole.len());
        let mut changed = whole.to_vec();
        match change {
            Some(byte) => changed[at] = byte,
            None => changed.truncate(at),
        }
        let raw = Envelope { api_version: b"v1", kind: b"Pod", raw: &bytes }.close();
        for bytes in [changed, raw, bytes] {
            let bytes = Bytes::from(bytes);
            drop(Value::decode(Encoded::Protobuf(&bytes)));
            drop(DynamicObject::decode(Encoded::Protobuf(&bytes)));
            if let Ok(object) = Obj::<Untyped>::from_json(bytes.clone()) {
                drop(object.json());
                drop(object.annotation("a"));
                drop(object.values_at("metadata.managedFields[*].fieldsV1").unwrap());
            }
            let paths = ["metadata.managedFields", "spec.containers[*].env", "metadata.labels.app", "spec.template.x[1].y"];
            drop(FieldCutter::new(paths.map(|path| path.parse().unwrap())).cut(&bytes));
            drop(split(&[&bytes], 1 << 20));
            drop(WatchFrame::read_protobuf(&bytes));
            let mut frames = ProtobufFrames::new(1 << 20);
            frames.push(bytes);
            while let Some(Ok(_)) = frames.next() {}
        }
    }
}

/// Maximum nesting depth of filled objects.
const OUTERMOST: u32 = 7;

/// An object of a struct with every field set.
fn filled(structs: &[Struct], of: usize, depth: u32, turn: &mut u32) -> Value {
    let mut object = Map::new();
    let is_object = structs[of].fields.iter().any(|field| field.name == "metadata");
    for field in &structs[of].fields {
        *turn += 1;
        // An embedded object has no type in protobuf.
        if depth < OUTERMOST && matches!(&*field.name, "kind" | "apiVersion") && is_object {
            continue;
        }
        let text = matches!(field.letter, '#' | 'o' | 'p' | 'a');
        if text && depth == 0 {
            continue;
        }
        let inside = |turn: &mut u32| filled(structs, field.of, depth - 1, turn);
        let value = match field.letter {
            's' => json!("x-é\"\n"),
            'i' => json!(-7),
            'l' => json!(1_i64 << 40),
            'b' => json!(true),
            'f' => json!(1.5),
            'y' => json!("AAEC/w=="),
            't' => json!("2026-11-15T14:36:53Z"),
            'u' => json!("2026-11-15T14:36:53.123456Z"),
            'd' => json!("1m30s"),
            'q' => json!("1500m"),
            'x' if turn.is_multiple_of(2) => json!(8080),
            'x' => json!("http"),
            'o' if turn.is_multiple_of(2) => json!([inside(turn), inside(turn)]),
            'p' if turn.is_multiple_of(2) => json!(false),
            'a' if turn.is_multiple_of(2) => json!(["x", "y"]),
            '#' | 'o' | 'p' | 'a' => inside(turn),
            _ => json!({"f:a": {".": {}, "f:b": [1, -2.5, null, "\u{1}"]}}),
        };
        let value = match &*field.repeats {
            "" => value,
            "[" => json!([value.clone(), value]),
            "{" => json!({"k": value.clone(), "l": value}),
            _ => json!({"k": [value.clone(), value], "l": []}),
        };
        object.insert(field.name.clone(), value);
    }
    object.into()
}

async fn get(client: &kube::Client, path: &str, accept: &str) -> Bytes {
    let request = Request::get(path).header("accept", accept).body(kube::client::Body::empty()).unwrap();
    let response = client.send(request).await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.status());
    response.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn every_kind_filled_in_every_field_is_the_same_in_both_forms() {
    let server = Server::builder().in_process().start().await.unwrap();
    let client = kube::Client::new(server.service(), "default");
    let (structs, kinds) = structs();
    let mut refused = Vec::new();
    for line in data("kinds.txt").lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let [group, version, kind, plural] = columns[..4] else { panic!("{line}") };
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let mut object = filled(&structs, kinds[&format!("{group}/{version}/{kind}")], OUTERMOST, &mut 0);
        // The same objects may be served by several groups and versions.
        let name = format!("filled-{}", api_version.replace('/', "-"));
        let namespace = (columns[5] == "N").then_some("default");
        let own = filled(&structs, 0, 1, &mut 0);
        object["metadata"] = json!({
            "name": name, "namespace": namespace, "labels": {"app": "web"}, "annotations": own["annotations"],
            "finalizers": ["a/b"], "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": true}],
        });
        object["apiVersion"] = json!(api_version);
        object["kind"] = json!(kind);
        if let Err(error) = server.create(&object) {
            refused.push(format!("{kind}: {error}"));
            continue;
        }
        let prefix = if group.is_empty() { "/api" } else { "/apis" };
        let place = namespace.map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
        let path = format!("{prefix}/{api_version}{place}/{plural}/{name}");
        let json = get(&client, &path, "application/json").await;
        let protobuf = get(&client, &path, "application/vnd.kubernetes.protobuf").await;
        same_to_users(&serde_json::from_slice(&json).unwrap(), &protobuf);
    }
    // A CustomResourceDefinition must be valid; recorded ones are compared above.
    assert!(matches!(&refused[..], [one] if one.starts_with("CustomResourceDefinition: ")), "{}", refused.join("\n"));
}
