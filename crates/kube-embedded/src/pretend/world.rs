//! The simulated cluster itself: deterministic, without a server or a clock.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use serde_json::Value;

use super::Size;
use super::agenda::{Act, Agenda};
use super::deployment::{Attention, Deployment};
use super::events::{About, EventContent, EventLog};
use super::fleet::Fleet;
use super::write::{ObjectReference, PodRef, Verb, Write};
use crate::generate::Generator;
use crate::generate::app::{App, FIRST_REVISION, Member};
use crate::generate::course::Stage;
use crate::generate::layout::NOW;
use crate::generate::pod::pod_ip;

/// Number of cached templates: actions on a deployment come in bursts.
const TEMPLATE_CACHE_SIZE: usize = 64;

/// Most consequences of an action follow within this many seconds.
const SETTLE_SECONDS: f64 = 5.0;

/// The state of the cluster and its scheduled actions.
#[derive(Debug)]
pub(crate) struct World {
    pub(super) seed: u64,
    pub(super) fleet: Fleet,
    pub(super) deployments: Vec<Deployment>,
    /// Indexes of the deployments by namespace and name.
    numbers: HashMap<(String, String), usize>,
    pub(super) agenda: Agenda,
    pub(super) event_log: EventLog,
    pub(super) now: Duration,
    /// The index of the next pod.
    pub(super) next_pod: u64,
    /// Terminating pods.
    pub(super) ending: VecDeque<ObjectReference>,
    templates: VecDeque<App>,
    rng: Pcg64Mcg,
    rate: f64,
    /// Number of writes that the rate currently permits. Negative if actions in progress exceeded
    /// it.
    credit: f64,
    /// Estimated number of writes that still follow from past actions.
    pending_writes: f64,
}

impl World {
    /// Creates an empty world of this size.
    pub(crate) fn new(seed: u64, size: Size, rate: f64) -> Self {
        let mut world = Self {
            seed,
            fleet: Fleet::new(seed, size.nodes.max(1)),
            deployments: Vec::new(),
            numbers: HashMap::new(),
            agenda: Agenda::default(),
            event_log: EventLog::new((size.pods as usize).clamp(500, 20_000)),
            now: Duration::ZERO,
            next_pod: 0,
            ending: VecDeque::new(),
            templates: VecDeque::new(),
            rng: Pcg64Mcg::new(u128::from(seed) << 64 | 0x7072_6574_656e_6421),
            rate,
            credit: 0.0,
            pending_writes: 0.0,
        };
        let (mut left, mut index) = (size.pods, 0);
        while left > 0 {
            let replicas = App::replicas(seed, index).min(left);
            let members = Vec::with_capacity(replicas as usize);
            world.numbers.insert(App::key(seed, index), world.deployments.len());
            world.deployments.push(Deployment { wanted: replicas, ..Deployment::new(index, members) });
            left -= replicas;
            index += 1;
        }
        world
    }

    /// Creates the initial objects, in parts.
    pub(crate) fn populate(&mut self) -> impl Iterator<Item = Vec<Value>> + '_ {
        let namespaces = Generator::new(self.seed).namespaces().map(|namespace| vec![namespace.to_value()]);
        let nodes = self.fleet.len();
        let parts = (0..nodes + self.deployments.len() as u64).map(move |part| {
            if part < nodes {
                self.fleet.first(part).to_vec()
            } else {
                self.populate_deployment((part - nodes) as usize)
            }
        });
        namespaces.chain(parts)
    }

    fn populate_deployment(&mut self, number: usize) -> Vec<Value> {
        let Deployment { index, wanted, .. } = self.deployments[number];
        let app = App::new(self.seed, index, FIRST_REVISION, 0);
        let members = app.first_members(wanted, self.fleet.len());
        self.next_pod = self.next_pod.max(members.iter().map(|member| member.index + 1).max().unwrap_or(0));
        let deployment = Deployment::new(index, members);
        let mut objects = vec![
            app.deployment(&deployment.counts(), deployment.generation, None),
            app.replica_set(&deployment.latest().reported, None),
            app.service(),
            app.endpoint_slice(deployment.members().map(|member| (&app, member))),
        ];
        objects.extend(deployment.members().map(|member| app.pod(member)));
        for member in deployment.members() {
            let pod = PodRef { app: number, serial: member.serial };
            let act = match member.course.stage {
                Stage::Creating => Act::Start(pod),
                Stage::Crashing | Stage::Unready => Act::Settle(pod),
                _ => continue,
            };
            self.agenda.add(Duration::from_secs(3 + member.index % 120), act);
        }
        self.deployments[number] = deployment;
        objects
    }

    /// Advances the time to `now` and returns the writes.
    pub(crate) fn step(&mut self, now: Duration) -> Vec<Write> {
        let passed = now.saturating_sub(self.now);
        self.now = now;
        let mut out = Vec::new();
        while let Some(act) = self.agenda.due(now) {
            self.act(act, &mut out);
        }
        // Estimated writes that have not occurred decay exponentially.
        self.pending_writes =
            (self.pending_writes - out.len() as f64).max(0.0) * (-passed.as_secs_f64() / SETTLE_SECONDS).exp();
        // After a delay the missed writes are not made up for.
        self.credit = (self.credit + self.rate * passed.as_secs_f64() - out.len() as f64).min(self.rate.max(1.0));
        // Some disturbances have no effect, because the selected object is busy.
        let mut chances = 16 + 2 * (self.credit.max(0.0) as u64);
        while self.credit >= 1.0 && chances > 0 && !self.deployments.is_empty() {
            chances -= 1;
            let before = out.len();
            self.disturb(&mut out);
            self.credit -= (out.len() - before) as f64;
        }
        self.fleet.beat(now, &mut out);
        out
    }

    /// Whether an action with this many writes is permitted: together with the actions in progress,
    /// they must fit into the next [`SETTLE_SECONDS`] seconds.
    pub(super) fn affords(&self, writes: f64) -> bool {
        self.pending_writes + writes <= self.credit + (self.rate * SETTLE_SECONDS).max(writes)
    }

    /// Adds the estimated writes of an action.
    pub(super) fn owe(&mut self, writes: f64) {
        self.pending_writes += writes;
    }

    /// Sets the number of writes per second.
    #[cfg(test)]
    pub(crate) fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// Handles the removal of a pod by another client.
    pub(crate) fn lost(&mut self, pod: PodRef) {
        let Some(deployment) = self.deployments.get_mut(pod.app) else { return };
        for set in &mut deployment.sets {
            set.members.retain(|member| member.serial != pod.serial);
        }
        self.attend(pod.app, 100);
    }

    /// Handles the removal of a pod by another client, if the pod is part of the simulation.
    pub(super) fn lost_named(&mut self, namespace: &str, name: &str) {
        if let Some((pod, _)) = self.find_pod(namespace, name) {
            self.lost(pod);
        }
    }

    /// Handles the deletion of a pod by another client, if the pod is part of the simulation: its
    /// kubelet terminates it and its controller replaces it.
    pub(super) fn request_termination(&mut self, namespace: &str, name: &str) {
        if let Some((pod, target)) = self.find_pod(namespace, name) {
            self.ending.push_back(target);
            self.later(700, 2_500, Act::End);
            self.lost(pod);
        }
    }

    /// Whether a deployment is part of the simulation.
    pub(super) fn simulates(&self, namespace: &str, name: &str) -> bool {
        self.find_deployment(namespace, name).is_some()
    }

    /// Stops simulating a deployment and its pods: it was deleted or changed by another client.
    pub(super) fn let_go(&mut self, namespace: &str, name: &str) {
        if let Some(number) = self.find_deployment(namespace, name) {
            let deployment = &mut self.deployments[number];
            deployment.attention = Attention::Never;
            deployment.sets.iter_mut().for_each(|set| set.members.clear());
        }
    }

    /// A pod IP that has not been used before.
    pub(super) fn next_address(&mut self) -> String {
        self.next_pod += 1;
        pod_ip(self.seed, self.next_pod - 1)
    }

    fn find_deployment(&self, namespace: &str, name: &str) -> Option<usize> {
        let number = *self.numbers.get(&(namespace.to_owned(), name.to_owned()))?;
        (self.deployments[number].attention != Attention::Never).then_some(number)
    }

    fn find_pod(&mut self, namespace: &str, name: &str) -> Option<(PodRef, ObjectReference)> {
        // A pod is named after its deployment, followed by a hash and a suffix.
        let owner = name.rsplitn(3, '-').nth(2)?;
        let number = self.find_deployment(namespace, owner)?;
        for set in 0..self.deployments[number].sets.len() {
            let app = self.app(number, set);
            let mut members = self.deployments[number].sets[set].members.iter();
            let found = members.find(|member| app.pod_name(member) == name).copied();
            let target = found.map(|member| Self::pod_target(&app, &member));
            self.keep(app);
            if let (Some(member), Some(target)) = (found, target) {
                return Some((PodRef { app: number, serial: member.serial }, target));
            }
        }
        None
    }

    fn act(&mut self, act: Act, out: &mut Vec<Write>) {
        match act {
            Act::Bind(pod) => self.bind(pod, out),
            Act::Create(pod) => self.create(pod, out),
            Act::Start(pod) => self.start(pod, out),
            Act::Settle(pod) => self.settle(pod, out),
            Act::End => self.end(out),
            Act::Reconcile(number) => {
                if self.deployments[number].attention == Attention::Due {
                    self.deployments[number].attention = Attention::Idle;
                    self.reconcile(number, out);
                }
            }
        }
    }

    /// Schedules a reconciliation of a deployment in this many milliseconds, unless one is already
    /// scheduled.
    pub(super) fn attend(&mut self, number: usize, after: u64) {
        if self.deployments[number].attention == Attention::Idle {
            self.deployments[number].attention = Attention::Due;
            self.agenda.add(self.now + Duration::from_millis(after), Act::Reconcile(number));
        }
    }

    pub(super) fn later(&mut self, from: u64, to: u64, act: Act) {
        let after = Duration::from_millis(from + self.below(to - from));
        self.agenda.add(self.now + after, act);
    }

    pub(super) fn seconds(&self) -> i64 {
        NOW + self.now.as_secs() as i64
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        let product = u128::from(self.rng.next_u64()) * u128::from(limit);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// Takes the template of a replica set, given by its index in the deployment, from the cache or
    /// creates it.
    pub(super) fn app(&mut self, number: usize, set: usize) -> App {
        let deployment = &self.deployments[number];
        let (index, revision) = (deployment.index, deployment.sets[set].revision);
        let known = self.templates.iter().position(|app| app.index() == index && app.revision() == revision);
        match known.and_then(|known| self.templates.remove(known)) {
            Some(app) => app,
            None => App::new(self.seed, index, revision, deployment.sets[set].rolled_out),
        }
    }

    /// Returns a template to the cache.
    pub(super) fn keep(&mut self, app: App) {
        self.templates.push_front(app);
        self.templates.truncate(TEMPLATE_CACHE_SIZE);
    }

    pub(super) fn record_pod_event(
        &mut self,
        app: &App,
        member: &Member,
        reason: &'static str,
        message: String,
        component: &'static str,
        out: &mut Vec<Write>,
    ) {
        let (name, uid) = app.pod_identity(member);
        let about = About { kind: "Pod", api_version: "v1", namespace: app.namespace(), name: &name, uid: &uid };
        let now = self.seconds();
        self.event_log.record(now, &EventContent { about, reason, message, component }, out);
    }

    pub(super) fn pod_target(app: &App, member: &Member) -> ObjectReference {
        let namespace = app.namespace().to_owned();
        ObjectReference { api_version: "v1", kind: "Pod", namespace, name: app.pod_name(member) }
    }

    /// Writes the status of a deployment and its replica sets, as far as it has changed.
    pub(super) fn report(&mut self, number: usize, out: &mut Vec<Write>) {
        let now = self.seconds();
        let latest = self.deployments[number].sets.len() - 1;
        for set in 0..=latest {
            let deployment = &self.deployments[number];
            let wanted = if set == latest { deployment.wanted } else { deployment.sets[set].members.len() as u64 };
            let counts = deployment.sets[set].counts(wanted);
            if counts == deployment.sets[set].reported {
                continue;
            }
            let resized = counts.wanted != deployment.sets[set].reported.wanted;
            let app = self.app(number, set);
            let object = app.replica_set(&counts, Some(now));
            if resized {
                out.push(Write::new(Verb::Update(object.clone())));
            }
            out.push(Write::new(Verb::UpdateStatus(object)));
            self.deployments[number].sets[set].reported = counts;
            self.keep(app);
        }
        let (counts, serving) = (self.deployments[number].counts(), self.deployments[number].serving());
        let deployment = &self.deployments[number];
        let (moved, readdressed) = (counts != deployment.reported, serving != deployment.served);
        if !moved && !readdressed {
            return;
        }
        let apps: Vec<App> = (0..=latest).map(|set| self.app(number, set)).collect();
        let deployment = &mut self.deployments[number];
        if moved {
            let object = apps[latest].deployment(&counts, deployment.generation, Some(now));
            out.push(Write::new(Verb::UpdateStatus(object)));
        }
        if readdressed {
            let pods = deployment.sets.iter().zip(&apps);
            let pods = pods.flat_map(|(set, app)| set.members.iter().map(move |member| (app, member)));
            out.push(Write::new(Verb::Update(apps[latest].endpoint_slice(pods))));
        }
        (deployment.reported, deployment.served) = (counts, serving);
        apps.into_iter().for_each(|app| self.keep(app));
    }

    pub(super) fn changed(app: &App, pod: PodRef, member: &Member) -> Write {
        Write::of_pod(pod, Verb::UpdateStatus(app.pod(member)))
    }
}
