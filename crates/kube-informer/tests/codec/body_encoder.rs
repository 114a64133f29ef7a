//! Storage of bodies: compressed and restored exactly, decoded no more often than needed, and
//! bounded.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;

use crate::arbitrary_json::{any_resource, config};
use bytes::Bytes;
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings, Dictionary, Samples};
use kube_informer::store::{Delta, Ingest, Store, Verdict};
use kube_informer::{Keep, Obj, ObjectKey, Untyped};
use proptest::prelude::*;
use serde_json::{Value, json};

fn encoder(keep: Keep) -> BodyEncoder {
    let mut settings = BodyEncoderSettings::default();
    settings.keep = keep;
    BodyEncoder::new(settings)
}

fn keeper_with(set: impl FnOnce(&mut BodyEncoderSettings)) -> BodyEncoder {
    let mut settings = BodyEncoderSettings::default();
    set(&mut settings);
    BodyEncoder::new(settings)
}

/// A pod with its own owner.
fn pod(number: usize, version: usize) -> Bytes {
    owned(number, version, &format!("u{number}"))
}

/// A pod whose owner has other pods.
fn sibling(number: usize, version: usize) -> Bytes {
    owned(number, version, "u")
}

fn owned(number: usize, version: usize, owner: &str) -> Bytes {
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": format!("web-{number}"), "namespace": "default", "resourceVersion": version.to_string(),
            "labels": {"app": "web"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner, "controller": true}],
        },
        "spec": {"containers": [{"name": "main", "image": "registry.example/web:1.2.3", "args": [format!("--id={number}")]}]},
        "status": {"phase": "Running", "hostIP": format!("10.0.{}.{}", number / 250, number % 250)},
    })
    .to_string()
    .into()
}

fn accept(encoder: &BodyEncoder, json: &Bytes, arrival: Arrival) -> Obj<Untyped> {
    encoder.accept(json, arrival).expect("an object")
}

/// Runs all pending dictionary training, which an informer runs on another thread.
fn train(encoder: &BodyEncoder) -> usize {
    let mut times = 0;
    while let Some(samples) = encoder.take_training_samples() {
        match samples.train() {
            Some(dictionary) => encoder.install(dictionary),
            None => encoder.training_failed(),
        }
        times += 1;
    }
    times
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn every_policy_gives_back_the_bytes_it_was_given(objects in prop::collection::vec(any_resource(), 1..5)) {
        for keep in [Keep::Compact, Keep::Plain, Keep::Decoded] {
            for arrival in [Arrival::Listed, Arrival::Changed(0)] {
                let encoder = keeper_with(|settings| {
                    settings.keep = keep;
                    settings.decode_managed_fields = true;
                });
                let held: Vec<_> = objects.iter().map(|object| accept(&encoder, &object.text.clone().into(), arrival)).collect();
                encoder.pack_cold(100, 100);
                for (held, object) in held.iter().zip(&objects) {
                    prop_assert_eq!(held.json(), object.text.as_bytes());
                    prop_assert_eq!(&*held.view::<Value>().to_arc().unwrap(), &object.value);
                    let meta = &object.value["metadata"];
                    prop_assert_eq!(Some(held.name()), meta["name"].as_str());
                    prop_assert_eq!(held.namespace(), meta["namespace"].as_str().filter(|text| !text.is_empty()));
                    prop_assert_eq!(held.version().to_string(), meta["resourceVersion"].as_str().unwrap());
                    prop_assert_eq!(held.generation(), meta["generation"].as_i64());
                    let labels: serde_json::Map<_, _> = held.labels().iter().map(|(k, v)| (k.to_owned(), v.into())).collect();
                    prop_assert_eq!(&Value::from(labels), &meta["labels"]);
                    let owners: Vec<_> = held.owners().map(|o| (o.name().to_owned(), o.is_controller())).collect();
                    let expected: Vec<_> = meta["ownerReferences"].as_array().unwrap().iter()
                        .map(|o| (o["name"].as_str().unwrap().to_owned(), o["controller"] == true)).collect();
                    prop_assert_eq!(owners, expected);
                    prop_assert_eq!(held.deletion_timestamp().is_some(), meta.get("deletionTimestamp").is_some());
                }
            }
        }
    }
}

/// An encoder with a trained dictionary for pods.
static WITH_DICTIONARY: LazyLock<BodyEncoder> = LazyLock::new(|| {
    let encoder = encoder(Keep::Compact);
    let held: Vec<_> = (0..5000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    assert_eq!(train(&encoder), 1);
    drop(held);
    encoder
});

proptest! {
    #![proptest_config(config(300))]

    #[test]
    fn anything_packed_against_a_dictionary_comes_back_whole(object in any_resource()) {
        let held = accept(&WITH_DICTIONARY, &object.text.clone().into(), Arrival::Listed);
        prop_assert_eq!(held.json(), object.text.as_bytes());
        let changed = accept(&WITH_DICTIONARY, &object.text.clone().into(), Arrival::Changed(0));
        WITH_DICTIONARY.pack_cold(10, 1000);
        prop_assert_eq!(changed.json(), object.text.as_bytes());
    }
}

#[test]
fn a_dictionary_that_stops_paying_is_replaced() {
    let encoder = encoder(Keep::Compact);
    let mut held: Vec<_> = (0..8000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    assert_eq!(train(&encoder), 1);
    held.extend((8000..12_000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)));
    assert!(encoder.take_training_samples().is_none(), "it pays");
    let other = |n: u64| -> Bytes {
        let words: Vec<String> =
            (0..20).map(|w| format!("{:x}", (n * 31 + w).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        json!({"kind":"Note","apiVersion":"x/v1","metadata":{"name":n.to_string()},"text":words}).to_string().into()
    };
    held.extend((0..3000).map(|n| accept(&encoder, &other(n), Arrival::Listed)));
    let samples = encoder.take_training_samples().expect("it no longer pays");
    encoder.install(samples.train().unwrap());
    assert!(held[..12_000].iter().enumerate().step_by(97).all(|(n, object)| object.json() == pod(n, 1)));
    assert!((0..3000).step_by(97).all(|n| held[12_000 + n as usize].json() == other(n)));
}

#[test]
fn objects_packed_before_during_and_after_training_all_come_back() {
    let encoder = encoder(Keep::Compact);
    let mut held: Vec<_> = (0..600).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    let samples = encoder.take_training_samples().expect("enough objects to train on");
    assert!(encoder.take_training_samples().is_none(), "one training at a time");
    held.extend((600..1000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)));
    encoder.install(samples.train().unwrap());
    held.extend((1000..5000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)));
    assert_eq!(train(&encoder), 1, "a second one when there is more to learn from");
    held.extend((5000..5100).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)));
    let intact = |held: &[Obj<Untyped>]| held.iter().enumerate().all(|(n, object)| object.json() == pod(n, 1));
    assert!(intact(&held));
    while encoder.pack_cold(1, 1000).objects > 0 {}
    assert_eq!(encoder.pack_cold(1, 1000).waiting, 0);
    assert!(intact(&held));
    assert_eq!(encoder.decodes(), 0);
}

#[test]
fn a_small_cache_gets_its_dictionary_once_it_stops_growing() {
    let encoder = encoder(Keep::Compact);
    let held: Vec<_> = (0..100).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    encoder.pack_cold(1, 10);
    assert_eq!(train(&encoder), 0);
    encoder.pack_cold(2, 10);
    assert_eq!(train(&encoder), 1);
    encoder.pack_cold(3, 10);
    encoder.pack_cold(4, 1000);
    assert_eq!(train(&encoder), 0, "nothing new, nothing to learn");
    assert!(held.iter().enumerate().all(|(n, object)| object.json() == pod(n, 1)));
}

#[test]
fn a_tiny_cache_at_rest_waits_for_nothing() {
    let encoder = encoder(Keep::Compact);
    let _held: Vec<_> = (0..10).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    assert_eq!(encoder.pack_cold(1, 10).waiting, 10, "more may come");
    assert_eq!(encoder.pack_cold(2, 10).waiting, 0);
    assert!(encoder.take_training_samples().is_none());
}

#[test]
fn samples_that_teach_nothing_are_not_asked_for_in_a_loop() {
    let encoder = encoder(Keep::Compact);
    let _held: Vec<_> = (0..300).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    assert!(encoder.take_training_samples().is_some());
    encoder.training_failed();
    for tick in 0..10 {
        encoder.pack_cold(tick, 10);
        assert!(encoder.take_training_samples().is_none());
    }
}

#[test]
fn siblings_are_packed_as_what_they_differ_in() {
    /// A pod with text that it shares with the owner's other pods only.
    fn of(owner: usize, number: usize, version: usize) -> Bytes {
        let words: Vec<_> =
            (1..40).map(|n| format!("{:x}", (owner * 41 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let plain = String::from_utf8(owned(number, version, &owner.to_string()).to_vec()).unwrap();
        plain.replace("--id=", &words.join(" ")).into()
    }
    let (pod, sibling) = (|n, version| of(n, n, version), |n, version| of(0, n, version));
    let encoder = encoder(Keep::Compact);
    let weight = |objects: &[Obj<Untyped>]| objects.iter().map(Obj::weight).sum::<usize>() / objects.len();
    let before: Vec<_> = (1..5000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    assert_eq!(train(&encoder), 1);
    let alone = weight(&(5000..6000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect::<Vec<_>>());
    let together: Vec<_> = (0..1000).map(|n| accept(&encoder, &sibling(n, 1), Arrival::Listed)).collect();
    assert!(weight(&together) + 300 < alone, "{} and {alone} bytes", weight(&together));
    assert!(together.iter().enumerate().all(|(n, object)| object.json() == sibling(n, 1)));
    let changed: Vec<_> = (0..1000).map(|n| accept(&encoder, &sibling(n, 2), Arrival::Changed(0))).collect();
    drop(before);
    assert_eq!(encoder.pack_cold(10, 2000).objects, 1000);
    assert!(weight(&changed) + 300 < alone, "{} and {alone} bytes", weight(&changed));
    assert!(changed.iter().enumerate().all(|(n, object)| object.json() == sibling(n, 2)));
}

#[test]
fn siblings_come_back_whatever_becomes_of_their_pattern() {
    let encoder = encoder(Keep::Compact);
    let mut siblings: Vec<_> = (0..100).map(|n| accept(&encoder, &sibling(n, 1), Arrival::Listed)).collect();
    let pattern = siblings.remove(0);
    let intact = |siblings: &[Obj<Untyped>]| siblings.iter().zip(1..).all(|(object, n)| object.json() == sibling(n, 1));
    // Recompressed with a dictionary.
    let others: Vec<_> = (0..5000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    assert_eq!(train(&encoder), 1);
    while encoder.pack_cold(1, 1000).objects > 0 {}
    assert!(intact(&siblings) && pattern.json() == sibling(0, 1));
    // Drops the other users of the dictionary.
    drop(others);
    // The reference object is no longer in the store.
    drop(pattern);
    assert!(intact(&siblings));
    let late = accept(&encoder, &sibling(100, 1), Arrival::Listed);
    siblings.push(late);
    assert!(intact(&siblings));
}

#[test]
fn what_is_kept_plain_or_decoded_or_in_no_store_keeps_no_other_object_alive() {
    let encoders = [encoder(Keep::Plain), encoder(Keep::Decoded)];
    let accepted = |n| encoders.each_ref().map(|encoder| accept(encoder, &sibling(n, 1), Arrival::Listed));
    let without_encoder = |n| Obj::<Untyped>::from_json(sibling(n, 1)).unwrap();
    let all = (0..10).flat_map(|n| accepted(n).into_iter().chain([without_encoder(n)]));
    // They hold their bytes and the metadata, nothing is compressed.
    assert!(all.into_iter().all(|object| object.weight() > object.json().len() + 100));
}

#[test]
fn a_family_of_which_no_two_are_alike_is_packed_all_the_same() {
    let encoder = encoder(Keep::Compact);
    let note = |n: u64| -> Bytes {
        let words: Vec<String> =
            (0..200).map(|w| format!("{:x}", (n * 311 + w).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let owner = json!([{"apiVersion": "v1", "kind": "Book", "name": "b", "uid": "b"}]);
        json!({"kind":"Note","apiVersion":"x/v1","metadata":{"name":n.to_string(),"ownerReferences":owner},"text":words})
            .to_string()
            .into()
    };
    let held: Vec<_> = (0..300).map(|n| accept(&encoder, &note(n), Arrival::Listed)).collect();
    assert!(held.iter().zip(0..).all(|(object, n)| object.weight() < note(n).len() && object.json() == note(n)));
}

#[test]
fn a_changed_object_is_packed_only_when_it_has_been_left_alone() {
    let encoder = keeper_with(|settings| settings.cold_after = 5);
    let first = accept(&encoder, &pod(1, 1), Arrival::Changed(10));
    let second = accept(&encoder, &pod(1, 2), Arrival::Changed(12));
    drop(first);
    assert_eq!(encoder.pack_cold(14, 10).objects, 0);
    assert_eq!(encoder.pack_cold(16, 10).objects, 0, "the one that was cold is gone");
    assert_eq!(encoder.pack_cold(17, 10).objects, 1);
    assert_eq!(second.json(), pod(1, 2));
}

#[test]
fn changed_objects_do_not_wait_without_bound() {
    let encoder = keeper_with(|settings| settings.fresh_bytes = 10_000);
    let held: Vec<_> = (0..200).map(|n| accept(&encoder, &pod(n, 1), Arrival::Changed(0))).collect();
    let plain = pod(0, 1).len();
    let waiting = encoder.pack_cold(0, 0).waiting;
    // The others are queued for recompression with a dictionary.
    assert!(waiting <= 200);
    assert!(encoder.pack_cold(100, 1000).objects <= 10_000 / plain + 1);
    assert!(held.iter().enumerate().all(|(n, object)| object.json() == pod(n, 1)));
}

#[test]
fn bodies_to_recompress_do_not_accumulate_without_training() {
    let encoder = keeper_with(|settings| settings.fresh_bytes = 0);
    for version in 0..20_000 {
        drop(accept(&encoder, &pod(1, version), Arrival::Changed(0)));
    }
    assert!(encoder.pack_cold(0, 0).waiting <= 2048);
}

#[test]
fn a_step_of_packing_keeps_to_its_budget() {
    let encoder = encoder(Keep::Compact);
    let _held: Vec<_> = (0..20).map(|n| accept(&encoder, &pod(n, 1), Arrival::Changed(0))).collect();
    assert_eq!(encoder.pack_cold(100, 7).objects, 7);
    assert_eq!(encoder.pack_cold(100, 70).objects, 13);
}

#[test]
fn nothing_is_decoded_for_metadata() {
    let encoder = encoder(Keep::Compact);
    for n in 0..1000 {
        let object = accept(&encoder, &pod(n, 1), Arrival::Changed(0));
        assert_eq!(object.label("app"), Some("web"));
        assert_eq!(object.controller().unwrap().kind(), "ReplicaSet");
        assert_eq!(object.annotation("none"), None);
        assert_eq!(object.value_at("status.phase").unwrap().as_deref(), Some("Running"));
    }
    assert_eq!(encoder.decodes(), 0);
}

#[test]
fn all_handles_of_one_event_share_one_decode_for_each_view() {
    #[derive(serde::Deserialize)]
    struct Phase {
        status: Status,
    }
    #[derive(serde::Deserialize)]
    struct Status {
        phase: String,
    }
    let encoder = keeper_with(|settings| settings.recent_bytes = 0);
    for n in 0..200 {
        let event = accept(&encoder, &pod(n, 1), Arrival::Changed(0));
        let before = encoder.decodes();
        thread::scope(|scope| {
            for _ in 0..4 {
                let (full, part) = (event.view::<Value>(), event.view::<Phase>());
                scope.spawn(move || {
                    assert_eq!(full.get().unwrap()["status"]["phase"], "Running");
                    assert_eq!(part.get().unwrap().status.phase, "Running");
                    assert_eq!(part.to_arc().unwrap().status.phase, "Running");
                });
            }
        });
        assert_eq!(encoder.decodes() - before, 2);
    }
}

#[test]
fn a_body_that_does_not_fit_fails_for_its_reader_alone_and_says_no_value() {
    let object = Obj::<Value>::from_json(r#"{"metadata":{"name":"a"},"spec":"s3cret"}"#).unwrap();
    #[derive(Debug, serde::Deserialize)]
    struct Wrong {
        #[expect(dead_code, reason = "only ever fails to be read")]
        spec: u32,
    }
    let error = object.view::<Wrong>().get().unwrap_err();
    assert!(error.to_string().starts_with("spec does not fit "), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3cret"));
    assert!(object.get().is_ok());
}

#[test]
fn the_error_names_the_field_that_does_not_fit() {
    use k8s_openapi::api::core::v1::Pod;
    let pod = |containers: &str| {
        let json = format!(
            "{{\"kind\":\"Pod\",\n \"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"a\"}},\n\"spec\":{{\"containers\":{containers}}}}}"
        );
        Obj::<Pod>::from_json(json).unwrap()
    };
    for (containers, path) in [
        (r#""none""#, "spec.containers"),
        (r#"[{"name":"a"},{"name":"b","ports":[{"containerPort":"x"}]}]"#, "spec.containers[1].ports[0].containerPort"),
        (r#"[{"name":"a","image":{}}]"#, "spec.containers[0].image"),
    ] {
        let error = pod(containers).get().map(|_| ()).unwrap_err();
        assert_eq!(error.path().unwrap().to_string(), path);
    }
    let cut = Obj::<Pod>::from_json(r#"{"metadata":{"name":"a"},"spec":{"#).unwrap();
    assert!(cut.get().map(|_| ()).unwrap_err().to_string().starts_with("the JSON ends too early"));
}

#[test]
fn full_types_refuse_metadata_alone() {
    use k8s_openapi::api::core::v1::Pod;
    use kube::core::PartialObjectMeta;
    let json = r#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}"#;
    let object = Obj::<PartialObjectMeta<Pod>>::from_json(json).unwrap();
    assert_eq!(object.get().unwrap().metadata.name.as_deref(), Some("a"));
    assert!(object.view::<Pod>().get().is_err());
}

#[test]
fn bodies_read_again_and_again_are_decoded_once() {
    let encoder = encoder(Keep::Compact);
    let stored: Vec<_> = (0..100).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    for _ in 0..10 {
        for object in &stored {
            // A separate handle, as a lister returns.
            assert!(object.fresh_handle().view::<Value>().get().is_ok());
        }
    }
    assert_eq!(encoder.decodes(), 100);
}

#[test]
fn recently_decoded_bodies_are_bounded_and_those_in_use_stay() {
    let one = 5 * pod(0, 1).len() + 200;
    let encoder = keeper_with(|settings| settings.recent_bytes = 20 * one);
    let stored: Vec<_> = (0..1000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    let read = |n: usize| {
        let before = encoder.decodes();
        assert!(stored[n].fresh_handle().view::<Value>().get().is_ok());
        encoder.decodes() - before
    };
    assert_eq!(read(0) + read(0), 1);
    let again: u64 = (1..1000)
        .map(|n| {
            read(n);
            read(0)
        })
        .sum();
    assert_eq!(again, 0, "an object read all the time is not pushed out by a scan");
    assert_eq!((100..900).map(read).sum::<u64>(), 800, "what was read once is gone");
}

#[test]
fn bodies_read_once_leave_little_behind_and_those_read_in_rounds_stay_from_the_second_on() {
    let decodes_in_a_round = |encoder: &BodyEncoder, stored: &[Obj<Untyped>]| {
        let before = encoder.decodes();
        let bodies: Vec<_> = stored
            .iter()
            .map(|object| Arc::downgrade(&object.fresh_handle().view::<Value>().to_arc().unwrap()))
            .collect();
        let alive = bodies.iter().filter(|body| body.strong_count() > 0).count();
        (encoder.decodes() - before, alive)
    };
    let encoder = encoder(Keep::Plain);
    let stored: Vec<_> = (0..2000).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    let one = 5 * pod(0, 1).len();
    let (decodes, alive) = decodes_in_a_round(&encoder, &stored);
    assert_eq!(decodes, stored.len() as u64);
    assert!(alive > 0 && alive * one < 3 << 20, "{alive} bodies of {one} bytes are held after one round");
    assert!(decodes_in_a_round(&encoder, &stored).0 > 0);
    assert_eq!(decodes_in_a_round(&encoder, &stored), (0, stored.len()));
}

#[test]
fn a_sweep_over_more_than_fits_leaves_no_more_behind_however_often_it_is_repeated() {
    let one = 5 * pod(0, 1).len();
    let encoder = keeper_with(|settings| {
        settings.keep = Keep::Plain;
        settings.recent_bytes = 4 << 20;
    });
    let stored: Vec<_> = (0..(8 << 20) / one).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    for round in 1..=3 {
        let read = |object: &Obj<Untyped>| object.fresh_handle().view::<Value>().to_arc().unwrap();
        let bodies: Vec<_> = stored.iter().map(|object| Arc::downgrade(&read(object))).collect();
        let alive = bodies.iter().filter(|body| body.strong_count() > 0).count();
        assert_eq!(encoder.decodes(), (round * stored.len()) as u64);
        assert!(alive * one < 3 << 20, "{alive} bodies of {one} bytes are held after round {round}");
    }
}

#[test]
fn decoded_stays_with_the_object() {
    static DECODED: AtomicU32 = AtomicU32::new(0);
    struct Counted;
    impl<'de> serde::Deserialize<'de> for Counted {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            DECODED.fetch_add(1, Ordering::Relaxed);
            serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
        }
    }
    let encoder = keeper_with(|settings| {
        settings.keep = Keep::Decoded;
        settings.recent_bytes = 0;
    });
    let stored: Vec<_> = (0..50).map(|n| accept(&encoder, &pod(n, 1), Arrival::Listed)).collect();
    for _ in 0..3 {
        for object in &stored {
            assert!(object.fresh_handle().view::<Counted>().get().is_ok());
        }
    }
    assert_eq!(DECODED.load(Ordering::Relaxed), 50);
}

#[test]
fn an_object_that_is_transformed_is_kept_once_and_only_as_it_became() {
    let encoder = encoder(Keep::Compact);
    let ingest = Ingest::default().transform(encoder.clone(), |value| {
        value["spec"]["long"] = "long ".repeat(1000).into();
        match value["metadata"]["name"].as_str() {
            Some("web-1") => panic!("as the test wants"),
            _ => Verdict::Keep,
        }
    });
    let mut store = Store::new(ingest);
    let (plain, key) = (pod(0, 1).len(), |number: usize| ObjectKey::namespaced("default", format!("web-{number}")));
    for number in 0..255 {
        let object = accept(&encoder, &pod(number, number + 1), Arrival::InTransit);
        assert!(object.weight() > plain, "not packed on its way");
        drop(store.apply([Delta::Changed(object)]));
    }
    assert!(encoder.take_training_samples().is_none(), "each counts once");
    drop(store.apply([Delta::Changed(accept(&encoder, &pod(255, 256), Arrival::InTransit))]));
    assert!(encoder.take_training_samples().is_some());
    assert_eq!(encoder.pack_cold(10, 1_000).objects, 256, "each is packed once");
    let held = store.reader().get(&key(0)).unwrap();
    assert!(held.json().len() > 5_000 && held.weight() < 1_000);
    let untouched = store.reader().get(&key(1)).unwrap();
    assert_eq!(untouched.json(), pod(1, 2), "a function that panics changes nothing");
}

#[test]
fn dropped_fields_are_gone_from_what_is_kept() {
    let encoder = keeper_with(|settings| {
        settings.drop_fields = kube_informer::codec::FieldCutter::new(["spec.containers[*].args".parse().unwrap()]);
    });
    let object = accept(&encoder, &pod(7, 1), Arrival::Listed);
    let value: Value = serde_json::from_slice(&object.json()).unwrap();
    assert_eq!(value["spec"]["containers"][0].get("args"), None);
    assert_eq!(value["spec"]["containers"][0]["name"], "main");
}

#[test]
fn label_sets_are_held_once_for_all_objects_that_have_them() {
    let encoder = encoder(Keep::Plain);
    let (a, b) = (accept(&encoder, &sibling(1, 1), Arrival::Listed), accept(&encoder, &sibling(2, 1), Arrival::Listed));
    assert_eq!(a.label("app").unwrap().as_ptr(), b.label("app").unwrap().as_ptr());
    assert_eq!(a.controller().unwrap().name().as_ptr(), b.controller().unwrap().name().as_ptr());
}

#[test]
fn a_handle_is_three_words_and_the_keeper_can_be_shared() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<BodyEncoder>();
    shared::<Obj<Value>>();
    fn sent<T: Send>() {}
    sent::<Samples>();
    sent::<Dictionary>();
    assert_eq!(size_of::<Obj<Value>>(), 24);
    assert_eq!(size_of::<Option<Obj<Value>>>(), 24);
}
