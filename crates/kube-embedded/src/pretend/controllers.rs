//! The simulated deployment and replica set controllers: scaling, rollouts and reconciliation.

use super::agenda::Act;
use super::deployment::{Attention, ReplicaSet, Step};
use super::events::{About, EventContent};
use super::world::World;
use super::write::{ObjectReference, PodRef, Verb, Write};
use crate::generate::app::{App, Counts, Member};
use crate::generate::course::{PodProgress, Stage};

/// Estimated number of writes when a pod fails and recovers, and when a pod is replaced.
const RESTART_WRITES: f64 = 7.0;
const REPLACE_WRITES: f64 = 18.0;
/// Number of old replica sets that a deployment keeps.
const REVISION_HISTORY: usize = 2;

impl World {
    /// Disturbs a random deployment: a failure, a deletion, scaling or a rollout.
    pub(super) fn disturb(&mut self, out: &mut Vec<Write>) {
        let number = self.below(self.deployments.len() as u64) as usize;
        if self.deployments[number].attention == Attention::Never {
            return;
        }
        let pod = self.pod_of(number);
        let chance = self.below(100);
        // Estimated number of writes that follow within seconds.
        let cost = match chance {
            0..62 => RESTART_WRITES,
            62..92 => REPLACE_WRITES,
            _ => REPLACE_WRITES * self.deployments[number].wanted.div_ceil(4) as f64,
        };
        if !self.affords(cost) {
            return;
        }
        let before = out.len();
        match (chance, pod) {
            (0..38, Some(pod)) => self.fail(pod, Stage::Unready, out),
            (38..42, Some(pod)) => self.fail(pod, Stage::Crashing, out),
            (42..62, Some(pod)) => self.doubt(pod, out),
            (62..76, Some(pod)) => self.delete(pod, out),
            (62..92, _) => self.scale(number, out),
            (92.., _) => self.roll_out(number, out),
            (_, None) => {}
        }
        if out.len() > before {
            self.owe(cost);
        }
    }

    fn pod_of(&mut self, number: usize) -> Option<PodRef> {
        let count = self.deployments[number].members().count() as u64;
        let nth = self.below(count) as usize;
        let serial = self.deployments[number].members().nth(nth)?.serial;
        Some(PodRef { app: number, serial })
    }

    /// Scales a deployment up or down by one or two pods.
    fn scale(&mut self, number: usize, out: &mut Vec<Write>) {
        let (up, by) = (self.below(2) == 0, 1 + self.below(2));
        let deployment = &self.deployments[number];
        // Replica counts stay near their initial values, so that the cluster keeps its size.
        let usual = App::replicas(self.seed, deployment.index);
        let wanted = match up {
            true if deployment.wanted < usual + 2 => deployment.wanted + by,
            _ => deployment.wanted.saturating_sub(by).max(usual.saturating_sub(2)).max(1),
        };
        if deployment.is_rolling() || wanted == deployment.wanted {
            return;
        }
        self.deployments[number].wanted = wanted;
        self.write_spec(number, out);
    }

    /// Rolls out a new image.
    fn roll_out(&mut self, number: usize, out: &mut Vec<Write>) {
        let now = self.seconds();
        let deployment = &mut self.deployments[number];
        if deployment.is_rolling() || deployment.latest().rolled_out == now {
            return;
        }
        let (revision, wanted) = (deployment.latest().revision + 1, deployment.wanted);
        // Written without pods; the desired count is reported together with the first pods.
        let reported = Counts { wanted, ..Counts::default() };
        deployment.sets.push(ReplicaSet { revision, rolled_out: now, members: Vec::new(), reported });
        self.write_spec(number, out);
        let latest = self.deployments[number].sets.len() - 1;
        let app = self.app(number, latest);
        out.push(Write::new(Verb::Load(app.replica_set(&reported, Some(now)))));
        self.keep(app);
    }

    /// Writes a changed deployment spec and schedules a reconciliation.
    fn write_spec(&mut self, number: usize, out: &mut Vec<Write>) {
        self.deployments[number].generation += 1;
        let (now, latest) = (self.seconds(), self.deployments[number].sets.len() - 1);
        let app = self.app(number, latest);
        let deployment = &self.deployments[number];
        out.push(Write::new(Verb::Update(app.deployment(&deployment.counts(), deployment.generation, Some(now)))));
        let message = format!("Scaled replica set {} to {}", app.replica_set_name(), deployment.wanted);
        self.record_deployment_event(&app, message, out);
        self.keep(app);
        self.attend(number, 50);
    }

    /// Moves a deployment one step towards its desired state and reports its status.
    pub(super) fn reconcile(&mut self, number: usize, out: &mut Vec<Write>) {
        let Step { add, remove, retire } = self.deployments[number].next_step();
        let latest = self.deployments[number].sets.len() - 1;
        for serial in self.deployments[number].latest().least(remove as usize) {
            self.delete(PodRef { app: number, serial }, out);
        }
        let mut retire = retire as usize;
        for set in 0..latest {
            for serial in self.deployments[number].sets[set].least(retire) {
                retire -= 1;
                self.delete(PodRef { app: number, serial }, out);
            }
        }
        for _ in 0..add {
            self.make(number, out);
        }
        self.report(number, out);
        self.forget_history(number, out);
    }

    fn make(&mut self, number: usize, out: &mut Vec<Write>) {
        let now = self.seconds();
        let latest = self.deployments[number].sets.len() - 1;
        let app = self.app(number, latest);
        let deployment = &mut self.deployments[number];
        let member =
            Member { index: self.next_pod, serial: deployment.next_serial, node: 0, course: PodProgress::new(now) };
        self.next_pod += 1;
        deployment.next_serial += 1;
        deployment.latest_mut().members.push(member);
        let pod = PodRef { app: number, serial: member.serial };
        out.push(Write::of_pod(pod, Verb::Load(app.pod(&member))));
        let about = About {
            kind: "ReplicaSet",
            api_version: "apps/v1",
            namespace: app.namespace(),
            name: app.replica_set_name(),
            uid: app.replica_set_uid(),
        };
        let message = format!("Created pod: {}", app.pod_name(&member));
        let content = EventContent { about, reason: "SuccessfulCreate", message, component: "replicaset-controller" };
        self.event_log.record(now, &content, out);
        self.later(20, 200, Act::Bind(pod));
        self.keep(app);
    }

    /// Deletes the oldest replica sets without pods, beyond [`REVISION_HISTORY`].
    fn forget_history(&mut self, number: usize, out: &mut Vec<Write>) {
        while self.deployments[number].sets.len() > REVISION_HISTORY + 1
            && self.deployments[number].sets[0].members.is_empty()
        {
            let app = self.app(number, 0);
            let (namespace, name) = (app.namespace().to_owned(), app.replica_set_name().to_owned());
            let target = ObjectReference { api_version: "apps/v1", kind: "ReplicaSet", namespace, name };
            out.push(Write::new(Verb::Remove(target)));
            self.deployments[number].sets.remove(0);
        }
    }

    fn record_deployment_event(&mut self, app: &App, message: String, out: &mut Vec<Write>) {
        let about = About {
            kind: "Deployment",
            api_version: "apps/v1",
            namespace: app.namespace(),
            name: app.name(),
            uid: app.uid(),
        };
        let content = EventContent { about, reason: "ScalingReplicaSet", message, component: "deployment-controller" };
        let now = self.seconds();
        self.event_log.record(now, &content, out);
    }
}
