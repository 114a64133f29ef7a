//! A deployment and its dependents in any state, for the simulated cluster.

use serde_json::{Value, json};

use super::course::{PodProgress, Stage};
use super::layout::{Block, Owner, PodPlace};
use super::pod::{Pod, template};
use super::rng::{Domain, SampleRng, mix};
use super::workload::Workload;
use super::writer::rfc3339;
use super::{rollout, service};

/// The revision of a newly generated deployment.
pub(crate) const FIRST_REVISION: u64 = 7;

/// One revision of a deployment.
#[derive(Debug)]
pub(crate) struct App {
    seed: u64,
    index: u64,
    revision: u64,
    workload: Workload,
}

/// A pod: its identity, its node and its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    /// Index of the pod, unique in the cluster.
    pub(crate) index: u64,
    /// Serial number among all pods that the deployment ever had.
    pub(crate) serial: u64,
    pub(crate) node: u64,
    pub(crate) course: PodProgress,
}

/// Replica counts of a deployment or of one of its replica sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) wanted: u64,
    pub(crate) total: u64,
    /// Pods of the latest revision.
    pub(crate) updated: u64,
    pub(crate) ready: u64,
}

impl App {
    /// Creates a revision of the deployment with this index, rolled out at this time.
    pub(crate) fn new(seed: u64, index: u64, revision: u64, rolled_out: i64) -> Self {
        let mut workload = template(seed, Owner::deployment(index));
        if revision > FIRST_REVISION {
            revise(&mut workload, seed ^ mix(revision), index, rolled_out);
        }
        Self { seed, index, revision, workload }
    }

    /// Number of pods that the generator creates for a deployment.
    pub(crate) fn replicas(seed: u64, index: u64) -> u64 {
        rollout::replicas(seed, Owner::deployment(index))
    }

    /// The namespace and the name of a deployment.
    pub(crate) fn key(seed: u64, index: u64) -> (String, String) {
        let owner = Owner::deployment(index);
        (owner.namespace(seed), owner.name(seed))
    }

    /// The generated pods, at most `count`, assigned to nodes below `nodes`.
    pub(crate) fn first_members(&self, count: u64, nodes: u64) -> Vec<Member> {
        let Owner::Deployment { block, role } = self.workload.owner else { return Vec::new() };
        let pods = Block::of(self.seed, block).pods_of_deployment(role).take(count as usize);
        pods.map(|index| {
            let place = PodPlace::of_pod(self.seed, index);
            let place = PodPlace { node: place.node % nodes, ..place };
            let life = Pod::new(self.seed, &self.workload, index, place, 0).life;
            Member { index, serial: place.replica, node: place.node, course: PodProgress::of(&life) }
        })
        .collect()
    }

    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn name(&self) -> &str {
        &self.workload.name
    }

    pub(crate) fn namespace(&self) -> &str {
        &self.workload.namespace
    }

    pub(crate) fn replica_set_name(&self) -> &str {
        &self.workload.controller_name
    }

    pub(crate) fn image(&self) -> &str {
        &self.workload.containers[0].image
    }

    pub(crate) fn main_container(&self) -> &str {
        &self.workload.containers[0].name
    }

    pub(crate) fn pod_name(&self, member: &Member) -> String {
        self.generated_pod(member).name
    }

    /// Name and uid of a pod.
    pub(crate) fn pod_identity(&self, member: &Member) -> (String, String) {
        let pod = self.generated_pod(member);
        (pod.name, pod.uid)
    }

    pub(crate) fn uid(&self) -> &str {
        &self.workload.parent_uid
    }

    pub(crate) fn replica_set_uid(&self) -> &str {
        &self.workload.controller_uid
    }

    pub(crate) fn deployment(&self, counts: &Counts, generation: u64, now: Option<i64>) -> Value {
        let mut object = rollout::deployment_of(&self.workload, counts.wanted).to_value();
        object["metadata"]["generation"] = json!(generation);
        object["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!(self.revision.to_string());
        object["spec"]["revisionHistoryLimit"] = json!(2);
        let status = &mut object["status"];
        status["observedGeneration"] = json!(generation);
        status["replicas"] = json!(counts.total);
        status["updatedReplicas"] = json!(counts.updated);
        status["readyReplicas"] = json!(counts.ready);
        status["availableReplicas"] = json!(counts.ready);
        status["unavailableReplicas"] = json!(counts.total.max(counts.wanted) - counts.ready);
        if let Some(now) = now {
            let done = counts.updated >= counts.wanted && counts.ready >= counts.wanted;
            let name = self.replica_set_name();
            let (reason, message) = match done {
                true => ("NewReplicaSetAvailable", format!("ReplicaSet \"{name}\" has successfully progressed.")),
                false => ("ReplicaSetUpdated", format!("ReplicaSet \"{name}\" is progressing.")),
            };
            let progressing = &mut status["conditions"][1];
            progressing["reason"] = json!(reason);
            progressing["message"] = json!(message);
            progressing["lastUpdateTime"] = json!(time(now));
            if counts.ready * 4 < counts.wanted * 3 {
                let available = &mut status["conditions"][0];
                available["status"] = json!("False");
                available["reason"] = json!("MinimumReplicasUnavailable");
                available["message"] = json!("Deployment does not have minimum availability.");
                available["lastTransitionTime"] = json!(time(now));
            }
        }
        as_update(object, now)
    }

    pub(crate) fn replica_set(&self, counts: &Counts, now: Option<i64>) -> Value {
        let mut object = rollout::replica_set_of(&self.workload, counts.wanted).to_value();
        object["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!(self.revision.to_string());
        let status = &mut object["status"];
        for (key, count) in [
            ("replicas", counts.total),
            ("fullyLabeledReplicas", counts.total),
            ("readyReplicas", counts.ready),
            ("availableReplicas", counts.ready),
        ] {
            status[key] = json!(count);
        }
        as_update(object, now)
    }

    pub(crate) fn service(&self) -> Value {
        service::service_of(self.seed, self.index, &self.workload).to_value()
    }

    /// The endpoint slice of these pods, each given with its revision. Pods without an address are
    /// left out.
    pub(crate) fn endpoint_slice<'m>(&self, members: impl Iterator<Item = (&'m App, &'m Member)>) -> Value {
        let addressed = |(_, member): &(&App, &Member)| {
            !matches!(member.course.stage, Stage::Made | Stage::Bound | Stage::Creating)
        };
        let members: Vec<(&App, &Member)> = members.filter(addressed).collect();
        let pods = members.iter().map(|(app, member)| app.generated_pod(member));
        let mut object = service::endpoint_slice_of(self.seed, &self.workload, pods).to_value();
        for (endpoint, (_, member)) in object["endpoints"].as_array_mut().into_iter().flatten().zip(&members) {
            let ready = member.course.stage == Stage::Ready;
            endpoint["conditions"] = json!({"ready": ready, "serving": ready, "terminating": false});
        }
        as_update(object, None)
    }

    pub(crate) fn pod(&self, member: &Member) -> Value {
        let mut pod = self.generated_pod(member);
        pod.life.follow(self.seed, member.index, &member.course);
        let mut object = pod.to_sample().to_value();
        match member.course.stage {
            Stage::Made => {
                without_managers(&mut object, &["calico", "kubelet"]);
                object["status"] = json!({"phase": "Pending", "qosClass": object["status"]["qosClass"]});
                if let Some(spec) = object["spec"].as_object_mut() {
                    spec.remove("nodeName");
                }
            }
            Stage::Bound => {
                without_managers(&mut object, &["calico", "kubelet"]);
                let scheduled = json!([{"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": time(member.course.changed)}]);
                object["status"] =
                    json!({"phase": "Pending", "conditions": scheduled, "qosClass": object["status"]["qosClass"]});
            }
            Stage::Creating => without_managers(&mut object, &["calico"]),
            Stage::Unready | Stage::Ready | Stage::Crashing => {}
        }
        as_update(object, None)
    }

    /// The pod in its generated state.
    fn generated_pod(&self, member: &Member) -> Pod<'_> {
        let place = PodPlace { owner: self.workload.owner, replica: member.serial, node: member.node };
        Pod::new(self.seed, &self.workload, member.index, place, 0)
    }
}

/// Changes the template in place: a new image, and therefore a new replica set.
fn revise(workload: &mut Workload, seed: u64, index: u64, rolled_out: i64) {
    let mut rng = SampleRng::new(seed, Domain::Workload, index);
    workload.hash = rng.suffix(10);
    workload.controller_name = format!("{}-{}", workload.name, workload.hash);
    workload.controller_uid = rng.uuid();
    workload.rolled_out = rolled_out;
    for (key, value) in &mut workload.labels {
        if key == "pod-template-hash" {
            value.clone_from(&workload.hash);
        }
    }
    for (key, value) in &mut workload.annotations {
        if key == "acme.com/git-commit" {
            *value = rng.hex(40);
        }
    }
    let main = &mut workload.containers[0];
    let repository = main.image.rsplit_once(':').map_or(main.image.as_str(), |(repository, _)| repository).to_owned();
    main.image = format!("{repository}:main-{}", rng.hex(12));
    main.image_id = format!("{repository}@sha256:{}", rng.sha256());
}

/// Removes what these field managers write, because they have not written yet.
fn without_managers(object: &mut Value, managers: &[&str]) {
    let metadata = &mut object["metadata"];
    if let Some(entries) = metadata["managedFields"].as_array_mut() {
        entries.retain(|entry| entry["manager"].as_str().is_none_or(|manager| !managers.contains(&manager)));
    }
    if let Some(annotations) = metadata["annotations"].as_object_mut() {
        annotations.retain(|key, _| !key.starts_with("cni.projectcalico.org/"));
    }
}

/// Removes the resourceVersion for an unconditional update. With `now`, sets the time of the status
/// entries in managedFields.
fn as_update(mut object: Value, now: Option<i64>) -> Value {
    let metadata = &mut object["metadata"];
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.remove("resourceVersion");
    }
    if let Some(now) = now {
        for entry in metadata["managedFields"].as_array_mut().into_iter().flatten() {
            if entry["subresource"] == "status" {
                entry["time"] = json!(time(now));
            }
        }
    }
    object
}

/// Formats a time as in object metadata (RFC 3339).
pub(crate) fn time(seconds: i64) -> String {
    String::from_utf8_lossy(&rfc3339(seconds)).into_owned()
}
