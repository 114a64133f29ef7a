//! Protobuf: exact bytes of objects, lists, watches, failures and documents, and request bodies.

use crate::harness::{Answer, Api, Case, Message, Namespace, Stream, case, configmap};
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};
use std::io::Read;

pub(crate) const CASES: &[Case] = &[
    case!(an_object_is_a_message, "get: the message in its envelope, what is no pointer even if it is empty"),
    case!(a_list_is_a_message, "list: items without an envelope; pages with continue and remainingItemCount"),
    case!(a_watch_is_framed_by_lengths, "watch: a length of four bytes, an event, its object in an envelope"),
    case!(a_streaming_list_ends_with_a_bookmark, "watch: the bookmark that ends the initial events is an empty object"),
    case!(streaming_lists_are_compressed_too, "watch: gzip in members, as for JSON"),
    case!(large_lists_are_compressed_too, "list: gzip from 131073 bytes on, as for JSON"),
    case!(a_watch_fails_in_its_own_encoding, "watch: an ERROR event is a message too"),
    case!(metadata_alone_is_a_message, "PartialObjectMetadata(List), get, list and watch, also of v1beta1"),
    case!(failures_are_messages, "404, 400, 410, 409 and 405 are a Status in protobuf"),
    case!(denials_are_messages, "401 and 403 are a Status in protobuf"),
    case!(a_failure_is_json_if_only_metadata_is_accepted, "PartialObjectMetadata alone: failures are JSON, pretty"),
    case!(writes_are_answered_in_protobuf, "create, update, patch, delete, deletecollection and dry runs"),
    case!(
        bodies_are_messages,
        "create, update and delete with a body in protobuf, kind and version as expected if not said"
    ),
    case!(broken_bodies_are_refused, "400 in the server's words, by what is still known of the body"),
    case!(patches_are_never_protobuf, "PATCH with a body in protobuf is a 415"),
    case!(the_first_acceptable_encoding_is_taken, "order and quality of Accept; stream=watch changes nothing"),
    case!(tables_are_no_messages, "as=Table in protobuf is not acceptable; the next alternative is taken"),
    case!(custom_resources_are_no_messages, "406, or the next alternative; their metadata alone is a message"),
    case!(a_scale_is_a_message, "the scale of a deployment"),
    case!(reviews_are_messages, "a review, asked and answered in protobuf"),
    case!(documents_are_messages, "/api, /apis/GROUP, /apis/GROUP/VERSION and aggregated discovery; not /version"),
];

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const INITIAL: &str = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn get(api: &Api, path: &str) -> Answer {
    get_as(api, path, PROTOBUF).await
}

async fn get_as(api: &Api, path: &str, accept: &str) -> Answer {
    api.request("GET", path).header("accept", accept).send().await
}

async fn send(api: &Api, method: &str, path: &str, body: &Message) -> Answer {
    api.request(method, path)
        .header("accept", PROTOBUF)
        .header("content-type", PROTOBUF)
        .bare_body(body.0.clone())
        .send()
        .await
}

/// Asserts the exact response.
#[track_caller]
fn says(answer: &Answer, code: u16, expected: &Message) {
    assert_eq!(answer.code, code, "{}: {}", answer.asked, answer.text());
    assert_eq!(&Message(answer.body.to_vec()), expected, "{}", answer.asked);
    assert_eq!(answer.header("content-type"), Some(PROTOBUF), "{}", answer.asked);
}

/// The config map as JSON, and as the expected message.
async fn both(api: &Api, ns: &Namespace, name: &str) -> (Value, Message) {
    let json = api.get(&ns.path(&format!("configmaps/{name}"))).await.json();
    let message = Message::configmap(&json);
    (json, message)
}

fn filled(name: &str) -> Value {
    let mut configmap = configmap(name);
    configmap["metadata"]["labels"] = json!({"b": "2", "a": "1", "empty": ""});
    configmap["metadata"]["annotations"] = json!({"note": "\u{fc} < >"});
    configmap["data"] = json!({"z": "last", "a": "first"});
    configmap
}

async fn an_object_is_a_message(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("plain").await;
    ns.create(filled("filled")).await;
    for name in ["plain", "filled"] {
        let (_, message) = both(&api, &ns, name).await;
        let answer = get(&api, &ns.path(&format!("configmaps/{name}"))).await;
        says(&answer, 200, &message.enclosed("v1", "ConfigMap"));
    }
}

async fn a_list_is_a_message(api: Api) {
    let ns = api.namespace().await;
    let mut items = Vec::new();
    for name in ["a", "b", "c"] {
        ns.create(filled(name)).await;
        items.push(both(&api, &ns, name).await.1);
    }
    let json = api.get(&ns.path("configmaps?resourceVersion=0&resourceVersionMatch=NotOlderThan")).await.json();
    let version = json["metadata"]["resourceVersion"].as_str().unwrap();
    let exact = format!("configmaps?resourceVersion={version}&resourceVersionMatch=Exact");
    let answer = get(&api, &ns.path(&exact)).await;
    says(&answer, 200, &Message::list(version, "", None, &items).enclosed("v1", "ConfigMapList"));
    let answer = get(&api, &ns.path(&format!("{exact}&labelSelector=none"))).await;
    says(&answer, 200, &Message::list(version, "", None, &[]).enclosed("v1", "ConfigMapList"));
    let page = api.get(&ns.path(&format!("{exact}&limit=2"))).await;
    let token = page.token().unwrap();
    let answer = get(&api, &ns.path(&format!("{exact}&limit=2"))).await;
    says(&answer, 200, &Message::list(version, &token, Some(1), &items[..2]).enclosed("v1", "ConfigMapList"));
    let answer = get(&api, &ns.path(&format!("configmaps?limit=2&continue={token}"))).await;
    says(&answer, 200, &Message::list(version, "", None, &items[2..]).enclosed("v1", "ConfigMapList"));
}

/// An open watch, read frame by frame.
struct Frames {
    stream: Stream,
    came: Vec<u8>,
}

impl Frames {
    async fn open(api: &Api, path: &str, accept: &str) -> Self {
        let stream = api.request("GET", path).header("accept", accept).watch().await;
        assert_eq!(stream.headers["content-type"], STREAM, "{accept}");
        Self { stream, came: Vec::new() }
    }

    async fn next(&mut self) -> Message {
        loop {
            if let Some(frame) = split(&mut self.came) {
                return frame;
            }
            let more = self.stream.bytes().await;
            self.came.extend(more.unwrap_or_else(|| panic!("{}: the end", self.stream.asked)));
        }
    }
}

/// Removes the first frame, if it is complete.
fn split(came: &mut Vec<u8>) -> Option<Message> {
    let length = 4 + usize::try_from(u32::from_be_bytes(*came.first_chunk()?)).unwrap();
    if came.len() < length {
        return None;
    }
    let rest = came.split_off(length);
    Some(Message(std::mem::replace(came, rest)))
}

async fn a_watch_is_framed_by_lengths(api: Api) {
    let ns = api.namespace().await;
    let version = ns.version().await;
    let path = ns.path(&format!("configmaps?watch=true&resourceVersion={version}"));
    let mut watches = Vec::new();
    for accept in [PROTOBUF, STREAM, "application/vnd.kubernetes.protobuf,application/json"] {
        watches.push(Frames::open(&api, &path, accept).await);
    }
    let added = ns.create(filled("a")).await.json();
    let changed = ns.change("a", "new").await.json();
    api.delete(&ns.path("configmaps/a")).await.is(200);
    for watch in &mut watches {
        for (kind, json) in [("ADDED", &added), ("MODIFIED", &changed), ("DELETED", &changed)] {
            let frame = watch.next().await;
            let mut json = json.clone();
            if kind == "DELETED" {
                // The version of the deletion, which is not available elsewhere.
                let version = frame.event().1.opened().version();
                assert!(
                    version.parse::<u64>().unwrap()
                        > json["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
                );
                json["metadata"]["resourceVersion"] = version.into();
            }
            let object = Message::configmap(&json).enclosed("v1", "ConfigMap");
            assert_eq!(frame, Message::frame(kind, &object));
        }
    }
}

/// The bookmark that ends the initial events, with an otherwise empty object.
fn end_of_initial_events(version: &str, api_version: &str, kind: &str) -> Message {
    let metadata = json!({"resourceVersion": version, "annotations": {"k8s.io/initial-events-end": "true"}});
    Message::frame("BOOKMARK", &Message::configmap(&json!({"metadata": metadata})).enclosed(api_version, kind))
}

async fn a_streaming_list_ends_with_a_bookmark(api: Api) {
    let ns = api.namespace().await;
    ns.create(filled("a")).await;
    let (_, message) = both(&api, &ns, "a").await;
    let mut watch = Frames::open(&api, &ns.path(&format!("configmaps?{INITIAL}")), PROTOBUF).await;
    assert_eq!(watch.next().await, Message::frame("ADDED", &message.enclosed("v1", "ConfigMap")));
    let end = watch.next().await;
    let version = end.event().1.opened().version();
    assert_eq!(end, end_of_initial_events(&version, "v1", "ConfigMap"));
    // The zero value of a kind whose Go struct has no pointers: spec and status are present and
    // empty.
    let pods = Frames::open(&api, &ns.path(&format!("pods?{INITIAL}")), PROTOBUF).await.next().await;
    let pod = pods.event().1.opened();
    assert!(pod.field(2).is_some_and(|spec| spec.field(3) == Some(Message::new())), "restartPolicy: {pod:?}");
    assert!(pod.field(3).is_some_and(|status| status.field(1) == Some(Message::new())), "phase: {pod:?}");
}

async fn streaming_lists_are_compressed_too(api: Api) {
    let ns = api.namespace().await;
    ns.create(filled("a")).await;
    let (_, message) = both(&api, &ns, "a").await;
    let path = ns.path(&format!("configmaps?{INITIAL}"));
    let request = api.request("GET", &path).header("accept", PROTOBUF).header("accept-encoding", "gzip");
    let mut stream = request.watch().await;
    assert_eq!(
        (&stream.headers["content-encoding"], &stream.headers["content-type"]),
        (&"gzip".parse().unwrap(), &STREAM.parse().unwrap())
    );
    let (mut packed, mut frames) = (Vec::new(), Vec::new());
    while frames.len() < 2 {
        packed.extend(stream.bytes().await.expect("the initial events"));
        let mut came = Vec::new();
        // An incomplete member is not an error.
        MultiGzDecoder::new(&*packed).read_to_end(&mut came).ok();
        frames = std::iter::from_fn(|| split(&mut came)).collect();
    }
    assert_eq!(frames[0], Message::frame("ADDED", &message.enclosed("v1", "ConfigMap")));
    assert_eq!(frames[1].event().0, "BOOKMARK");
}

async fn large_lists_are_compressed_too(api: Api) {
    let ns = api.namespace().await;
    let mut large = configmap("large");
    large["data"] = json!({"a": "x".repeat(140_000)});
    ns.create(large).await;
    let (_, message) = both(&api, &ns, "large").await;
    for (path, items) in [("configmaps/large", false), ("configmaps", true)] {
        let request = api.request("GET", &ns.path(path)).header("accept", PROTOBUF).header("accept-encoding", "gzip");
        let answer = request.send().await;
        answer.is(200);
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&*answer.body).read_to_end(&mut bytes).unwrap();
        let opened = Message(bytes).opened();
        assert!(if items { opened.field(2).as_ref() == Some(&message) } else { opened == message });
    }
}

async fn a_watch_fails_in_its_own_encoding(api: Api) {
    let ns = api.namespace().await;
    let version = "99999999";
    let path = ns.path(&format!("configmaps?{INITIAL}&resourceVersion={version}&timeoutSeconds=9"));
    let (kind, status) = Frames::open(&api, &path, PROTOBUF).await.next().await.event();
    assert_eq!(kind, "ERROR");
    let message = status.opened().field(3).unwrap();
    let message = String::from_utf8(message.0).unwrap();
    assert!(message.starts_with("Timeout: Too large resource version: 99999999, current: "), "{message}");
    let cause = Message::new().text(1, "ResourceVersionTooLarge").text(2, "Too large resource version").text(3, "");
    let details = Message::new().text(1, "").text(2, "").text(3, "").message(4, &cause).number(5, 1).text(6, "");
    assert_eq!(status, Message::failure(&message, "Timeout", Some(&details), 504));
}

async fn metadata_alone_is_a_message(api: Api) {
    let ns = api.namespace().await;
    ns.create(filled("a")).await;
    let (json, _) = both(&api, &ns, "a").await;
    let message = Message::new().message(1, &Message::metadata(&json["metadata"]));
    let v1beta1 = |accept: &str| accept.replace("v=v1", "v=v1beta1");
    let answer = get_as(&api, &ns.path("configmaps/a"), METADATA).await;
    says(&answer, 200, &message.enclosed("meta.k8s.io/v1", "PartialObjectMetadata"));
    let answer = get_as(&api, &ns.path("configmaps/a"), &v1beta1(METADATA)).await;
    says(&answer, 200, &message.enclosed("meta.k8s.io/v1beta1", "PartialObjectMetadata"));
    let exact = format!(
        "configmaps?resourceVersion={0}&resourceVersionMatch=Exact",
        json["metadata"]["resourceVersion"].as_str().unwrap()
    );
    let version = json["metadata"]["resourceVersion"].as_str().unwrap();
    let answer = get_as(&api, &ns.path(&exact), METADATA_LIST).await;
    let list = Message::list(version, "", None, std::slice::from_ref(&message));
    says(&answer, 200, &list.enclosed("meta.k8s.io/v1", "PartialObjectMetadataList"));
    // The v1beta1 list has its fields in the opposite order.
    let answer = get_as(&api, &ns.path(&exact), &v1beta1(METADATA_LIST)).await;
    let older = Message::new().message(1, &message).message(2, &list.field(1).unwrap());
    says(&answer, 200, &older.enclosed("meta.k8s.io/v1beta1", "PartialObjectMetadataList"));
    let mut watch = Frames::open(&api, &ns.path(&format!("configmaps?{INITIAL}")), METADATA).await;
    let object = message.enclosed("meta.k8s.io/v1", "PartialObjectMetadata");
    assert_eq!(watch.next().await, Message::frame("ADDED", &object));
    let end = watch.next().await;
    let version = end.event().1.opened().version();
    assert_eq!(end, end_of_initial_events(&version, "meta.k8s.io/v1", "PartialObjectMetadata"));
}

async fn failures_are_messages(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let details = Message::details("nope", "", "configmaps", "");
    let missing = Message::failure("configmaps \"nope\" not found", "NotFound", Some(&details), 404);
    says(&get(&api, &ns.path("configmaps/nope")).await, 404, &missing);
    says(&get_as(&api, &ns.path("configmaps/nope"), STREAM).await, 404, &missing);
    let message = "strconv.ParseInt: parsing \"x\": invalid syntax";
    let answer = get(&api, &ns.path("configmaps?limit=x")).await;
    says(&answer, 400, &Message::failure(message, "BadRequest", None, 400));
    let empty = Message::details("", "", "", "");
    let message = "the server could not find the requested resource";
    says(&get(&api, &ns.path("nope")).await, 404, &Message::failure(message, "NotFound", Some(&empty), 404));
    let message = "the server does not allow this method on the requested resource";
    let answer = api.request("POST", &ns.path("configmaps/a")).header("accept", PROTOBUF).send().await;
    says(&answer, 405, &Message::failure(message, "MethodNotAllowed", Some(&empty), 405));
    let request = api.request("POST", &ns.path("configmaps")).header("accept", PROTOBUF);
    let answer = request.body("application/json", configmap("a")).send().await;
    let details = Message::details("a", "", "configmaps", "");
    says(&answer, 409, &Message::failure("configmaps \"a\" already exists", "AlreadyExists", Some(&details), 409));
}

async fn denials_are_messages(api: Api) {
    let get = async |token: &str| {
        api.request("GET", "/api/v1/pods").header("accept", PROTOBUF).token(Some(token)).send().await
    };
    let unknown = Message::failure("Unauthorized", "Unauthorized", None, 401);
    says(&get("nobody-has-this-token").await, 401, &unknown);
    let why = "pods is forbidden: User \"nobody\" cannot list resource \"pods\" in API group \"\" at the cluster scope";
    let forbidden = Message::failure(why, "Forbidden", Some(&Message::details("", "", "pods", "")), 403);
    says(&get(api.nobody_token()).await, 403, &forbidden);
}

async fn a_failure_is_json_if_only_metadata_is_accepted(api: Api) {
    let ns = api.namespace().await;
    let answer = get_as(&api, &ns.path("configmaps/nope"), METADATA).await;
    answer.is(404);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.text().starts_with("{\n  \"kind\": \"Status\","), "{}", answer.text());
    let both = format!("{METADATA},{PROTOBUF}");
    assert_eq!(get_as(&api, &ns.path("configmaps/nope"), &both).await.header("content-type"), Some(PROTOBUF));
}

async fn writes_are_answered_in_protobuf(api: Api) {
    let ns = api.namespace().await;
    let write = async |method: &str, path: &str, body: Option<(&str, Value)>| {
        let request = api.request(method, &ns.path(path)).header("accept", PROTOBUF);
        match body {
            Some((content_type, body)) => request.body(content_type, body).send().await,
            None => request.send().await,
        }
    };
    let created = write("POST", "configmaps", Some(("application/json", filled("a")))).await;
    let (json, message) = both(&api, &ns, "a").await;
    says(&created, 201, &message.enclosed("v1", "ConfigMap"));
    let patch = json!({"data": {"z": "new"}});
    let patched = write("PATCH", "configmaps/a", Some(("application/merge-patch+json", patch))).await;
    let (changed, message) = both(&api, &ns, "a").await;
    assert_eq!(changed["data"]["z"], "new");
    says(&patched, 200, &message.enclosed("v1", "ConfigMap"));
    let mut wanted = changed.clone();
    wanted["data"] = json!({"only": "this"});
    let updated = write("PUT", "configmaps/a", Some(("application/json", wanted))).await;
    let (_, message) = both(&api, &ns, "a").await;
    says(&updated, 200, &message.enclosed("v1", "ConfigMap"));
    let dry = write("POST", "configmaps?dryRun=All", Some(("application/json", configmap("b")))).await;
    dry.is(201);
    let opened = Message(dry.body.to_vec()).opened();
    assert_eq!(opened.version(), "", "nothing was written");
    let uid = json["metadata"]["uid"].as_str().unwrap();
    let empty = Message::new().text(1, "").text(2, "").text(3, "");
    let details = Message::details("a", "", "configmaps", uid);
    let success = Message::new().message(1, &empty).text(2, "Success").text(3, "").text(4, "");
    let success = success.message(5, &details).number(6, 0).enclosed("v1", "Status");
    says(&write("DELETE", "configmaps/a", None).await, 200, &success);
    ns.configmap("c").await;
    let (_, message) = both(&api, &ns, "c").await;
    let deleted = write("DELETE", "configmaps", None).await;
    deleted.is(200);
    assert_eq!(Message(deleted.body.to_vec()).opened().field(2), Some(message));
}

async fn bodies_are_messages(api: Api) {
    let ns = api.namespace().await;
    let named = |name: &str| Message::new().message(1, &Message::new().text(1, name));
    let created =
        send(&api, "POST", &ns.path("configmaps"), &named("a").entry(2, "k", "v").enclosed("v1", "ConfigMap")).await;
    let (json, message) = both(&api, &ns, "a").await;
    assert_eq!(json["data"], json!({"k": "v"}));
    says(&created, 201, &message.enclosed("v1", "ConfigMap"));
    // The envelope contains neither kind nor apiVersion.
    let bare = named("b").entry(2, "k", "v").enclosed("", "");
    send(&api, "POST", &ns.path("configmaps"), &bare).await.is(201);
    let wanted = named("b").entry(2, "k", "new").enclosed("v1", "ConfigMap");
    let updated = send(&api, "PUT", &ns.path("configmaps/b"), &wanted).await;
    let (json, message) = both(&api, &ns, "b").await;
    assert_eq!(json["data"], json!({"k": "new"}));
    says(&updated, 200, &message.enclosed("v1", "ConfigMap"));
    let preconditions = Message::new().text(1, "not-this-one");
    let options = Message::new().message(2, &preconditions).enclosed("v1", "DeleteOptions");
    send(&api, "DELETE", &ns.path("configmaps/b"), &options).await.is(409);
    let options = Message::new().number(1, 0).enclosed("apps/v1", "DeleteOptions");
    send(&api, "DELETE", &ns.path("configmaps/b"), &options).await.is(200);
    api.get(&ns.path("configmaps/b")).await.is(404);
}

async fn broken_bodies_are_refused(api: Api) {
    let ns = api.namespace().await;
    let unrecognized = |why: &str| format!("the object provided is unrecognized (must be of type ConfigMap): {why}");
    let magic = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
    let inner = |message: Message| message.enclosed("v1", "ConfigMap");
    for (body, why) in [
        (Message(b"garbage".to_vec()), unrecognized(&format!("{magic} (67617262616765)"))),
        (Message::new(), unrecognized("empty data (<empty>)")),
        (Message(b"k8s\0".to_vec()), unrecognized("empty body (6b387300)")),
        (Message(b"k8s\0\x0a\xff".to_vec()), unrecognized("unexpected EOF (6b3873000aff)")),
        (
            inner(Message(b"\x0a\x05".to_vec())),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF".to_owned(),
        ),
        (
            inner(Message::new().number(1, 7)),
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field ObjectMeta".to_owned(),
        ),
        (
            Message::new().enclosed("v1", "Secret"),
            "Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): unknown conversion".to_owned(),
        ),
        (
            Message::new().enclosed("v1", "Nope"),
            "Nope in version \"v1\" cannot be handled as a ConfigMap: no kind \"Nope\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"".to_owned(),
        ),
    ] {
        let answer = send(&api, "POST", &ns.path("configmaps"), &body).await;
        says(&answer, 400, &Message::failure(&why, "BadRequest", None, 400));
    }
    let answer = send(&api, "DELETE", &ns.path("configmaps/a"), &Message(b"garbage".to_vec())).await;
    says(&answer, 400, &Message::failure(magic, "BadRequest", None, 400));
}

async fn patches_are_never_protobuf(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let empty = Message::details("", "", "", "");
    let refused = Message::failure("415: Unsupported Media Type", "UnsupportedMediaType", Some(&empty), 415);
    for content_type in [PROTOBUF, "application/apply-patch+protobuf"] {
        let request = api.request("PATCH", &ns.path("configmaps/a?fieldManager=x")).header("accept", PROTOBUF);
        let answer = request.header("content-type", content_type).bare_body(b"k8s\0".as_slice()).send().await;
        says(&answer, 415, &refused);
    }
}

async fn the_first_acceptable_encoding_is_taken(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    for (accept, taken) in [
        ("application/vnd.kubernetes.protobuf,application/json", PROTOBUF),
        ("application/json,application/vnd.kubernetes.protobuf", "application/json"),
        ("application/vnd.kubernetes.protobuf;q=0.1,application/json", "application/json"),
        ("application/vnd.kubernetes.protobuf ; q=0.9 , application/json;q=0.8", PROTOBUF),
        ("application/vnd.kubernetes.protobuf;q=0", PROTOBUF),
        ("*/*,application/vnd.kubernetes.protobuf", PROTOBUF),
        ("application/vnd.kubernetes.protobuf;stream=watch", PROTOBUF),
        ("application/vnd.kubernetes.protobuf;stream=nope,application/json", "application/json"),
        ("application/vnd.kubernetes.protobuf;charset=utf-8", PROTOBUF),
        ("*/*", "application/json"),
    ] {
        for path in ["configmaps", "configmaps/a"] {
            let answer = get_as(&api, &ns.path(path), accept).await;
            answer.is(200);
            assert_eq!(answer.header("content-type"), Some(taken), "{accept}");
        }
    }
    for accept in ["application/vnd.kubernetes.protobuf;stream=nope", "Application/vnd.kubernetes.protobuf"] {
        get_as(&api, &ns.path("configmaps/a"), accept).await.is(406);
    }
}

async fn tables_are_no_messages(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    const TABLE: &str = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
    for path in ["configmaps", "configmaps/a", "configmaps?watch=true"] {
        let answer = get_as(&api, &ns.path(path), TABLE).await;
        answer.is(406);
        let why = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        assert_eq!(answer.json()["message"], why);
    }
    let json = format!("{TABLE},application/json;as=Table;g=meta.k8s.io;v=v1,{PROTOBUF}");
    assert_eq!(get_as(&api, &ns.path("configmaps"), &json).await.json()["kind"], "Table");
    let plain = format!("{TABLE},{PROTOBUF}");
    assert_eq!(get_as(&api, &ns.path("configmaps"), &plain).await.header("content-type"), Some(PROTOBUF));
}

async fn custom_resources_are_no_messages(api: Api) {
    let (ns, definition) = (api.namespace().await, api.definition(|_| {}).await);
    let things = definition.things(&ns);
    definition.create(&things, "a", json!({"spec": {"x": 1}})).await;
    let why = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let refused = Message::failure(why, "NotAcceptable", None, 406);
    for path in [things.clone(), format!("{things}/a"), format!("{things}/nope"), format!("{things}?watch=true")] {
        says(&get(&api, &path).await, 406, &refused);
    }
    const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json";
    for path in [things.clone(), format!("{things}/a")] {
        let answer = get_as(&api, &path, BOTH).await;
        answer.is(200);
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    let details = Message::details("nope", &definition.group, "things", "");
    let why = format!("things.{} \"nope\" not found", definition.group);
    let missing = Message::failure(&why, "NotFound", Some(&details), 404);
    says(&get_as(&api, &format!("{things}/nope"), BOTH).await, 404, &missing);
    let json = api.get(&format!("{things}/a")).await.json();
    let message = Message::new().message(1, &Message::metadata(&json["metadata"]));
    let answer = get_as(&api, &format!("{things}/a"), METADATA).await;
    says(&answer, 200, &message.enclosed("meta.k8s.io/v1", "PartialObjectMetadata"));
    let answer = get_as(&api, &things, METADATA_LIST).await;
    answer.is(200);
    assert_eq!(Message(answer.body.to_vec()).opened().field(2).as_ref(), Some(&message));
    let mut watch = Frames::open(&api, &format!("{things}?{INITIAL}"), METADATA).await;
    let object = message.enclosed("meta.k8s.io/v1", "PartialObjectMetadata");
    assert_eq!(watch.next().await, Message::frame("ADDED", &object));
    assert_eq!(watch.next().await.event().0, "BOOKMARK");
}

async fn a_scale_is_a_message(api: Api) {
    let ns = api.namespace().await;
    let path = ns.group_path("apps/v1", "deployments");
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({
        "metadata": {"name": "d"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    });
    api.leave_to_clean_up(&format!("{path}/d"));
    api.post(&path, deployment).await.is(201);
    let json = api.get(&format!("{path}/d/scale")).await.json();
    let metadata = Message::metadata(&json["metadata"]);
    let scale = |replicas| {
        Message::new()
            .message(1, &metadata)
            .message(2, &Message::new().number(1, replicas))
            .message(3, &Message::new().number(1, 0).text(2, "a=b"))
    };
    says(&get(&api, &format!("{path}/d/scale")).await, 200, &scale(3).enclosed("autoscaling/v1", "Scale"));
    let named = Message::new().message(1, &Message::new().text(1, "d").text(3, &ns.name));
    let wanted = named.message(2, &Message::new().number(1, 5)).enclosed("autoscaling/v1", "Scale");
    send(&api, "PUT", &format!("{path}/d/scale"), &wanted).await.is(200);
    assert_eq!(api.get(&format!("{path}/d")).await.json()["spec"]["replicas"], 5);
}

async fn reviews_are_messages(api: Api) {
    let attributes = Message::new().text(2, "get").text(5, "pods");
    let asked = Message::new().message(2, &Message::new().message(1, &attributes));
    let body = asked.enclosed("authorization.k8s.io/v1", "SelfSubjectAccessReview");
    let answer = send(&api, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &body).await;
    answer.is(201);
    let review = Message(answer.body.to_vec()).opened();
    let attributes = review.field(2).and_then(|spec| spec.field(1)).unwrap();
    assert_eq!(
        (attributes.field(2), attributes.field(5)),
        (Some(Message(b"get".to_vec())), Some(Message(b"pods".to_vec())))
    );
    let status = review.field(3).unwrap();
    assert!(status.0.starts_with(b"\x08\x01"), "allowed: {status:?}");
}

async fn documents_are_messages(api: Api) {
    let version = Message::new().text(1, "apps/v1").text(2, "v1");
    let group = Message::new().text(1, "apps").message(2, &version).message(3, &version);
    says(&get(&api, "/apis/apps").await, 200, &group.enclosed("v1", "APIGroup"));
    let answer = get(&api, "/api").await;
    answer.is(200);
    assert_eq!(Message(answer.body.to_vec()).opened().field(1), Some(Message(b"v1".to_vec())));
    let answer = get(&api, "/apis/apps/v1").await;
    answer.is(200);
    let list = Message(answer.body.to_vec()).opened();
    assert_eq!(list.field(1), Some(Message(b"apps/v1".to_vec())));
    let last = list.field(2).unwrap();
    assert_eq!(last.field(1), Some(Message(b"statefulsets/status".to_vec())));
    const AGGREGATED: &str = "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let answer = get_as(&api, "/apis", AGGREGATED).await;
    answer.is(200);
    assert_eq!(answer.header("content-type"), Some(AGGREGATED));
    assert!(answer.body.starts_with(b"k8s\0\n/\n\x16apidiscovery.k8s.io/v2\x12\x15APIGroupDiscoveryList\x12"));
    let empty = Message::details("", "", "", "");
    let why = "406: Not Acceptable\n\nAvailable representations: application/json";
    says(&get(&api, "/version").await, 406, &Message::failure(why, "NotAcceptable", Some(&empty), 406));
}
