//! Events of the simulated cluster: limited in number, where a real cluster limits them in time.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::write::{Author, ObjectReference, Verb, Write};
use crate::generate::app::time;

/// The object that an event refers to.
#[derive(Debug, Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) kind: &'static str,
    pub(super) api_version: &'static str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
}

/// The content of an event.
#[derive(Debug)]
pub(super) struct EventContent<'a> {
    pub(super) about: About<'a>,
    pub(super) reason: &'static str,
    pub(super) message: String,
    pub(super) component: &'static str,
}

/// The existing events, oldest first.
#[derive(Debug, Default)]
pub(super) struct EventLog {
    kept: VecDeque<ObjectReference>,
    limit: usize,
    count: u64,
}

impl EventLog {
    pub(super) fn new(limit: usize) -> Self {
        Self { kept: VecDeque::new(), limit, count: 0 }
    }

    /// Writes an event of the simulation, and deletes the oldest event if there are too many.
    pub(super) fn record(&mut self, now: i64, content: &EventContent<'_>, out: &mut Vec<Write>) {
        self.write(Author::Simulation, now, content, out);
    }

    /// Writes an event about objects of other clients, with the server's time.
    pub(super) fn announce(&mut self, now: i64, content: &EventContent<'_>, out: &mut Vec<Write>) {
        self.write(Author::Manager(content.component), now, content, out);
    }

    fn write(&mut self, author: Author, now: i64, content: &EventContent<'_>, out: &mut Vec<Write>) {
        self.count += 1;
        // Named as by client-go: the object's name and a number that increases with time.
        let name = format!("{}.{:016x}", content.about.name, (now as u64) << 24 | self.count & 0xff_ffff);
        out.push(Write { verb: Verb::Load(event(&name, now, content)), pod: None, author });
        let namespace = content.about.namespace.to_owned();
        self.kept.push_back(ObjectReference { api_version: "v1", kind: "Event", namespace, name });
        if self.kept.len() > self.limit
            && let Some(oldest) = self.kept.pop_front()
        {
            out.push(Write::new(Verb::Remove(oldest)));
        }
    }
}

fn event(name: &str, now: i64, content: &EventContent<'_>) -> Value {
    let About { kind, api_version, namespace, name: object, uid } = content.about;
    let warning = matches!(content.reason, "BackOff" | "FailedScheduling" | "Unhealthy");
    let fields = ["count", "firstTimestamp", "involvedObject", "lastTimestamp", "message", "reason", "source", "type"];
    let fields: serde_json::Map<String, Value> = fields.iter().map(|field| (format!("f:{field}"), json!({}))).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": time(now),
            "managedFields": [{
                "manager": content.component, "operation": "Update", "apiVersion": "v1", "time": time(now),
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            }],
        },
        "involvedObject": {"kind": kind, "namespace": namespace, "name": object, "uid": uid, "apiVersion": api_version},
        "reason": content.reason,
        "message": content.message,
        "source": {"component": content.component},
        "firstTimestamp": time(now),
        "lastTimestamp": time(now),
        "count": 1,
        "type": if warning { "Warning" } else { "Normal" },
        "eventTime": null,
        "reportingComponent": content.component,
        "reportingInstance": "",
    })
}
