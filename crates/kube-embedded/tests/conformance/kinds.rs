//! Differences between built-in kinds: generation, unconditional updates, create on update, delete
//! responses.

use crate::harness::{Api, Case, Namespace, case};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read as _;

pub(crate) const CASES: &[Case] = &[
    case!(
        a_new_server_has_objects,
        "roles and bindings, priority classes, flow schemas, API services, service networks"
    ),
    case!(
        namespaced_kinds_behave_as_recorded,
        "each namespaced kind: generation, PUT without a version, PUT of a missing object, DELETE"
    ),
    case!(cluster_wide_kinds_behave_as_recorded, "the same for each kind without a namespace"),
];

/// A kind, its required fields, and its behaviour.
struct Kind {
    /// Group and version; empty for the core group's v1.
    group_version: &'static str,
    plural: &'static str,
    body: &'static str,
    generation: Generation,
    update: Update,
    put_missing: PutMissing,
    deletion: Deletion,
}

use Deletion::{Kept, Object, Status};
use Generation::{Changes, Counted, CountsLabels, None as Uncounted};
use PutMissing::{Creates, Missing};
use Update::{Conditional, Unconditional};

#[derive(Clone, Copy)]
enum Generation {
    None,
    Counted,
    /// Incremented, also when labels change.
    CountsLabels,
    /// Incremented, also by a deletion after which the object remains.
    Changes,
}

#[derive(Clone, Copy)]
enum Update {
    Unconditional,
    Conditional,
}

#[derive(Clone, Copy)]
enum PutMissing {
    Creates,
    Missing,
}

#[derive(Clone, Copy)]
enum Deletion {
    /// Removed; returns a Status.
    Status,
    /// Removed; returns the object.
    Object,
    /// Remains because of a finalizer that the server adds.
    Kept,
}

const fn kind(
    path: (&'static str, &'static str),
    body: &'static str,
    behaviour: (Generation, Update, PutMissing, Deletion),
) -> Kind {
    let (group_version, plural) = path;
    let (generation, update, put_missing, deletion) = behaviour;
    Kind { group_version, plural, body, generation, update, put_missing, deletion }
}

const POD: &str = r#"{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
const SELECTED: &str = r#"{"spec":{"selector":{"matchLabels":{"a":"b"}},"template":POD}}"#;

const NAMESPACED: &[Kind] = &[
    kind(("", "configmaps"), "{}", (Uncounted, Unconditional, Missing, Status)),
    kind(("", "endpoints"), "{}", (Uncounted, Unconditional, Creates, Status)),
    kind(("", "events"), r#"{"involvedObject":{"namespace":"NS"}}"#, (Uncounted, Unconditional, Creates, Status)),
    kind(("", "limitranges"), r#"{"spec":{"limits":[]}}"#, (Uncounted, Unconditional, Creates, Status)),
    kind(
        ("", "persistentvolumeclaims"),
        r#"{"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}"#,
        (Uncounted, Unconditional, Missing, Kept),
    ),
    kind(("", "pods"), POD, (Counted, Unconditional, Missing, Object)),
    kind(("", "podtemplates"), r#"{"template":POD}"#, (Counted, Unconditional, Missing, Object)),
    kind(
        ("", "replicationcontrollers"),
        r#"{"spec":{"selector":{"a":"b"},"template":POD}}"#,
        (Changes, Unconditional, Missing, Kept),
    ),
    kind(("", "secrets"), "{}", (Uncounted, Unconditional, Missing, Status)),
    kind(("", "serviceaccounts"), "{}", (Uncounted, Unconditional, Missing, Object)),
    kind(("", "services"), r#"{"spec":{"ports":[{"port":80}]}}"#, (Uncounted, Unconditional, Creates, Object)),
    kind(
        ("apps/v1", "controllerrevisions"),
        r#"{"revision":1,"data":{}}"#,
        (Uncounted, Unconditional, Missing, Status),
    ),
    kind(("apps/v1", "daemonsets"), SELECTED, (Counted, Unconditional, Missing, Status)),
    kind(("apps/v1", "deployments"), SELECTED, (Counted, Unconditional, Missing, Status)),
    kind(("apps/v1", "replicasets"), SELECTED, (Counted, Unconditional, Missing, Status)),
    kind(("apps/v1", "statefulsets"), SELECTED, (Counted, Unconditional, Missing, Status)),
    kind(
        ("autoscaling/v2", "horizontalpodautoscalers"),
        r#"{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"d"},"maxReplicas":3}}"#,
        (Counted, Unconditional, Missing, Status),
    ),
    kind(
        ("batch/v1", "cronjobs"),
        r#"{"spec":{"schedule":"1 1 1 1 1","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}}"#,
        (Counted, Unconditional, Missing, Status),
    ),
    kind(
        ("batch/v1", "jobs"),
        r#"{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}"#,
        (Changes, Unconditional, Missing, Kept),
    ),
    kind(("coordination.k8s.io/v1", "leases"), "{}", (Uncounted, Conditional, Creates, Status)),
    kind(
        ("discovery.k8s.io/v1", "endpointslices"),
        r#"{"addressType":"IPv4","endpoints":[]}"#,
        (CountsLabels, Unconditional, Missing, Status),
    ),
    kind(
        ("events.k8s.io/v1", "events"),
        r#"{"eventTime":"2026-01-01T00:00:00.000000Z","reportingController":"a.b/c","reportingInstance":"i","action":"a","reason":"r","type":"Normal","regarding":{"namespace":"NS"}}"#,
        (Uncounted, Unconditional, Creates, Status),
    ),
    kind(
        ("networking.k8s.io/v1", "ingresses"),
        r#"{"spec":{"defaultBackend":{"service":{"name":"s","port":{"number":80}}}}}"#,
        (Counted, Unconditional, Missing, Status),
    ),
    kind(
        ("networking.k8s.io/v1", "networkpolicies"),
        r#"{"spec":{"podSelector":{}}}"#,
        (Counted, Unconditional, Missing, Status),
    ),
    kind(
        ("policy/v1", "poddisruptionbudgets"),
        r#"{"spec":{"maxUnavailable":1,"selector":{"matchLabels":{"a":"b"}}}}"#,
        (Counted, Conditional, Missing, Status),
    ),
    kind(("rbac.authorization.k8s.io/v1", "roles"), r#"{"rules":[]}"#, (Uncounted, Unconditional, Creates, Status)),
    kind(
        ("rbac.authorization.k8s.io/v1", "rolebindings"),
        r#"{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"}}"#,
        (Uncounted, Unconditional, Creates, Status),
    ),
    kind(("resource.k8s.io/v1", "resourceclaims"), r#"{"spec":{}}"#, (Uncounted, Unconditional, Missing, Object)),
    kind(
        ("resource.k8s.io/v1", "resourceclaimtemplates"),
        r#"{"spec":{"spec":{}}}"#,
        (Uncounted, Unconditional, Missing, Object),
    ),
    kind(
        ("storage.k8s.io/v1", "csistoragecapacities"),
        r#"{"storageClassName":"s"}"#,
        (Uncounted, Conditional, Missing, Status),
    ),
    // Last, because a quota without a controller that counts its usage rejects pods.
    kind(("", "resourcequotas"), r#"{"spec":{"hard":{"pods":"10"}}}"#, (Uncounted, Unconditional, Missing, Object)),
];

const CLUSTER_WIDE: &[Kind] = &[
    kind(("", "nodes"), "{}", (Uncounted, Unconditional, Missing, Status)),
    kind(
        ("", "persistentvolumes"),
        r#"{"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"hostPath":{"path":"/x"}}}"#,
        (Uncounted, Unconditional, Missing, Kept),
    ),
    kind(
        ("networking.k8s.io/v1", "ingressclasses"),
        r#"{"spec":{"controller":"a.b/c"}}"#,
        (Counted, Unconditional, Missing, Status),
    ),
    kind(("node.k8s.io/v1", "runtimeclasses"), r#"{"handler":"h"}"#, (Uncounted, Conditional, Creates, Status)),
    kind(
        ("rbac.authorization.k8s.io/v1", "clusterroles"),
        r#"{"rules":[]}"#,
        (Uncounted, Unconditional, Creates, Status),
    ),
    kind(
        ("rbac.authorization.k8s.io/v1", "clusterrolebindings"),
        r#"{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}}"#,
        (Uncounted, Unconditional, Creates, Status),
    ),
    kind(("resource.k8s.io/v1", "deviceclasses"), r#"{"spec":{}}"#, (Counted, Unconditional, Missing, Object)),
    kind(("scheduling.k8s.io/v1", "priorityclasses"), r#"{"value":5}"#, (Counted, Unconditional, Missing, Status)),
    kind(("storage.k8s.io/v1", "csidrivers"), r#"{"spec":{}}"#, (Uncounted, Conditional, Missing, Object)),
    kind(("storage.k8s.io/v1", "csinodes"), r#"{"spec":{"drivers":[]}}"#, (Uncounted, Conditional, Missing, Object)),
    kind(
        ("storage.k8s.io/v1", "storageclasses"),
        r#"{"provisioner":"a.b/c"}"#,
        (Uncounted, Unconditional, Missing, Object),
    ),
    kind(
        ("storage.k8s.io/v1", "volumeattachments"),
        r#"{"spec":{"attacher":"a","nodeName":"n","source":{"persistentVolumeName":"p"}}}"#,
        (Uncounted, Conditional, Missing, Object),
    ),
];

async fn namespaced_kinds_behave_as_recorded(api: Api) {
    let ns = api.namespace().await;
    all_behave(&api, NAMESPACED, Some(&ns)).await;
}

async fn cluster_wide_kinds_behave_as_recorded(api: Api) {
    all_behave(&api, CLUSTER_WIDE, None).await;
}

async fn all_behave(api: &Api, kinds: &[Kind], ns: Option<&Namespace>) {
    let mut differences = Vec::new();
    for kind in kinds {
        let seen = kind.behaviour(api, ns).await;
        let expected = kind.expected();
        if seen != expected {
            differences.push(format!("{}/{}: expected {expected}, but got {seen}", kind.group_version, kind.plural));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

impl Kind {
    fn expected(&self) -> Value {
        let (made, labelled, deleted) = match self.generation {
            Generation::None => (None, None, None),
            Counted => (Some(1), Some(1), None),
            CountsLabels => (Some(1), Some(2), None),
            Changes => (Some(1), Some(1), Some(2)),
        };
        json!({
            "create": 201,
            "generation": made,
            "generation after a new label": labelled,
            "update without a version": match self.update { Unconditional => 200, Conditional => 422 },
            "update of a missing object": match self.put_missing { Creates => 201, Missing => 404 },
            "delete": 200,
            "deletion returns": match self.deletion { Status => "Status", Object | Kept => "object" },
            "generation after the deletion": deleted,
            "then it is": match self.deletion { Status | Object => "gone", Kept => "kept" },
        })
    }

    async fn behaviour(&self, api: &Api, ns: Option<&Namespace>) -> Value {
        let collection = self.collection(ns);
        let body = |name: &str| self.body(name, ns);
        let name = api.unique("kind");
        let path = format!("{collection}/{name}");
        let made = api.post(&collection, body(&name)).await;
        if made.code != 201 {
            return json!({"create": made.code, "body": made.text()});
        }
        let mut update = made.json();
        update["metadata"]["labels"] = json!({"new": "label"});
        let labelled = api.put(&path, &update).await;
        update["metadata"].as_object_mut().unwrap().remove("resourceVersion");
        update["metadata"]["labels"] = json!({"new": "label", "newer": "label"});
        let unconditional = api.put(&path, &update).await;
        let missing = api.unique("missing");
        let put_missing = api.put(&format!("{collection}/{missing}"), body(&missing)).await;
        if put_missing.code == 201 {
            api.delete(&format!("{collection}/{missing}")).await;
        }
        let deleted = api.delete(&path).await;
        let returned = deleted.json();
        let kept = api.get(&path).await.code == 200;
        if kept {
            api.patch(&path, "merge-patch", json!({"metadata": {"finalizers": null}})).await;
        }
        json!({
            "create": 201,
            "generation": made.json()["metadata"]["generation"],
            "generation after a new label": labelled.is(200).json()["metadata"]["generation"],
            "update without a version": unconditional.code,
            "update of a missing object": put_missing.code,
            "delete": deleted.code,
            "deletion returns": if returned["kind"] == "Status" { "Status" } else { "object" },
            "generation after the deletion": if kept { &returned["metadata"]["generation"] } else { &Value::Null },
            "then it is": if kept { "kept" } else { "gone" },
        })
    }

    fn collection(&self, ns: Option<&Namespace>) -> String {
        let base = match self.group_version {
            "" => "/api/v1".to_owned(),
            group_version => format!("/apis/{group_version}"),
        };
        match ns {
            Some(ns) => format!("{base}/namespaces/{}/{}", ns.name, self.plural),
            None => format!("{base}/{}", self.plural),
        }
    }

    fn body(&self, name: &str, ns: Option<&Namespace>) -> Value {
        let text = self
            .body
            .replace("\"NS\"", &format!("{:?}", ns.map_or("", |ns| &ns.name)))
            .replace(":POD", &format!(":{POD}"));
        let mut body: Value = serde_json::from_str(&text).expect("the table holds JSON");
        body["metadata"] = match body["metadata"].take() {
            Value::Null => json!({"name": name}),
            mut metadata => {
                metadata["name"] = json!(name);
                metadata
            }
        };
        body
    }
}

async fn a_new_server_has_objects(api: Api) {
    let mut lines = String::new();
    GzDecoder::new(include_bytes!("../../data/bootstrap.jsonl.gz").as_slice()).read_to_string(&mut lines).unwrap();
    for line in lines.lines() {
        let expected: Value = serde_json::from_str(line).unwrap();
        let (version, kind) = (expected["apiVersion"].as_str().unwrap(), expected["kind"].as_str().unwrap());
        let plural = kind.to_lowercase();
        let plural = format!("{plural}{}", if plural.ends_with('s') { "es" } else { "s" });
        let name = expected["metadata"]["name"].as_str().unwrap();
        let path = match expected["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("/apis/{version}/namespaces/{namespace}/{plural}/{name}"),
            None => format!("/apis/{version}/{plural}/{name}"),
        };
        let mut found = api.get(&path).await.is(200).json();
        for part in ["labels", "annotations"] {
            assert_eq!(found["metadata"].get(part), expected["metadata"].get(part), "{path}");
        }
        for condition in found["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition.as_object_mut().unwrap().remove("lastTransitionTime");
        }
        found["metadata"] = expected["metadata"].clone();
        for (part, value) in expected.as_object().unwrap() {
            assert_eq!(&found[part], value, "{path}: {part}");
        }
    }
}
