//! Objects are decoded only when they are read, and only once. Half of them are JSON, half
//! protobuf.

use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings};
use kube_informer::codec::Envelope;
use kube_informer::store::Store;
use kube_informer::store::{Delta, History, Relist, WatchScope};
use kube_informer::{Event, Index, Keep, Lister, Obj, Untyped, Version};

const PODS: usize = 10_000;

fn pod(encoder: &BodyEncoder, number: usize, version: usize, arrival: Arrival) -> Obj<Untyped> {
    let bytes = if number.is_multiple_of(2) { json(number, version) } else { protobuf(number, version) };
    encoder.accept(&bytes, arrival).expect("a pod")
}

fn json(number: usize, version: usize) -> Bytes {
    let json = format!(
        r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web-{number}","namespace":"ns-{}","uid":"u{number}","resourceVersion":"{version}","labels":{{"app":"a{}"}}}},"spec":{{"nodeName":"node-{}","containers":[{{"name":"main","image":"a"}},{{"name":"side","image":"b"}}]}},"status":{{"phase":"Running"}}}}"#,
        number % 20,
        number % 100,
        number % 30,
    );
    json.into()
}

/// The same in protobuf, where every length here fits one byte.
fn protobuf(number: usize, version: usize) -> Bytes {
    let field =
        |number: u8, bytes: &[u8]| [&[number << 3 | 2, u8::try_from(bytes.len()).expect("short")], bytes].concat();
    let text = |number: u8, text: String| field(number, text.as_bytes());
    let label = [text(1, "app".to_owned()), text(2, format!("a{}", number % 100))].concat();
    let metadata = [
        text(1, format!("web-{number}")),
        text(3, format!("ns-{}", number % 20)),
        text(5, format!("u{number}")),
        text(6, version.to_string()),
        field(11, &label),
    ];
    let container = |name: &[u8], image: &[u8]| field(2, &[field(1, name), field(2, image)].concat());
    let spec = [container(b"main", b"a"), container(b"side", b"b"), text(10, format!("node-{}", number % 30))].concat();
    let raw = [field(1, &metadata.concat()), field(2, &spec), field(3, &field(1, b"Running"))].concat();
    Envelope { api_version: b"v1", kind: b"Pod", raw: &raw }.close().into()
}

/// Ten thousand pods and ten thousand updates of them, in batches.
fn history(encoder: &BodyEncoder) -> impl Iterator<Item = Vec<Delta>> {
    let begun = Delta::RelistBegun(Relist { scope: WatchScope::Everything, history: History::Continues });
    let ended = Delta::RelistEnded { scope: WatchScope::Everything, version: Version::from(PODS as u64) };
    let listed = (0..PODS).map(|n| Delta::Listed(pod(encoder, n, n + 1, Arrival::Listed)));
    let updates = (0..PODS).map(|n| Delta::Changed(pod(encoder, n, PODS + n + 1, Arrival::Changed(0))));
    let all: Vec<_> = [begun].into_iter().chain(listed).chain([ended]).chain(updates).collect();
    let batches: Vec<_> = all.chunks(500).map(<[_]>::to_vec).collect();
    batches.into_iter()
}

fn encoder(keep: Keep) -> BodyEncoder {
    let mut settings = BodyEncoderSettings::default();
    settings.keep = keep;
    BodyEncoder::new(settings)
}

#[test]
fn what_reads_only_metadata_decodes_no_body() {
    for keep in [Keep::Plain, Keep::Compact, Keep::Decoded] {
        let encoder = encoder(keep);
        let mut store = Store::default();
        let lister = Lister::<Pod>::new(store.reader());
        let by_app: Index<Pod, String> = Index::by_label(&store.reader(), "app");
        let by_node: Index<Pod, String> = Index::by_path(&store.reader(), "spec.nodeName".parse().unwrap());
        let by_image: Index<Pod, String> = Index::by_path(&store.reader(), "spec.containers[*].image".parse().unwrap());
        let by_key: Index<Pod, char> = Index::new(&store.reader(), |pod: &Obj<Pod>| pod.name().chars().last());
        let mut read = 0;
        for batch in history(&encoder) {
            for event in store.apply(batch) {
                read += event.key().as_str().len()
                    + event.object().labels().len()
                    + event.object().version().to_string().len();
            }
        }
        assert!(read > 0);
        assert_eq!((by_app.count("a7"), by_node.get("node-3").len(), by_key.count(&'3')), (100, 334, 1000));
        assert_eq!((by_image.count("a"), by_image.count("b")), (PODS, PODS));
        assert_eq!(lister.select("app in (a1,a2)").unwrap().len(), 200);
        assert_eq!(lister.sorted().len(), PODS);
        assert_eq!(encoder.decodes(), 0, "{keep:?}");
    }
}

#[test]
fn two_handlers_and_an_index_that_read_the_body_decode_it_once_for_an_event() {
    let encoder = encoder(Keep::Compact);
    let mut store = Store::default();
    let phase = |pod: &Obj<Pod>| pod.get().ok()?.status.as_ref()?.phase.clone();
    let _by_phase: Index<Pod, String> = Index::new(&store.reader(), phase);
    drop(store.apply((0..100).map(|n| Delta::Changed(pod(&encoder, n, n + 1, Arrival::Changed(0))))));
    let before = encoder.decodes();
    let mut events = 0;
    for event in store.apply((0..100).map(|n| Delta::Changed(pod(&encoder, n, 1000 + n, Arrival::Changed(0))))) {
        let handlers: [Event<Untyped>; 2] = [event.clone(), event.clone()];
        for handler in &handlers {
            assert_eq!(phase(&handler.object().view::<Pod>()).as_deref(), Some("Running"));
        }
        events += 1;
    }
    assert_eq!((events, encoder.decodes() - before), (100, 100));
}
