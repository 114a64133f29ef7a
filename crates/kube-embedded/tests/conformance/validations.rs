//! What kube-apiserver refuses in objects of built-in kinds, in its words.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::harness::{Answer, Api, Case, Namespace, case};

pub(crate) const CASES: &[Case] = &[
    case!(pods_are_validated, "containers, names, ports, volumes, probes, resources, tolerations; what may change"),
    case!(workloads_are_validated, "selectors, templates, strategies, schedules; what may not change"),
    case!(services_and_networks_are_validated, "ports, types, addresses; ingresses and network policies"),
    case!(
        configuration_and_storage_are_validated,
        "keys, immutable data, types of secrets; claims and storage classes"
    ),
    case!(rbac_and_policies_are_validated, "rules, roleRefs and subjects; disruption budgets, autoscalers, leases"),
];

async fn pods_are_validated(api: Api) {
    follow(&api, "pods").await;
}

async fn workloads_are_validated(api: Api) {
    follow(&api, "workloads").await;
}

async fn services_and_networks_are_validated(api: Api) {
    follow(&api, "networks").await;
}

async fn configuration_and_storage_are_validated(api: Api) {
    follow(&api, "data").await;
}

async fn rbac_and_policies_are_validated(api: Api) {
    follow(&api, "policies").await;
}

/// Sends the steps of one part, recorded from kube-apiserver. First the objects that they change,
/// `{"base", "part", "resource", "object"}`, then steps, `{"of", "create" or "update"}` with
/// changes `[path]` (removed) or `[path, value]`, the code, and the causes or else the message.
///
/// With `KUBE_CONFORMANCE_RECORD`, a folder, the answers are written to `validations-PART.jsonl`
/// there instead of being compared.
async fn follow(api: &Api, part: &str) {
    let lines: Vec<Value> =
        include_str!("validations.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let bases: HashMap<&str, &Value> =
        lines.iter().filter(|line| line["part"] == part).map(|line| (line["base"].as_str().unwrap(), line)).collect();
    let ns = api.namespace().await;
    let (mut recorded, mut wrong) = (String::new(), String::new());
    for step in lines.iter().filter(|step| bases.contains_key(step["of"].as_str().unwrap_or_default())) {
        let base = bases[step["of"].as_str().unwrap()];
        let answer = send(api, &ns, base, step).await;
        let mut found = json!({"code": answer.code});
        if answer.code != 200 && answer.code != 201 {
            let causes = causes(&answer.json());
            match causes.as_array().is_none_or(Vec::is_empty) {
                true => found["message"] = answer.json()["message"].clone(),
                false => found["causes"] = causes,
            }
        }
        let mut line = step.clone();
        for name in ["code", "causes", "message"] {
            line.as_object_mut().unwrap().remove(name);
        }
        let changes = line.to_string();
        line.as_object_mut().unwrap().extend(found.as_object().unwrap().clone());
        writeln!(recorded, "{line}").unwrap();
        if &line != step {
            writeln!(wrong, "{changes}\n  expected {}\n  found    {found}", expectation(step)).unwrap();
        }
    }
    match std::env::var("KUBE_CONFORMANCE_RECORD") {
        Ok(folder) => std::fs::write(format!("{folder}/validations-{part}.jsonl"), recorded).unwrap(),
        Err(_) => assert!(wrong.is_empty(), "{wrong}"),
    }
}

fn expectation(step: &Value) -> Value {
    let kept = step.as_object().unwrap().iter().filter(|(name, _)| matches!(&***name, "code" | "causes" | "message"));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into()
}

/// Sends one step as a dry run. The object that an update changes is created first.
async fn send(api: &Api, ns: &Namespace, base: &Value, step: &Value) -> Answer {
    let resource = base["resource"].as_str().unwrap();
    let (version, plural) = resource.rsplit_once('/').unwrap();
    let is_global = base["global"] == true;
    let collection = match (version, is_global) {
        ("v1", _) => ns.path(plural),
        (version, true) => format!("/apis/{version}/{plural}"),
        (version, false) => ns.group_path(version, plural),
    };
    let stem = base["base"].as_str().unwrap();
    let name = if is_global { api.unique(stem) } else { stem.to_owned() };
    let mut object = base["object"].clone();
    object["metadata"]["name"] = name.clone().into();
    if let Some(changes) = step.get("create") {
        change(&mut object, changes);
        return api.post(&format!("{collection}?dryRun=All"), object).await;
    }
    let name = format!("{name}-old");
    object["metadata"]["name"] = name.clone().into();
    let path = format!("{collection}/{name}");
    if is_global {
        api.leave_to_clean_up(&path);
    }
    let made = api.post(&collection, &object).await;
    assert!(matches!(made.code, 201 | 409), "{base}\n{}", made.text());
    let mut stored = api.get(&path).await.is(200).json();
    change(&mut stored, &step["update"]);
    api.put(&format!("{path}?dryRun=All"), stored).await
}

fn change(object: &mut Value, changes: &Value) {
    for change in changes.as_array().unwrap() {
        let (parent, last) = change[0].as_str().unwrap().rsplit_once('/').unwrap();
        let parent = parent.split('/').skip(1).fold(&mut *object, |value, part| match part.parse::<usize>() {
            Ok(at) => &mut value[at],
            Err(_) => &mut value[part],
        });
        match (change.get(1), last.parse::<usize>()) {
            (Some(value), Ok(at)) => parent[at] = value.clone(),
            (Some(value), Err(_)) => parent[last] = value.clone(),
            (None, _) => drop(parent.as_object_mut().and_then(|parent| parent.remove(last))),
        }
    }
}

/// The causes of a failure, sorted. Differences of Go structs are cut off, and their values.
fn causes(status: &Value) -> Value {
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    let mut causes: Vec<[String; 3]> = causes
        .iter()
        .map(|cause| {
            ["reason", "message", "field"].map(|part| {
                let text = cause[part].as_str().unwrap_or_default().lines().next().unwrap_or_default();
                match text.rsplit_once(": ") {
                    Some((_, why))
                        if part == "message" && (text.len() > 400 || text.starts_with("Invalid value: [{")) =>
                    {
                        format!("Invalid value: …: {why}")
                    }
                    _ => text.to_owned(),
                }
            })
        })
        .collect();
    causes.sort();
    json!(causes)
}
