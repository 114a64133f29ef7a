//! Cells of workloads.

use serde_json::Value;

use super::cells;
use super::words::{
    NONE, NoSelector, UNSET, age, condition, containers, count, items, labels, name, number, selector,
    selector_or_none, set_or, text,
};
use crate::kinds::table::age::{self, Moment};

pub(super) fn deployment(object: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = containers(&spec["template"]["spec"]);
    cells![
        name(object),
        format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"])),
        number(&status["updatedReplicas"]),
        number(&status["availableReplicas"]),
        age(object, now),
        names,
        images,
        selector(&spec["selector"]).unwrap_or_else(|NoSelector| "<invalid>".to_owned()),
    ]
}

pub(super) fn replica_set(object: &Value, now: Moment) -> Vec<Value> {
    replicas(object, now, selector_or_none(&object["spec"]["selector"]))
}

pub(super) fn replication_controller(object: &Value, now: Moment) -> Vec<Value> {
    replicas(object, now, labels(&object["spec"]["selector"]))
}

fn replicas(object: &Value, now: Moment, selector: String) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = containers(&spec["template"]["spec"]);
    cells![
        name(object),
        number(&spec["replicas"]),
        number(&status["replicas"]),
        number(&status["readyReplicas"]),
        age(object, now),
        names,
        images,
        selector,
    ]
}

pub(super) fn stateful_set(object: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = containers(&spec["template"]["spec"]);
    let ready = format!("{}/{}", number(&status["readyReplicas"]), number(&spec["replicas"]));
    cells![name(object), ready, age(object, now), names, images]
}

pub(super) fn daemon_set(object: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let pod = &spec["template"]["spec"];
    let (names, images) = containers(pod);
    cells![
        name(object),
        number(&status["desiredNumberScheduled"]),
        number(&status["currentNumberScheduled"]),
        number(&status["numberReady"]),
        number(&status["updatedNumberScheduled"]),
        number(&status["numberAvailable"]),
        labels(&pod["nodeSelector"]),
        age(object, now),
        names,
        images,
        selector_or_none(&spec["selector"]),
    ]
}

pub(super) fn job(object: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let succeeded = number(&status["succeeded"]);
    let completions = match (spec["completions"].as_i64(), number(&spec["parallelism"])) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let duration = match (age::parse(&status["startTime"]), age::parse(&status["completionTime"])) {
        (None, _) => String::new(),
        (Some(_), None) => now.since(&status["startTime"]),
        (Some(start), Some(end)) => age::seconds(end.duration_since(start).as_secs()),
    };
    let (names, images) = containers(&spec["template"]["spec"]);
    cells![
        name(object),
        job_status(object),
        completions,
        duration,
        age(object, now),
        names,
        images,
        selector_or_none(&spec["selector"]),
    ]
}

fn job_status(job: &Value) -> &'static str {
    let is = |kind: &str| condition(job, kind).is_some_and(|condition| condition["status"] == "True");
    let deleting = super::words::is_deleting(job);
    let states = [
        ("Complete", is("Complete")),
        ("Failed", is("Failed")),
        ("Terminating", deleting),
        ("Suspended", is("Suspended")),
        ("FailureTarget", is("FailureTarget")),
        ("SuccessCriteriaMet", is("SuccessCriteriaMet")),
    ];
    states.into_iter().find(|(_, is)| *is).map_or("Running", |(state, _)| state)
}

pub(super) fn cron_job(object: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let last = match &status["lastScheduleTime"] {
        Value::Null => NONE.to_owned(),
        time => now.since(time),
    };
    let suspended = match spec["suspend"].as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => UNSET,
    };
    let job = &spec["jobTemplate"]["spec"];
    let (names, images) = containers(&job["template"]["spec"]);
    cells![
        name(object),
        text(&spec["schedule"]),
        set_or(&spec["timeZone"], NONE),
        suspended,
        count(&status["active"]),
        last,
        age(object, now),
        names,
        images,
        selector_or_none(&job["selector"]),
    ]
}

pub(super) fn pod_template(object: &Value, _: Moment) -> Vec<Value> {
    let template = &object["template"];
    let (names, images) = containers(&template["spec"]);
    cells![name(object), names, images, labels(&template["metadata"]["labels"])]
}

pub(super) fn controller_revision(object: &Value, now: Moment) -> Vec<Value> {
    let owners = items(&object["metadata"]["ownerReferences"]);
    let controller = owners.iter().find(|owner| owner["controller"] == true).map_or_else(
        || NONE.to_owned(),
        |owner| {
            let kind = text(&owner["kind"]);
            let kind = match text(&owner["apiVersion"]).split_once('/') {
                Some((group, _)) => format!("{kind}.{group}"),
                None => kind.to_owned(),
            };
            format!("{}/{}", kind.to_lowercase(), text(&owner["name"]))
        },
    );
    cells![name(object), controller, number(&object["revision"]), age(object, now)]
}

pub(super) fn disruption_budget(object: &Value, now: Moment) -> Vec<Value> {
    let bound = |value: &Value| match value {
        Value::String(share) => share.clone(),
        Value::Number(number) => number.to_string(),
        _ => "N/A".to_owned(),
    };
    let (spec, status) = (&object["spec"], &object["status"]);
    cells![
        name(object),
        bound(&spec["minAvailable"]),
        bound(&spec["maxUnavailable"]),
        number(&status["disruptionsAllowed"]),
        age(object, now),
    ]
}
