//! Bodies are decoded as `serde_json` decodes them, but for `metadata.managedFields`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;
use k8s_openapi::api::core::v1::Pod;
use kube::core::{DynamicObject, PartialObjectMeta};
use kube_embedded::generate::Generator;
use kube_informer::body::{Arrival, BodyEncoder, BodyEncoderSettings};
use kube_informer::codec::Envelope;
use kube_informer::object::Encoded;
use kube_informer::{DecodeError, Keep, MetadataOnly, Obj, Object, Untyped};
use proptest::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::arbitrary_json::{any_json, any_resource, config, corrupt};
use crate::protobuf::recorded;

/// Whether both decode the same, or both fail.
fn same_as_serde_json<T: Object + DeserializeOwned + Debug>(json: &str) {
    let (ours, theirs) = (T::decode(Encoded::Json(json.as_bytes())), serde_json::from_str::<T>(json));
    assert_eq!(ours.is_ok(), theirs.is_ok(), "{ours:?} {theirs:?} {json}");
    if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{json}");
    }
}

proptest! {
    #![proptest_config(config(500))]

    #[test]
    fn any_json_is_decoded_as_serde_json_does(json in any_json(), change in corrupt()) {
        same_as_serde_json::<Value>(&json.text);
        let changed = change.apply(&json.text);
        // Control characters are allowed in strings, and malformed UTF-8 is replaced.
        if let Ok(changed) = str::from_utf8(&changed)
            && changed.bytes().all(|byte| byte >= b' ')
        {
            same_as_serde_json::<Value>(changed);
            same_as_serde_json::<BTreeMap<String, Option<Vec<Value>>>>(changed);
        }
    }

    #[test]
    fn any_object_is_decoded_without_its_managers_alone(object in any_resource()) {
        let mut expected: Value = serde_json::from_str(&object.text).unwrap();
        let decoded = Value::decode_without_managed_fields(Encoded::Json(object.text.as_bytes())).unwrap();
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        prop_assert_eq!(decoded, expected);
    }
}

/// Types that ask a deserializer for every sort of value.
#[test]
fn every_sort_of_type_is_decoded_as_serde_json_does() {
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded, and printed")]
    struct Odd {
        numbers: (u8, i16, f32, i128),
        #[serde(default)]
        keys: BTreeMap<u16, bool>,
        truths: Option<BTreeMap<bool, char>>,
        kind: Option<Tagged>,
        any: Option<Untagged>,
        variant: Option<Variant>,
        raw: Option<Box<RawValue>>,
        unit: Option<()>,
        number: Option<serde_json::Number>,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded, and printed")]
    #[serde(tag = "is")]
    enum Tagged {
        Small { size: u8 },
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded, and printed")]
    #[serde(untagged)]
    enum Untagged {
        Number(i64),
        Text(String),
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only decoded, and printed")]
    enum Variant {
        Plain,
        Of(u8),
        With { a: String },
    }
    let odd = |fields: &str| format!(r#"{{"numbers":[1,-2,3,-4]{fields}}}"#);
    for fields in [
        "",
        r#","keys":{"1":true,"65535":false}"#,
        r#","keys":{"65536":true}"#,
        r#","keys":{"a":true}"#,
        r#","truths":{"true":"x"}"#,
        r#","truths":{"yes":"x"}"#,
        r#","kind":{"size":7,"is":"Small"}"#,
        r#","kind":{"size":700,"is":"Small"}"#,
        r#","any":-9223372036854775808"#,
        r#","any":"\u00e9\n\"""#,
        r#","any":1.5"#,
        r#","variant":"Plain""#,
        r#","variant":{"Of":3}"#,
        r#","variant":{"With":{"a":"b"}}"#,
        r#","variant":{"Of":3,"Plain":null}"#,
        r#","variant":"None""#,
        r#","raw": { "a" : [1, 2] } "#,
        r#","unit":null"#,
        r#","unit":1"#,
        r#","number":1e400"#,
        r#","number":-0"#,
        r#","number":18446744073709551615"#,
        r#","number":18446744073709551616"#,
        r#","number":01"#,
        r#","number":1."#,
        r#","number":-"#,
        r#","number":+1"#,
        r#","number":999999999999999999"#,
        r#","number":1234567890123456789"#,
        r#","more":{"x":[true,false,null,"\ud83d\ude00"]}"#,
        r#","more":"\ud800""#,
        r#","more":nul"#,
        r#","more":tru"#,
        r#","more":[1,]"#,
        r#","more":[1}"#,
        r#","numbers":1"#,
        ",",
    ] {
        same_as_serde_json::<Odd>(&odd(fields));
    }
    for numbers in ["[1,-2,3]", "[1,-2,3,-4,5]", "[256,0,0,0]", "[1,-2,3.5,-4]", "{}", "[]"] {
        same_as_serde_json::<Odd>(&format!(r#"{{"numbers":{numbers}}}"#));
    }
    for text in ["", " ", "{}", " {\"numbers\" : [ 1 , 2 , 3 , 4 ] } \n", "{\"numbers\":[1,2,3,4]} x", "[[1,2,3,4],{}]"]
    {
        same_as_serde_json::<Odd>(text);
    }
    for depth in [126, 127, 128, 5000] {
        same_as_serde_json::<Value>(&format!("{}{}", "[".repeat(depth), "]".repeat(depth)));
    }
    same_as_serde_json::<Variant>(r#"{"With":{"a":"b"}}"#);
    same_as_serde_json::<Box<RawValue>>(r#" {"a": 1}"#);
    same_as_serde_json::<String>(r#""\u0061b""#);
}

#[test]
fn keys_that_are_numbers_are_decoded_as_serde_json_does() {
    fn keys<K: Debug + DeserializeOwned + Ord + Send + Sync + 'static>(keys: &[&str]) {
        for key in keys {
            same_as_serde_json::<BTreeMap<K, u8>>(&format!(r#"{{"{key}":1}}"#));
        }
    }
    /// Compares as text, for keys that have no order.
    #[derive(Debug)]
    struct AsText<K>(K);
    impl<'de, K: Deserialize<'de>> Deserialize<'de> for AsText<K> {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            K::deserialize(deserializer).map(Self)
        }
    }
    impl<K: Debug> PartialEq for AsText<K> {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }
    impl<K: Debug> Eq for AsText<K> {}
    impl<K: Debug> PartialOrd for AsText<K> {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl<K: Debug> Ord for AsText<K> {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            format!("{self:?}").cmp(&format!("{other:?}"))
        }
    }
    let numbers = [
        "0",
        "-0",
        "7",
        "-7",
        "+7",
        "07",
        "00",
        "-07",
        " 7",
        "7 ",
        "7\\n",
        "",
        "-",
        "--7",
        "7.0",
        "7.5",
        ".5",
        "5.",
        "7e2",
        "7E-2",
        "7e",
        "1e400",
        "inf",
        "NaN",
        "0x7",
        "1_000",
        "127",
        "128",
        "255",
        "256",
        "-129",
        "65536",
        "4294967296",
        "18446744073709551616",
        "-9223372036854775809",
        "340282366920938463463374607431768211456",
    ];
    keys::<i8>(&numbers);
    keys::<i32>(&numbers);
    keys::<i64>(&numbers);
    keys::<i128>(&numbers);
    keys::<u8>(&numbers);
    keys::<u64>(&numbers);
    keys::<u128>(&numbers);
    keys::<AsText<f32>>(&numbers);
    keys::<AsText<f64>>(&numbers);
    keys::<bool>(&["true", "false", " true", "True", "1", ""]);
    keys::<Option<String>>(&["a", ""]);
}

#[test]
fn keys_of_maps_in_protobuf_are_decoded_as_those_in_json() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Ports {
        data: BTreeMap<u16, String>,
    }
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"80": "http"}});
    let json = Obj::<Ports>::from_json(map.to_string()).unwrap();
    let raw = b"\x0a\x03\x0a\x01a\x12\x0a\x0a\x0280\x12\x04http";
    let protobuf = Envelope { api_version: b"v1", kind: b"ConfigMap", raw }.close();
    let decoded = Ports::decode(Encoded::Protobuf(&protobuf)).unwrap();
    assert_eq!(decoded, *json.get().unwrap());
}

#[test]
fn every_pod_is_decoded_as_serde_json_does() {
    for pod in Generator::new(3).pods(100) {
        let mut expected: Pod = serde_json::from_slice(pod.bytes()).unwrap();
        let encoded = Encoded::Json(pod.bytes());
        assert_eq!(Pod::decode(encoded).unwrap(), expected);
        assert!(expected.metadata.managed_fields.take().is_some_and(|managers| !managers.is_empty()));
        assert_eq!(Pod::decode_without_managed_fields(encoded).unwrap(), expected);
    }
}

#[test]
fn only_the_managers_in_the_metadata_of_the_object_itself_are_left_out() {
    let json = r#"{"managedFields":[1],"metadata":{"managedFields":[2],"name":"a","x":{"managedFields":[3]}},
        "spec":{"metadata":{"managedFields":[4]}},"list":[{"metadata":{"managedFields":[5]}}]}"#;
    let mut expected: Value = serde_json::from_str(json).unwrap();
    expected["metadata"].as_object_mut().unwrap().remove("managedFields");
    assert_eq!(Value::decode_without_managed_fields(Encoded::Json(json.as_bytes())).unwrap(), expected);
}

#[test]
fn a_type_that_serde_json_has_to_decode_does_not_see_the_managers_either() {
    #[derive(Debug, Deserialize)]
    struct Raw {
        metadata: Box<RawValue>,
    }
    /// As a user's type may be that serde does not decode.
    struct Length(usize);
    impl Object for Length {
        fn decode(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
            match encoded {
                Encoded::Json(json) => Ok(Self(json.len())),
                _ => Ok(Self(0)),
            }
        }
    }
    let json = r#"{"metadata":{"name":"a","managedFields":[{"manager":"us"}]}}"#;
    let without = r#"{"metadata":{"name":"a"}}"#;
    let object = Obj::<Raw>::from_json(json).unwrap();
    assert_eq!(object.get().unwrap().metadata.get(), r#"{"name":"a"}"#);
    assert_eq!(object.view::<Box<RawValue>>().get().unwrap().get(), without);
    assert_eq!(object.view::<Length>().get().unwrap().0, without.len());
    assert_eq!(object.json(), json);
}

/// The same object in every policy, packed where the policy packs.
fn held(object: &Bytes, set: impl Fn(&mut BodyEncoderSettings)) -> Vec<Obj<Untyped>> {
    let hold = |keep| {
        let mut settings = BodyEncoderSettings::default();
        settings.keep = keep;
        set(&mut settings);
        BodyEncoder::new(settings).accept(object, Arrival::Listed).unwrap()
    };
    [Keep::Plain, Keep::Compact, Keep::Decoded].into_iter().map(hold).collect()
}

fn managers_of(metadata: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Option<usize> {
    metadata.managed_fields.as_ref().map(Vec::len)
}

#[test]
fn managers_are_decoded_on_request_in_every_form_policy_and_type() {
    let mut with_managers = 0;
    for (json, protobuf) in recorded() {
        let count = json["metadata"]["managedFields"].as_array().map_or(0, Vec::len);
        with_managers += usize::from(count > 0);
        let mut without = json.clone();
        without["metadata"].as_object_mut().unwrap().remove("managedFields");
        for bytes in [&Bytes::from(json.to_string()), &protobuf] {
            for object in held(bytes, |_| {}) {
                assert_eq!(*object.view::<Value>().get().unwrap(), without);
                assert_eq!(managers_of(&object.view::<DynamicObject>().get().unwrap().metadata), None);
                assert_eq!(managers_of(&object.view::<PartialObjectMeta>().get().unwrap().metadata), None);
                assert_eq!(managers_of(&object.view::<MetadataOnly>().get().unwrap().metadata), None);
                let managers = object.managed_fields().unwrap();
                assert_eq!(managers.len(), count);
                assert_eq!(serde_json::from_slice::<Value>(&object.json()).unwrap(), json);
            }
            for object in held(bytes, |settings| settings.decode_managed_fields = true) {
                assert_eq!(*object.view::<Value>().get().unwrap(), json);
                let managers = object.managed_fields().unwrap();
                let decoded = object.view::<DynamicObject>();
                assert_eq!(decoded.get().unwrap().metadata.managed_fields.clone().unwrap_or_default(), managers);
                assert_eq!(managers_of(&object.view::<MetadataOnly>().get().unwrap().metadata).unwrap_or(0), count);
            }
        }
    }
    assert!(with_managers > 20, "{with_managers}");
}

#[test]
fn managers_that_cannot_be_read_fail_alone() {
    let object = Obj::<Value>::from_json(r#"{"metadata":{"name":"a","managedFields":"s3cret"}}"#).unwrap();
    assert_eq!(*object.get().unwrap(), json!({"metadata": {"name": "a"}}));
    let error = object.managed_fields().unwrap_err();
    assert_eq!(error.path().unwrap().to_string(), "metadata.managedFields");
    assert!(!error.to_string().contains("s3cret"));
    assert!(Obj::<Value>::from_json(r#"{"metadata":{"name":"a"}}"#).unwrap().managed_fields().unwrap().is_empty());
}
