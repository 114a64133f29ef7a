//! The generated cluster resembles a real one in size, structure and compressibility.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::core::v1::Pod;
use kube_embedded::generate::{Generator, Sample};
use serde_json::Value;

const SEED: u64 = 20_260_601;
const PODS: u64 = 20_000;

#[test]
fn packed_with_a_dictionary_trained_on_one_in_a_hundred_a_pod_still_takes_a_thousand_bytes() {
    let pods: Vec<Vec<u8>> = Generator::new(SEED).pods(PODS).map(Sample::into_bytes).collect();
    let training: Vec<&[u8]> = pods.iter().step_by(100).map(Vec::as_slice).collect();
    let dictionary = zstd::dict::from_samples(&training, 110 * 1024).unwrap();
    let mut compressor = zstd::bulk::Compressor::with_dictionary(3, &dictionary).unwrap();
    let packed: usize = pods.iter().map(|pod| compressor.compress(pod).unwrap().len()).sum();
    let plain: usize = pods.iter().map(Vec::len).sum();

    let each = packed as u64 / PODS;
    println!("seed {SEED}: {each} bytes of {} a pod", plain as u64 / PODS);
    assert!(each >= 1_000, "seed {SEED}: {each} bytes a pod");
    assert!(each <= 2_000, "seed {SEED}: {each} bytes a pod are more than real ones leave");
}

#[test]
fn every_pod_has_six_to_nine_kilobytes_at_every_step() {
    let cluster = Generator::new(SEED);
    let mut sizes: Vec<usize> = cluster.pods(PODS).map(|pod| pod.bytes().len()).collect();
    sizes.extend((0..2_000).map(|n| cluster.pod_at(n * 7, n % 70).bytes().len()));
    let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
    println!("seed {SEED}: {least} to {most} bytes");
    assert!(*least >= 6_000 && *most <= 9_000, "seed {SEED}: {least} to {most} bytes");
}

#[test]
fn a_pod_is_the_same_in_any_order_of_requests() {
    let in_order: Vec<Sample> = Generator::new(5).pods(300).collect();
    for index in (0..300).rev() {
        assert_eq!(Generator::new(5).pod(index), in_order[index as usize], "pod {index}");
    }
    assert_ne!(Generator::new(6).pod(3), in_order[3]);
}

#[test]
fn names_uids_and_addresses_are_never_given_twice() {
    let (mut keys, mut uids, mut ips) = (HashSet::new(), HashSet::new(), HashSet::new());
    for (index, sample) in Generator::new(SEED).pods(PODS).enumerate() {
        let pod: Identity = serde_json::from_slice(sample.bytes()).unwrap();
        assert!(keys.insert(sample.path()), "pod {index}: {}", sample.path());
        assert!(uids.insert(pod.metadata.uid), "pod {index}");
        if let (false, Some(ip)) = (pod.spec.host_network, pod.status.pod_ip) {
            assert!(ips.insert(ip), "pod {index}");
        }
    }
}

/// The fields of a pod that must be unique.
#[derive(serde::Deserialize)]
struct Identity {
    metadata: IdentityMetadata,
    spec: IdentitySpec,
    status: IdentityStatus,
}

#[derive(serde::Deserialize)]
struct IdentityMetadata {
    uid: String,
}

#[derive(serde::Deserialize)]
struct IdentitySpec {
    #[serde(default, rename = "hostNetwork")]
    host_network: bool,
}

#[derive(serde::Deserialize)]
struct IdentityStatus {
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

#[test]
fn pods_come_in_many_shapes() {
    let mut shapes: BTreeMap<String, usize> = BTreeMap::new();
    for sample in Generator::new(SEED).pods(2_000) {
        let pod = sample.to_value();
        let mut saw = |shape: String| *shapes.entry(shape).or_default() += 1;
        saw(format!("owner {}", pod["metadata"]["ownerReferences"][0]["kind"].as_str().unwrap()));
        saw(format!("phase {}", pod["status"]["phase"].as_str().unwrap()));
        saw(format!("containers {}", pod["spec"]["containers"].as_array().unwrap().len()));
        saw(format!("quality {}", pod["status"]["qosClass"].as_str().unwrap()));
        for part in ["initContainers", "affinity", "nodeSelector", "volumes", "topologySpreadConstraints"] {
            if !pod["spec"][part].is_null() {
                saw(part.to_owned());
            }
        }
        for part in ["env", "livenessProbe", "readinessProbe", "command"] {
            if !pod["spec"]["containers"][0][part].is_null() {
                saw(part.to_owned());
            }
        }
    }
    let expected = [
        "affinity",
        "command",
        "containers 1",
        "containers 2",
        "containers 3",
        "containers 4",
        "env",
        "initContainers",
        "livenessProbe",
        "nodeSelector",
        "owner DaemonSet",
        "owner Job",
        "owner ReplicaSet",
        "owner StatefulSet",
        "phase Pending",
        "phase Running",
        "phase Succeeded",
        "quality Burstable",
        "quality Guaranteed",
        "readinessProbe",
        "topologySpreadConstraints",
        "volumes",
    ];
    let seen: Vec<&str> = shapes.keys().map(String::as_str).collect();
    assert_eq!(seen, expected, "{shapes:?}");
}

#[test]
fn every_volume_that_a_container_mounts_is_there() {
    let cluster = Generator::new(SEED);
    for index in 0..300 {
        let samples = [("/spec", cluster.pod(index)), ("/spec/template/spec", cluster.deployment(index))];
        for (path, sample) in samples {
            let object: Value = serde_json::from_slice(sample.bytes()).unwrap();
            let spec = object.pointer(path).unwrap();
            let names = |list: &Value| -> Vec<Value> {
                list.as_array().into_iter().flatten().map(|each| each["name"].clone()).collect()
            };
            let volumes = names(&spec["volumes"]);
            for container in spec["containers"].as_array().unwrap() {
                for mount in names(&container["volumeMounts"]) {
                    assert!(volumes.contains(&mount), "{}: {mount}", sample.path());
                }
            }
        }
    }
}

#[test]
fn every_field_that_managed_fields_name_is_there() {
    for sample in Generator::new(SEED).pods(500) {
        let pod = sample.to_value();
        let managers = pod["metadata"]["managedFields"].as_array().unwrap();
        assert!(managers.len() >= 2, "{}", sample.path());
        for manager in managers {
            assert_owned(&manager["fieldsV1"], &pod, &sample.path());
        }
    }
}

fn assert_owned(fields: &Value, object: &Value, path: &str) {
    for (key, below) in fields.as_object().unwrap() {
        let found = match key.split_once(':') {
            Some(("f", name)) => object.get(name),
            Some(("k", item)) => {
                let wanted: Value = serde_json::from_str(item).unwrap();
                let fits =
                    |each: &&Value| wanted.as_object().unwrap().iter().all(|(key, value)| each.get(key) == Some(value));
                object.as_array().and_then(|items| items.iter().find(fits))
            }
            _ => continue,
        };
        let path = format!("{path} {key}");
        assert_owned(below, found.unwrap_or_else(|| panic!("{path} is not there")), &path);
    }
}

#[test]
fn each_step_changes_a_pod_and_none_its_identity() {
    let cluster = Generator::new(SEED);
    for index in 0..64 {
        let mut last: Pod = serde_json::from_slice(cluster.pod(index).bytes()).unwrap();
        for step in 1..40 {
            let pod: Pod = serde_json::from_slice(cluster.pod_at(index, step).bytes()).unwrap();
            assert_ne!(pod, last, "pod {index}, step {step}");
            assert_eq!((&pod.metadata.name, &pod.metadata.uid), (&last.metadata.name, &last.metadata.uid));
            assert_eq!(pod.spec, last.spec, "pod {index}, step {step}");
            let version = |pod: &Pod| pod.metadata.resource_version.as_ref().unwrap().parse::<u64>().unwrap();
            assert!(version(&pod) > version(&last), "pod {index}, step {step}");
            assert!(restarts(&pod) >= restarts(&last), "pod {index}, step {step}");
            last = pod;
        }
    }
}

#[test]
fn a_pod_from_elsewhere_can_be_moved_on_however_little_it_says() {
    let cluster = Generator::new(SEED);
    for mut value in [cluster.pod(20).to_value(), serde_json::json!({"spec": {"containers": []}})] {
        for step in 1..12 {
            let before = value.clone();
            cluster.advance(&mut value, step);
            assert_ne!(value, before, "step {step}");
            assert_eq!((&value["metadata"], &value["spec"]), (&before["metadata"], &before["spec"]));
            serde_json::from_value::<Pod>(value.clone()).unwrap();
        }
    }
    cluster.advance(&mut Value::Null, 3);
}

fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().unwrap().container_statuses.iter().flatten();
    statuses.map(|status| status.restart_count).sum()
}

#[test]
fn what_a_pod_refers_to_is_generated_too() {
    let cluster = Generator::new(SEED);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let sets: BTreeMap<String, Value> =
        (0..40).map(|n| cluster.replica_set(n).to_value()).map(|set| (text(&set["metadata"]["uid"]), set)).collect();
    let deployments: HashSet<String> =
        (0..40).map(|n| text(&cluster.deployment(n).to_value()["metadata"]["uid"])).collect();
    let nodes: HashSet<String> = (0..64).map(|n| cluster.node(n).name().to_owned()).collect();
    let namespaces: HashSet<String> = cluster.namespaces().map(|namespace| namespace.name().to_owned()).collect();
    let mut replicas: BTreeMap<String, u64> = BTreeMap::new();
    for sample in cluster.pods(256) {
        let pod = sample.to_value();
        assert!(nodes.contains(pod["spec"]["nodeName"].as_str().unwrap()));
        assert!(namespaces.contains(sample.namespace().unwrap()));
        let owner = &pod["metadata"]["ownerReferences"][0];
        if owner["kind"] == "ReplicaSet" {
            let set = &sets[owner["uid"].as_str().unwrap()];
            assert_eq!(set["metadata"]["name"], owner["name"]);
            assert_eq!(
                set["spec"]["selector"]["matchLabels"]["pod-template-hash"],
                pod["metadata"]["labels"]["pod-template-hash"]
            );
            assert!(deployments.contains(set["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap()));
            *replicas.entry(text(&owner["uid"])).or_default() += 1;
        }
    }
    for (uid, set) in &sets {
        assert_eq!(set["spec"]["replicas"], replicas[uid], "{}", set["metadata"]["name"]);
    }
}

#[test]
fn other_kinds_fit_their_types_and_their_sizes() {
    use k8s_openapi::api::{apps::v1 as apps, core::v1 as core, discovery::v1 as discovery};
    let cluster = Generator::new(SEED);
    for index in 0..50 {
        decodes::<core::Node>(&cluster.node(index), 3_000..12_000);
        decodes::<core::Service>(&cluster.service(index), 700..2_000);
        decodes::<core::Event>(&cluster.event(index), 900..2_000);
        decodes::<discovery::EndpointSlice>(&cluster.endpoint_slice(index), 700..9_000);
        decodes::<apps::Deployment>(&cluster.deployment(index), 3_000..9_000);
        decodes::<apps::ReplicaSet>(&cluster.replica_set(index), 3_000..9_000);
        decodes::<core::ConfigMap>(&cluster.config_map(index, 100_000), 99_000..110_000);
        decodes::<Value>(&cluster.custom_resource(index), 800..1_500);
    }
    for namespace in cluster.namespaces() {
        decodes::<core::Namespace>(&namespace, 200..500);
    }
}

fn decodes<K: serde::de::DeserializeOwned>(sample: &Sample, sizes: std::ops::Range<usize>) {
    let size = sample.bytes().len();
    assert!(sizes.contains(&size), "{}: {size} bytes", sample.path());
    if let Err(error) = serde_json::from_slice::<K>(sample.bytes()) {
        panic!("{}: {error}", sample.path());
    }
}

#[test]
fn an_object_to_be_written_leaves_to_the_server_what_is_the_servers() {
    let cluster = Generator::new(SEED);
    for sample in
        [cluster.pod(20), cluster.node(1), cluster.custom_resource(4), cluster.event(9), cluster.replica_set(2)]
    {
        let mut stored = sample.to_value();
        let written: Value = serde_json::from_slice(&sample.to_write()).unwrap();
        let metadata = stored["metadata"].as_object_mut().unwrap();
        metadata.remove("uid").unwrap();
        metadata.remove("resourceVersion").unwrap();
        assert_eq!(written, stored);

        let later: Value = serde_json::from_slice(&sample.at_version(77)).unwrap();
        assert_eq!(later["metadata"]["resourceVersion"], "77");
    }
}
