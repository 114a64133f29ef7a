//! Controllers for objects of other clients.
//!
//! The [world](super::world) simulates only its own objects. Deployments, replica sets, stateful
//! sets, daemon sets, jobs, pods and services of other clients are reconciled here, as the
//! controllers, the scheduler and the kubelets of a real cluster do: each reads the stored objects
//! and takes one step. A deployment of the simulation that another client changes is reconciled
//! here from then on.

mod book;
mod daemon_set;
mod deployment;
mod job;
mod part;
mod pod;
mod replica_set;
mod service;
mod stateful_set;
mod workload;

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashSet};
use std::time::Duration;

use rand_pcg::Pcg64Mcg;
use serde_json::Value;

use super::world::World;
use super::write::Write;
use crate::api::objects::Objects;
use crate::cluster::Cluster;
use crate::generate::layout::NodeNames;
use crate::storage::Object;
use book::Book;
use part::{controller, name, text};
use pod::{Node, PodStep};
pub(super) use workload::Workload;

/// Maximum number of nodes tried for a pod, starting at a random one.
const MAX_NODES_TRIED: u64 = 64;

/// The namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ObjectName {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// An object to reconcile. Pods sort first, so that their owners see their current state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Task {
    Pod(ObjectName),
    ReplicaSet(ObjectName),
    Deployment(ObjectName),
    Workload(Workload, ObjectName),
    Service(ObjectName),
}

/// The queue of objects of other clients to reconcile.
#[derive(Debug)]
pub(super) struct Reconciler {
    tasks: BTreeSet<Task>,
    /// Pods by the time of their next action; pods of the same time keep their insertion order.
    agenda: BinaryHeap<Reverse<(Duration, u64, ObjectName)>>,
    /// The pods in the agenda.
    expected: HashSet<ObjectName>,
    /// The services reconciled here.
    services: BTreeSet<ObjectName>,
    count: u64,
    rng: Pcg64Mcg,
}

impl Reconciler {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            tasks: BTreeSet::new(),
            agenda: BinaryHeap::new(),
            expected: HashSet::new(),
            services: BTreeSet::new(),
            count: 0,
            rng: Pcg64Mcg::new(u128::from(seed) << 64 | 0x7374_6577_6172_6421),
        }
    }

    /// Queues all existing objects.
    pub(super) fn take_over(&mut self, cluster: &Cluster) {
        let mut all = |api_version: &str, kind: &str, task: fn(ObjectName) -> Task| {
            let objects = Objects::new(cluster, api_version, kind).map(|objects| objects.list());
            objects.unwrap_or_default().iter().for_each(|object| self.add(task(ObjectName::of(object))));
        };
        all("v1", "Pod", Task::Pod);
        all("apps/v1", "ReplicaSet", Task::ReplicaSet);
        all("apps/v1", "Deployment", Task::Deployment);
        all("v1", "Service", Task::Service);
        for workload in Workload::ALL {
            let objects = Objects::new(cluster, workload.api_version(), workload.kind()).map(|objects| objects.list());
            for object in objects.unwrap_or_default() {
                self.add(Task::Workload(workload, ObjectName::of(&object)));
            }
        }
    }

    /// Queues an object.
    pub(super) fn add(&mut self, task: Task) {
        if let Task::Service(place) = &task {
            self.services.insert(place.clone());
        }
        self.tasks.insert(task);
    }

    pub(super) fn service_gone(&mut self, place: &ObjectName) {
        self.services.remove(place);
    }

    /// Queues the services of a namespace after one of its pods has changed.
    pub(super) fn pod_changed(&mut self, namespace: &str) {
        let first = ObjectName { namespace: namespace.to_owned(), name: String::new() };
        let own = self.services.range(first..).take_while(|place| place.namespace == namespace);
        self.tasks.extend(own.cloned().map(Task::Service));
    }

    /// Reconciles everything that is queued or due, one step each.
    pub(super) fn step(&mut self, cluster: &Cluster, world: &mut World) -> Vec<Write> {
        let mut due = Vec::new();
        while let Some(Reverse((at, ..))) = self.agenda.peek()
            && *at <= world.now
        {
            due.extend(self.agenda.pop().map(|Reverse((.., place))| place));
        }
        let tasks = std::mem::take(&mut self.tasks);
        if due.is_empty() && tasks.is_empty() {
            return Vec::new();
        }
        let now = cluster.clock.now();
        let mut rng = self.rng.clone();
        let mut event_log = std::mem::take(&mut world.event_log);
        let mut book = Book {
            now: now.as_second(),
            time: cluster.clock.seconds(),
            event_log: &mut event_log,
            rng: &mut rng,
            writes: Vec::new(),
        };
        for place in due {
            self.expected.remove(&place);
            self.act(cluster, world, &place, &mut book);
        }
        for task in tasks {
            self.look(cluster, world, task, &mut book);
        }
        let writes = book.writes;
        (self.rng, world.event_log) = (rng, event_log);
        writes
    }

    fn look(&mut self, cluster: &Cluster, world: &World, task: Task, book: &mut Book<'_>) {
        match task {
            Task::Pod(place) => {
                let Some(pod) = place.get(cluster, "v1", "Pod") else { return };
                let Some(next) = PodStep::of(&pod) else { return };
                if self.expected.contains(&place) {
                    return;
                }
                let (from, to) = next.takes();
                let after = Duration::from_millis(from + book.below(to - from));
                self.expect(world.now + after, place);
            }
            Task::ReplicaSet(place) => {
                let Some(set) = place.get(cluster, "apps/v1", "ReplicaSet") else { return };
                let pods = place.owned(cluster, "v1", "Pod", &set);
                for pod in &pods {
                    if PodStep::of(pod).is_some() {
                        self.tasks.insert(Task::Pod(ObjectName::of(pod)));
                    }
                }
                replica_set::reconcile(&set, &pods, book);
            }
            Task::Deployment(place) => {
                let Some(deployment) = place.get(cluster, "apps/v1", "Deployment") else { return };
                let sets = place.owned(cluster, "apps/v1", "ReplicaSet", &deployment);
                self.tasks.extend(
                    sets.iter().filter(|set| !is_settled(set)).map(|set| Task::ReplicaSet(ObjectName::of(set))),
                );
                deployment::reconcile(&deployment, &sets, book);
            }
            Task::Workload(workload, place) => {
                let Some(owner) = place.get(cluster, workload.api_version(), workload.kind()) else { return };
                let pods = place.owned(cluster, "v1", "Pod", &owner);
                let unsettled = pods.iter().filter(|pod| PodStep::of(pod).is_some());
                self.tasks.extend(unsettled.map(|pod| Task::Pod(ObjectName::of(pod))));
                match workload {
                    Workload::StatefulSet => stateful_set::reconcile(&owner, &pods, book),
                    Workload::DaemonSet => {
                        daemon_set::reconcile(&owner, &pods, &nodes_for(cluster, world, &owner), book);
                    }
                    Workload::Job => job::reconcile(&owner, &pods, book),
                }
            }
            Task::Service(place) => {
                let Some(service) = place.get(cluster, "v1", "Service") else { return };
                let Some(selector) = service::selector(&service) else { return };
                let selected = |pod: &Object| selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value));
                let pods = place.list(cluster, "v1", "Pod", selected);
                let named = |slice: &Object| slice.labels().get(service::SERVICE) == Some(&place.name);
                let slices = place.list(cluster, "discovery.k8s.io/v1", "EndpointSlice", named);
                service::reconcile(&service, &pods, &slices, book);
            }
        }
    }

    /// Performs the next action of a pod according to its current state.
    fn act(&mut self, cluster: &Cluster, world: &mut World, place: &ObjectName, book: &mut Book<'_>) {
        let Some(pod) = place.get(cluster, "v1", "Pod") else { return };
        let Some(next) = PodStep::of(&pod) else { return };
        let nodes = world.fleet.len();
        if next == PodStep::Bind {
            match find_node(cluster, world, &pod, book) {
                Some(node) => pod::bind(&pod, &node, book),
                None => {
                    pod::leave_unbound(&pod, nodes, book);
                    self.expect(world.now + pod::LOOK_AGAIN, place.clone());
                }
            }
            return;
        }
        let host = node_named(world, text(&pod, "/spec/nodeName")).map(|node| node.ip).unwrap_or_default();
        let ip = match next {
            PodStep::Start | PodStep::Settle if text(&pod, "/status/podIP").is_empty() => {
                match pod["spec"]["hostNetwork"] == true {
                    true => host.clone(),
                    false => world.next_address(),
                }
            }
            _ => String::new(),
        };
        pod::live(&pod, next, &host, &ip, book);
    }

    fn expect(&mut self, at: Duration, place: ObjectName) {
        self.count += 1;
        if self.expected.insert(place.clone()) {
            self.agenda.push(Reverse((at, self.count, place)));
        }
    }
}

/// Whether a replica set has reached its desired state according to its status.
fn is_settled(set: &Value) -> bool {
    let wanted = part::wanted(set);
    ["/status/replicas", "/status/readyReplicas"].iter().all(|pointer| part::number(set, pointer) == wanted)
        && set["status"]["observedGeneration"] == set["metadata"]["generation"]
}

/// A schedulable node that matches the pod's node selector.
fn find_node(cluster: &Cluster, world: &World, pod: &Value, book: &mut Book<'_>) -> Option<Node> {
    let (nodes, wanted) = (world.fleet.len(), pod.pointer("/spec/nodeSelector").and_then(Value::as_object));
    let first = book.below(nodes);
    for nth in 0..nodes.min(MAX_NODES_TRIED.max(u64::from(wanted.is_some()) * nodes)) {
        let number = (first + nth) % nodes;
        if world.fleet.is_cordoned(number) {
            continue;
        }
        let NodeNames { name, ip } = NodeNames::of(world.seed, number);
        let fits = wanted.is_none_or(|wanted| {
            let node = Objects::new(cluster, "v1", "Node").and_then(|nodes| nodes.get(&name)).unwrap_or_default();
            wanted.iter().all(|(key, value)| node["metadata"]["labels"][key] == *value)
        });
        if fits {
            return Some(Node { name, ip });
        }
    }
    None
}

/// The nodes on which a daemon set runs: those that its node selector matches, cordoned or not.
fn nodes_for(cluster: &Cluster, world: &World, set: &Value) -> Vec<String> {
    let wanted = set.pointer("/spec/template/spec/nodeSelector").and_then(Value::as_object);
    let names = (0..world.fleet.len()).map(|number| NodeNames::of(world.seed, number).name);
    names
        .filter(|name| {
            wanted.is_none_or(|wanted| {
                let node = Objects::new(cluster, "v1", "Node").and_then(|nodes| nodes.get(name)).unwrap_or_default();
                wanted.iter().all(|(key, value)| node["metadata"]["labels"][key] == *value)
            })
        })
        .collect()
}

fn node_named(world: &World, wanted: &str) -> Option<Node> {
    let number = world.fleet.number_of(wanted)?;
    let NodeNames { name, ip } = NodeNames::of(world.seed, number);
    Some(Node { name, ip })
}

impl ObjectName {
    pub(super) fn of(object: &Value) -> Self {
        Self { namespace: text(object, "/metadata/namespace").to_owned(), name: name(object).to_owned() }
    }

    fn get(&self, cluster: &Cluster, api_version: &str, kind: &str) -> Option<Value> {
        Objects::new(cluster, api_version, kind).ok()?.namespace(&self.namespace).get(&self.name).ok()
    }

    fn list(&self, cluster: &Cluster, api_version: &str, kind: &str, fits: impl Fn(&Object) -> bool) -> Vec<Value> {
        let objects = Objects::new(cluster, api_version, kind);
        objects.map(|objects| objects.namespace(&self.namespace).list_where(fits)).unwrap_or_default()
    }

    /// The objects in the same namespace that an object controls.
    fn owned(&self, cluster: &Cluster, api_version: &str, kind: &str, owner: &Value) -> Vec<Value> {
        let uid = text(owner, "/metadata/uid");
        if uid.is_empty() {
            return Vec::new();
        }
        let mentions = |object: &Object| object.metadata().windows(uid.len()).any(|part| part == uid.as_bytes());
        let mut all = self.list(cluster, api_version, kind, mentions);
        all.retain(|object| controller(object).is_some_and(|owner| owner["uid"] == uid));
        all
    }
}

/// The controller of an object, if it is of this kind.
pub(super) fn controlled_by(object: &Value, kind: &str) -> Option<ObjectName> {
    let owner = controller(object).filter(|owner| owner["kind"] == kind)?;
    let namespace = text(object, "/metadata/namespace").to_owned();
    Some(ObjectName { namespace, name: owner["name"].as_str()?.to_owned() })
}
