//! The gate of one request: where its objects wait for the answers of webhooks.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::conversion::{Conversions, Unconverted};
use super::hook::{self, Hook, Subject};
use super::review::{self, Answer};
use super::transport::Handlers;
use crate::admission::decode;
use crate::admission::metadata;
use crate::api::access::User;
use crate::api::verbs::patch::{Unpatched, apply_json};
use crate::api::write_options::{DryRun, FieldValidation};
use crate::cluster::Cluster;
use crate::http::status::Status;
use crate::kinds::convert::convert;
use crate::kinds::{Kind, Part, Registry};

/// Rounds of webhooks for one object, which other writes may force. More than any real contention.
const MAX_ROUNDS: usize = 100;

/// When a webhook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Before the server's own changes and validation.
    Mutation,
    /// After them, right before the object is stored.
    Validation,
}

/// What a write does to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Create, Self::Update, Self::Delete];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// The webhooks of one request, and their answers so far.
#[derive(Debug)]
pub(crate) struct Gate {
    kind: Arc<Kind>,
    /// The kind of the objects, if it is that of a subresource.
    body_kind: Option<&'static Arc<Kind>>,
    subresource: String,
    namespace: Option<String>,
    user: Value,
    handlers: Handlers,
    hooks: Vec<Hook>,
    /// The other versions of the kind.
    versions: Vec<Arc<Kind>>,
    conversions: Option<Arc<Conversions>>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The object that waits.
    pending: Option<Passage>,
    answered: Vec<(Passage, Result<Value, Status>)>,
    warnings: Vec<String>,
    rounds: usize,
}

/// An object at the gate.
#[derive(Debug, Clone, PartialEq)]
struct Passage {
    stage: Stage,
    operation: Operation,
    name: String,
    /// The object; null in a deletion.
    object: Value,
    /// The object as it is stored; null in a creation.
    old: Value,
    dry_run: DryRun,
}

impl Gate {
    /// The gate of a request, if there are webhooks.
    pub(crate) fn new(
        cluster: &Cluster,
        registry: &Registry,
        kind: &Arc<Kind>,
        (subresource, namespace): (Option<&str>, Option<&str>),
        (user, handlers): (&User, &Handlers),
    ) -> Option<Gate> {
        let hooks = hook::all(cluster, kind);
        if hooks.is_empty() {
            return None;
        }
        let is_other_version = |other: &&Arc<Kind>| other.storage == kind.storage && !Arc::ptr_eq(other, kind);
        let mut gate = Gate {
            kind: kind.clone(),
            body_kind: subresource.and_then(Part::parse).and_then(Part::body),
            subresource: subresource.unwrap_or_default().to_owned(),
            namespace: namespace.map(str::to_owned),
            user: user.info(),
            handlers: handlers.clone(),
            hooks: Vec::new(),
            versions: registry.kinds().filter(is_other_version).cloned().collect(),
            conversions: Conversions::of(kind, handlers),
            state: Mutex::default(),
        };
        let is_called = |hook: &Hook| Operation::ALL.iter().any(|operation| gate.kind_for(hook, *operation).is_some());
        gate.hooks = hooks.into_iter().filter(is_called).collect();
        (!gate.hooks.is_empty()).then_some(gate)
    }

    /// Passes an object, which the webhooks may have changed.
    ///
    /// # Errors
    ///
    /// The refusal of a webhook; or that the object waits for one, which only [`Self::answer`] and
    /// another attempt can tell.
    pub(crate) fn pass(
        &self,
        (stage, operation): (Stage, Operation),
        object: &Value,
        old: &Value,
        dry_run: DryRun,
    ) -> Result<Option<Value>, Status> {
        if !self.hooks.iter().any(|hook| hook.stage == stage && self.kind_for(hook, operation).is_some()) {
            return Ok(None);
        }
        let named = if object.is_object() { object } else { old };
        let name = match operation {
            // Each attempt generates another.
            Operation::Create if metadata::part(object, "generateName").is_some() => "",
            _ => metadata::text(named, "name"),
        };
        let passage =
            Passage { stage, operation, name: name.to_owned(), object: object.clone(), old: old.clone(), dry_run };
        let mut state = self.state.lock();
        let found = state.answered.iter().find(|(answered, _)| answered.is_same(&passage));
        if let Some((_, answer)) = found {
            return answer.clone().map(Some);
        }
        state.pending = Some(passage);
        Err(Status::internal("the webhooks were not called"))
    }

    /// Calls the webhooks for which the last attempt waits. Returns whether there are any: then the
    /// request has to be tried again.
    pub(crate) async fn answer(&self, cluster: &Cluster) -> bool {
        let passage = {
            let mut state = self.state.lock();
            state.rounds += 1;
            state.pending.take().filter(|_| state.rounds <= MAX_ROUNDS)
        };
        let Some(passage) = passage else { return false };
        let answer = self.call_all(cluster, &passage).await;
        self.state.lock().answered.push((passage, answer));
        true
    }

    /// Begins with the next object of a request for several: it has rounds and answers of its own.
    pub(crate) fn next_object(&self) {
        let mut state = self.state.lock();
        *state = State { warnings: std::mem::take(&mut state.warnings), ..State::default() };
    }

    /// The warnings of webhooks, for the client.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.state.lock().warnings.clone()
    }

    fn subject(&self, operation: Operation) -> Subject<'_> {
        let (kind, subresource) = (&*self.kind, self.subresource.as_str());
        Subject { kind, subresource, operation, namespace: self.namespace.as_deref() }
    }

    fn kind_for(&self, hook: &Hook, operation: Operation) -> Option<&Kind> {
        let versions: Vec<&Kind> = self.versions.iter().map(|kind| &**kind).collect();
        hook.kind(self.subject(operation), &versions)
    }

    async fn call_all(&self, cluster: &Cluster, passage: &Passage) -> Result<Value, Status> {
        let mut object = passage.object.clone();
        let mut last_change = None;
        let hooks: Vec<&Hook> = self.hooks.iter().filter(|hook| hook.stage == passage.stage).collect();
        for (at, hook) in hooks.iter().enumerate() {
            if self.call(cluster, passage, hook, &mut object).await? {
                last_change = Some(at);
            }
        }
        // What later webhooks changed is shown again to those before that ask for it.
        for hook in hooks.iter().take(last_change.unwrap_or(0)).filter(|hook| hook.is_called_again()) {
            self.call(cluster, passage, hook, &mut object).await?;
        }
        Ok(object)
    }

    /// An object as a webhook receives it.
    async fn in_version(&self, cluster: &Cluster, kind: &Kind, object: &Value) -> Result<Value, Status> {
        let mut object = object.clone();
        if !object.is_object() {
            return Ok(object);
        }
        let kind = self.body_kind.map_or(kind, |body_kind| body_kind);
        if self.body_kind.is_none() {
            object["apiVersion"] = self.kind.api_version().into();
            object["kind"] = (*kind.kind).into();
            object = self.converted(cluster, &self.kind, kind, object).await?;
        }
        object["apiVersion"] = kind.api_version().into();
        object["kind"] = (*kind.kind).into();
        Ok(object)
    }

    async fn converted(&self, cluster: &Cluster, from: &Kind, to: &Kind, object: Value) -> Result<Value, Status> {
        let mut converted = object.clone();
        match &self.conversions {
            None => convert(from, to, &mut converted),
            Some(conversions) => {
                conversions.convert(to, &mut converted, None);
                if conversions.make(&cluster.rng).await.map_err(Unconverted::into_status)? {
                    converted = object;
                    conversions.convert(to, &mut converted, None);
                }
            }
        }
        Ok(converted)
    }

    /// Ends an attempt that was made with wrong objects.
    pub(crate) fn forget_attempt(&self) {
        self.state.lock().pending = None;
    }

    /// Calls a webhook, if it is to be called, and returns whether it changed the object.
    async fn call(
        &self,
        cluster: &Cluster,
        passage: &Passage,
        hook: &Hook,
        object: &mut Value,
    ) -> Result<bool, Status> {
        let Some(kind) = self.kind_for(hook, passage.operation) else { return Ok(false) };
        let subject = self.subject(passage.operation);
        if !hook.selects(cluster, subject, [object, &passage.old]) {
            return Ok(false);
        }
        let is_dry_run = passage.dry_run == DryRun::All;
        // The namespace of a namespace is itself.
        let namespace = match self.kind.kind == "Namespace" && self.kind.group.is_empty() {
            true => Some(passage.name.as_str()),
            false => self.namespace.as_deref(),
        };
        let sent = self.in_version(cluster, kind, object).await?;
        let old = self.in_version(cluster, kind, &passage.old).await?;
        let request = review::Request {
            uid: cluster.rng.uid(),
            kind,
            asked: &self.kind,
            body_kind: self.body_kind.map(|body_kind| &**body_kind),
            subresource: &self.subresource,
            name: &passage.name,
            namespace,
            operation: passage.operation,
            user: &self.user,
            object: &sent,
            old: &old,
            is_dry_run,
        };
        let request = request.to_value();
        match hook.meets_conditions(&[("object", &sent), ("oldObject", &old), ("request", &request)]) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(_) if hook.ignores_failures() => return Ok(false),
            Err(why) => return Err(Status::forbidden(&self.kind.group, &self.kind.plural, &passage.name, &why)),
        }
        if is_dry_run && !hook.permits_dry_run() {
            let why = format!("admission webhook {:?} does not support dry run", hook.name());
            return Err(Status::bad_request(why));
        }
        let answer = match self.handlers.call(&hook.spec, &review::envelope(&request)).await {
            Ok(reply) => Answer::read(&reply, &request, passage.stage)
                .map_err(|why| format!("received invalid webhook response: {why}")),
            Err(why) => Err(format!("failed to call webhook: {why}")),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(_) if hook.ignores_failures() => return Ok(false),
            Err(why) => return Err(failed(hook, &why)),
        };
        self.state.lock().warnings.extend(answer.warnings);
        if let Some(refusal) = answer.refusal {
            return Err(review::denied(hook.name(), &refusal));
        }
        let Some(patch) = answer.patch else { return Ok(false) };
        if !object.is_object() {
            let why = format!("admission webhook {:?} attempted to modify the object", hook.name());
            return Err(Status::internal(format!("{why}, which is not supported for this operation")));
        }
        let mut changed = sent.clone();
        apply_json(&patch, &mut changed).map_err(|refused| match refused {
            Unpatched::Refused(status) => internal(status.message()),
            Unpatched::Failed(why) => internal(&why.to_string()),
        })?;
        let is_changed = changed != sent;
        if self.body_kind.is_none() {
            changed = self.converted(cluster, kind, &self.kind, changed).await?;
        }
        let stored = self.body_kind.unwrap_or(&self.kind);
        let decoded = decode::conform(stored, changed, FieldValidation::Ignore)?;
        *object = decoded.object;
        if object.get("apiVersion").is_some() {
            object["apiVersion"] = stored.api_version().into();
        }
        Ok(is_changed)
    }
}

impl Passage {
    /// Whether an answer for this passage is one for another attempt. The validated object of a
    /// creation has a uid and a time of its own in each attempt: that of the first one is stored.
    fn is_same(&self, other: &Passage) -> bool {
        let is_named = (self.stage, self.operation, &self.name) == (other.stage, other.operation, &other.name);
        is_named && self.old == other.old && (self.stage == Stage::Validation || self.object == other.object)
    }
}

fn failed(hook: &Hook, why: &str) -> Status {
    internal(&format!("failed calling webhook {:?}: {why}", hook.name()))
}

fn internal(why: &str) -> Status {
    Status::internal_error(why)
}
