//! Shard selectors (KEP-5866), on servers that obey them and on servers that ignore them.

use std::collections::BTreeSet;

use crate::harness::{Api, Case, Namespace, case, failure};
use crate::selectors::escape;
use serde_json::json;

pub(crate) const CASES: &[Case] = &[
    case!(shards_partition_a_collection, "ranges over the FNV-1a hash of the uid; ignored without the feature"),
    case!(shards_by_namespace_hold_whole_namespaces, "ranges over the FNV-1a hash of the namespace"),
    case!(typed_lists_name_the_shard, "metadata.shardInfo of a typed list only; no remainingItemCount"),
    case!(a_watch_sees_its_shard_only, "initial events and changes of one shard; an ordinary end mark, no echo"),
    case!(shard_selectors_that_make_no_sense_are_an_internal_error, "a 500 without a reason, on lists and watches"),
    case!(shard_selectors_are_read_as_cel, "white space, brackets, comments, quotes and escapes are CEL's"),
    case!(a_collection_is_deleted_by_shard, "deletecollection obeys the selector, or deletes everything"),
];

const UID: &str = "object.metadata.uid";
const NAMESPACE: &str = "object.metadata.namespace";
const STREAMING_LIST: &str =
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn shards_partition_a_collection(api: Api) {
    let ns = api.namespace().await;
    let uids = objects(&ns, 24).await;
    for (start, end) in quarters() {
        let list = shard(&api, &ns.path("configmaps"), &range(UID, start, end)).await;
        let within = |uid: &str| (start..end).contains(&u128::from(fnv_1a(uid)));
        let expected = uids.iter().filter(|uid| !api.is_sharded() || within(uid)).cloned().collect();
        assert_eq!(uids_of(&list), expected, "{start:x} to {end:x}");
    }
    let (first, last) = (quarters()[0], quarters()[3]);
    let both = format!("{} || {}", range(UID, first.0, first.1), range(UID, last.0, last.1));
    let within = |uid: &str| !(first.1..last.0).contains(&u128::from(fnv_1a(uid)));
    let expected = uids.iter().filter(|uid| !api.is_sharded() || within(uid)).cloned().collect();
    assert_eq!(uids_of(&shard(&api, &ns.path("configmaps"), &both).await), expected);
}

async fn shards_by_namespace_hold_whole_namespaces(api: Api) {
    let ns = api.namespace().await;
    objects(&ns, 3).await;
    let here = u128::from(fnv_1a(&ns.name));
    let with = shard(&api, &ns.path("configmaps"), &range(NAMESPACE, here, here + 1)).await;
    assert_eq!(uids_of(&with).len(), 3);
    let without = shard(&api, &ns.path("configmaps"), &range(NAMESPACE, here ^ 1, (here ^ 1) + 1)).await;
    assert_eq!(uids_of(&without).len(), if api.is_sharded() { 0 } else { 3 });
}

async fn typed_lists_name_the_shard(api: Api) {
    let ns = api.namespace().await;
    objects(&ns, 3).await;
    let everything = range(UID, 0, 1 << 64);
    let padded = format!("  ({})", everything.replace(", ", " ,  "));
    let expected = if api.is_sharded() { json!({"selector": everything}) } else { json!(null) };
    let list = shard(&api, &ns.path("configmaps"), &padded).await;
    assert_eq!(list["metadata"]["shardInfo"], expected);
    let page = api.get(&ns.path(&format!("configmaps?limit=2&shardSelector={}", escape(&padded)))).await;
    let page = page.is(200).json();
    assert_eq!(page["metadata"]["shardInfo"], expected);
    assert!(page["metadata"]["continue"].is_string());
    assert_eq!(page["metadata"]["remainingItemCount"].is_null(), api.is_sharded());

    for form in ["Table", "PartialObjectMetadataList"] {
        let accept = format!("application/json;as={form};g=meta.k8s.io;v=v1");
        let path = ns.path(&format!("configmaps?shardSelector={}", escape(&everything)));
        let list = api.request("GET", &path).header("accept", &accept).send().await;
        assert_eq!(list.is(200).json()["metadata"]["shardInfo"], json!(null), "{form}");
    }
    let kind = api.definition(|_| {}).await;
    kind.create(&kind.things(&ns), "a", json!(null)).await;
    let nothing = range(UID, 0, 1);
    let list = shard(&api, &kind.things(&ns), &nothing).await;
    assert_eq!(list["metadata"]["shardInfo"], json!(null));
    assert_eq!(uids_of(&list).len(), if api.is_sharded() { 0 } else { 1 });
}

async fn a_watch_sees_its_shard_only(api: Api) {
    let ns = api.namespace().await;
    let uids = objects(&ns, 8).await;
    let half = range(UID, 0, 1 << 63);
    let is_first = |uid: &str| !api.is_sharded() || fnv_1a(uid) < 1 << 63;
    let selector = escape(&half);
    let mut watch = api.watch(&ns.path(&format!("configmaps?{STREAMING_LIST}&shardSelector={selector}"))).await;
    let mut seen = BTreeSet::new();
    loop {
        let event = watch.next().await;
        if event.kind() == "BOOKMARK" {
            assert!(event.ends_initial_events());
            assert_eq!(event.object()["metadata"]["shardInfo"], json!(null));
            break;
        }
        seen.insert(event.object()["metadata"]["uid"].as_str().unwrap().to_owned());
    }
    assert_eq!(seen, uids.iter().filter(|uid| is_first(uid)).cloned().collect());

    // At least one object of either half, and the last one of the watched half.
    let (mut made, mut halves) = (Vec::new(), BTreeSet::new());
    while halves.len() < 2 || made.last().is_none_or(|(_, uid): &(_, String)| fnv_1a(uid) >= 1 << 63) {
        let name = format!("more-{}", made.len());
        let uid = ns.configmap(&name).await.uid();
        halves.insert(fnv_1a(&uid) < 1 << 63);
        made.push((name, uid));
    }
    for (name, _) in made.iter().filter(|(_, uid)| is_first(uid)) {
        watch.expect_change("ADDED", name).await;
    }
    for (name, uid) in &made {
        api.delete(&ns.path(&format!("configmaps/{name}"))).await.is(200);
        if is_first(uid) {
            watch.expect_change("DELETED", name).await;
        }
    }
}

async fn shard_selectors_that_make_no_sense_are_an_internal_error(api: Api) {
    let ns = api.namespace().await;
    let (zero, one, end) = ("0x0000000000000000", "0x0000000000000001", "0x10000000000000000");
    let not_text = "hexStart must be a string literal";
    for (selector, why) in [
        (" ".to_owned(), "empty shard selector is not allowed; omit the parameter for unfiltered lists".to_owned()),
        ("garbage".to_owned(), "unexpected expression kind 3; expected shardRange() call or || operator".to_owned()),
        ("'a'".to_owned(), "unexpected expression kind 5; expected shardRange() call or || operator".to_owned()),
        ("a.b".to_owned(), "unexpected expression kind 7; expected shardRange() call or || operator".to_owned()),
        ("range(1)".to_owned(), r#"unsupported function \"range\"; only shardRange() and || are allowed"#.to_owned()),
        ("shardRange()".to_owned(), "shardRange() requires exactly 3 arguments, got 0".to_owned()),
        (
            format!("shardRange({UID}, '0x0', '{end}')"),
            format!(r#"hexStart must be a 0x-prefixed 16-digit hex value, got \"0x0\" (did you mean \"{zero}\"?)"#),
        ),
        (
            format!("shardRange({UID}, '{zero}', '0x100000000000000000')"),
            r#"hexEnd: hex value too long (18 chars, max 17): \"100000000000000000\""#.to_owned(),
        ),
        (
            format!("shardRange({UID}, '{zero}', '0x10000000000000001')"),
            "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got ".to_owned()
                + r#"\"0x10000000000000001\""#,
        ),
        (
            format!("shardRange({UID}, '0x000000000000000A', '{end}')"),
            r#"hexStart: invalid hex character \"A\" in \"0x000000000000000A\""#.to_owned(),
        ),
        (format!("shardRange({UID}, '00', '{end}')"), r#"hexStart must have '0x' prefix, got \"00\""#.to_owned()),
        (format!("shardRange({UID}, '0x', '{end}')"), "hexStart: hex value is required after '0x'".to_owned()),
        (format!("shardRange({UID}, 1, '{end}')"), format!("{not_text}, got int64")),
        (format!("shardRange({UID}, b'1', '{end}')"), format!("{not_text}, got []uint8")),
        (format!("shardRange({UID}, a, '{end}')"), format!("{not_text} (e.g. '0xff'), got expression kind 3")),
        (
            format!("shardRange({UID}, '{one}', '{one}')"),
            format!("shard range start {one} must be less than end {one}"),
        ),
        (
            format!("shardRange(object.metadata.name, '{zero}', '{end}')"),
            r#"unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace"#
                .to_owned(),
        ),
        (
            format!("shardRange(f(), '{zero}', '{end}')"),
            "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 1"
                .to_owned(),
        ),
        (
            format!("{} || {}", range(UID, 0, 1), range(NAMESPACE, 0, 1)),
            format!(r#"all shard ranges must use the same field, got \"{UID}\" and \"{NAMESPACE}\""#),
        ),
    ] {
        // A server that ignores the selector opens the watch.
        let queries = ["", "&limit=1", "&watch=true"].into_iter().take(if api.is_sharded() { 3 } else { 2 });
        for query in queries {
            let path = ns.path(&format!("configmaps?shardSelector={}{query}", escape(&selector)));
            let answer = api.get(&path).await;
            match api.is_sharded() {
                true => {
                    let said = format!(r#""message":"invalid shard selector: {why}","code":500"#);
                    answer.says(500, &failure(&said));
                }
                false => {
                    answer.is(200);
                }
            }
        }
    }
}

async fn shard_selectors_are_read_as_cel(api: Api) {
    let ns = api.namespace().await;
    let (zero, end) = ("0x0000000000000000", "0x10000000000000000");
    for accepted in [
        format!("shardRange({UID},'{zero}','{end}')"),
        format!("\n shardRange (\tobject . metadata\n.uid, \"{zero}\", '''{end}''') // all of it"),
        format!("((shardRange(({UID}), ('{zero}'), r'{end}')))"),
        format!(r"shardRange({UID}, '\x30x0000000000000000', '\u0030x1000000000000000\060')"),
        format!("(a || b).shardRange({UID}, '{zero}', '{end}')"),
        format!("{0} || ({0} || {0}) || {0}", range(UID, 0, 1)),
        format!("{} || {}", range(UID, 0, 9), range(UID, 5, 7)),
    ] {
        let path = ns.path(&format!("configmaps?shardSelector={}", escape(&accepted)));
        api.get(&path).await.is(200);
    }
    for refused in [
        format!("shardRange({UID}, '{zero}', '{end}'"),
        format!("shardRange({UID}, '{zero}', '{end}',)"),
        format!("shardRange({UID}, '{zero}', '{end}'))"),
        format!("shardRange({UID} '{zero}', '{end}')"),
        format!("shardRange({UID}, '{zero}\n', '{end}')"),
        format!("shardRange({UID}, '{zero}, '{end}')"),
        format!("!shardRange({UID}, '{zero}', '{end}')"),
        format!("{} |", range(UID, 0, 1)),
        format!("{} ||", range(UID, 0, 1)),
        format!("|| {}", range(UID, 0, 1)),
        format!("{} && {0}", range(UID, 0, 1)),
        format!("true ? {} : {0}", range(UID, 0, 1)),
        format!("[{}]", range(UID, 0, 1)),
        format!("shardRange(.{UID}, '{zero}', '{end}')"),
        format!("shardrange({UID}, '{zero}', '{end}')"),
        format!("shardRange({UID}, '{zero}', '{end}').uid"),
        format!("shardRange({UID}, '{zero}' || '{zero}', '{end}')"),
        r"shardRange(object.metadata.uid, '\q', '0x10000000000000000')".to_owned(),
        "🦀".to_owned(),
    ] {
        let answer = api.get(&ns.path(&format!("configmaps?shardSelector={}", escape(&refused)))).await;
        let message = answer.is(if api.is_sharded() { 500 } else { 200 }).json()["message"].clone();
        if api.is_sharded() {
            let message = message.as_str().unwrap();
            assert!(message.starts_with("invalid shard selector: "), "{refused}: {message}");
        }
    }
}

async fn a_collection_is_deleted_by_shard(api: Api) {
    let ns = api.namespace().await;
    let uids = objects(&ns, 8).await;
    let half = range(UID, 0, 1 << 63);
    api.delete(&ns.path(&format!("configmaps?shardSelector={}", escape(&half)))).await.is(200);
    let left = uids_of(&api.get(&ns.path("configmaps")).await.is(200).json());
    assert_eq!(left, uids.into_iter().filter(|uid| api.is_sharded() && fnv_1a(uid) >= 1 << 63).collect());
}

/// Creates this many config maps and returns their uids.
async fn objects(ns: &Namespace, count: usize) -> BTreeSet<String> {
    let mut uids = BTreeSet::new();
    for number in 0..count {
        uids.insert(ns.configmap(&format!("a-{number}")).await.uid());
    }
    uids
}

/// The list of a shard.
async fn shard(api: &Api, path: &str, selector: &str) -> serde_json::Value {
    api.get(&format!("{path}?shardSelector={}", escape(selector))).await.is(200).json()
}

fn uids_of(list: &serde_json::Value) -> BTreeSet<String> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["uid"].as_str().unwrap().to_owned()).collect()
}

fn range(field: &str, start: u128, end: u128) -> String {
    format!("shardRange({field}, '{start:#018x}', '{end:#018x}')")
}

/// The hashes in four ranges.
fn quarters() -> [(u128, u128); 4] {
    [0, 1, 2, 3].map(|quarter| (quarter << 62, (quarter + 1) << 62))
}

fn fnv_1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
