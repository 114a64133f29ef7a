//! The job controller: runs pods until enough of them have succeeded. Failures are not counted
//! against a limit: the pods of the simulation do not fail.

use serde_json::{Value, json};

use super::book::Book;
use super::part::{condition, is_ending, is_over, is_ready, name, text, unless_zero};
use super::workload::{BURST, Workload};

const KIND: Workload = Workload::Job;

/// Moves a job one step towards its completion, given its pods.
pub(super) fn reconcile(job: &Value, pods: &[Value], book: &mut Book<'_>) {
    if is_ending(job) || condition(job, "Complete").is_some() {
        return;
    }
    let in_phase = |phase: &str| pods.iter().filter(|pod| text(pod, "/status/phase") == phase).count() as u64;
    let (succeeded, failed) = (in_phase("Succeeded"), in_phase("Failed"));
    let active: Vec<&Value> = pods.iter().filter(|pod| !is_ending(pod) && !is_over(pod)).collect();
    let parallelism = job.pointer("/spec/parallelism").and_then(Value::as_u64).unwrap_or(1);
    let completions = job.pointer("/spec/completions").and_then(Value::as_u64);
    let missing = match completions {
        Some(completions) => completions.saturating_sub(succeeded),
        // A pod that ends without a fixed number says that there is no more work.
        None if succeeded > 0 => 0,
        None => parallelism,
    };
    let is_suspended = job["spec"]["suspend"] == true;
    let wanted = if is_suspended { 0 } else { parallelism.min(missing) };
    for _ in (active.len() as u64..wanted).take(BURST) {
        let pod_name = format!("{}-{}", name(job), book.suffix());
        KIND.create(job, KIND.pod(job, &pod_name, &json!({})), book);
    }
    for pod in active.iter().filter(|_| is_suspended) {
        KIND.delete(job, pod, book);
    }
    let started = job["status"]["startTime"].as_str().unwrap_or(&book.time).to_owned();
    let mut status = json!({
        "active": unless_zero(active.len() as u64),
        "ready": active.iter().filter(|pod| is_ready(pod)).count(),
        "succeeded": unless_zero(succeeded),
        "failed": unless_zero(failed),
        "terminating": 0,
        "startTime": if is_suspended { Value::Null } else { json!(started) },
        "uncountedTerminatedPods": {},
    });
    if missing == 0 && active.is_empty() && !is_suspended {
        let conditions = ["SuccessCriteriaMet", "Complete"].map(|kind| {
            json!({
                "type": kind, "status": "True", "lastProbeTime": book.time, "lastTransitionTime": book.time,
                "reason": "CompletionsReached", "message": "Reached expected number of succeeded pods",
            })
        });
        status["conditions"] = json!(conditions);
        status["completionTime"] = json!(book.time);
    }
    KIND.report(job, &status, book);
}
