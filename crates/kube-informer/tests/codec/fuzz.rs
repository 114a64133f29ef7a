//! Mutated bodies in every parser: none panics, and none depends on how the bytes are split.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write as _;
use std::str::FromStr;
use std::sync::LazyLock;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings};
use kube_informer::codec::{
    Extent, FieldCutter, Frames, Gunzip, ListEnd, ListSplitter, ProtobufFrames, ProtobufList, ServerStatus, WatchFrame,
    decode_protobuf, scan,
};
use kube_informer::object::{Encoded, FieldPath, FieldSelector};
use kube_informer::{Keep, Obj, Object as _, ObjectKey, Selector, Untyped, Version};
use serde_json::Value;

use crate::fuzzing::{Source, fuzz, recorded};

const LIMIT: usize = 1 << 20;

/// The recorded objects as JSON, and as protobuf.
static RECORDED: LazyLock<(Bodies, Bodies)> = LazyLock::new(recorded);

type Bodies = Vec<Vec<u8>>;

/// Field names of built-in kinds, and steps that lists and label keys need.
const STEPS: [&str; 22] = [
    "metadata",
    "name",
    "labels",
    "annotations",
    "managedFields",
    "ownerReferences",
    "spec",
    "status",
    "containers",
    "env",
    "value",
    "template",
    "ports",
    "data",
    "[*]",
    "[0]",
    "[1]",
    "['a.b/c']",
    ".",
    "rules",
    "f:spec",
    "conditions",
];

fn path(source: &mut Source) -> FieldPath {
    loop {
        let steps: Vec<_> = (0..=source.below(4)).map(|_| *source.choose(&STEPS)).collect();
        if let Ok(path) = steps.join(".").replace(".[", "[").parse() {
            return path;
        }
    }
}

/// Passes chunks to a parser one by one, and collects what it returns until it fails.
fn drive<P, T>(
    parser: &mut P,
    chunks: &[Vec<u8>],
    push: impl Fn(&mut P, Bytes),
    next: impl Fn(&mut P) -> Option<Result<T, String>>,
) -> (Vec<T>, Option<String>) {
    let mut found = Vec::new();
    for chunk in chunks {
        push(parser, chunk.clone().into());
        while let Some(next) = next(parser) {
            match next {
                Ok(next) => found.push(next),
                Err(error) => return (found, Some(error)),
            }
        }
    }
    (found, None)
}

fn text<T, E: Display>(next: Option<Result<T, E>>) -> Option<Result<T, String>> {
    next.map(|next| next.map_err(|error| error.to_string()))
}

type Items = (Vec<Bytes>, Result<ListEnd, String>);

fn json_items(chunks: &[Vec<u8>]) -> Items {
    let mut list = ListSplitter::new(LIMIT);
    let (items, error) = drive(&mut list, chunks, ListSplitter::push, |list| text(list.next()));
    (items, error.map_or_else(|| list.finish().map_err(|error| error.to_string()), Err))
}

fn protobuf_items(chunks: &[Vec<u8>]) -> Items {
    let mut list = ProtobufList::new(LIMIT);
    let (items, error) = drive(&mut list, chunks, ProtobufList::push, |list| text(list.next()));
    (items, error.map_or_else(|| list.finish().map_err(|error| error.to_string()), Err))
}

#[test]
fn what_serde_reads_the_scanner_reads_and_nothing_makes_it_panic() {
    let (json, _) = &*RECORDED;
    fuzz(1_000, |source| {
        let bytes = Bytes::from(source.mutated(json));
        let is_object = serde_json::from_slice::<BTreeMap<String, Value>>(&bytes).is_ok();
        for extent in [Extent::Types, Extent::Metadata, Extent::Whole] {
            let scanned = scan(&bytes, extent);
            assert!(scanned.is_ok() || !is_object, "{:?} {}", scanned.err(), String::from_utf8_lossy(&bytes));
        }
        let paths: Vec<FieldPath> = (0..=source.below(3)).map(|_| path(source)).collect();
        let cut = FieldCutter::new(paths.clone()).cut(&bytes);
        if is_object {
            let cut = cut.expect("it is an object");
            assert!(serde_json::from_slice::<Value>(&cut).is_ok(), "{paths:?} {}", String::from_utf8_lossy(&bytes));
        }
        if let Ok(object) = Obj::<Untyped>::from_json(bytes) {
            drop(object.view::<Value>().to_arc());
            // Errors find the field in the bytes.
            drop(object.view::<Pod>().to_arc().map_err(|error| error.to_string()));
            for path in &paths {
                assert_eq!(object.value_at(path), object.values_at(path).into_iter().next());
            }
            drop(object.annotation("a"));
            object.labels().iter().for_each(drop);
            object.owners().for_each(drop);
        }
    });
}

#[test]
fn a_json_list_is_the_same_however_it_is_split() {
    let (json, _) = &*RECORDED;
    fuzz(300, |source| {
        let mut list = br#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":"a\u0062","remainingItemCount":3},"items":["#.to_vec();
        for nth in 0..source.below(4) {
            list.extend_from_slice(if nth > 0 { b"," } else { b"" });
            let item = source.choose(json).clone();
            list.extend(item);
        }
        list.extend_from_slice(b"]}");
        let list = source.mutated(&[list]);
        let whole = json_items(std::slice::from_ref(&list));
        assert_eq!(json_items(&source.chunks(&list)), whole);
        assert_eq!(json_items(&source.chunks(&list)), whole);
    });
}

#[test]
fn a_protobuf_list_is_the_same_however_it_is_split() {
    let (_, protobuf) = &*RECORDED;
    let field = |to: &mut Vec<u8>, number: u8, bytes: &[u8]| {
        to.push(number << 3 | 2);
        let mut length = bytes.len();
        while length > 127 {
            to.push((length & 127) as u8 | 128);
            length >>= 7;
        }
        to.push(length as u8);
        to.extend_from_slice(bytes);
    };
    fuzz(300, |source| {
        let (mut message, mut list) = (Vec::new(), b"k8s\0".to_vec());
        field(&mut message, 1, b"\x12\x017\x1a\x03abc\x20\x05");
        for _ in 0..source.below(4) {
            field(&mut message, 2, source.choose::<Vec<u8>>(protobuf));
        }
        field(&mut list, 1, b"\x0a\x02v1\x12\x07PodList");
        field(&mut list, 2, &message);
        let list = source.mutated(&[list]);
        let whole = protobuf_items(std::slice::from_ref(&list));
        assert_eq!(protobuf_items(&source.chunks(&list)), whole);
        assert_eq!(protobuf_items(&source.chunks(&list)), whole);
    });
}

#[test]
fn a_json_watch_is_the_same_however_it_is_split() {
    let (json, _) = &*RECORDED;
    let frames = |chunks: &[Vec<u8>]| {
        let mut frames = Frames::new(LIMIT);
        let (mut found, error) = drive(&mut frames, chunks, Frames::push, |frames| text(frames.next()));
        if error.is_none() {
            found.extend(frames.finish().expect("below the limit"));
        }
        (found, error)
    };
    fuzz(300, |source| {
        let mut watch = Vec::new();
        for _ in 0..=source.below(3) {
            let kind = *source.choose(&["ADDED", "DELETED", "BOOKMARK", "ERROR", "NEW"]);
            let object = source.choose(json).clone();
            watch.extend([br#"{"type":""#, kind.as_bytes(), br#"","object":"#, &object, b"}\n"].concat());
        }
        let watch = source.mutated(&[watch]);
        let whole = frames(std::slice::from_ref(&watch));
        assert_eq!(frames(&source.chunks(&watch)), whole);
        for frame in whole.0 {
            drop(WatchFrame::read(&frame));
            drop(ServerStatus::of_json(&frame));
        }
    });
}

#[test]
fn a_protobuf_watch_is_the_same_however_it_is_split() {
    let (_, protobuf) = &*RECORDED;
    let frames = |chunks: &[Vec<u8>]| {
        let mut frames = ProtobufFrames::new(LIMIT);
        let found = drive(&mut frames, chunks, ProtobufFrames::push, |frames| text(frames.next()));
        (found, frames.is_within())
    };
    fuzz(300, |source| {
        let mut watch = Vec::new();
        for _ in 0..=source.below(3) {
            let object = source.mutated(protobuf);
            watch.extend(u32::try_from(object.len()).expect("short").to_be_bytes());
            watch.extend(object);
        }
        let watch = source.mutated(&[watch]);
        let whole = frames(std::slice::from_ref(&watch));
        assert_eq!(frames(&source.chunks(&watch)), whole);
        for frame in whole.0.0 {
            drop(WatchFrame::read_protobuf(&frame));
        }
    });
}

#[test]
fn a_protobuf_object_is_the_json_it_is_converted_to() {
    let (_, protobuf) = &*RECORDED;
    fuzz(1_000, |source| {
        let bytes = Bytes::from(source.mutated(protobuf));
        let tree = Value::decode(Encoded::Protobuf(&bytes));
        if let Some(read) = decode_protobuf::<Value>(&bytes) {
            assert_eq!(&read, tree.as_ref().expect("it can be decoded"));
        }
        let paths: Vec<FieldPath> = (0..=source.below(3)).map(|_| path(source)).collect();
        let cut = FieldCutter::new(paths.clone()).cut(&bytes);
        let Ok(object) = Obj::<Untyped>::from_json(bytes) else { return };
        if let Ok(tree) = &tree {
            assert_eq!(&serde_json::from_slice::<Value>(&object.json()).expect("JSON"), tree);
            cut.unwrap_or_else(|error| panic!("{paths:?}: {error}"));
        }
        for path in &paths {
            assert_eq!(object.value_at(path), object.values_at(path).into_iter().next());
        }
        drop(object.annotation("a"));
    });
}

#[test]
fn gzip_is_the_same_however_it_is_split_and_comes_in_small_pieces() {
    let (json, _) = &*RECORDED;
    let plain = |chunks: &[Vec<u8>]| {
        let mut gunzip = Gunzip::default();
        let (pieces, error) = drive(&mut gunzip, chunks, Gunzip::push, |gunzip| text(gunzip.next()));
        assert!(pieces.iter().all(|piece| piece.len() <= 128 << 10));
        let ends = error.is_none() && gunzip.finish().is_ok();
        (pieces.concat(), error.is_none(), ends)
    };
    fuzz(200, |source| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(source.choose::<Vec<u8>>(json)).expect("memory");
        let packed = source.mutated(&[encoder.finish().expect("memory")]);
        let (whole, is_valid, ends) = plain(std::slice::from_ref(&packed));
        let (split, split_is_valid, split_ends) = plain(&source.chunks(&packed));
        assert_eq!((split_is_valid, split_ends), (is_valid, ends));
        // Where the bytes are malformed, what precedes that may not be returned.
        assert!(!is_valid || split == whole);
    });
}

/// An encoder with a dictionary trained on the recorded objects.
static ENCODER: LazyLock<BodyEncoder> = LazyLock::new(|| {
    let encoder = BodyEncoder::new(BodyEncoderSettings::default());
    let objects = RECORDED.0.iter().cycle().take(5_000);
    let held: Vec<_> = objects.filter_map(|json| encoder.accept(&json.clone().into(), Arrival::Listed).ok()).collect();
    let samples = encoder.take_training_samples().expect("enough objects");
    encoder.install(samples.train().expect("a dictionary"));
    drop(held);
    encoder
});

#[test]
fn whatever_is_packed_comes_back_to_the_byte() {
    let (json, protobuf) = &*RECORDED;
    let plain = {
        let mut settings = BodyEncoderSettings::default();
        settings.keep = Keep::Plain;
        BodyEncoder::new(settings)
    };
    fuzz(400, |source| {
        let bodies = if source.one_in(3) { protobuf } else { json };
        let mut held = Vec::new();
        // Several variants of one object, so that some are encoded against others.
        let body = source.choose(bodies).clone();
        for _ in 0..=source.below(4) {
            let bytes = Bytes::from(source.mutated(std::slice::from_ref(&body)));
            let arrival = *source.choose(&[Arrival::Listed, Arrival::Changed(0)]);
            let packed = ENCODER.accept(&bytes, arrival).ok();
            let unpacked = plain.accept(&bytes, arrival).ok();
            assert_eq!(packed.is_some(), unpacked.is_some());
            held.extend(packed.zip(unpacked));
        }
        ENCODER.pack_cold(u64::MAX, 1_000);
        for (packed, unpacked) in held {
            assert_eq!(packed.json(), unpacked.json());
            assert_eq!(
                (packed.key(), packed.version(), packed.uid()),
                (unpacked.key(), unpacked.version(), unpacked.uid())
            );
        }
    });
}

/// What is parsed and printed is parsed again as the same.
fn comes_back<T: FromStr<Err: Display> + Display + PartialEq + std::fmt::Debug>(text: &str) {
    if let Ok(parsed) = text.parse::<T>() {
        let printed = parsed.to_string();
        match printed.parse::<T>() {
            Ok(again) => assert_eq!(again, parsed, "{text:?} {printed:?}"),
            Err(error) => panic!("{text:?} {printed:?}: {error}"),
        }
    }
}

#[test]
fn texts_are_printed_as_they_are_parsed() {
    const PIECES: [&str; 40] = [
        "a",
        "b",
        "app",
        "x.y/z",
        "spec",
        "metadata.name",
        "1",
        "-7",
        "9223372036854775808",
        " ",
        ",",
        "=",
        "==",
        "!=",
        "!",
        " in ",
        " notin ",
        "(",
        ")",
        "<",
        ">",
        "gt",
        "lt",
        "\\",
        "\\,",
        "\\=",
        "[*]",
        "[0]",
        "['",
        "']",
        "\"",
        "$",
        "{",
        "}",
        ".",
        "..",
        "/",
        "é",
        "\u{202e}",
        "\0",
    ];
    fuzz(3_000, |source| {
        let text = source.text(&PIECES, 12);
        comes_back::<FieldPath>(&text);
        comes_back::<ObjectKey>(&text);
        comes_back::<Selector>(&text);
        comes_back::<FieldSelector>(&text);
        assert_eq!(Version::new(&text).to_string(), text);
        let digits = source.text(&["0", "1", "9", "18446744073709551615", "-", "+", " "], 3);
        let version = Version::new(&digits);
        assert_eq!(version.to_string(), digits);
        assert_eq!(version.number().map(|number| number.to_string()), version.number().map(|_| digits));
    });
}
