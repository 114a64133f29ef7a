//! The deployment controller: manages the replica sets of a deployment and reports its status.

use serde_json::{Map, Value, json};

use super::book::{Book, MANAGER};
use super::part::{condition, is_ending, name, number, resolve_share, target, text, unless_zero, wanted};
use crate::encoding::fnv::fnv_1a;
use crate::pretend::write::{ObjectReference, Verb};

const COMPONENT: &str = "deployment-controller";
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Moves a deployment one step towards its desired state. The resulting changes trigger the next
/// step.
pub(super) fn reconcile(deployment: &Value, sets: &[Value], book: &mut Book<'_>) {
    if is_ending(deployment) {
        return;
    }
    let rollout = Rollout::new(deployment, sets);
    match (rollout.latest, rollout.is_paused()) {
        (None, true) => rollout.report(book),
        (None, false) => rollout.begin(book),
        (Some(latest), paused) => {
            rollout.number(latest, book);
            if paused || rollout.old.iter().all(|set| wanted(set) == 0) {
                // No rollout is in progress.
                let only = rollout.running().unwrap_or(latest);
                rollout.scale(only, rollout.wanted, book);
            } else if text(deployment, "/spec/strategy/type") == "Recreate" {
                rollout.recreate(latest, book);
            } else {
                rollout.roll(latest, book);
            }
            if !paused {
                rollout.forget_history(book);
            }
            rollout.report(book);
        }
    }
}

/// A deployment and its replica sets.
struct Rollout<'v> {
    deployment: &'v Value,
    /// The replica set of the current template.
    latest: Option<&'v Value>,
    /// The other replica sets, oldest revision first.
    old: Vec<&'v Value>,
    wanted: u64,
    /// maxSurge and maxUnavailable as numbers of pods.
    surge: u64,
    slack: u64,
}

impl<'v> Rollout<'v> {
    fn new(deployment: &'v Value, sets: &'v [Value]) -> Self {
        let mut sets: Vec<&Value> = sets.iter().filter(|set| !is_ending(set)).collect();
        sets.sort_by_key(|set| (revision(set), name(set)));
        let template = without_hash(&deployment["spec"]["template"]);
        let latest = sets.iter().rev().copied().find(|set| without_hash(&set["spec"]["template"]) == template);
        let old = sets.into_iter().filter(|set| latest.is_none_or(|latest| name(latest) != name(set))).collect();
        let wanted = wanted(deployment);
        let share = |key: &str, divide: fn(u64, u64) -> u64| {
            let share = &deployment["spec"]["strategy"]["rollingUpdate"][key];
            resolve_share(share, wanted, divide).unwrap_or_else(|| divide(wanted * 25, 100))
        };
        let surge = share("maxSurge", u64::div_ceil);
        let slack = share("maxUnavailable", |all, part| all / part);
        let slack = if surge == 0 && slack == 0 { 1 } else { slack };
        Self { deployment, latest, old, wanted, surge, slack: slack.min(wanted) }
    }

    fn is_paused(&self) -> bool {
        self.deployment["spec"]["paused"] == true
    }

    fn sets(&self) -> impl Iterator<Item = &'v Value> {
        self.old.iter().copied().chain(self.latest)
    }

    fn sum(&self, pointer: &str) -> u64 {
        self.sets().map(|set| number(set, pointer)).sum()
    }

    /// The sum of desired replicas, which may exceed the number of existing pods.
    fn total(&self) -> u64 {
        self.sets().map(wanted).sum()
    }

    /// The replica set with desired replicas, if there is exactly one.
    fn running(&self) -> Option<&'v Value> {
        let mut running = self.sets().filter(|set| wanted(set) > 0);
        running.next().filter(|_| running.next().is_none())
    }

    /// Creates the replica set of a new template.
    fn begin(&self, book: &mut Book<'_>) {
        let first = match text(self.deployment, "/spec/strategy/type") {
            "Recreate" if self.sum("/status/replicas") > 0 || self.total() > 0 => 0,
            _ => self.wanted.min((self.wanted + self.surge).saturating_sub(self.total())),
        };
        let set = self.replica_set(first);
        let made = name(&set).to_owned();
        book.write(MANAGER, Verb::Create(set));
        self.annotate(self.next_revision(), book);
        if first > 0 {
            self.write_scaled_event(&made, 0, first, book);
        }
        let message = format!("Created new replica set \"{made}\"");
        let progressing = json!({"status": "True", "reason": "NewReplicaSetCreated", "message": message});
        self.write_status(vec![("Progressing", progressing)], book);
    }

    fn replica_set(&self, replicas: u64) -> Value {
        let spec = &self.deployment["spec"];
        let mut template = spec["template"].clone();
        let hash = hash(&template);
        template["metadata"]["labels"][HASH] = json!(hash);
        let mut selector = spec["selector"].clone();
        selector["matchLabels"][HASH] = json!(hash);
        let mut annotations = self.deployment["metadata"]["annotations"].as_object().cloned().unwrap_or_default();
        annotations.retain(|key, _| key != LAST_APPLIED);
        annotations.extend(self.annotations(self.next_revision()));
        let metadata = &self.deployment["metadata"];
        json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": format!("{}-{hash}", name(self.deployment)),
                "namespace": metadata["namespace"],
                "labels": template["metadata"]["labels"],
                "annotations": annotations,
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": metadata["name"], "uid": metadata["uid"],
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": number(self.deployment, "/spec/minReadySeconds"),
                "selector": selector,
                "template": template,
            },
        })
    }

    /// Updates the revision of the current replica set, in case of a rollback to an older one.
    fn number(&self, latest: &Value, book: &mut Book<'_>) {
        let newest_old = self.old.iter().map(|set| revision(set)).max().unwrap_or(0);
        let own = if revision(latest) > newest_old { revision(latest) } else { newest_old + 1 };
        if own != revision(latest) {
            let annotations = Value::Object(self.annotations(own));
            book.write(MANAGER, Verb::Patch(set_target(latest), json!({"metadata": {"annotations": annotations}})));
        }
        self.annotate(own, book);
    }

    fn annotate(&self, revision: u64, book: &mut Book<'_>) {
        let revision = Value::from(revision.to_string());
        if self.deployment["metadata"]["annotations"][REVISION] != revision {
            let patch = json!({"metadata": {"annotations": {REVISION: revision}}});
            book.write(MANAGER, Verb::Patch(target("apps/v1", "Deployment", self.deployment), patch));
        }
    }

    fn annotations(&self, revision: u64) -> Map<String, Value> {
        let (wanted, most) = (self.wanted, self.wanted + self.surge);
        [(REVISION, revision), (DESIRED, wanted), (MAX_REPLICAS, most)]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value.to_string())))
            .collect()
    }

    fn next_revision(&self) -> u64 {
        self.sets().map(revision).max().unwrap_or(0) + 1
    }

    fn recreate(&self, latest: &Value, book: &mut Book<'_>) {
        for old in self.old.iter().filter(|old| wanted(old) > 0) {
            self.scale(old, 0, book);
        }
        if self.old.iter().all(|old| wanted(old) == 0 && number(old, "/status/replicas") == 0) {
            self.scale(latest, self.wanted, book);
        }
    }

    /// A rolling update: scales up as far as maxSurge allows, then down as far as maxUnavailable
    /// allows.
    fn roll(&self, latest: &Value, book: &mut Book<'_>) {
        let own = wanted(latest);
        let room = (self.wanted + self.surge).saturating_sub(self.total());
        let next = self.wanted.min(own + room);
        if next != own {
            return self.scale(latest, next, book);
        }
        let fewest = self.wanted - self.slack;
        let missing = own.saturating_sub(available(latest));
        let mut spare = self.total().saturating_sub(fewest + missing);
        let mut working = self.sets().map(available).sum::<u64>().saturating_sub(fewest);
        for old in &self.old {
            // Unavailable pods are removed first; they do not reduce availability.
            let broken = wanted(old).saturating_sub(available(old)).min(spare);
            let whole = (wanted(old) - broken).min(working).min(spare - broken);
            (spare, working) = (spare - broken - whole, working - whole);
            self.scale(old, wanted(old) - broken - whole, book);
        }
    }

    fn scale(&self, set: &Value, replicas: u64, book: &mut Book<'_>) {
        let (from, annotations) = (wanted(set), &set["metadata"]["annotations"]);
        let (desired, most) = (self.wanted.to_string(), (self.wanted + self.surge).to_string());
        if from == replicas && annotations[DESIRED] == desired.as_str() {
            return;
        }
        let annotations = json!({DESIRED: desired, MAX_REPLICAS: most});
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}});
        book.write(MANAGER, Verb::Patch(set_target(set), patch));
        if from != replicas {
            self.write_scaled_event(name(set), from, replicas, book);
        }
    }

    fn write_scaled_event(&self, set: &str, from: u64, to: u64, book: &mut Book<'_>) {
        let way = if to > from { "up" } else { "down" };
        let message = format!("Scaled {way} replica set {set} from {from} to {to}");
        book.record("Deployment", "apps/v1", self.deployment, "ScalingReplicaSet", message, COMPONENT);
    }

    /// Deletes old replica sets without pods beyond the revision history limit.
    fn forget_history(&self, book: &mut Book<'_>) {
        let limit = self.deployment.pointer("/spec/revisionHistoryLimit").and_then(Value::as_u64).unwrap_or(10);
        let idle = |set: &&&Value| wanted(set) == 0 && number(set, "/status/replicas") == 0;
        let idle: Vec<&&Value> = self.old.iter().filter(idle).collect();
        for set in idle.iter().take(idle.len().saturating_sub(limit as usize)) {
            book.write(MANAGER, Verb::Delete(set_target(set)));
        }
    }

    /// Writes the deployment's status from that of its replica sets.
    fn report(&self, book: &mut Book<'_>) {
        let (total, available) = (self.sum("/status/replicas"), self.sum("/status/availableReplicas"));
        let updated = self.latest.map_or(0, |latest| number(latest, "/status/replicas"));
        let mut conditions = Vec::new();
        conditions.push(if available + self.slack >= self.wanted {
            let message = "Deployment has minimum availability.";
            ("Available", json!({"status": "True", "reason": "MinimumReplicasAvailable", "message": message}))
        } else {
            let message = "Deployment does not have minimum availability.";
            ("Available", json!({"status": "False", "reason": "MinimumReplicasUnavailable", "message": message}))
        });
        let set = self.latest.map(name).unwrap_or_default();
        let all_there = [updated, total, available].iter().all(|count| *count == self.wanted);
        let progressing = condition(self.deployment, "Progressing").map(|condition| text(condition, "/reason"));
        conditions.push(if self.is_paused() {
            (
                "Progressing",
                json!({"status": "Unknown", "reason": "DeploymentPaused", "message": "Deployment is paused"}),
            )
        } else if all_there
            || progressing == Some("NewReplicaSetAvailable") && self.old.iter().all(|set| wanted(set) == 0)
        {
            let message = format!("ReplicaSet \"{set}\" has successfully progressed.");
            ("Progressing", json!({"status": "True", "reason": "NewReplicaSetAvailable", "message": message}))
        } else {
            let message = format!("ReplicaSet \"{set}\" is progressing.");
            ("Progressing", json!({"status": "True", "reason": "ReplicaSetUpdated", "message": message}))
        });
        self.write_status(conditions, book);
    }

    fn write_status(&self, conditions: Vec<(&str, Value)>, book: &mut Book<'_>) {
        let available = self.sum("/status/availableReplicas");
        let updated = self.latest.map_or(0, |latest| number(latest, "/status/replicas"));
        let mut known_conditions: Vec<Value> =
            self.deployment.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        for (kind, new) in conditions {
            let known = known_conditions.iter_mut().find(|condition| condition["type"] == kind);
            let same = |old: &Value, field: &str| old[field] == new[field];
            match known {
                Some(old) if ["status", "reason", "message"].iter().all(|field| same(old, field)) => {}
                Some(old) => {
                    if !same(old, "status") {
                        old["lastTransitionTime"] = json!(book.time);
                    }
                    for field in ["status", "reason", "message"] {
                        old[field] = new[field].clone();
                    }
                    old["lastUpdateTime"] = json!(book.time);
                }
                None => known_conditions.push(json!({
                    "type": kind, "status": new["status"], "reason": new["reason"], "message": new["message"],
                    "lastUpdateTime": book.time, "lastTransitionTime": book.time,
                })),
            }
        }
        let status = json!({
            "observedGeneration": self.deployment["metadata"]["generation"],
            "replicas": unless_zero(self.sum("/status/replicas")),
            "updatedReplicas": unless_zero(updated),
            "readyReplicas": unless_zero(self.sum("/status/readyReplicas")),
            "availableReplicas": unless_zero(available),
            "unavailableReplicas": unless_zero(self.total().max(self.wanted).saturating_sub(available)),
            "conditions": known_conditions,
        });
        book.write(
            MANAGER,
            Verb::PatchStatus(target("apps/v1", "Deployment", self.deployment), json!({"status": status})),
        );
    }
}

fn set_target(set: &Value) -> ObjectReference {
    target("apps/v1", "ReplicaSet", set)
}

fn available(set: &Value) -> u64 {
    number(set, "/status/availableReplicas").min(wanted(set))
}

fn revision(set: &Value) -> u64 {
    set["metadata"]["annotations"][REVISION].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The template as in the deployment, without the hash label.
fn without_hash(template: &Value) -> Value {
    let mut template = template.clone();
    if let Some(labels) = template.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.remove(HASH);
    }
    template
}

/// A ten-letter hash of the template.
fn hash(template: &Value) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let text = without_hash(template).to_string();
    let mut hash = fnv_1a(text.bytes());
    (0..10)
        .map(|_| {
            let letter = LETTERS[(hash % 27) as usize];
            hash /= 27;
            char::from(letter)
        })
        .collect()
}
