//! Routing: dispatches each request to its handler.

use std::sync::Arc;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{Method, Response};
use tokio::time::Instant;

use super::access::User;
use super::delete_options::DeleteOptions;
use super::discovery::{self, Root};
use super::openapi;
use super::paths;
use super::review::{self, Review};
use super::subresources::{self, scale};
use super::verbs::patch::Patch;
use super::verbs::watch::{Watch, is_streaming_list};
use super::verbs::{apply, create, delete, delete_collection, get, list, patch, update};
use super::view::View;
use super::write::{Authorship, Write};
use super::write_options::{OptionsOf, Origin, WriteOptions};
use crate::admission::decode::{self, Decoded};
use crate::admission::metadata;
use crate::admission::ownership::Conflicts;
use crate::encoding::protobuf;
use crate::faults::request_log::OpenWatch;
use crate::http::body::{Body, StreamBody};
use crate::http::negotiate::{Encoding, EndpointKind, Form, Negotiated, Served, Unacceptable, check_table};
use crate::http::query::{ListOptions, ListVerb, parse_duration};
use crate::http::reply::{self, Content, Reply};
use crate::http::request::{Head, ResourcePath, Target, Verb};
use crate::http::request_body::{Binary, json_body};
use crate::http::service::ServerShared;
use crate::http::status::Status;
use crate::kinds::{self, Kind, Part, Registry, ResourceScope};
use crate::storage::Key;
use crate::webhooks::Gate;
use crate::webhooks::conversion::{Conversions, Unconverted};

/// An error response.
#[derive(Debug)]
pub(crate) enum Refusal {
    Status(Status),
    /// Plain text, as from the outer handlers of the real server, which do not use `Status`.
    Text(u16, &'static str),
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Self::Status(status)
    }
}

/// A response and the compression of its body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) response: Response<Body>,
    pub(crate) compression: Compression,
}

/// The compression that is still to be applied to a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    /// None.
    AsIs,
    /// The stream is compressed with gzip, one member per flush.
    PerFlush,
}

impl From<Response<Body>> for Answer {
    fn from(response: Response<Body>) -> Self {
        Self { response, compression: Compression::AsIs }
    }
}

const PAGE_NOT_FOUND: Refusal = Refusal::Text(404, "404 page not found\n");

/// Handles a request.
pub(crate) async fn route(
    shared: &Arc<ServerShared>,
    head: &Head,
    user: &User,
    body: Bytes,
) -> Result<Answer, Refusal> {
    let registry = shared.cluster.registry();
    match &head.target {
        Target::Resource(path) => match unstored(path) {
            Some(kind) => creation(shared, &registry, head, (path, user, kind), body).await,
            None => resource(shared, &registry, head, (path, user), body).await,
        },
        _ => document(shared, &registry, head).map(Answer::from),
    }
}

/// The kind of a resource that can only be created, if the path is that of one.
fn unstored(path: &ResourcePath) -> Option<&'static Kind> {
    let is_whole = path.name.is_none() && path.subresource.is_none() && !path.watch_prefix;
    let scope = if path.namespace.is_some() { ResourceScope::Namespaced } else { ResourceScope::Cluster };
    let is_here =
        |kind: &&Arc<Kind>| kind.version == path.version && kind.plural == path.resource && kind.scope == scope;
    kinds::creatable(&path.group).find(is_here).filter(|_| is_whole).map(|kind| &**kind)
}

/// Creates an object that is not stored: a review, or the binding of the pod that it names.
async fn creation(
    shared: &Arc<ServerShared>,
    registry: &Registry,
    head: &Head,
    (path, user, kind): (&ResourcePath, &User, &Kind),
    body: Bytes,
) -> Result<Answer, Refusal> {
    if head.method != Method::POST {
        return Err(Status::method_not_allowed().into());
    }
    let json = json_body(&head.headers, &body, Binary::of(kind))?;
    let options = WriteOptions::parse(&head.query, OptionsOf::Create)?;
    let Decoded { object, .. } = decode::decode(registry, kind, &json, options.field_validation)?;
    if kind.kind == "Binding" {
        let name = Some(metadata::text(&object, "name").to_owned());
        let subresource = Some(Part::Binding.as_str().to_owned());
        let path = ResourcePath { resource: "pods".to_owned(), name, subresource, ..path.clone() };
        return resource(shared, registry, head, (&path, user), body).await;
    }
    let namespace = path.namespace.as_deref();
    let asked = Review { kind, namespace, user, manager: manager(head), object };
    let reviewed = review::review(shared, asked)?;
    Ok(reply::document(201, &reviewed, &head.wish, head.wish.writing).into())
}

/// Handles a request that is not for a resource.
fn document(shared: &ServerShared, registry: &Registry, head: &Head) -> Result<Response<Body>, Refusal> {
    match &head.target {
        Target::Groups { core } => {
            let root = if *core { Root::Api } else { Root::Apis };
            if *core {
                only_get(head)?;
            }
            if let Some(encoding) = head.wish.aggregated {
                return Ok(paths::aggregated(registry, root, &head.headers, encoding));
            }
            let document = match root {
                Root::Api => discovery::api_versions(&shared.address()),
                Root::Apis => discovery::group_list(registry),
            };
            if *core {
                check_media_type(head)?;
            }
            document_response(head, &document)
        }
        Target::Group(group) => document_response(head, &discovery::group(registry, group).ok_or(PAGE_NOT_FOUND)?),
        Target::GroupVersion { group, version } => {
            let document =
                discovery::resource_list(registry, group, version).ok_or_else(|| unknown(registry, group))?;
            if discovery::is_built_in(registry, group) {
                only_get(head)?;
                check_media_type(head)?;
            }
            document_response(head, &document)
        }
        Target::Path | Target::Resource(_) => {
            if paths::is_read_only(head.uri.path()) {
                only_get(head)?;
            }
            if let Some(response) = openapi::answer(registry, head, shared.cluster.clock) {
                return Ok(response);
            }
            paths::answer(&shared.cluster, registry, &shared.address(), head)?.ok_or(PAGE_NOT_FOUND)
        }
    }
}

/// Rejects methods other than GET. Many documents of the real server accept any method.
fn only_get(head: &Head) -> Result<(), Status> {
    if head.method == Method::GET { Ok(()) } else { Err(Status::method_not_allowed()) }
}

/// Rejects unknown media types, for documents that have their own route in the real server.
fn check_media_type(head: &Head) -> Result<(), Status> {
    match head.form {
        Err(Unacceptable::Media) => Err(Unacceptable::Media.status(EndpointKind::Object)),
        _ => Ok(()),
    }
}

/// The response with a discovery document, which has no other form (table or metadata).
fn document_response(head: &Head, document: &[u8]) -> Result<Response<Body>, Refusal> {
    match head.wish.plain {
        Some(writing) => Ok(reply::document(200, document, &head.wish, writing)),
        None => Err(Unacceptable::Transform.status(EndpointKind::Object).into()),
    }
}

/// The response for a resource or version that is not served: a `Status` in built-in groups, plain
/// text in others.
fn unknown(registry: &Registry, group: &str) -> Refusal {
    match discovery::is_built_in(registry, group) {
        true => Refusal::Status(Status::unknown_resource()),
        false => PAGE_NOT_FOUND,
    }
}

async fn resource(
    shared: &Arc<ServerShared>,
    registry: &Registry,
    head: &Head,
    (path, user): (&ResourcePath, &User),
    body: Bytes,
) -> Result<Answer, Refusal> {
    let kind = find(registry, path)?;
    let verb = verb(&kind, head, path)?;
    let place = match verb {
        Verb::List | Verb::Watch => EndpointKind::Collection,
        _ => EndpointKind::Object,
    };
    let (wish, form) = match kind.is_custom() {
        true => Negotiated::read(&head.headers, &head.query, Served::Custom),
        false => (head.wish, head.form),
    };
    let form = form.map_err(|unacceptable| unacceptable.status(place))?;
    let stored = registry.stored(&kind.storage).unwrap_or_else(|| kind.clone());
    check_table(form, &head.query)?;
    let conversions = Conversions::of(&kind, &shared.webhooks);
    let view = View::new(kind, stored, form, shared.cluster.clock).encoded(wish.writing.encoding);
    let view = view.converting(conversions);
    let namespace = path.namespace.as_deref();
    let cluster = &shared.cluster;
    match verb {
        Verb::Get if path.subresource.as_deref() == Some(Part::Scale.as_str()) => {
            let key = Key::new(namespace, path.name.as_deref().unwrap_or_default());
            let object = get::get(cluster, &view.kind, &key, head.query.text("resourceVersion"), None).await?;
            view.foresee([&object]);
            view.catch_up(&cluster.rng).await.map_err(Unconverted::into_read_error)?;
            let shown = scale::show(&view.kind, &view.value(&object))?;
            Ok(Reply::ok(shown).respond(&view, &wish).into())
        }
        Verb::Get => {
            let key = Key::new(namespace, path.name.as_deref().unwrap_or_default());
            let object = get::get(cluster, &view.kind, &key, head.query.text("resourceVersion"), None).await?;
            if matches!(form, Form::MetadataList(_)) {
                return Err(match view.kind.is_custom() {
                    true => Status::internal("content is not a list").into(),
                    false => wrong_form("PartialObjectMetadataList", "not a list", &view.kind).into(),
                });
            }
            view.foresee([&object]);
            view.catch_up(&cluster.rng).await.map_err(Unconverted::into_read_error)?;
            Ok(deprecated(Reply::ok(Content::Object(object)), &view.kind).respond(&view, &wish).into())
        }
        Verb::List => {
            let options = ListOptions::parse(&head.query, ListVerb::List)?;
            let within = request_timeout(head)?;
            cluster.custom_tables.admit_list(&view.kind.storage, &options)?;
            let listing = loop {
                let listing = list::list(cluster, &view, namespace, &options, within).await?;
                // Selectors read objects, too.
                if !view.catch_up(&cluster.rng).await.map_err(|why| why.into_list_error(&view.kind))? {
                    break listing;
                }
            };
            view.foresee(&listing.objects);
            view.catch_up(&cluster.rng).await.map_err(|why| why.into_list_error(&view.kind))?;
            if matches!(form, Form::Metadata(_)) {
                return Err(wrong_form("PartialObjectMetadata", "a list", &view.kind).into());
            }
            if view.encoding == Encoding::Protobuf {
                listing.prepare(&view).await;
            }
            Ok(deprecated(Reply::ok(Content::List(listing)), &view.kind).respond(&view, &wish).into())
        }
        Verb::Watch => watch(shared, head, path, view).await,
        Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
            if verb == Verb::DeleteCollection && matches!(form, Form::Metadata(_)) {
                return Err(wrong_form("PartialObjectMetadata", "a list", &view.kind).into());
            }
            let place = (path.subresource.as_deref(), namespace);
            let gate = Gate::new(cluster, registry, &view.kind, place, (user, &shared.webhooks));
            let base = Write {
                cluster,
                view: &view,
                namespace,
                options: WriteOptions::default(),
                authorship: Authorship::Manager(manager(head)),
                gate: gate.as_ref(),
                user: Some(user),
            };
            let mut reply = loop {
                let reply = change(registry, (verb, path), head, base, &body).await;
                let converted = view.catch_up(&cluster.rng).await.map_err(|why| match verb {
                    Verb::Delete | Verb::DeleteCollection => why.into_read_error(),
                    _ => why.into_status(),
                })?;
                match (&reply, &gate) {
                    _ if converted => gate.iter().for_each(Gate::forget_attempt),
                    (Err(_), Some(gate)) if gate.answer(cluster).await => {}
                    _ => break reply?,
                }
            };
            let objects = match &reply.content {
                Content::Object(object) => std::slice::from_ref(object),
                Content::List(listing) => &listing.objects,
                _ => &[],
            };
            view.foresee(objects);
            view.catch_up(&cluster.rng).await.map_err(Unconverted::into_status)?;
            reply.warnings.extend(gate.iter().flat_map(Gate::warnings));
            Ok(deprecated(reply, &view.kind).respond(&view, &wish).into())
        }
    }
}

/// Adds the warning of a deprecated kind.
fn deprecated(mut reply: Reply, kind: &Kind) -> Reply {
    reply.warnings.extend(kind.behaviour.deprecation.map(str::to_owned));
    reply
}

/// The maximum length of a field manager that is derived from the user agent.
const MAX_MANAGER_BYTES: usize = 128;

/// The field manager of a request: its parameter `fieldManager`, or else the product name of its
/// user agent.
fn manager(head: &Head) -> &str {
    match head.query.text("fieldManager") {
        "" => {
            let agent = head.headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
            let name = agent.split('/').next().unwrap_or_default();
            let end = (0..=name.len().min(MAX_MANAGER_BYTES)).rev().find(|end| name.is_char_boundary(*end));
            match &name[..end.unwrap_or(0)] {
                "" => "unknown",
                name => name,
            }
        }
        manager => manager,
    }
}

/// How an apply handles fields that other managers own.
fn conflicts(head: &Head) -> Conflicts {
    if head.query.flag("force") { Conflicts::Forced } else { Conflicts::Refused }
}

/// Handles a request that writes. Its options are not yet in `base`.
async fn change(
    registry: &Registry,
    (verb, path): (Verb, &ResourcePath),
    head: &Head,
    base: Write<'_>,
    body: &[u8],
) -> Result<Reply, Status> {
    let kind = &base.view.kind;
    let name = path.name.as_deref().unwrap_or_default();
    let part = path.subresource.as_deref().and_then(Part::parse);
    let body_kind = part.and_then(Part::body).unwrap_or(kind);
    let with = |of: OptionsOf| WriteOptions::parse(&head.query, of).map(|options| Write { options, ..base });
    match verb {
        Verb::Create | Verb::Update => {
            let body = json_body(&head.headers, body, Binary::of(body_kind))?;
            let write = with(if verb == Verb::Create { OptionsOf::Create } else { OptionsOf::Update })?;
            if part == Some(Part::Scale) {
                return scale::update(&write, name, &body);
            }
            let decoded = decode::decode(registry, body_kind, &body, write.options.field_validation)?;
            match (verb, part) {
                (Verb::Create, Some(part)) => subresources::create(&write, part, name, decoded),
                (Verb::Create, None) => create::create(&write, decoded),
                _ => update::update(&write, name, decoded, part),
            }
        }
        Verb::Patch => {
            let patch = Patch::parse(kind, &head.headers, body)?;
            match (&patch, part) {
                (Patch::Apply(config), Some(Part::Scale)) => {
                    scale::apply(&with(OptionsOf::Apply)?, name, config, conflicts(head))
                }
                (Patch::Apply(config), part) => {
                    apply::apply(&with(OptionsOf::Apply)?, name, config, part, conflicts(head))
                }
                (patch, Some(Part::Scale)) => scale::patch(&with(OptionsOf::Patch)?, name, patch),
                (patch, part) => patch::patch(&with(OptionsOf::Patch)?, name, patch, part),
            }
        }
        _ => {
            let body = match body.is_empty() {
                true => body.into(),
                false => json_body(&head.headers, body, Binary::Options)?,
            };
            let options = DeleteOptions::parse(&head.query, &body)?;
            let dry_run = WriteOptions { dry_run: options.dry_run, origin: Origin::Client, ..WriteOptions::default() };
            let write = Write { options: dry_run, authorship: Authorship::Untracked, ..base };
            match verb {
                Verb::Delete => delete::delete(&write, name, &options),
                _ => {
                    let list_options = ListOptions::parse(&head.query, ListVerb::List)?;
                    delete_collection::delete_collection(&write, &list_options, &options).await
                }
            }
        }
    }
}

async fn watch(shared: &Arc<ServerShared>, head: &Head, path: &ResourcePath, view: View) -> Result<Answer, Refusal> {
    let mut options = ListOptions::parse(&head.query, ListVerb::Watch)?;
    if let Some(name) = &path.name {
        fix_name(&mut options, name)?;
    }
    shared.cluster.custom_tables.admit_watch(&view.kind.storage)?;
    let compressed = head.wish.gzip && is_streaming_list(&options);
    let content_type = match view.encoding {
        Encoding::Json => "application/json",
        Encoding::Protobuf => protobuf::STREAM,
    };
    let watch = Watch::open(shared.cluster.clone(), view, path.namespace.as_deref(), &options).await?;
    let open = shared.log.open(OpenWatch {
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        since: Instant::now(),
    });
    let stream = StreamBody::new(watch.into_stream(shared.lifecycle.lifetime()), open);
    let mut response = reply::response(200, content_type);
    *response.body_mut() = Body::stream(stream);
    let compression = if compressed { Compression::PerFlush } else { Compression::AsIs };
    if compressed {
        reply::compressed(&mut response);
    }
    Ok(Answer { response, compression })
}

/// The deprecated watch path of a single object: the name acts as a field selector, which the query
/// may repeat but not contradict.
fn fix_name(options: &mut ListOptions, name: &str) -> Result<(), Status> {
    if options.field_selector.is_empty() {
        options.field_selector = format!("metadata.name={name}");
        return Ok(());
    }
    let given = crate::storage::selector::FieldSelector::parse(&options.field_selector)?;
    match given.fixed("metadata.name") {
        Some(given) if given == name => Ok(()),
        _ => Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name")),
    }
}

/// The kind of a path, if its scope and its subresources match the path.
fn find(registry: &Registry, path: &ResourcePath) -> Result<Arc<Kind>, Refusal> {
    let unknown = || unknown(registry, &path.group);
    let kind = registry.find(&path.group, &path.version, &path.resource).ok_or_else(unknown)?;
    let scope_matches = match kind.scope {
        ResourceScope::Cluster => path.namespace.is_none(),
        ResourceScope::Namespaced => path.namespace.is_some() || path.name.is_none(),
    };
    let part_exists = match path.subresource.as_deref() {
        None => true,
        Some(part) => Part::parse(part).is_some_and(|part| kind.subresource(part).is_some()),
    };
    match (scope_matches, part_exists, path.name.as_deref()) {
        (true, true, _) => Ok(kind),
        // For a missing subresource of a custom resource the real server reports that the object is
        // not found.
        (true, false, Some(name)) if kind.is_custom() => Err(Status::not_found(&kind.group, &kind.plural, name).into()),
        _ => Err(unknown()),
    }
}

/// The verb of a request, if the kind supports it on this path.
fn verb(kind: &Kind, head: &Head, path: &ResourcePath) -> Result<Verb, Refusal> {
    let refused = || Refusal::Status(Status::method_not_allowed());
    let custom = kind.is_custom();
    if matches!(head.method, Method::HEAD | Method::OPTIONS) && !custom {
        return Err(refused());
    }
    let verb = head.verb().ok_or_else(refused)?;
    match (verb, &path.name) {
        (Verb::Create, Some(_)) if path.subresource.is_none() => return Err(refused()),
        (Verb::Update, None) if custom => return Err(Status::bad_request("name must be provided").into()),
        (Verb::Update | Verb::Patch, None) => return Err(refused()),
        (Verb::Create, None) if kind.scope == ResourceScope::Namespaced && path.namespace.is_none() => {
            return Err(if custom { PAGE_NOT_FOUND } else { refused() });
        }
        (Verb::DeleteCollection, None) if kind.scope == ResourceScope::Namespaced && path.namespace.is_none() => {
            return Err(refused());
        }
        _ => {}
    }
    let served = match path.subresource.as_deref().and_then(Part::parse) {
        // Discovery does not list the write verbs of a kind whose definition is being deleted, but
        // such requests still get here.
        None => custom || kind.serves(verb),
        Some(part) => kind.subresource(part).is_some_and(|sub| sub.verbs.contains(&verb)),
    };
    if served { Ok(verb) } else { Err(refused()) }
}

/// The client's timeout for the request.
fn request_timeout(head: &Head) -> Result<Option<std::time::Duration>, Status> {
    match head.query.text("timeout") {
        "" => Ok(None),
        text => parse_duration(text).map(Some).ok_or_else(|| {
            let why = format!("invalid timeout specified in the request URL - time: invalid duration {text:?}");
            Status::bad_request(why)
        }),
    }
}

/// 406: list metadata was requested for an object, or object metadata for a list.
fn wrong_form(wanted: &str, is: &str, kind: &Kind) -> Status {
    let go_type = match is {
        _ if kind.is_custom() => "unstructured.UnstructuredList".to_owned(),
        is => {
            let package = if kind.group.is_empty() { "core" } else { kind.group.split('.').next().unwrap_or_default() };
            format!("{package}.{}", if is == "a list" { &kind.list_kind } else { &kind.kind })
        }
    };
    let message = format!("you requested {wanted}, but the requested object is {is} (*{go_type})");
    Status::new(406, "NotAcceptable", message)
}
