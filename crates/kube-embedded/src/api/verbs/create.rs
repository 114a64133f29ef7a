//! Creation of an object.

use serde_json::{Value, json};

use crate::admission::decode::Decoded;
use crate::admission::defaults::quality_of_service;
use crate::admission::metadata;
use crate::admission::ownership::{self, Author};
use crate::admission::rules;
use crate::admission::validation;
use crate::api::access::User;
use crate::api::write::{Authorship, Write, empty_status, is_signing_request, set_or_remove};
use crate::controllers::crds;
use crate::controllers::namespaces;
use crate::controllers::services;
use crate::http::query::parse_version;
use crate::http::reply::{Content, Reply};
use crate::http::request::Verb;
use crate::http::status::{Details, Status};
use crate::kinds::{DAEMON_SET_GENERATION, InitialStatus, Lifecycle, ResourceScope};
use crate::storage::{Expect, Key};
use crate::webhooks::{Operation, Stage};

/// The maximum number of bytes of `generateName` that are used in a name.
const MAX_BASE_BYTES: usize = 58;

/// How many generated names are tried.
const MAX_NAME_ATTEMPTS: usize = 8;

/// The source of a new object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Client,
    /// The uid, status, generation and creation timestamp of the object are kept.
    Backup,
}

/// Creates an object.
///
/// # Errors
///
/// 400, 403, 404, 409, 422 and 500, as on the real server.
pub(crate) fn create(write: &Write<'_>, decoded: Decoded) -> Result<Reply, Status> {
    make(write, decoded, Origin::Client)
}

/// Creates an object from a backup: it keeps its uid, status, generation and creation timestamp.
///
/// # Errors
///
/// Those of a create.
pub(crate) fn load(write: &Write<'_>, mut decoded: Decoded) -> Result<Reply, Status> {
    metadata::remove(&mut decoded.object, "resourceVersion");
    make(write, decoded, Origin::Backup)
}

fn make(write: &Write<'_>, decoded: Decoded, origin: Origin) -> Result<Reply, Status> {
    let Decoded { mut object, warnings } = decoded;
    let kind = write.kind();
    if kind.is_custom() && !kind.serves(Verb::Create) {
        let why = "create not allowed while custom resource definition is terminating";
        return Err(Status::forbidden(&kind.group, &kind.plural, metadata::text(&object, "name"), why));
    }
    if kind.scope == ResourceScope::Namespaced {
        let name = match metadata::text(&object, "name") {
            "" => metadata::text(&object, "generateName"),
            name => name,
        };
        namespaces::admit(write, name)?;
    }
    write.place(&mut object)?;
    let version = parse_version(metadata::text(&object, "resourceVersion")).unwrap_or(0);
    // Before the field managers are set: no manager owns what is dropped.
    for name in ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata::remove(&mut object, name);
    }
    if kind.behaviour.lifecycle == Lifecycle::Namespace {
        // The creator owns the label of a name that is not generated.
        namespaces::label(&mut object);
    }
    if let Authorship::Manager(manager) = write.authorship {
        let time = write.cluster.clock.seconds();
        if kind.behaviour.lifecycle == Lifecycle::DaemonSet {
            object["metadata"]["annotations"][DAEMON_SET_GENERATION] = json!("1");
        }
        ownership::create(kind, Author { manager, time: &time, part: None }, &mut object);
    }
    if let Some(changed) = write.pass((Stage::Mutation, Operation::Create), &object, &Value::Null)? {
        object = changed;
    }
    let _allocation = services::allocation(write.cluster, kind);
    prepare(write, &mut object, origin);
    let named = !metadata::text(&object, "name").is_empty() || metadata::text(&object, "generateName").is_empty();
    let attempts = if named { 1 } else { MAX_NAME_ATTEMPTS };
    let mut taken = String::new();
    for _ in 0..attempts {
        if !named {
            let name = generated(metadata::text(&object, "generateName"), &write.cluster.rng.suffix());
            metadata::set(&mut object, "name", name);
        }
        if kind.behaviour.lifecycle == Lifecycle::Namespace {
            namespaces::label(&mut object);
        } else if kind.kind == "Job" && !kind.is_custom() {
            select_own_pods(&mut object);
        }
        let more_warnings = validate(write, &object)?;
        if origin == Origin::Client {
            allocate(write, &mut object, None)?;
        }
        if let Some(admitted) = write.pass((Stage::Validation, Operation::Create), &object, &Value::Null)? {
            object = admitted;
        }
        let warnings = || warnings.iter().cloned().chain(more_warnings.iter().cloned()).collect();
        let name = metadata::text(&object, "name").to_owned();
        let key = write.key(&name);
        if write.is_dry_run() {
            if write.find(&key).is_none() {
                return Ok(write.tried(201, object, None).with_warnings(warnings()));
            }
        } else if version != 0 {
            return Err(Status::internal("resourceVersion should not be set on objects to be created"));
        } else if let Ok(stored) = write.put(Expect::Absent, key, &object) {
            if kind.behaviour.lifecycle == Lifecycle::CustomResourceDefinition {
                crds::created(write, stored.key());
            }
            return Ok(Reply::new(201, Content::Object(stored)).with_warnings(warnings()));
        }
        taken = name;
    }
    Err(exists(write, &taken, named))
}

/// A generated name: the base, truncated if too long, and a suffix.
fn generated(base: &str, suffix: &str) -> String {
    let mut end = base.len().min(MAX_BASE_BYTES);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &base[..end])
}

/// Sets the fields that the server controls.
fn prepare(write: &Write<'_>, object: &mut Value, origin: Origin) {
    let kind = write.kind();
    if let Some(user) = write.user.filter(|_| is_signing_request(kind)) {
        name_requester(object, user);
    }
    let given = |object: &Value, name: &str| origin == Origin::Backup && metadata::part(object, name).is_some();
    if !given(object, "uid") {
        metadata::set(object, "uid", write.cluster.rng.uid());
    }
    if !given(object, "creationTimestamp") {
        metadata::set(object, "creationTimestamp", write.cluster.clock.seconds());
    }
    if let Some(generation) = kind.behaviour.generation.initial().filter(|_| !given(object, "generation")) {
        metadata::set(object, "generation", generation);
    }
    let has_status = object["status"].as_object().is_some_and(|status| !status.is_empty());
    match kind.behaviour.initial_status {
        InitialStatus::Kept => {}
        _ if origin == Origin::Backup && has_status => {}
        InitialStatus::Empty => set_or_remove(object, "status", empty_status(kind)),
        InitialStatus::Phase(phase) => {
            let mut status = empty_status(kind).unwrap_or_else(|| json!({}));
            status["phase"] = json!(phase);
            match &*kind.kind {
                "Pod" => status["qosClass"] = json!(quality_of_service(object)),
                "PersistentVolume" => status["lastPhaseTransitionTime"] = json!(write.cluster.clock.seconds()),
                _ => {}
            }
            set_or_remove(object, "status", Some(status));
        }
    }
    if !kind.behaviour.initial_finalizers.is_empty() {
        let mut finalizers: Vec<String> = metadata::finalizers(object).into_iter().map(str::to_owned).collect();
        for finalizer in &kind.behaviour.initial_finalizers {
            if !finalizers.iter().any(|known| known == finalizer) {
                finalizers.push(finalizer.to_string());
            }
        }
        metadata::set_finalizers(object, finalizers);
    }
    match kind.behaviour.lifecycle {
        Lifecycle::Plain if kind.kind == "Service" && kind.group.is_empty() => {
            services::give_address(write.cluster, object);
        }
        Lifecycle::Plain | Lifecycle::Pod => {}
        Lifecycle::Namespace => namespaces::prepare(object),
        Lifecycle::DaemonSet => object["metadata"]["annotations"][DAEMON_SET_GENERATION] = json!("1"),
        Lifecycle::CustomResourceDefinition => crds::prepare(object),
    }
}

/// Sets the user in a certificate signing request.
fn name_requester(request: &mut Value, user: &User) {
    let Some(spec) = request.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let info = user.info();
    for field in ["username", "uid", "groups", "extra"] {
        match info.get(field) {
            Some(value) => spec.insert(field.to_owned(), value.clone()),
            None => spec.remove(field),
        };
    }
}

/// Makes a job select only its own pods, unless it has a manual selector.
fn select_own_pods(job: &mut Value) {
    let (uid, name) = (metadata::text(job, "uid").to_owned(), metadata::text(job, "name").to_owned());
    let spec = &mut job["spec"];
    if spec["manualSelector"] == true || !spec["template"]["metadata"].is_object() {
        return;
    }
    let labels = &mut spec["template"]["metadata"]["labels"];
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        labels[label] = json!(value);
    }
    spec["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
}

/// Validates a new object and returns warnings.
fn validate(write: &Write<'_>, object: &Value) -> Result<Vec<String>, Status> {
    let kind = write.kind();
    let mut warnings = Vec::new();
    let mut causes = match kind.behaviour.lifecycle {
        // The errors of a definition include those of its name; duplicates are removed.
        Lifecycle::CustomResourceDefinition if !metadata::text(object, "name").is_empty() => {
            let own = crds::problems(object);
            warnings = crds::warnings(object);
            let mut causes = validation::created(kind, object);
            causes.retain(|cause| !own.contains(cause));
            causes.extend(own);
            causes
        }
        _ => validation::created(kind, object),
    };
    if write.is_of_client() {
        causes.extend(rules::problems(kind, object, None, None));
    }
    if let Some(structure) = &kind.structure {
        let found = structure.created(object);
        causes.extend(found.causes);
        warnings.extend(found.warnings);
    }
    if causes.is_empty() {
        return Ok(warnings);
    }
    causes.dedup();
    Err(write.invalid(object, causes))
}

/// Allocates what a service needs. A write inside the server may request anything.
pub(super) fn allocate(write: &Write<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), Status> {
    let kind = write.kind();
    if kind.kind != "Service" || !kind.group.is_empty() || write.authorship == Authorship::Untracked {
        return Ok(());
    }
    services::allocate(write, object, old)
}

/// 409: an object with this name exists.
fn exists(write: &Write<'_>, name: &str, named: bool) -> Status {
    let kind = write.kind();
    let status = Status::already_exists(&kind.group, &kind.plural, name);
    let details = Details::about(&kind.group, &kind.plural, name);
    if !named {
        let message = format!("{}, the server was not able to generate a unique name for the object", status.message());
        return Status::new(409, "AlreadyExists", message).with_details(Details { retry_after_seconds: 1, ..details });
    }
    let there = write.find(&Key::new(write.namespace, name));
    match there.is_some_and(|there| metadata::is_deleting(&there.to_value())) {
        true => Status::new(409, "AlreadyExists", format!("object is being deleted: {}", status.message()))
            .with_details(details),
        false => status,
    }
}
