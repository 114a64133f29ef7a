//! The managers of an object's fields.

use serde_json::{Value, json};

use super::compare::{Comparison, set_of};
use super::fields::Fields;
use super::kind_of::Type;
use super::merge::{merge, prune};
use crate::admission::metadata;
use crate::encoding::json;
use crate::http::status::{Cause, Details, Status};
use crate::kinds::convert::convert;
use crate::kinds::{Kind, Lifecycle, Part, Registry};

/// How many managers may have changed an object; the oldest of more are put together.
const MOST_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Whoever applies with kubectl, and what kubectl notes when it applies without the server's help.
const KUBECTL: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields that nobody owns, because the server sets them.
const NOBODYS: [&[&str]; 11] = [
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

/// Who writes, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Author<'a> {
    pub(crate) manager: &'a str,
    /// The present time in whole seconds.
    pub(crate) time: &'a str,
    pub(crate) part: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

#[derive(Debug, Clone, PartialEq)]
struct Manager {
    name: String,
    operation: Operation,
    api_version: String,
    part: String,
    time: Option<String>,
    fields: Fields,
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

    /// Whether two entries are of the same manager: appliers are the same in every version.
    fn is(&self, other: &Self) -> bool {
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

    /// The manager as conflicts name it.
    fn told(&self) -> String {
        let mut told = format!("{:?}", self.name);
        if !self.part.is_empty() {
            told += &format!(" with subresource {:?}", self.part);
        }
        if self.operation == Operation::Update {
            told += &format!(" using {}", self.api_version);
        }
        told
    }
}

/// The managers that an object names.
fn read(object: &Value) -> Vec<Manager> {
    let entries = metadata::part(object, "managedFields").and_then(Value::as_array).map(Vec::as_slice);
    entries.unwrap_or_default().iter().filter_map(Manager::parse).collect()
}

fn write(object: &mut Value, mut managers: Vec<Manager>) {
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

/// Puts the oldest updaters together where there are too many.
fn cap(managers: &mut Vec<Manager>) {
    loop {
        let mut updaters: Vec<usize> =
            (0..managers.len()).filter(|at| managers[*at].operation == Operation::Update).collect();
        if updaters.len() <= MOST_UPDATERS {
            return;
        }
        updaters.sort_by_key(|at| managers[*at].time.clone());
        let (keep, gone) = (updaters[0].min(updaters[1]), updaters[0].max(updaters[1]));
        let other = managers.remove(gone);
        managers[keep].fields.union(&other.fields);
        managers[keep].time = managers[keep].time.clone().max(other.time);
        managers[keep].name = ANCIENT.to_owned();
    }
}

/// An object without what it says about its managers.
fn bare(object: &Value) -> Value {
    let mut bare = object.clone();
    metadata::remove(&mut bare, "managedFields");
    bare
}

fn strip(fields: &mut Fields) {
    for path in NOBODYS {
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

/// Gives a new object to whoever makes it.
pub(crate) fn create(kind: &Kind, author: Author<'_>, object: &mut Value) {
    let zero = kind.empty();
    let mut new = bare(object);
    keep_status(kind, &mut new, &zero);
    let mut fields = compared(&zero, &new, kind).touched();
    if kind.behaviour.lifecycle == Lifecycle::Pod {
        forget_admitted(&mut fields, &new);
    }
    // An object may come with managers of its own, as from a backup.
    let mut managers = read(object);
    managers.push(Manager::new(author, Operation::Update, kind, fields));
    write(object, managers);
}

/// What every pod gets on its way in is nobody's.
fn forget_admitted(fields: &mut Fields, pod: &Value) {
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

/// What is written elsewhere is nobody's here.
fn keep_status(kind: &Kind, new: &mut Value, old: &Value) {
    if kind.subresource(Part::Status).is_some() {
        crate::api::write::keep(new, "status", old);
    }
}

/// Gives what changed between two states of an object to whoever changed it.
pub(crate) fn update(kind: &Kind, author: Author<'_>, old: &Value, new: &mut Value) {
    let sent = metadata::part(new, "managedFields").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    // A list of one empty entry asks to forget them all.
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
        // Nobody has been noted so far, and a change is no reason to begin: only an apply is.
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

/// A change of an object, as managers of each version of its kind see it.
struct Change<'c> {
    kind: &'c Kind,
    old: &'c Value,
    new: &'c Value,
    /// In the version of the kind.
    comparison: &'c Comparison,
}

impl Change<'_> {
    /// What of a manager's fields changed.
    fn touched(&self, manager: &Manager) -> Fields {
        match self.in_words_of(manager) {
            Words::Own => manager.fields.common(&self.comparison.touched()),
            Words::Others(comparison) => manager.fields.common(&comparison.touched()),
            Words::Unknown => Fields::default(),
        }
    }

    /// Takes from a manager what changed.
    fn withdraw_from(&self, manager: &mut Manager) {
        let others;
        let comparison = match self.in_words_of(manager) {
            Words::Own => self.comparison,
            Words::Others(comparison) => {
                others = comparison;
                &others
            }
            Words::Unknown => return,
        };
        manager.fields.subtract(&comparison.touched());
        manager.fields.subtract(&comparison.removed);
    }

    fn in_words_of(&self, manager: &Manager) -> Words {
        let kind = self.kind;
        if manager.api_version == kind.api_version() {
            return Words::Own;
        }
        let (group, version) = manager.api_version.split_once('/').unwrap_or(("", &manager.api_version));
        if kind.is_custom() {
            // Versions of a custom kind differ in nothing but their name.
            return if group == kind.group { Words::Own } else { Words::Unknown };
        }
        let Some(other) =
            Registry::new().find(group, version, &kind.plural).filter(|other| other.storage == kind.storage)
        else {
            return Words::Unknown;
        };
        let converted = |object: &Value| {
            let mut object = object.clone();
            convert(kind, &other, &mut object);
            object
        };
        Words::Others(compared(&converted(self.old), &converted(self.new), &other))
    }
}

/// In which version a manager's fields are told.
enum Words {
    Own,
    /// In another, in which the change looks like this.
    Others(Comparison),
    /// In one that nobody knows: its fields stay.
    Unknown,
}

/// What to do about fields that others own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflicts {
    Refused,
    Forced,
}

/// Applies a configuration to an object, or to none.
///
/// # Errors
///
/// 409 if others own what it changes, 500 if it does not fit its kind.
pub(crate) fn apply(
    kind: &Kind,
    author: Author<'_>,
    live: Option<&Value>,
    config: &Value,
    conflicts: Conflicts,
) -> Result<Value, Status> {
    let of = Type::of(kind);
    let said = set_of(config, of).map_err(|why| misfit(kind, config, &why))?;
    let mut set = said.clone();
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
        let nobody = Author { manager: BEFORE_FIRST_APPLY, ..author };
        managers.push(Manager::new(Author { part: None, ..nobody }, Operation::Update, kind, fields));
    }
    let mut mine = Manager::new(author, Operation::Apply, kind, set);
    let at = managers.iter().position(|manager| manager.is(&mine));
    let (last, time) = at.map(|at| managers.remove(at)).map_or_else(Default::default, |last| (last.fields, last.time));
    let mut object = merge(Some(&before), config, of);
    // Names and the like are nobody's, but they are said, and stay.
    let mut owned = said;
    for manager in &managers {
        owned.union(&manager.fields);
    }
    prune(&mut object, of, &last, &owned);
    let comparison = compared(&before, &object, kind);
    if comparison.touched().is_empty() && comparison.removed.is_empty() {
        // Nothing but owners changes: that is no time to remember.
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
            (manager.told(), disputed.paths())
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
        note_what_is_applied(&mut object, config);
    }
    Ok(object)
}

/// What kubectl applied by itself, before servers could, as far as it still is so: that may become the server's task
/// without a dispute.
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

/// Keeps what kubectl notes for itself up to date, where it has noted anything.
fn note_what_is_applied(object: &mut Value, config: &Value) {
    let note = object["metadata"].get_mut("annotations").and_then(|annotations| annotations.get_mut(LAST_APPLIED));
    let Some(note) = note.filter(|note| note.as_str().is_some_and(|note| !note.is_empty())) else { return };
    let mut config = config.clone();
    if let Some(annotations) = config["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let text = String::from_utf8_lossy(&json::encode_sorted(&config)).into_owned();
    *note = Value::String(text + "\n");
}

/// Whether two states differ in nothing but the times of their managers.
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
            let told: Vec<String> = refused
                .iter()
                .map(|(manager, paths)| format!("conflicts with {manager}:\n- {}", paths.join("\n- ")))
                .collect();
            format!("Apply failed with {count} conflicts: {}", told.join("\n"))
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
