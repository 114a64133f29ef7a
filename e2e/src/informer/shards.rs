//! Members of a sharded informer: together they hold everything, also while ranges move.

use std::collections::BTreeMap;
use std::future::Future;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::{ApiResource, DynamicObject};
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::shard::{HashRanges, Shard, ShardKey, ShardSupport};
use kube_informer::store::EventOrder;
use kube_informer::{Informer, InformerBuilder, MetadataOnly, Object, Uid, Wire};
use serde_json::{Value, json};

use super::deadline::{eventually, in_time};
use super::playground::{Playground, Query, config_maps};
use crate::Error;

const OBJECTS: usize = 60;

/// How the members request objects.
#[derive(Debug, Clone, Copy)]
struct Form {
    name: &'static str,
    streaming: Streaming,
    page_size: Option<u32>,
    wire: Wire,
}

const FORMS: [Form; 3] = [
    Form { name: "streamed as JSON", streaming: Streaming::Preferred, page_size: None, wire: Wire::Json },
    Form { name: "paged as JSON", streaming: Streaming::Never, page_size: Some(7), wire: Wire::Json },
    Form { name: "streamed as protobuf", streaming: Streaming::Preferred, page_size: None, wire: Wire::Protobuf },
];

/// A member: its informer and what its handler was told.
struct Member<K: Object> {
    informer: Informer<K>,
    shard: Shard,
    order: std::sync::Arc<std::sync::Mutex<(EventOrder, Option<String>)>>,
}

/// Runs members of several kinds in several forms. `expected` is what the server is known to do.
pub(super) async fn run(playground: &Playground, expected: ShardSupport) -> Result<String, Error> {
    let namespace = playground.namespace("shards").await?;
    let widgets = playground.define("shards").await?;
    for nth in 0..OBJECTS {
        create(playground, &config_maps(), &namespace, nth).await?;
        create(playground, &widgets, &namespace, nth).await?;
    }
    let mut moves = 0;
    for form in FORMS {
        let trial = Trial { playground, namespace: &namespace, expected, form };
        moves += trial.run::<ConfigMap>(&config_maps()).await?;
        moves += trial.run::<MetadataOnly>(&config_maps()).await?;
        moves += trial.run::<DynamicObject>(&widgets).await?;
    }
    let forms = FORMS.len() * 3;
    Ok(format!("{forms} sets of 3 members hold exactly all of {OBJECTS} objects, {moves} moves, selector {expected:?}"))
}

/// One form of one kind.
struct Trial<'t> {
    playground: &'t Playground,
    namespace: &'t str,
    expected: ShardSupport,
    form: Form,
}

impl Trial<'_> {
    async fn run<K: Object>(&self, resource: &ApiResource) -> Result<usize, Error> {
        let what = format!("{} {}", resource.plural, self.form.name);
        let mut members = Vec::new();
        for part in HashRanges::parts(3) {
            members.push(self.member::<K>(resource, Shard::new(ShardKey::Uid, part)));
        }
        for member in &members {
            in_time(&what, member.informer.synced()).await??;
            let mut health = member.informer.watch_health();
            let known = in_time(
                &format!("{what}: whether the server obeys"),
                health.wait_for(|health| health.shard.is_some_and(|support| support != ShardSupport::Unknown)),
            )
            .await??
            .shard;
            if known != Some(self.expected) {
                return Err(format!("{what}: the selector is {known:?}, not {:?}", self.expected).into());
            }
        }
        self.agree(&what, resource, &members).await?;
        // The first member gives all of its ranges to the second one, and gets those of the third.
        let [first, second, third] = HashRanges::parts(3).try_into().map_err(|_| "three parts")?;
        for (nth, ranges) in [(0, HashRanges::NONE), (1, second.union(&first)), (2, HashRanges::NONE), (0, third)] {
            let member = members.get_mut(nth).ok_or("a member")?;
            member.shard = Shard::new(ShardKey::Uid, ranges);
            in_time(&format!("{what}: a move"), member.informer.set_shard(member.shard.clone())).await??;
            update(self.playground, resource, self.namespace, nth).await?;
        }
        self.agree(&what, resource, &members).await?;
        for member in members {
            member.informer.shutdown().await;
        }
        Ok(4)
    }

    fn member<K: Object>(&self, resource: &ApiResource, shard: Shard) -> Member<K> {
        let Form { streaming, page_size, wire, .. } = self.form;
        let settings = ReflectorSettings { streaming, page_size, ..ReflectorSettings::default() };
        let builder: InformerBuilder<K> = Informer::builder_for(self.playground.client.clone(), resource.clone());
        let informer = builder.namespace(self.namespace).wire(wire).reflector(settings).shard(shard.clone()).start();
        let mut order = EventOrder::default();
        order.allow_unchanged_returns();
        let order = std::sync::Arc::new(std::sync::Mutex::new((order, None)));
        let seen = std::sync::Arc::clone(&order);
        let handler = informer.on_event(move |event| {
            let Ok(mut seen) = seen.lock() else { return };
            if let Err(error) = seen.0.check(&event) {
                seen.1.get_or_insert(error);
            }
        });
        handler.detach();
        Member { informer, shard, order }
    }

    /// Waits until each member has the objects of its shard, in its cache and for its handler.
    async fn agree<K: Object>(&self, what: &str, resource: &ApiResource, members: &[Member<K>]) -> Result<(), Error> {
        let query = Query { namespaces: Some(vec![self.namespace.to_owned()]), ..Query::default() };
        eventually(what, async || {
            let objects = self.playground.list(resource, &query).await?;
            let mut held = 0;
            for Member { informer, shard, order } in members {
                let expected: BTreeMap<String, String> = objects
                    .iter()
                    .filter(|object| shard.contains_uid(&Uid::new(text(object, "uid"))))
                    .map(|object| (text(object, "name"), text(object, "resourceVersion")))
                    .collect();
                let cached: BTreeMap<String, String> = informer
                    .lister()
                    .list()
                    .iter()
                    .map(|object| (object.name().to_owned(), object.version().to_string()))
                    .collect();
                let seen = order.lock().map_err(|error| error.to_string())?;
                if let Some(error) = &seen.1 {
                    return Err(error.clone());
                }
                let told: BTreeMap<String, String> =
                    seen.0.objects().map(|(key, version)| (key.name().to_owned(), version.to_string())).collect();
                if cached != expected || told != expected {
                    let counts = (expected.len(), cached.len(), told.len());
                    return Err(format!("expected, cached and told {counts:?} objects of {shard}"));
                }
                held += cached.len();
            }
            if held == objects.len() { Ok(()) } else { Err(format!("{held} of {} are held", objects.len())) }
        })
        .await
    }
}

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or_default().to_owned()
}

fn create<'a>(
    playground: &'a Playground,
    resource: &ApiResource,
    namespace: &str,
    nth: usize,
) -> impl Future<Output = Result<Value, Error>> + use<'a> {
    let path = path_of(resource, namespace);
    let body = json!({
        "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": format!("a-{nth}")},
    });
    async move { playground.ask("POST", &path, &body).await }
}

async fn update(playground: &Playground, resource: &ApiResource, namespace: &str, nth: usize) -> Result<(), Error> {
    for object in (nth..OBJECTS).step_by(4) {
        let path = format!("{}/a-{object}", path_of(resource, namespace));
        let label = format!("{}-{nth}", std::process::id());
        playground.ask("PATCH", &path, &json!({"metadata": {"labels": {"moved": label}}})).await?;
    }
    Ok(())
}

fn path_of(resource: &ApiResource, namespace: &str) -> String {
    <DynamicObject as kube::Resource>::url_path(resource, Some(namespace))
}
