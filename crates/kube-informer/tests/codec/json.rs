//! Framing, scanning, splitting and cutting compared with `serde_json`: on arbitrary JSON split at
//! every byte, and on corrupted bytes.

use crate::arbitrary_json::{any_json, any_object, any_resource, config, corrupt, cut_everywhere};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use kube_informer::Version;
use kube_informer::codec::{Change, Extent, FieldCutter, Frames, Gunzip, ListSplitter, Skip, WatchFrame, scan};
use kube_informer::object::FieldPath;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Write;

const LIMIT: usize = 1 << 20;

fn frames_of(chunks: Vec<Bytes>, limit: usize) -> Result<Vec<Bytes>, String> {
    let mut frames = Frames::new(limit);
    let mut lines = Vec::new();
    for chunk in chunks {
        frames.push(chunk);
        while let Some(frame) = frames.next() {
            lines.push(frame.map_err(|e| e.to_string())?);
        }
    }
    lines.extend(frames.finish().map_err(|e| e.to_string())?);
    Ok(lines)
}

fn split(chunks: Vec<Bytes>, limit: usize) -> Result<(Vec<Bytes>, kube_informer::codec::ListEnd), String> {
    let mut splitter = ListSplitter::new(limit);
    let mut items = Vec::new();
    for chunk in chunks {
        splitter.push(chunk);
        while let Some(item) = splitter.next() {
            items.push(item.map_err(|e| e.to_string())?);
        }
    }
    Ok((items, splitter.finish().map_err(|e| e.to_string())?))
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

/// Reference implementation of cutting a field.
fn without(value: &mut Value, path: &[&str]) {
    let Some((first, rest)) = path.split_first() else { return };
    match value {
        Value::Object(members) if rest.is_empty() => {
            members.remove(*first);
        }
        Value::Object(members) => {
            if let Some(below) = members.get_mut(*first) {
                without(below, rest);
            }
        }
        Value::Array(elements) if *first == "*" && rest.is_empty() => elements.clear(),
        Value::Array(elements) if *first == "*" => elements.iter_mut().for_each(|element| without(element, rest)),
        Value::Array(elements) => {
            if let Some(at) = first.parse::<usize>().ok().filter(|at| *at < elements.len()) {
                if rest.is_empty() {
                    elements.remove(at);
                } else {
                    without(&mut elements[at], rest);
                }
            }
        }
        _ => {}
    }
}

/// Builds a path; numbers are indexes and `*` is all elements, neither of which is a field name
/// here.
fn path_of(steps: &[&str]) -> FieldPath {
    let text: String = steps
        .iter()
        .map(|step| match *step {
            "*" => "[*]".to_owned(),
            "0" | "1" | "2" => format!("[{step}]"),
            name => format!("['{name}']"),
        })
        .collect();
    text.parse().expect("a path")
}

fn any_path() -> impl Strategy<Value = Vec<&'static str>> {
    let step = prop::sample::select(vec![
        "a", "b", "c", "metadata", "name", "k\"}", "spec", "x.y", "items", "*", "0", "1", "2",
    ]);
    prop::collection::vec(step, 1..4)
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn a_skipped_value_ends_where_it_ends_however_it_is_cut(value in any_object(), tail in r#"[{}\]\[", a]{0,80}"#) {
        let (rest, expected) = (&value.text.as_bytes()[1..], value.text.len() - 1);
        let whole = [rest, tail.as_bytes()].concat();
        for chunks in cut_everywhere(&whole) {
            let (mut skip, mut before) = (Skip::default(), 0);
            let end = chunks.iter().find_map(|chunk| {
                let end = skip.feed(chunk).unwrap().map(|end| before + end);
                before += chunk.len();
                end
            });
            prop_assert_eq!(end, Some(expected));
        }
    }

    #[test]
    fn lines_come_out_as_they_went_in(lines in prop::collection::vec(r#"\{"a":"[a-z{}]{0,20}"\}"#, 0..5), newline_at_end in any::<bool>()) {
        let mut text = lines.join("\n");
        if newline_at_end { text.push('\n'); }
        for chunks in cut_everywhere(text.as_bytes()) {
            let frames = frames_of(chunks, LIMIT).unwrap();
            prop_assert_eq!(&frames, &lines.iter().map(|line| Bytes::from(line.clone())).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_scan_finds_what_serde_finds(object in any_resource()) {
        let found = scan(object.text.as_bytes(), Extent::Whole).unwrap();
        let meta = &object.value["metadata"];
        let text = |text: Option<kube_informer::codec::Text<'_>>| text.map(|text| text.read().unwrap().into_owned());
        let expected = |value: &Value| value.as_str().map(str::to_owned);
        prop_assert_eq!(text(found.kind), expected(&object.value["kind"]));
        prop_assert_eq!(text(found.api_version), expected(&object.value["apiVersion"]));
        prop_assert_eq!(text(found.name), expected(&meta["name"]));
        prop_assert_eq!(text(found.namespace), expected(&meta["namespace"]));
        prop_assert_eq!(text(found.uid), expected(&meta["uid"]));
        prop_assert_eq!(text(found.version), expected(&meta["resourceVersion"]));
        let deleted = found.deletion.and_then(|deleted| match deleted {
            kube_informer::codec::Deleted::Text(text) => Some(text),
            kube_informer::codec::Deleted::Seconds(_) => None,
        });
        prop_assert_eq!(text(deleted), expected(&meta["deletionTimestamp"]));
        prop_assert_eq!(found.generation, meta["generation"].as_i64());
        prop_assert_eq!(&parsed(found.labels.unwrap()), &meta["labels"]);
        prop_assert_eq!(&parsed(found.owners.unwrap()), &meta["ownerReferences"]);
    }

    #[test]
    fn a_list_falls_into_its_items_wherever_it_is_cut(
        items in prop::collection::vec(any_resource(), 0..3),
        order in Just(vec![0, 1, 2, 3, 4]).prop_shuffle(),
        other in any_json(),
        pages in any::<bool>(),
    ) {
        let text: Vec<&str> = items.iter().map(|item| item.text.as_str()).collect();
        let metadata = if pages {
            r#""metadata":{"resourceVersion":"77","continue":"to\u006ben","remainingItemCount":5}"#
        } else {
            r#""metadata":{"resourceVersion":"77"}"#
        };
        let members = [
            r#""kind" : "ThingList""#.to_owned(),
            r#""apiVersion":"g/v1""#.to_owned(),
            metadata.to_owned(),
            format!(r#""it\u0065ms": [ {} ]"#, text.join(" , ")),
            format!(r#""other":{}"#, other.text),
        ];
        let members: Vec<&str> = order.iter().map(|at| members[*at].as_str()).collect();
        let body = format!(" {{ {} }}\n", members.join(" , "));
        let types_first = order.iter().position(|m| *m == 3) > order.iter().position(|m| *m == 0)
            && order.iter().position(|m| *m == 3) > order.iter().position(|m| *m == 1);
        for chunks in cut_everywhere(body.as_bytes()) {
            let (found, end) = split(chunks, LIMIT).unwrap();
            prop_assert_eq!(end.version.clone(), Some(Version::from(77)));
            prop_assert_eq!(end.continue_token.as_deref(), pages.then_some("token"));
            prop_assert_eq!(end.remaining, pages.then_some(5));
            prop_assert_eq!((end.kind.as_deref(), end.api_version.as_deref()), (Some("ThingList"), Some("g/v1")));
            prop_assert_eq!(found.len(), items.len());
            for (found, item) in found.iter().zip(&items) {
                let mut expected = item.value.clone();
                if types_first && expected.get("kind").is_none() {
                    expected["kind"] = "Thing".into();
                    expected["apiVersion"] = "g/v1".into();
                }
                // A type that follows the metadata is only searched in the first item, as servers
                // write all items alike.
                let mut found = parsed(found);
                if found != expected {
                    prop_assert!(items.len() > 1);
                    found["kind"] = "Thing".into();
                    found["apiVersion"] = "g/v1".into();
                    prop_assert_eq!(found, expected);
                }
            }
        }
    }

    #[test]
    fn a_watch_frame_gives_its_object_in_any_order(object in any_resource(), turned in any::<bool>(), blank in crate::arbitrary_json::blank_in_line()) {
        let text = object.text.replace('\n', " ");
        let frame = if turned {
            format!(r#"{{{blank}"object":{blank}{text}{blank},"type":"MODIFIED"}}{blank}"#)
        } else {
            format!(r#"{{"type"{blank}:"MODIFIED",{blank}"object":{text}{blank}}}{blank}"#)
        };
        let WatchFrame::Changed(change, bytes) = WatchFrame::read(&frame.into()).unwrap() else { panic!("a change") };
        prop_assert_eq!(change, Change::Modified);
        prop_assert_eq!(parsed(&bytes), object.value);
    }

    #[test]
    fn gzip_of_several_members_comes_out_plain(parts in prop::collection::vec("[a-z]{0,200}", 1..4)) {
        let mut packed = Vec::new();
        for part in &parts {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(part.as_bytes()).unwrap();
            packed.extend(encoder.finish().unwrap());
        }
        for chunks in cut_everywhere(&packed) {
            let mut gunzip = Gunzip::default();
            let mut plain = Vec::new();
            for chunk in chunks {
                gunzip.push(chunk);
                while let Some(bytes) = gunzip.next() {
                    plain.extend_from_slice(&bytes.unwrap());
                }
            }
            gunzip.finish().unwrap();
            prop_assert_eq!(plain, parts.concat().into_bytes());
        }
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn no_bytes_make_the_readers_panic(
        object in any_resource(),
        corrupt in corrupt(),
        noise in prop::collection::vec(any::<u8>(), 0..60),
        path in any_path(),
    ) {
        for bytes in [corrupt.apply(&object.text), noise.clone(), [b"{\"metadata\":".as_slice(), &noise].concat()] {
            let cutter = FieldCutter::new([path_of(&path)]);
            let list = [br#"{"kind":"XList","apiVersion":"v1","items":["#.as_slice(), &bytes].concat();
            let frame = [br#"{"type":"ADDED","object":"#.as_slice(), &bytes, b"}"].concat();
            drop(scan(&bytes, Extent::Whole));
            drop(cutter.cut(&bytes.clone().into()));
            drop(WatchFrame::read(&frame.into()));
            drop(WatchFrame::read(&bytes.clone().into()));
            drop(kube_informer::Obj::<Value>::from_json(bytes.clone()).map(|object| {
                drop(object.get());
                drop(object.value_at(&path_of(&path)));
                drop(object.annotation("a"));
            }));
            for chunks in cut_everywhere(&list).step_by(7) {
                drop(split(chunks, LIMIT));
            }
            drop(frames_of(vec![bytes.clone().into()], 10));
            let mut gunzip = Gunzip::default();
            gunzip.push(bytes.into());
            while let Some(Ok(_)) = gunzip.next() {}
        }
    }

    #[test]
    fn a_text_is_a_path_that_prints_as_itself_or_an_error(text in r#"[$.{a-c\[\]'"*0-2é\\ ]{0,12}"#, other in ".{0,20}") {
        for text in [text, other] {
            if let Ok(path) = text.parse::<FieldPath>() {
                prop_assert_eq!(path.to_string().parse::<FieldPath>(), Ok(path));
            }
            if let Ok(key) = text.parse::<kube_informer::ObjectKey>() {
                prop_assert_eq!(key.to_string().parse::<kube_informer::ObjectKey>(), Ok(key));
            }
            prop_assert_eq!(Version::new(&text).to_string(), text);
        }
    }
}

/// Collects every path into a value; list elements by index and as `*`.
fn collect_paths(value: &Value, so_far: &[String], found: &mut Vec<Vec<String>>) {
    let steps: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), value)).collect(),
        Value::Array(elements) => {
            let numbered = elements.iter().enumerate().take(3).map(|(at, value)| (at.to_string(), value));
            numbered.chain(elements.last().map(|value| ("*".to_owned(), value))).collect()
        }
        _ => return,
    };
    for (step, value) in steps {
        // Paths support empty names, but not in this test's notation.
        if step.is_empty() || so_far.len() > 3 {
            continue;
        }
        let path = [so_far, &[step]].concat();
        found.push(path.clone());
        collect_paths(value, &path, found);
    }
}

/// An object and some paths into it.
fn object_and_ways() -> impl Strategy<Value = (crate::arbitrary_json::JsonText, Vec<Vec<String>>)> {
    (any_object(), prop::collection::vec((any::<prop::sample::Index>(), any_path()), 1..4)).prop_map(
        |(object, choices)| {
            let mut all = Vec::new();
            collect_paths(&object.value, &[], &mut all);
            let choose = |(at, other): (prop::sample::Index, Vec<&str>)| {
                if all.is_empty() {
                    other.into_iter().map(str::to_owned).collect()
                } else {
                    all[at.index(all.len())].clone()
                }
            };
            (object, choices.into_iter().map(choose).collect())
        },
    )
}

#[test]
fn however_many_fields_of_one_object_are_cut_none_is_missed() {
    for count in [63, 64, 65, 66, 130] {
        let names: Vec<String> = (0..count).map(|nth| format!("f{nth}")).collect();
        let members: Vec<String> = names.iter().map(|name| format!(r#""{name}":1"#)).collect();
        let cutter = FieldCutter::new(names.iter().map(|name| format!("['{name}']").parse().unwrap()));
        let object = format!(r#"{{{},"kept":2}}"#, members.join(","));
        assert_eq!(cutter.cut(&Bytes::from(object)).unwrap(), r#"{"kept":2}"#, "{count} fields");
    }
}

proptest! {
    #![proptest_config(config(800))]

    #[test]
    fn cutting_fields_is_removing_them_from_a_value((object, paths) in object_and_ways()) {
        // Removing an element shifts the indexes; with several paths only names and `*` are
        // unambiguous.
        let numbered = |path: &Vec<String>| path.iter().any(|step| matches!(step.as_str(), "0" | "1" | "2"));
        let paths: Vec<Vec<&str>> = paths
            .iter()
            .filter(|path| paths.len() == 1 || !numbered(path))
            .map(|path| path.iter().map(String::as_str).collect())
            .collect();
        let cutter = FieldCutter::new(paths.iter().map(|path| path_of(path)));
        let mut expected = object.value.clone();
        for path in &paths {
            without(&mut expected, path);
        }
        let cut = cutter.cut(&Bytes::from(object.text)).unwrap();
        prop_assert_eq!(parsed(&cut), expected);
    }

    #[test]
    fn the_values_found_by_path_are_those_serde_finds((object, paths) in object_and_ways()) {
        let named = format!(r#"{{"metadata":{{"name":"a"}},"in":{}}}"#, object.text);
        let held = kube_informer::Obj::<Value>::from_json(named).unwrap();
        for path in paths {
            let mut found = vec![&object.value];
            for step in &path {
                found = found
                    .into_iter()
                    .flat_map(|value| match (value, step.as_str()) {
                        (Value::Array(elements), "*") => elements.iter().collect(),
                        (Value::Array(elements), step) => Vec::from_iter(step.parse().ok().and_then(|at: usize| elements.get(at))),
                        (Value::Object(fields), step) if !matches!(step, "*" | "0" | "1" | "2") => Vec::from_iter(fields.get(step)),
                        _ => Vec::new(),
                    })
                    .collect();
            }
            if found.iter().any(|value| value.is_number() && !value.is_i64()) {
                continue;
            }
            let text = |value: &&Value| match value {
                Value::String(text) => Some(text.clone()),
                Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
                _ => None,
            };
            let expected: Vec<String> = found.iter().filter_map(text).collect();
            let steps: Vec<&str> = ["in"].into_iter().chain(path.iter().map(String::as_str)).collect();
            prop_assert_eq!(held.value_at(&path_of(&steps)), expected.first().cloned());
            prop_assert_eq!(held.values_at(&path_of(&steps)), expected);
        }
    }
}

#[test]
fn a_value_is_found_by_path_without_decoding() {
    let object = kube_informer::Obj::<Value>::from_json(
        json!({"metadata":{"name":"a","labels":{"x.y":"z"}},"spec":{"n":1.50,"on":true,"no":null,"list":[{"v":"é\"\n"},{"w":2}]}})
            .to_string(),
    )
    .unwrap();
    for (path, expected) in [
        ("metadata.labels['x.y']", Some("z")),
        ("spec.n", Some("1.5")),
        ("spec.on", Some("true")),
        ("spec.no", None),
        ("spec", None),
        ("spec.missing", None),
        ("spec.list[0].v", Some("é\"\n")),
        ("spec.list[*].w", Some("2")),
        ("spec.list[7].w", None),
        ("spec.n.x", None),
    ] {
        assert_eq!(object.value_at(path).unwrap().as_deref(), expected, "{path}");
    }
}

#[test]
fn a_frame_that_was_cut_short_is_not_taken_for_a_smaller_one() {
    let frame = r#"{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a","labels":{"x":"y"}},"spec":{}}}"#;
    for end in 0..frame.len() {
        assert_eq!(
            frames_of(vec![Bytes::copy_from_slice(&frame.as_bytes()[..end])], LIMIT).unwrap(),
            Vec::<Bytes>::new(),
            "{end}"
        );
    }
    assert_eq!(frames_of(vec![frame.into()], LIMIT).unwrap(), [frame]);
}

#[test]
fn a_frame_of_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"{\"a\":1}\n{\"b\":2}\n");
    let frames = frames_of(vec![chunk.clone()], LIMIT).unwrap();
    assert_eq!(frames[1].as_ptr(), chunk[8..].as_ptr());
}

#[test]
fn an_item_of_one_chunk_is_not_copied() {
    let body = Bytes::from_static(br#"{"items":[{"kind":"A","apiVersion":"b","metadata":{}}]}"#);
    let (items, _) = split(vec![body.clone()], LIMIT).unwrap();
    assert_eq!(items[0].as_ptr(), body[10..].as_ptr());
}

#[test]
fn what_is_too_long_is_an_error() {
    assert!(frames_of(vec!["abcdef\n".into()], 5).is_err());
    assert!(frames_of(vec!["abc".into(), "def".into()], 5).is_err());
    assert_eq!(frames_of(vec!["abc".into(), "de\n".into()], 5).unwrap(), ["abcde"]);
    let long = format!(r#"{{"items":[{{"a":"{}"}}]}}"#, "x".repeat(50));
    assert!(split(vec![long.clone().into()], 20).unwrap_err().contains("longer"));
    assert!(split(long.as_bytes().chunks(3).map(Bytes::copy_from_slice).collect(), 20).unwrap_err().contains("longer"));
}

#[test]
fn a_huge_unneeded_member_of_a_list_is_not_held() {
    let body = format!(r#"{{"other":["{}"],"items":null,"metadata":{{}}}}"#, "x".repeat(1000));
    let (items, end) = split(body.as_bytes().chunks(10).map(Bytes::copy_from_slice).collect(), 50).unwrap();
    assert!(items.is_empty());
    assert_eq!(end.version, None);
}

#[test]
fn nesting_has_its_limit() {
    let deep = "[".repeat(20_000);
    assert_eq!(Skip::default().feed(deep.as_bytes()), Err(kube_informer::codec::Broken::Deep));
}

#[test]
fn bookmarks_and_errors_are_read() {
    let frame = r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"12746","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"containers":null},"status":{}}}"#;
    assert!(matches!(
        WatchFrame::read(&frame.into()).unwrap(),
        WatchFrame::Bookmark { version, initial_events_end: true } if version == Version::from(12746)
    ));
    let frame = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version: 1 (2)","reason":"Expired","details":null,"code":410}}"#;
    let WatchFrame::Failed(status) = WatchFrame::read(&frame.into()).unwrap() else { panic!("a failure") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
}

#[test]
fn a_small_gzip_that_is_huge_when_plain_comes_out_in_pieces() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&vec![b' '; 8 << 20]).unwrap();
    let mut gunzip = Gunzip::default();
    gunzip.push(encoder.finish().unwrap().into());
    let (mut total, mut largest) = (0, 0);
    while let Some(bytes) = gunzip.next() {
        let bytes = bytes.unwrap();
        total += bytes.len();
        largest = largest.max(bytes.len());
    }
    assert_eq!(total, 8 << 20);
    assert!(largest <= 128 << 10, "{largest}");
}

#[test]
fn every_optional_field_of_a_gzip_header_is_skipped_also_byte_by_byte() {
    let plain = |packed: &[u8], step: usize| {
        let (mut gunzip, mut text) = (Gunzip::default(), Vec::new());
        for chunk in packed.chunks(step) {
            gunzip.push(chunk.to_vec().into());
            while let Some(bytes) = gunzip.next() {
                text.extend_from_slice(&bytes.unwrap());
            }
        }
        gunzip.finish().unwrap();
        text
    };
    let (extra, name, comment) = (b"\x04\x00more", b"a.json\0", b"none\0");
    for flags in (0_u8..32).filter(|flags| flags & 1 == 0) {
        let mut member = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255];
        let fields: [(u8, &[u8]); 3] = [(4, extra), (8, name), (16, comment)];
        fields.iter().filter(|(flag, _)| flags & flag != 0).for_each(|(_, bytes)| member.extend_from_slice(bytes));
        if flags & 2 != 0 {
            let mut crc = flate2::Crc::new();
            crc.update(&member);
            member.extend_from_slice(&crc.sum().to_le_bytes()[..2]);
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(b"text").unwrap();
        member.extend_from_slice(&encoder.finish().unwrap()[10..]);
        let twice = [&*member, &member].concat();
        assert_eq!((plain(&twice, 1), plain(&twice, 1000)), (b"texttext".to_vec(), b"texttext".to_vec()), "{flags}");
        assert!(Gunzip::default().finish().is_err(), "an empty body is not gzip");
    }
}
