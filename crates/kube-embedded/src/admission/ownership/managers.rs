//! The field managers of an object.

use serde_json::{Value, json};

use super::compare::{Comparison, set_of};
use super::fields::Fields;
use super::merge::{merge, prune};
use super::types::Type;
use crate::admission::metadata;
use crate::api::write::is_signing_request;
use crate::encoding::json;
use crate::http::status::{Cause, Details, Status};
use crate::kinds::convert::convert;
use crate::kinds::{Kind, Lifecycle, Part, Registry};

/// The maximum number of managers with operation `Update`; beyond it the oldest are merged.
const MAX_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The field manager of kubectl's server-side apply. Only for it is the annotation of client-side
/// apply taken into account.
const KUBECTL: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields without an owner, because the server sets them.
const UNOWNED: [&[&str]; 11] = [
    &["f:apiVersion"],
    &["f:kind"],
    &["f:metadata"],
    &["f:metadata", "f:name"],
    &["f:metadata", "f:namespace"],
    &["f:metadata", "f:creationTimestamp"],
    &["f:metadata", "f:selfLink"],
    &["f:metadata", "f:uid"],
    &["f:metadata", "f:generation"],
    &["f:metadata", "f:managedFields"],
    &["f:metadata", "f:resourceVersion"],
];

/// The field manager of a write, and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Author<'a> {
    pub(crate) manager: &'a str,
    /// The current time in whole seconds.
    pub(crate) time: &'a str,
    pub(crate) part: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Manager {
    name: String,
    operation: Operation,
    pub(super) api_version: String,
    part: String,
    time: Option<String>,
    pub(super) fields: Fields,
}

impl Manager {
    fn new(author: Author<'_>, operation: Operation, kind: &Kind, fields: Fields) -> Self {
        Self {
            name: author.manager.to_owned(),
            operation,
            api_version: kind.api_version().to_owned(),
            part: author.part.map_or("", Part::as_str).to_owned(),
            time: Some(author.time.to_owned()),
            fields,
        }
    }

    /// Whether two entries belong to the same manager. Entries of an applier are the same in every
    /// version.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.part == other.part
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }

    fn parse(entry: &Value) -> Option<Self> {
        let text = |part: &str| entry[part].as_str().unwrap_or_default().to_owned();
        let operation = match entry["operation"].as_str()? {
            "Apply" => Operation::Apply,
            "Update" => Operation::Update,
            _ => return None,
        };
        Some(Self {
            name: text("manager"),
            operation,
            api_version: text("apiVersion"),
            part: text("subresource"),
            time: entry["time"].as_str().map(str::to_owned),
            fields: Fields::parse(&entry["fieldsV1"]),
        })
    }

    fn to_value(&self) -> Value {
        let operation = match self.operation {
            Operation::Apply => "Apply",
            Operation::Update => "Update",
        };
        let mut entry = json!({
            "manager": self.name, "operation": operation, "apiVersion": self.api_version,
            "fieldsType": "FieldsV1", "fieldsV1": self.fields.to_value(),
        });
        if let Some(time) = &self.time {
            entry["time"] = json!(time);
        }
        if !self.part.is_empty() {
            entry["subresource"] = json!(self.part);
        }
        entry
    }

    /// The manager as conflict messages describe it.
    fn description(&self) -> String {
        let mut description = format!("{:?}", self.name);
        if !self.part.is_empty() {
            description += &format!(" with subresource {:?}", self.part);
        }
        if self.operation == Operation::Update {
            description += &format!(" using {}", self.api_version);
        }
        description
    }
}

/// The entries of `metadata.managedFields`.
pub(super) fn read(object: &Value) -> Vec<Manager> {
    let entries = metadata::part(object, "managedFields").and_then(Value::as_array).map(Vec::as_slice);
    entries.unwrap_or_default().iter().filter_map(Manager::parse).collect()
}

pub(super) fn write(object: &mut Value, mut managers: Vec<Manager>) {
    managers.retain(|manager| !manager.fields.is_empty());
    cap(&mut managers);
    managers.sort_by(|a, b| {
        (a.operation, &a.time, &a.name, &a.api_version, &a.part).cmp(&(
            b.operation,
            &b.time,
            &b.name,
            &b.api_version,
            &b.part,
        ))
    });
    match managers.is_empty() {
        true => metadata::remove(object, "managedFields"),
        false => {
            let entries: Vec<Value> = managers.iter().map(Manager::to_value).collect();
            metadata::set(object, "managedFields", entries);
        }
    }
}

/// Merges the oldest updaters while there are too many.
fn cap(managers: &mut Vec<Manager>) {
    loop {
        let mut updaters: Vec<usize> =
            (0..managers.len()).filter(|at| managers[*at].operation == Operation::Update).collect();
        if updaters.len() <= MAX_UPDATERS {
            return;
        }
        updaters.sort_by_key(|at| managers[*at].time.clone());
        let (keep, removed) = (updaters[0].min(updaters[1]), updaters[0].max(updaters[1]));
        let other = managers.remove(removed);
        managers[keep].fields.union(&other.fields);
        managers[keep].time = managers[keep].time.clone().max(other.time);
        managers[keep].name = ANCIENT.to_owned();
    }
}

/// A copy without `metadata.managedFields`.
fn bare(object: &Value) -> Value {
    let mut bare = object.clone();
    metadata::remove(&mut bare, "managedFields");
    bare
}

fn strip(fields: &mut Fields) {
    for path in UNOWNED {
        fields.remove(path);
    }
}

fn compared(old: &Value, new: &Value, kind: &Kind) -> Comparison {
    let mut comparison = Comparison::of(old, new, Type::of(kind));
    for fields in [&mut comparison.added, &mut comparison.modified, &mut comparison.removed] {
        strip(fields);
    }
    comparison
}

/// Makes the creator the owner of the fields of a new object.
pub(crate) fn create(kind: &Kind, author: Author<'_>, object: &mut Value) {
    let zero = kind.empty();
    let mut new = bare(object);
    keep_status(kind, &mut new, &zero);
    let mut fields = compared(&zero, &new, kind).touched();
    if kind.behaviour.lifecycle == Lifecycle::Pod {
        remove_admitted(&mut fields, &new);
    }
    if is_signing_request(kind) {
        // The server sets it, from what the client sent and who it is.
        fields.remove_below("f:spec");
    }
    // A new object may already have managers, for example if it is restored from a backup.
    let mut managers = read(object);
    managers.push(Manager::new(author, Operation::Update, kind, fields));
    write(object, managers);
}

/// Removes the fields that admission sets on every pod: they have no owner.
fn remove_admitted(fields: &mut Fields, pod: &Value) {
    fields.remove(&["f:spec", "f:priority"]);
    fields.remove(&["f:spec", "f:preemptionPolicy"]);
    let own = |toleration: &Value| {
        let key = toleration["key"].as_str().unwrap_or_default();
        !matches!(key, "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable")
            || toleration["tolerationSeconds"] != 300
    };
    if !pod["spec"]["tolerations"].as_array().into_iter().flatten().any(own) {
        fields.remove(&["f:spec", "f:tolerations"]);
    }
}

/// Excludes the status of kinds with a status subresource: a write of the main resource does not
/// own it.
fn keep_status(kind: &Kind, new: &mut Value, old: &Value) {
    if kind.subresource(Part::Status).is_some() {
        crate::api::write::keep(new, "status", old);
    }
}

/// Makes the author of an update the owner of the fields that changed.
pub(crate) fn update(kind: &Kind, author: Author<'_>, old: &Value, new: &mut Value) {
    let sent = metadata::part(new, "managedFields").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    // A list with one empty entry requests the removal of all managers.
    let forget = sent.len() == 1 && sent[0].as_object().is_some_and(|entry| entry.values().all(Value::is_null));
    if (sent.is_empty() || author.part.is_some()) && !forget {
        metadata::keep(new, "managedFields", old);
    }
    let comparison = compared(&bare(old), &bare(new), kind);
    let touched = comparison.touched();
    if touched.is_empty() && comparison.removed.is_empty() {
        if forget {
            metadata::remove(new, "managedFields");
        }
        return;
    }
    let mut managers = if forget { Vec::new() } else { read(new) };
    if managers.is_empty() {
        // The object has no managers. Only an apply starts tracking ownership, an update does not.
        metadata::remove(new, "managedFields");
        return;
    }
    let change = Change { kind, old: &bare(old), new: &bare(new), comparison: &comparison };
    for manager in &mut managers {
        change.withdraw_from(manager);
    }
    if !touched.is_empty() {
        let mine = Manager::new(author, Operation::Update, kind, touched);
        match managers.iter_mut().find(|manager| manager.is(&mine)) {
            Some(known) => {
                known.fields.union(&mine.fields);
                known.time = mine.time;
            }
            None => managers.push(mine),
        }
    }
    write(new, managers);
}

/// A change of an object, which can be compared in the version of each manager.
struct Change<'c> {
    kind: &'c Kind,
    old: &'c Value,
    new: &'c Value,
    /// In the version of `kind`.
    comparison: &'c Comparison,
}

impl Change<'_> {
    /// The fields of a manager that changed.
    fn touched(&self, manager: &Manager) -> Fields {
        match self.in_version_of(manager) {
            VersionedChange::Same => manager.fields.common(&self.comparison.touched()),
            VersionedChange::Converted(comparison) => manager.fields.common(&comparison.touched()),
            VersionedChange::Unknown => Fields::default(),
        }
    }

    /// Removes the changed fields from a manager.
    fn withdraw_from(&self, manager: &mut Manager) {
        let converted;
        let comparison = match self.in_version_of(manager) {
            VersionedChange::Same => self.comparison,
            VersionedChange::Converted(comparison) => {
                converted = comparison;
                &converted
            }
            VersionedChange::Unknown => return,
        };
        manager.fields.subtract(&comparison.touched());
        manager.fields.subtract(&comparison.removed);
    }

    fn in_version_of(&self, manager: &Manager) -> VersionedChange {
        let kind = self.kind;
        if manager.api_version == kind.api_version() {
            return VersionedChange::Same;
        }
        let (group, version) = manager.api_version.split_once('/').unwrap_or(("", &manager.api_version));
        if kind.is_custom() {
            // Versions of a custom kind differ only in their name.
            return if group == kind.group { VersionedChange::Same } else { VersionedChange::Unknown };
        }
        let Some(other) =
            Registry::new().find(group, version, &kind.plural).filter(|other| other.storage == kind.storage)
        else {
            return VersionedChange::Unknown;
        };
        let converted = |object: &Value| {
            let mut object = object.clone();
            convert(kind, &other, &mut object);
            object
        };
        VersionedChange::Converted(compared(&converted(self.old), &converted(self.new), &other))
    }
}

/// The change in the version of a manager's fields.
enum VersionedChange {
    Same,
    /// The comparison of the states converted to another version.
    Converted(Comparison),
    /// The version is unknown: the manager's fields stay.
    Unknown,
}

/// How to handle fields that other managers own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflicts {
    Refused,
    Forced,
}

/// Applies a configuration to an existing or a new object.
///
/// # Errors
///
/// 409 if other managers own fields that it changes, 500 if it does not match the schema of its
/// kind.
pub(crate) fn apply(
    kind: &Kind,
    author: Author<'_>,
    live: Option<&Value>,
    config: &Value,
    conflicts: Conflicts,
) -> Result<Value, Status> {
    let of = Type::of(kind);
    let configured = set_of(config, of).map_err(|why| misfit(kind, config, &why))?;
    let mut set = configured.clone();
    strip(&mut set);
    match author.part {
        None if kind.subresource(Part::Status).is_some() => set.remove_below("f:status"),
        Some(Part::Status) if kind.is_custom() => set.retain(&["f:status"]),
        Some(Part::Status) => set.retain(&["f:status", "f:metadata"]),
        _ => {}
    }
    let zero = kind.empty();
    let before = live.map_or_else(|| zero.clone(), bare);
    let mut managers = live.map(read).unwrap_or_default();
    if live.is_some() && managers.is_empty() {
        let mut fields = compared(&zero, &before, kind).touched();
        fields.remove_below("f:status");
        let part = author.part.filter(|part| *part == Part::Scale);
        let initial = Author { manager: BEFORE_FIRST_APPLY, part, ..author };
        managers.push(Manager::new(initial, Operation::Update, kind, fields));
    }
    let mut mine = Manager::new(author, Operation::Apply, kind, set);
    let at = managers.iter().position(|manager| manager.is(&mine));
    let (last, time) = at.map(|at| managers.remove(at)).map_or_else(Default::default, |last| (last.fields, last.time));
    let mut object = merge(Some(&before), config, of);
    // Names and similar fields have no owner, but the configuration contains them, so they are not
    // pruned.
    let mut owned = configured;
    for manager in &managers {
        owned.union(&manager.fields);
    }
    prune(&mut object, of, &last, &owned);
    let comparison = compared(&before, &object, kind);
    if comparison.touched().is_empty() && comparison.removed.is_empty() {
        // Only ownership changes, so the entry keeps its time.
        mine.time = time;
    }
    let after = bare(&object);
    let change = Change { kind, old: &before, new: &after, comparison: &comparison };
    let client_side = match author.manager == KUBECTL {
        true => applied_by_the_client(kind, &before).unwrap_or_default(),
        false => Fields::default(),
    };
    let refused: Vec<(String, Vec<String>)> = managers
        .iter()
        .map(|manager| {
            let mut disputed = change.touched(manager);
            disputed.subtract(&client_side);
            (manager.description(), disputed.paths())
        })
        .filter(|(_, paths)| !paths.is_empty())
        .collect();
    if conflicts == Conflicts::Refused && !refused.is_empty() {
        return Err(conflict(refused));
    }
    for manager in &mut managers {
        change.withdraw_from(manager);
    }
    managers.push(mine);
    write(&mut object, managers);
    if author.manager == KUBECTL {
        update_last_applied(&mut object, config);
    }
    Ok(object)
}

/// The fields of the last client-side apply that still have their values. kubectl's server-side
/// apply takes them over without a conflict.
fn applied_by_the_client(kind: &Kind, live: &Value) -> Option<Fields> {
    let last = live["metadata"]["annotations"][LAST_APPLIED].as_str()?;
    let last: Value = serde_json::from_str(last).ok()?;
    if last["apiVersion"] != kind.api_version() {
        return None;
    }
    let mut fields = set_of(&last, Type::of(kind)).ok()?;
    let comparison = Comparison::of(&last, live, Type::of(kind));
    fields.subtract(&comparison.touched());
    fields.subtract(&comparison.removed);
    Some(fields)
}

/// Updates the annotation of client-side apply, if there is one.
fn update_last_applied(object: &mut Value, config: &Value) {
    let note = object["metadata"].get_mut("annotations").and_then(|annotations| annotations.get_mut(LAST_APPLIED));
    let Some(note) = note.filter(|note| note.as_str().is_some_and(|note| !note.is_empty())) else { return };
    let mut config = config.clone();
    if let Some(annotations) = config["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let text = String::from_utf8_lossy(&json::encode_sorted(&config)).into_owned();
    *note = Value::String(text + "\n");
}

/// Whether two states differ only in the times of their managers.
pub(crate) fn differ_in_times_only(old: &Value, new: &Value) -> bool {
    let timeless = |object: &Value| {
        let mut object = object.clone();
        let entries = object["metadata"]["managedFields"].as_array_mut();
        for entry in entries.into_iter().flatten() {
            if let Some(entry) = entry.as_object_mut() {
                entry.remove("time");
            }
        }
        metadata::remove(&mut object, "resourceVersion");
        object
    };
    let sorted = |object: &mut Value| {
        if let Some(entries) = object["metadata"].get_mut("managedFields").and_then(Value::as_array_mut) {
            entries.sort_by_key(ToString::to_string);
        }
    };
    let (mut old, mut new) = (timeless(old), timeless(new));
    sorted(&mut old);
    sorted(&mut new);
    old == new
}

fn conflict(mut refused: Vec<(String, Vec<String>)>) -> Status {
    refused.sort();
    let count: usize = refused.iter().map(|(_, paths)| paths.len()).sum();
    let message = match refused.as_slice() {
        [(manager, paths)] if paths.len() == 1 => {
            format!("Apply failed with 1 conflict: conflict with {manager}: {}", paths[0])
        }
        _ => {
            let descriptions: Vec<String> = refused
                .iter()
                .map(|(manager, paths)| format!("conflicts with {manager}:\n- {}", paths.join("\n- ")))
                .collect();
            format!("Apply failed with {count} conflicts: {}", descriptions.join("\n"))
        }
    };
    let causes = refused.iter().flat_map(|(manager, paths)| {
        paths.iter().map(move |path| Cause::new("FieldManagerConflict", path, format!("conflict with {manager}")))
    });
    let details = Details { causes: causes.collect(), ..Details::default() };
    Status::new(409, "Conflict", message).with_details(details)
}

fn misfit(kind: &Kind, config: &Value, why: &str) -> Status {
    let (namespace, name) = (metadata::text(config, "namespace"), metadata::text(config, "name"));
    let named = format!("{}/{}, Kind={}", kind.group, kind.version, kind.kind);
    Status::internal(format!("failed to create typed patch object ({namespace}/{name}; {named}): {why}"))
}
