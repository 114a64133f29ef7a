//! Content negotiation: headers, key order, escaping, pretty printing, compression, metadata only,
//! 406 and 415.

use crate::harness::{Answer, Api, Case, case, failure};
use flate2::read::{GzDecoder, MultiGzDecoder};
use serde_json::{Value, json};
use std::io::Read;

pub(crate) const CASES: &[Case] = &[
    case!(every_answer_has_its_headers, "Audit-Id, Cache-Control, Content-Type, the two flow headers, Date"),
    case!(short_bodies_have_a_length, "bodies of up to 2048 bytes have a Content-Length, longer ones are chunked"),
    case!(
        metadata_has_its_key_order,
        "typed objects: kind, apiVersion, metadata in the order of its fields, maps sorted"
    ),
    case!(list_items_have_no_kind, "items of typed lists have neither kind nor apiVersion; an empty list has items"),
    case!(some_text_is_escaped, "< > & U+2028 and control characters are escaped, other UTF-8 is not"),
    case!(pretty_printing_is_asked_for, "pretty=true or 1: indented by two, no line break at the end"),
    case!(
        browsers_and_curl_get_pretty_answers,
        "User-Agent curl…, Wget… and Mozilla/5.0… are answered pretty, pretty=false is not"
    ),
    case!(large_answers_are_compressed, "gzip from 131073 bytes on, in one member, with Vary"),
    case!(
        compression_must_be_asked_for,
        "gzip only if an element of Accept-Encoding is exactly gzip: not with a quality, not for *"
    ),
    case!(
        streaming_lists_are_compressed_by_flush,
        "a streaming list with gzip: one member per flush, whatever its size"
    ),
    case!(plain_watches_are_not_compressed, "a watch from a version, or without bookmarks, is never compressed"),
    case!(compressed_bodies_are_not_read, "a gzipped request body is not decoded"),
    case!(
        metadata_alone_by_accept,
        "PartialObjectMetadata(List) by Accept on get, list, create, update and patch; an empty list has null items"
    ),
    case!(metadata_alone_in_its_old_version, "PartialObjectMetadata of v1beta1 is served too"),
    case!(
        the_wrong_form_of_metadata_is_not_acceptable,
        "PartialObjectMetadata of a list, or the list form of an object, is a 406"
    ),
    case!(the_list_form_on_a_watch_is_an_empty_stream, "PartialObjectMetadataList on a watch: 200, empty, ends"),
    case!(unknown_representations_are_not_acceptable, "an unknown Accept is a 406 that lists what there is, pretty"),
    case!(the_first_acceptable_one_is_taken, "of several media types the first that fits; none and */* are JSON"),
    case!(unknown_bodies_are_415, "POST, PUT and DELETE with an unknown Content-Type are 415"),
    case!(json_may_have_a_charset, "application/json; charset=utf-8 is JSON"),
    case!(yaml_watches_are_not_acceptable, "a watch in YAML is a 406"),
    case!(errors_keep_the_plain_form, "a Status is a v1 Status under PartialObjectMetadata too, and pretty"),
    case!(bodies_may_be_yaml, "create, update, delete and apply read YAML; the answer is JSON"),
    case!(wrong_yaml_is_refused, "what is no YAML, or YAML of something else, is a 400"),
];

async fn every_answer_has_its_headers(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    for (path, code) in [("configmaps", 200), ("configmaps/a", 200), ("configmaps/b", 404), ("nope", 404)] {
        let answer = api.get(&ns.path(path)).await;
        answer.is(code);
        assert_eq!(answer.header("cache-control"), Some("no-cache, private"));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        for name in ["audit-id", "x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"] {
            assert_eq!(answer.header(name).map(str::len), Some(36), "{name} of {path}");
        }
        assert!(answer.header("date").is_some_and(|date| date.ends_with(" GMT")), "{path}");
    }
}

async fn short_bodies_have_a_length(api: Api) {
    let ns = api.namespace().await;
    for (size, chunked) in [(2048, false), (2049, true), (5000, true)] {
        let answer = sized(&api, &ns.path("configmaps"), size).await;
        let length = size.to_string();
        assert_eq!(answer.header("content-length"), (!chunked).then_some(length.as_str()));
        assert_eq!(answer.header("transfer-encoding"), chunked.then_some("chunked"));
    }
}

async fn metadata_has_its_key_order(api: Api) {
    let ns = api.namespace().await;
    let owner = ns.configmap("owner").await.uid();
    let made = ns
        .create(json!({
            "data": {"b": "2", "a": "1"},
            "binaryData": {"x": "AA=="},
            "immutable": false,
            "metadata": {
                "finalizers": ["example.com/one"],
                "ownerReferences": [{"uid": owner, "kind": "ConfigMap", "name": "owner", "apiVersion": "v1", "controller": true}],
                "annotations": {"z": "1", "a": "2"},
                "labels": {"z": "1", "a": "2"},
                "name": "a",
                "generateName": "unused-",
            },
        }))
        .await;
    let object = |more: &str| {
        format!(
            "{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"a\",\"generateName\":\"unused-\",\"namespace\":\"{}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\",{more}\"labels\":{{\"a\":\"2\",\"z\":\"1\"}},\"annotations\":{{\"a\":\"2\",\"z\":\"1\"}},\"ownerReferences\":[{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"owner\",\"uid\":\"{owner}\",\"controller\":true}}],\"finalizers\":[\"example.com/one\"]}},\"immutable\":false,\"data\":{{\"a\":\"1\",\"b\":\"2\"}},\"binaryData\":{{\"x\":\"AA==\"}}}}\n",
            ns.name
        )
    };
    made.says(201, &object(""));
    let deleted = api.delete(&ns.path("configmaps/a")).await;
    deleted.says(200, &object("\"deletionTimestamp\":\"<time>\",\"deletionGracePeriodSeconds\":0,"));
    api.patch(&ns.path("configmaps/a"), "merge-patch", json!({"metadata": {"finalizers": null}})).await.is(200);
}

async fn list_items_have_no_kind(api: Api) {
    let ns = api.namespace().await;
    api.get(&ns.path("configmaps")).await.says(
        200,
        "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"<n>\"},\"items\":[]}\n",
    );
    ns.configmap("a").await;
    api.get(&ns.path("configmaps")).await.says(200, &format!("{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"<n>\"}},\"items\":[{{\"metadata\":{{\"name\":\"a\",\"namespace\":\"{}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\"}}}}]}}\n", ns.name));
}

async fn some_text_is_escaped(api: Api) {
    let ns = api.namespace().await;
    let text = "<a> & \u{2028}\u{2029} \u{1}\u{8}\u{c}\n\r\t \u{7f} é 🦀 \"\\/";
    ns.create(json!({"metadata": {"name": "a"}, "data": {"k": text}})).await;
    let answer = api.get(&ns.path("configmaps/a")).await;
    let expected =
        "\"data\":{\"k\":\"\\u003ca\\u003e \\u0026 \\u2028\\u2029 \\u0001\\b\\f\\n\\r\\t \u{7f} é 🦀 \\\"\\\\/\"}}\n";
    assert!(answer.text().ends_with(expected), "{}", answer.text());
}

async fn pretty_printing_is_asked_for(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let expected = format!(
        "{{\n  \"kind\": \"ConfigMap\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {{\n    \"name\": \"a\",\n    \"namespace\": \"{}\",\n    \"uid\": \"<uid>\",\n    \"resourceVersion\": \"<n>\",\n    \"creationTimestamp\": \"<time>\"\n  }}\n}}",
        ns.name
    );
    for value in ["true", "1"] {
        api.get(&ns.path(&format!("configmaps/a?pretty={value}"))).await.says(200, &expected);
    }
    for value in ["false", "0"] {
        assert!(!api.get(&ns.path(&format!("configmaps/a?pretty={value}"))).await.text().contains("\n "));
    }
    api.get(&ns.path("configmaps/b?pretty=true")).await.says(404, "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"configmaps \\\"b\\\" not found\",\n  \"reason\": \"NotFound\",\n  \"details\": {\n    \"name\": \"b\",\n    \"kind\": \"configmaps\"\n  },\n  \"code\": 404\n}");
    let empty = api.namespace_called("empty").await;
    api.get(&empty.path("configmaps?pretty=true")).await.says(200, "{\n  \"kind\": \"ConfigMapList\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {\n    \"resourceVersion\": \"<n>\"\n  },\n  \"items\": []\n}");
}

async fn browsers_and_curl_get_pretty_answers(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    for (agent, query, pretty) in [
        ("curl/8.5.0", "", true),
        ("Mozilla/5.0 (X11; Linux x86_64)", "", true),
        ("curl/8.5.0", "?pretty=false", false),
        ("kubectl/v1.37.1", "", false),
        ("Wget/1.21", "", true),
        ("conformance/1", "", false),
    ] {
        let answer =
            api.request("GET", &ns.path(&format!("configmaps/a{query}"))).header("user-agent", agent).send().await;
        assert_eq!(answer.is(200).text().contains("\n  \"kind\": \"ConfigMap\""), pretty, "{agent} {query}");
    }
}

async fn large_answers_are_compressed(api: Api) {
    let ns = api.namespace().await;
    let path = ns.path("configmaps");
    for (size, compressed) in [(131_072, false), (131_073, true)] {
        let plain = sized(&api, &path, size).await;
        let answer = api.request("GET", &format!("{path}/sized")).header("accept-encoding", "gzip").send().await;
        assert_eq!(answer.header("content-encoding"), compressed.then_some("gzip"), "{size}");
        assert_eq!(answer.header("vary"), compressed.then_some("Accept-Encoding"), "{size}");
        let body = if compressed { one_member(&answer.body) } else { answer.body.to_vec() };
        assert!(body == plain.body, "the compressed answer differs");
    }
    let list = api.request("GET", &path).header("accept-encoding", "deflate, gzip").send().await;
    assert_eq!(list.header("content-encoding"), Some("gzip"));
    let list: Value = serde_json::from_slice(&one_member(&list.body)).unwrap();
    assert_eq!(list["items"][0]["metadata"]["name"], "sized");
}

async fn compression_must_be_asked_for(api: Api) {
    let ns = api.namespace().await;
    sized(&api, &ns.path("configmaps"), 200_000).await;
    for encoding in ["identity", "*", "gzip;q=0", "gzip;q=0.5", "gzip;q=1.0", "deflate, br", "GZIP", "x-gzip"] {
        let answer = api.request("GET", &ns.path("configmaps/sized")).header("accept-encoding", encoding).send().await;
        assert_eq!(answer.is(200).header("content-encoding"), None, "{encoding}");
    }
    for encoding in ["br, gzip", "gzip;q=0,gzip"] {
        let answer = api.request("GET", &ns.path("configmaps/sized")).header("accept-encoding", encoding).send().await;
        assert_eq!(answer.is(200).header("content-encoding"), Some("gzip"), "{encoding}");
    }
}

async fn streaming_lists_are_compressed_by_flush(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    for (query, next) in [
        ("watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "c"),
        ("watch=true&allowWatchBookmarks=true", "d"),
    ] {
        let request = api.request("GET", &ns.path(&format!("configmaps?{query}"))).header("accept-encoding", "gzip");
        let mut watch = request.watch().await;
        assert_eq!(watch.headers["content-encoding"], "gzip");
        assert_eq!(watch.headers["vary"], "Accept-Encoding");
        let mut bytes = Vec::new();
        while !members(&bytes).concat().contains("k8s.io/initial-events-end") {
            bytes.extend(watch.bytes().await.expect("the initial events"));
        }
        assert!(members(&bytes).concat().contains("\"name\":\"b\""));
        let before = members(&bytes).len();
        ns.configmap(next).await;
        while !members(&bytes).concat().contains(&format!("\"name\":\"{next}\"")) {
            bytes.extend(watch.bytes().await.expect("a further event"));
        }
        let members = members(&bytes);
        assert!(members.len() > before, "no member of its own: {members:?}");
        assert!(
            members.iter().all(|member| member.starts_with("{\"type\":") && member.ends_with("}\n")),
            "{members:?}"
        );
        // Go's reader reads the header of the next member before it returns the data of the last
        // block, so each member must be flushed before it ends.
        let flushes = bytes.windows(FLUSH.len()).filter(|window| window == &FLUSH).count();
        assert!(flushes >= members.len(), "a member that was not flushed before it ended");
    }
}

/// The flush marker of a deflate stream: an empty stored block.
const FLUSH: [u8; 4] = [0x00, 0x00, 0xff, 0xff];

async fn plain_watches_are_not_compressed(api: Api) {
    let ns = api.namespace().await;
    let version = ns.configmap("a").await.version();
    for query in [
        "watch=true".to_owned(),
        format!("watch=true&allowWatchBookmarks=true&resourceVersion={version}"),
        "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
        "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true".to_owned(),
    ] {
        let request = api.request("GET", &ns.path(&format!("configmaps?{query}"))).header("accept-encoding", "gzip");
        assert_eq!(request.watch().await.headers.get("content-encoding"), None, "{query}");
    }
}

async fn compressed_bodies_are_not_read(api: Api) {
    let ns = api.namespace().await;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, br#"{"metadata":{"name":"a"}}"#).unwrap();
    let body = gzip.finish().unwrap();
    let request = api.request("POST", &ns.path("configmaps")).header("content-type", "application/json");
    request.header("content-encoding", "gzip").bare_body(body).send().await.is(400);
}

const PARTIAL: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn metadata_alone_by_accept(api: Api) {
    let ns = api.namespace().await;
    let object = |name: &str| {
        format!(
            r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{{"name":"{name}","namespace":"{}","uid":"<uid>","resourceVersion":"<n>","creationTimestamp":"<time>"}}}}"#,
            ns.name
        )
    };
    let body = |name: &str| json!({"metadata": {"name": name}, "data": {"k": "v"}});
    let as_metadata = |method: &str, path: &str| api.request(method, &ns.path(path)).header("accept", PARTIAL);
    let one = object("a") + "\n";
    as_metadata("POST", "configmaps").body("application/json", body("a")).send().await.says(201, &one);
    as_metadata("GET", "configmaps/a").send().await.says(200, &one);
    as_metadata("PUT", "configmaps/a").body("application/json", body("a")).send().await.says(200, &one);
    as_metadata("PATCH", "configmaps/a").body("application/merge-patch+json", "{}").send().await.says(200, &one);
    ns.create(body("b")).await;
    let list = |items: &str, rest: &str| {
        format!(
            "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"resourceVersion\":\"<n>\"{rest}}},\"items\":[{items}]}}\n"
        )
    };
    let get = async |path: &str| api.request("GET", &ns.path(path)).header("accept", PARTIAL_LIST).send().await;
    let both = format!("{},{}", object("a"), object("b"));
    get("configmaps").await.says(200, &list(&both, ""));
    let more = r#","continue":"<token>","remainingItemCount":1"#;
    get("configmaps?limit=1").await.says(200, &list(&object("a"), more));
    get("secrets").await.says(200, &list("", "").replace("[]", "null"));
}

async fn metadata_alone_in_its_old_version(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let old = PARTIAL.replace("v=v1", "v=v1beta1");
    let answer = api.request("GET", &ns.path("configmaps/a")).header("accept", &old).send().await;
    assert_eq!(answer.is(200).json()["apiVersion"], "meta.k8s.io/v1beta1");
}

async fn the_wrong_form_of_metadata_is_not_acceptable(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let refusal = |why: &str| {
        format!(
            "{{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {{}},\n  \"status\": \"Failure\",\n  \"message\": \"{why}\",\n  \"reason\": \"NotAcceptable\",\n  \"code\": 406\n}}"
        )
    };
    let answer = api.request("GET", &ns.path("configmaps")).header("accept", PARTIAL).send().await;
    answer.says(
        406,
        &refusal("you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"),
    );
    let answer = api.request("GET", &ns.path("configmaps/a")).header("accept", PARTIAL_LIST).send().await;
    answer.says(
        406,
        &refusal("you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"),
    );
}

async fn the_list_form_on_a_watch_is_an_empty_stream(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let request = api.request("GET", &ns.path("configmaps?watch=true&timeoutSeconds=5")).header("accept", PARTIAL_LIST);
    request.watch().await.end().await;
}

async fn unknown_representations_are_not_acceptable(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let objects = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let all = format!("{objects}, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
    let refusal = |there: &str| {
        format!(
            "{{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {{}},\n  \"status\": \"Failure\",\n  \"message\": \"406: Not Acceptable\\n\\nAvailable representations: {there}\",\n  \"reason\": \"NotAcceptable\",\n  \"details\": {{}},\n  \"code\": 406\n}}"
        )
    };
    for (path, there) in [
        ("configmaps", &all[..]),
        ("configmaps?watch=true", &all),
        ("configmaps/a", objects),
        ("configmaps/missing", objects),
    ] {
        let answer = api.request("GET", &ns.path(path)).header("accept", "text/html").send().await;
        answer.says(406, &refusal(there));
    }
    api.request("GET", "/version").header("accept", "text/html").send().await.says(406, &refusal("application/json"));
    let answer = api.request("GET", &ns.path("configmaps")).header("accept", "application/*").send().await;
    answer.says(406, &failure(&format!(
        r#""message":"406: Not Acceptable\n\nAvailable representations: {all}","reason":"NotAcceptable","details":{{}},"code":406"#
    )));
    let bogus = PARTIAL.replace("PartialObjectMetadata", "Bogus");
    let answer = api.request("GET", &ns.path("configmaps/a")).header("accept", &bogus).send().await;
    assert_eq!(answer.is(406).json()["message"], format!("only the following media types are accepted: {objects}"));
}

async fn the_first_acceptable_one_is_taken(api: Api) {
    let ns = api.namespace().await;
    let made = ns.configmap("a").await;
    for accept in [
        "text/html, application/json",
        "*/*",
        "",
        "application/json;q=0.5",
        "application/json;charset=utf-8",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v2, application/json",
        "text/html, */*",
    ] {
        let answer = api.request("GET", &ns.path("configmaps/a")).header("accept", accept).send().await;
        assert!(answer.code == 200 && answer.text() == made.text(), "{accept}: {} {}", answer.code, answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"), "{accept}");
    }
    let accept = format!("{PARTIAL}, application/json");
    let answer = api.request("GET", &ns.path("configmaps/a")).header("accept", &accept).send().await;
    assert_eq!(answer.is(200).json()["kind"], "PartialObjectMetadata");
    let accept = format!("application/json, {PARTIAL}");
    let answer = api.request("GET", &ns.path("configmaps/a")).header("accept", &accept).send().await;
    assert_eq!(answer.is(200).json()["kind"], "ConfigMap");
}

async fn unknown_bodies_are_415(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let refusal = failure(
        r#""message":"the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf","reason":"UnsupportedMediaType","code":415"#,
    );
    for media in ["text/plain", "application/merge-patch+json", "garbage"] {
        for (method, path) in [("POST", "configmaps"), ("PUT", "configmaps/a"), ("DELETE", "configmaps/a")] {
            let request = api.request(method, &ns.path(path)).body(media, json!({"metadata": {"name": "a"}}));
            request.send().await.says(415, &refusal);
        }
    }
}

async fn json_may_have_a_charset(api: Api) {
    let ns = api.namespace().await;
    let request = api.request("POST", &ns.path("configmaps"));
    request.body("application/json; charset=utf-8", json!({"metadata": {"name": "a"}})).send().await.is(201);
    let request = api.request("PATCH", &ns.path("configmaps/a"));
    request.body("application/merge-patch+json; charset=utf-8", "{}").send().await.is(200);
}

async fn yaml_watches_are_not_acceptable(api: Api) {
    let ns = api.namespace().await;
    let answer =
        api.request("GET", &ns.path("configmaps?watch=true")).header("accept", "application/yaml").send().await;
    answer.is(406);
}

async fn errors_keep_the_plain_form(api: Api) {
    let ns = api.namespace().await;
    let answer = api.request("GET", &ns.path("configmaps/b")).header("accept", PARTIAL).send().await;
    answer.says(404, "{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\",\n  \"metadata\": {},\n  \"status\": \"Failure\",\n  \"message\": \"configmaps \\\"b\\\" not found\",\n  \"reason\": \"NotFound\",\n  \"details\": {\n    \"name\": \"b\",\n    \"kind\": \"configmaps\"\n  },\n  \"code\": 404\n}");
}

/// Creates a config map whose GET response has exactly this many bytes. Returns that response.
async fn sized(api: &Api, collection: &str, size: usize) -> Answer {
    let path = format!("{collection}/sized");
    let mut letters = size / 2;
    // The overhead is known from the first response; resource versions may get longer in the
    // meantime.
    for _ in 0..5 {
        let body = json!({"metadata": {"name": "sized"}, "data": {"k": "x".repeat(letters)}});
        if api.post(collection, &body).await.code == 409 {
            api.put(&path, &body).await.is(200);
        }
        let answer = api.get(&path).await;
        if answer.body.len() == size {
            return answer;
        }
        letters = letters + size - answer.body.len();
    }
    panic!("never {size} bytes");
}

/// Decodes a gzip body that must consist of a single member.
fn one_member(body: &[u8]) -> Vec<u8> {
    let (mut one, mut all) = (Vec::new(), Vec::new());
    GzDecoder::new(body).read_to_end(&mut one).expect("gzip");
    MultiGzDecoder::new(body).read_to_end(&mut all).expect("gzip");
    assert!(one == all, "more than one member");
    one
}

/// Decodes the complete gzip members at the start of a body.
fn members(mut body: &[u8]) -> Vec<String> {
    let mut members = Vec::new();
    while !body.is_empty() {
        let mut decoder = flate2::bufread::GzDecoder::new(body);
        let mut text = String::new();
        if decoder.read_to_string(&mut text).is_err() {
            break;
        }
        body = decoder.into_inner();
        members.push(text);
    }
    members
}

async fn bodies_may_be_yaml(api: Api) {
    let ns = api.namespace().await;
    let send = async |method: &str, path: &str, kind: &str, body: &str| {
        let answer = api.request(method, &ns.path(path)).body(kind, body).send().await;
        assert_eq!(answer.header("content-type"), Some("application/json"));
        answer
    };
    let text = "# a comment\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: |\n    one\n    two\n  number: \"1\"\n---\nmore: here\n";
    let made = send("POST", "configmaps", "application/yaml", text).await;
    assert_eq!(made.is(201).json()["data"], json!({"k": "one\ntwo\n", "number": "1"}));
    let changed = send("PUT", "configmaps/a", "application/yaml", "metadata: {name: a}\ndata: {c: 'x'}\n").await;
    assert_eq!(changed.is(200).json()["data"], json!({"c": "x"}));
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\ndata:\n  # why\n  k: v\n";
    let applied = send("PATCH", "configmaps/b?fieldManager=m", "application/apply-patch+yaml", config).await;
    assert_eq!(applied.is(201).json()["data"], json!({"k": "v"}));
    send("DELETE", "configmaps/a", "application/yaml", "preconditions: {uid: other}\n").await.is(409);
    send("DELETE", "configmaps/a", "application/yaml", "propagationPolicy: Background\n").await.is(200);
    let kind = api.definition(|_| {}).await;
    let thing = format!(
        "apiVersion: {}/v1\nkind: Thing\nmetadata: {{name: a}}\nspec: {{flag: yes, quoted: \"yes\"}}\n",
        kind.group
    );
    let made = api.request("POST", &kind.things(&ns)).body("application/yaml", thing).send().await;
    assert_eq!(made.is(201).json()["spec"], json!({"flag": true, "quoted": "yes"}));
}

async fn wrong_yaml_is_refused(api: Api) {
    let ns = api.namespace().await;
    let post =
        async |body: &str| api.request("POST", &ns.path("configmaps")).body("application/yaml", body).send().await;
    let broken = post("a: b: c\n").await;
    assert!(broken.is(400).text().contains("the object provided is unrecognized"), "{}", broken.text());
    let number = post("metadata: {name: a}\ndata: {k: 1}\n").await;
    number.says(400, &failure(
        r#""message":"ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string","reason":"BadRequest","code":400"#,
    ));
    post("- a\n").await.is(400);
    post("").await.is(422);
    api.request("PATCH", &ns.path("configmaps/a?fieldManager=m"))
        .body("application/apply-patch+yaml", "a: b: c\n")
        .send()
        .await
        .is(400);
    api.request("PATCH", &ns.path("configmaps/a")).body("application/yaml", "a: b\n").send().await.is(415);
}
