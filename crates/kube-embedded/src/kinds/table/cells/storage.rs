//! Cells of volumes, claims and storage classes.

use serde_json::Value;

use super::cells;
use super::words::{NONE, UNSET, age, count, flag, is_deleting, items, name, quantity, set_or, text, texts};
use crate::kinds::table::age::Moment;

const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn volume(object: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let claim = match &spec["claimRef"] {
        Value::Null => String::new(),
        claim => format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])),
    };
    cells![
        name(object),
        quantity(&spec["capacity"]["storage"]),
        access_modes(&spec["accessModes"]),
        text(&spec["persistentVolumeReclaimPolicy"]),
        phase(object),
        claim,
        class_name(object),
        set_or(&spec["volumeAttributesClassName"], UNSET),
        text(&status["reason"]),
        age(object, now),
        set_or(&spec["volumeMode"], UNSET),
    ]
}

pub(super) fn claim(object: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (capacity, modes) = match text(&spec["volumeName"]) {
        "" => Default::default(),
        _ => (quantity(&status["capacity"]["storage"]), access_modes(&status["accessModes"])),
    };
    cells![
        name(object),
        phase(object),
        text(&spec["volumeName"]),
        capacity,
        modes,
        class_name(object),
        set_or(&spec["volumeAttributesClassName"], UNSET),
        age(object, now),
        set_or(&spec["volumeMode"], UNSET),
    ]
}

fn phase(object: &Value) -> &str {
    if is_deleting(object) { "Terminating" } else { text(&object["status"]["phase"]) }
}

fn class_name(object: &Value) -> &str {
    let old = &object["metadata"]["annotations"][OLD_CLASS];
    old.as_str().unwrap_or_else(|| text(&object["spec"]["storageClassName"]))
}

fn access_modes(modes: &Value) -> String {
    const SHORT: [(&str, &str); 4] =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    let has = |mode: &str| items(modes).iter().any(|each| each == mode);
    SHORT.iter().filter(|(mode, _)| has(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

pub(super) fn class(object: &Value, now: Moment) -> Vec<Value> {
    cells![
        name(object),
        text(&object["provisioner"]),
        set_or(&object["reclaimPolicy"], "Delete"),
        set_or(&object["volumeBindingMode"], "Immediate"),
        flag(&object["allowVolumeExpansion"]),
        age(object, now),
    ]
}

pub(super) fn is_marked_default(class: &Value) -> bool {
    let annotations = &class["metadata"]["annotations"];
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
        .iter()
        .any(|mark| annotations[*mark] == "true")
}

pub(super) fn attributes_class(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), text(&object["driverName"]), age(object, now)]
}

pub(super) fn attachment(object: &Value, now: Moment) -> Vec<Value> {
    let spec = &object["spec"];
    cells![
        name(object),
        text(&spec["attacher"]),
        text(&spec["source"]["persistentVolumeName"]),
        text(&spec["nodeName"]),
        flag(&object["status"]["attached"]),
        age(object, now),
    ]
}

pub(super) fn driver(object: &Value, now: Moment) -> Vec<Value> {
    let spec = &object["spec"];
    let audiences = match &spec["tokenRequests"] {
        Value::Null => UNSET.to_owned(),
        requests => items(requests).iter().map(|request| text(&request["audience"])).collect::<Vec<_>>().join(","),
    };
    let modes = match texts(&spec["volumeLifecycleModes"]).join(",") {
        empty if empty.is_empty() => NONE.to_owned(),
        modes => modes,
    };
    cells![
        name(object),
        spec["attachRequired"].as_bool().unwrap_or(true),
        flag(&spec["podInfoOnMount"]),
        flag(&spec["storageCapacity"]),
        audiences,
        flag(&spec["requiresRepublish"]),
        modes,
        age(object, now),
    ]
}

pub(super) fn csi_node(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), count(&object["spec"]["drivers"]), age(object, now)]
}
