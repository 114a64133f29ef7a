//! The simulated scheduler and kubelet: the lifecycle of a pod.

use super::agenda::Act;
use super::world::World;
use super::write::{PodRef, Verb, Write};
use crate::generate::app::{App, Member};
use crate::generate::course::Stage;
use crate::generate::layout::NodeNames;

impl World {
    pub(super) fn bind(&mut self, pod: PodRef, out: &mut Vec<Write>) {
        let node = self.below(self.fleet.len());
        let Some(node) = self.fleet.open_from(node) else { return self.later(4_000, 6_000, Act::Bind(pod)) };
        let Some((app, member)) = self.reach(pod, &[Stage::Made], Stage::Bound, |member| member.node = node) else {
            return;
        };
        let object = app.pod(&member);
        out.push(Write::of_pod(pod, Verb::Update(object.clone())));
        out.push(Write::of_pod(pod, Verb::UpdateStatus(object)));
        let name = NodeNames::of(self.seed, node).name;
        let message = format!("Successfully assigned {}/{} to {name}", app.namespace(), app.pod_name(&member));
        self.record_pod_event(&app, &member, "Scheduled", message, "default-scheduler", out);
        self.later(50, 300, Act::Create(pod));
        self.keep(app);
    }

    pub(super) fn create(&mut self, pod: PodRef, out: &mut Vec<Write>) {
        let Some((app, member)) = self.reach(pod, &[Stage::Bound], Stage::Creating, |_| ()) else { return };
        out.push(Self::changed(&app, pod, &member));
        let message = format!("Pulling image \"{}\"", app.image());
        self.record_pod_event(&app, &member, "Pulling", message, "kubelet", out);
        self.later(500, 2_500, Act::Start(pod));
        self.keep(app);
    }

    pub(super) fn start(&mut self, pod: PodRef, out: &mut Vec<Write>) {
        let Some((app, member)) = self.reach(pod, &[Stage::Creating], Stage::Unready, |_| ()) else { return };
        out.push(Self::changed(&app, pod, &member));
        let message = format!("Container started: {}", app.main_container());
        self.record_pod_event(&app, &member, "Started", message, "kubelet", out);
        self.later(500, 2_000, Act::Settle(pod));
        self.keep(app);
        self.attend(pod.app, 100);
    }

    /// Makes a pod ready.
    pub(super) fn settle(&mut self, pod: PodRef, out: &mut Vec<Write>) {
        let from = [Stage::Unready, Stage::Crashing];
        let Some((app, member)) = self.reach(pod, &from, Stage::Ready, |_| ()) else { return };
        out.push(Self::changed(&app, pod, &member));
        self.keep(app);
        self.attend(pod.app, 100);
    }

    /// The main container of a pod fails and restarts, at once or after a backoff.
    pub(super) fn fail(&mut self, pod: PodRef, stage: Stage, out: &mut Vec<Write>) {
        let now = self.seconds();
        let failing = |member: &mut Member| member.course.fail(stage, now);
        let Some((app, member)) = self.reach(pod, &[Stage::Ready], stage, failing) else { return };
        out.push(Self::changed(&app, pod, &member));
        let (reason, message) = match stage {
            Stage::Crashing => ("BackOff", format!("Back-off restarting failed container {}", app.main_container())),
            _ => ("Started", format!("Container started: {}", app.main_container())),
        };
        self.record_pod_event(&app, &member, reason, message, "kubelet", out);
        match stage {
            Stage::Crashing => self.later(5_000, 20_000, Act::Settle(pod)),
            _ => self.later(800, 3_000, Act::Settle(pod)),
        }
        self.keep(app);
        self.attend(pod.app, 100);
    }

    /// A readiness probe of a pod fails temporarily.
    pub(super) fn doubt(&mut self, pod: PodRef, out: &mut Vec<Write>) {
        let Some((app, member)) = self.reach(pod, &[Stage::Ready], Stage::Unready, |_| ()) else { return };
        out.push(Self::changed(&app, pod, &member));
        let message = "Readiness probe failed: HTTP probe failed with statuscode: 503".to_owned();
        self.record_pod_event(&app, &member, "Unhealthy", message, "kubelet", out);
        self.later(1_000, 5_000, Act::Settle(pod));
        self.keep(app);
        self.attend(pod.app, 100);
    }

    /// Deletes a pod. Its controller stops counting it at once.
    pub(super) fn delete(&mut self, pod: PodRef, out: &mut Vec<Write>) {
        let Some(deployment) = self.deployments.get_mut(pod.app) else { return };
        let Some((set, member)) = deployment.find(pod).map(|(set, member)| (set, *member)) else { return };
        deployment.sets[set].members.retain(|member| member.serial != pod.serial);
        let app = self.app(pod.app, set);
        let target = Self::pod_target(&app, &member);
        out.push(Write::new(Verb::Delete(target.clone())));
        if member.course.stage != Stage::Made {
            let message = format!("Stopping container {}", app.main_container());
            self.record_pod_event(&app, &member, "Killing", message, "kubelet", out);
            self.ending.push_back(target);
            self.later(700, 2_500, Act::End);
        }
        self.keep(app);
        self.attend(pod.app, 100);
    }

    /// Removes the pod that has been terminating longest: its grace period is over.
    pub(super) fn end(&mut self, out: &mut Vec<Write>) {
        if let Some(target) = self.ending.pop_front() {
            out.push(Write::new(Verb::Remove(target)));
        }
    }

    /// Moves a pod to another stage, if it exists and is in one of the stages `from`.
    fn reach(
        &mut self,
        pod: PodRef,
        from: &[Stage],
        to: Stage,
        change: impl FnOnce(&mut Member),
    ) -> Option<(App, Member)> {
        let now = self.seconds();
        let (set, member) = self.deployments.get_mut(pod.app)?.find(pod)?;
        if !from.contains(&member.course.stage) {
            return None;
        }
        change(member);
        member.course.reach(to, now);
        let member = *member;
        Some((self.app(pod.app, set), member))
    }
}
