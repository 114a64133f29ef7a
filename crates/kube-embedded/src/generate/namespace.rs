//! Generation of namespaces.

use super::layout::NOW;
use super::rng::{Domain, SampleRng};
use super::sample::Sample;
use super::writer::Writer;

pub(super) fn write(seed: u64, index: u64, name: &str) -> Sample {
    let mut rng = SampleRng::new(seed ^ 0x6e73, Domain::Namespace, index);
    let mut w = Writer::with_capacity(512);
    w.object(|w| {
        w.text("kind", "Namespace");
        w.text("apiVersion", "v1");
        w.object_at("metadata", |w| {
            w.text("name", name);
            w.given("uid", &rng.uuid());
            w.given("resourceVersion", &rng.within(200, 90_000).to_string());
            w.time("creationTimestamp", NOW - 500 * 86_400 + rng.below(400 * 86_400) as i64);
            w.texts("labels", [("kubernetes.io/metadata.name", name)]);
        });
        w.raw("spec", r#"{"finalizers":["kubernetes"]}"#);
        w.raw("status", r#"{"phase":"Active"}"#);
    });
    Sample::cluster("/api/v1", "namespaces", name, w)
}
