//! Every kind that can be listed and watched, in every served version.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube::core::ApiResource;
use kube::discovery::{Discovery, Scope, verbs};
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::{InformerBuilder, Object, Wire};
use serde_json::{Map, Value, json};

use super::playground::{Content, Playground, Query};
use super::watched::{Plain, Shape, Watched};
use crate::Error;

/// Number of concurrent kinds. More would only queue.
const SIDE_BY_SIDE: usize = 12;

/// The required fields of an object of each kind in addition to a name, by kind and group.
const EXAMPLES: &str = include_str!("examples.json");

/// Whether objects may be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trial {
    /// They may: the cluster is not shared.
    WithExamples,
    /// Only existing objects are read.
    LookOnly,
}

/// Lists in pages of two.
struct InPages;

impl Shape for InPages {
    fn shape<K: Object>(&self, builder: InformerBuilder<K>) -> InformerBuilder<K> {
        builder.reflector(ReflectorSettings {
            streaming: Streaming::Never,
            page_size: Some(2),
            ..ReflectorSettings::default()
        })
    }
}

/// Requests protobuf, which only built-in kinds support; for kinds newer than the library's table
/// the server returns JSON.
struct InProtobuf;

impl Shape for InProtobuf {
    fn shape<K: Object>(&self, builder: InformerBuilder<K>) -> InformerBuilder<K> {
        builder.wire(Wire::Protobuf)
    }
}

/// Requests protobuf in pages of two.
struct InProtobufPages;

impl Shape for InProtobufPages {
    fn shape<K: Object>(&self, builder: InformerBuilder<K>) -> InformerBuilder<K> {
        InPages.shape(InProtobuf.shape(builder))
    }
}

pub(super) async fn run(playground: &Playground, trial: Trial) -> Result<String, Error> {
    let namespace = playground.namespace("kinds").await?;
    let widgets = playground.define("kinds").await?;
    let discovery = Discovery::new(playground.client.clone()).run().await?;
    let examples: Map<String, Value> = serde_json::from_str(EXAMPLES)?;
    let (mut watchable, mut unwatched) = (Vec::new(), Vec::new());
    for group in discovery.groups() {
        // Concurrent steps create and delete definitions.
        let others = group.name().ends_with(".example.com") && group.name() != widgets.group;
        for version in group.versions().filter(|_| !others) {
            for (resource, capabilities) in group.versioned_resources(version) {
                if !capabilities.supports_operation(verbs::LIST) {
                    continue;
                }
                if capabilities.supports_operation(verbs::WATCH) {
                    let place = (capabilities.scope == Scope::Namespaced).then_some(namespace.as_str());
                    watchable.push((resource, place));
                } else {
                    unwatched.push(resource.plural);
                }
            }
        }
    }
    let kinds = watchable.len();
    let tried: Vec<Tried> = stream::iter(watchable)
        .map(async |(resource, place)| try_kind(playground, &resource, place, trial, &examples).await)
        .buffer_unordered(SIDE_BY_SIDE)
        .try_collect()
        .await?;
    let with_objects = tried.iter().filter(|kind| kind.objects > 0).count();
    let with_changes = tried.iter().filter(|kind| kind.changed).count();
    let streamed = tried.iter().filter(|kind| kind.streamed).count();
    let objects: usize = tried.iter().map(|kind| kind.objects).sum();
    Ok(format!(
        "{kinds} kinds, each as a stream (which the server did for {streamed}), in pages and as metadata, and all of it in protobuf; \
         {with_objects} of them with objects ({objects}), {with_changes} with a live create, change and delete; not watchable: {}",
        unwatched.join(", ")
    ))
}

struct Tried {
    objects: usize,
    changed: bool,
    /// Whether the cache was filled only by a streaming list.
    streamed: bool,
}

async fn try_kind(
    playground: &Playground,
    resource: &ApiResource,
    namespace: Option<&str>,
    trial: Trial,
    examples: &Map<String, Value>,
) -> Result<Tried, Error> {
    let all = Query::default();
    let metadata = Query { content: Content::Metadata, ..Query::default() };
    let name = |way: &str| format!("of {}, {way},", resource.api_version);
    let client = || playground.client.clone();
    let watched = [
        Watched::start(name("streamed"), client(), resource, all.clone(), &Plain)?,
        Watched::start(name("in pages"), client(), resource, all.clone(), &InPages)?,
        Watched::start(name("in protobuf"), client(), resource, all.clone(), &InProtobuf)?,
        Watched::start(name("in pages of protobuf"), client(), resource, all, &InProtobufPages)?,
        Watched::start(name("as metadata"), client(), resource, metadata.clone(), &Plain)?,
        Watched::start(name("as metadata in protobuf"), client(), resource, metadata, &InProtobuf)?,
    ];
    for one in &watched {
        one.synced().await?;
    }
    let mut objects = agree(playground, &watched).await?;
    let mut changed = false;
    if trial == Trial::WithExamples {
        let example = Example::new(resource, namespace, examples);
        if example.make(playground).await {
            objects = agree(playground, &watched).await?;
            example.change(playground).await?;
            agree(playground, &watched).await?;
            example.delete(playground).await?;
            agree(playground, &watched).await?;
            changed = true;
        }
    }
    let [streamed, others @ ..] = watched;
    let done = streamed.shutdown().await?;
    for one in others {
        one.shutdown().await?;
    }
    Ok(Tried { objects, changed, streamed: done.streaming_lists > 0 && done.lists == 0 })
}

async fn agree(playground: &Playground, watched: &[Watched]) -> Result<usize, Error> {
    let mut objects = 0;
    for one in watched {
        objects = one.agrees(playground).await?;
    }
    Ok(objects)
}

/// An object of a kind, to be created, changed and deleted.
struct Example {
    collection: String,
    body: Value,
}

impl Example {
    fn new(resource: &ApiResource, namespace: Option<&str>, examples: &Map<String, Value>) -> Self {
        let collection = <kube::core::DynamicObject as kube::Resource>::url_path(resource, namespace);
        // The same object may be served in several groups and versions, so each has its own
        // example.
        let group = resource.group.split('.').next().unwrap_or_default();
        let name = format!("example-{group}-{}", resource.version).replace("--", "-");
        let known =
            examples.get(&format!("{}.{}", resource.kind, resource.group)).cloned().unwrap_or_else(|| json!({}));
        let mut body = replaced(known, namespace.unwrap_or_default());
        body["apiVersion"] = json!(resource.api_version);
        body["kind"] = json!(resource.kind);
        if body["metadata"]["name"].is_null() {
            body["metadata"]["name"] = json!(name);
        }
        Self { collection, body }
    }

    /// Creates the object. Returns whether the server accepts it: some kinds require more than an
    /// example can provide.
    async fn make(&self, playground: &Playground) -> bool {
        playground.ask("POST", &self.collection, &self.body).await.is_ok()
    }

    async fn change(&self, playground: &Playground) -> Result<(), Error> {
        let change = json!({"metadata": {"labels": {super::watched::TIER: "gold"}}});
        playground.ask("PATCH", &self.path(), &change).await?;
        Ok(())
    }

    async fn delete(&self, playground: &Playground) -> Result<(), Error> {
        playground.ask("DELETE", &self.path(), &Value::Null).await?;
        Ok(())
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.body["metadata"]["name"].as_str().unwrap_or_default())
    }
}

/// Replaces the namespace in an example by that of this run.
fn replaced(value: Value, namespace: &str) -> Value {
    match value {
        Value::String(text) if text == "NAMESPACE" => json!(namespace),
        Value::Array(values) => values.into_iter().map(|value| replaced(value, namespace)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, replaced(value, namespace))).collect::<Map<_, _>>().into()
        }
        other => other,
    }
}
