//! The pod status that a kubelet writes.

use super::life::{Phase, Readiness};
use super::pod::Pod;
use super::workload::Container;
use super::writer::Writer;

pub(super) fn write(w: &mut Writer, pod: &Pod<'_>) {
    let life = &pod.life;
    w.text(
        "phase",
        match life.phase {
            Phase::Pending => "Pending",
            Phase::Running | Phase::Crashing => "Running",
            Phase::Succeeded => "Succeeded",
        },
    );
    w.array_at("conditions", |w| conditions(w, pod));
    w.text("hostIP", &pod.node.ip);
    w.array_at("hostIPs", |w| w.object(|w| w.text("ip", &pod.node.ip)));
    if life.phase != Phase::Pending {
        w.text("podIP", &pod.ip);
        w.array_at("podIPs", |w| w.object(|w| w.text("ip", &pod.ip)));
    }
    w.time("startTime", life.created);
    if !pod.workload.init.is_empty() {
        w.array_at("initContainerStatuses", |w| init_statuses(w, pod));
    }
    w.array_at("containerStatuses", |w| {
        for (number, container) in pod.workload.containers.iter().enumerate() {
            w.object(|w| container_status(w, pod, number, container));
        }
    });
    w.text("qosClass", quality(pod));
}

fn conditions(w: &mut Writer, pod: &Pod<'_>) {
    let life = &pod.life;
    let completed = (life.phase == Phase::Succeeded).then_some("PodCompleted");
    let sandbox = if completed.is_some() { "False" } else { "True" };
    let sandboxed = if completed.is_some() { life.finished + 1 } else { life.sandboxed };
    condition(w, "PodReadyToStartContainers", sandbox, sandboxed, None, None);
    condition(w, "Initialized", "True", life.initialized, completed, None);
    let (status, since, reason, message) = match (life.phase, life.readiness) {
        (Phase::Succeeded, _) => ("False", life.finished, completed, None),
        (_, Readiness::Ready) => ("True", life.ready_changed, None, None),
        (phase, Readiness::Unready) => {
            let since = if phase == Phase::Pending { life.created } else { life.ready_changed };
            let names: Vec<_> = match phase {
                Phase::Pending => pod.workload.containers.iter().map(|each| each.name.as_str()).collect(),
                _ => vec![pod.workload.containers[0].name.as_str()],
            };
            let message = format!("containers with unready status: [{}]", names.join(" "));
            ("False", since, Some("ContainersNotReady"), Some(message))
        }
    };
    condition(w, "Ready", status, since, reason, message.as_deref());
    condition(w, "ContainersReady", status, since, reason, message.as_deref());
    condition(w, "PodScheduled", "True", life.created, None, None);
}

fn condition(w: &mut Writer, kind: &str, status: &str, since: i64, reason: Option<&str>, message: Option<&str>) {
    w.object(|w| {
        w.text("type", kind);
        w.text("status", status);
        w.raw("lastProbeTime", "null");
        w.time("lastTransitionTime", since);
        if let Some(reason) = reason {
            w.text("reason", reason);
        }
        if let Some(message) = message {
            w.text("message", message);
        }
    });
}

fn init_statuses(w: &mut Writer, pod: &Pod<'_>) {
    let first = pod.workload.containers.len();
    for (container, id) in pod.workload.init.iter().zip(&pod.life.container_ids[first..]) {
        w.object(|w| {
            w.text("name", &container.name);
            let life = &pod.life;
            w.object_at("state", |w| {
                w.object_at("terminated", |w| ended(w, 0, "Completed", life.sandboxed, life.initialized, id));
            });
            w.object_at("lastState", |_| ());
            w.truth("ready", true);
            w.number("restartCount", 0);
            w.text("image", &container.image);
            w.text("imageID", &container.image_id);
            w.text("containerID", id);
            w.truth("started", false);
        });
    }
}

fn container_status(w: &mut Writer, pod: &Pod<'_>, number: usize, container: &Container) {
    let life = &pod.life;
    let id = &life.container_ids[number];
    // Only the main container ever fails.
    let restarted = life.restarted.as_ref().filter(|_| number == 0);
    let crashing = number == 0 && life.phase == Phase::Crashing;
    let running = life.phase == Phase::Running || life.phase == Phase::Crashing && !crashing;
    w.text("name", &container.name);
    w.object_at("state", |w| match life.phase {
        Phase::Pending => w.object_at("waiting", |w| w.text("reason", "ContainerCreating")),
        Phase::Succeeded => {
            w.object_at("terminated", |w| ended(w, 0, "Completed", life.started, life.finished, id));
        }
        Phase::Crashing if crashing => w.object_at("waiting", |w| {
            w.text("reason", "CrashLoopBackOff");
            w.joined(
                "message",
                &[
                    "back-off 5m0s restarting failed container=",
                    &container.name,
                    " pod=",
                    &pod.name,
                    "_",
                    &pod.workload.namespace,
                    "(",
                    &pod.uid,
                    ")",
                ],
            );
        }),
        Phase::Running | Phase::Crashing => w.object_at("running", |w| {
            w.time("startedAt", restarted.map_or(life.started + number as i64, |restart| restart.at));
        }),
    });
    w.object_at("lastState", |w| {
        if let Some(restart) = restarted {
            w.object_at("terminated", |w| {
                let reason = match restart.exit_code {
                    137 => "OOMKilled",
                    255 => "Unknown",
                    _ => "Error",
                };
                let id = &restart.container_id;
                ended(w, restart.exit_code, reason, restart.began, restart.ended, id);
            });
        }
    });
    w.truth("ready", running && (number > 0 || life.readiness == Readiness::Ready));
    w.number("restartCount", if number == 0 { life.restarts } else { 0 });
    w.text("image", &container.image);
    if life.phase == Phase::Pending {
        w.text("imageID", "");
    } else {
        w.text("imageID", &container.image_id);
        w.text("containerID", if crashing { restarted.map_or(id, |restart| &restart.container_id) } else { id });
    }
    w.truth("started", running);
}

fn ended(w: &mut Writer, exit_code: u64, reason: &str, began: i64, ended: i64, container_id: &str) {
    w.number("exitCode", exit_code);
    w.text("reason", reason);
    w.time("startedAt", began);
    w.time("finishedAt", ended);
    w.text("containerID", container_id);
}

fn quality(pod: &Pod<'_>) -> &'static str {
    let guaranteed = |container: &Container| {
        container.resources.as_ref().is_some_and(|asked| {
            asked.limit.as_ref().is_some_and(|(cpu, memory)| *cpu == asked.cpu && *memory == asked.memory)
        })
    };
    let mut all = pod.workload.containers.iter().chain(&pod.workload.init);
    if all.all(guaranteed) { "Guaranteed" } else { "Burstable" }
}
