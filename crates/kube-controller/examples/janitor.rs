//! Deletes what its owner left: objects of any kind whose owners are all gone.
//!
//! It finds all kinds that the server has, watches the metadata of their objects, and has a
//! controller for each. A cluster does the same in kube-controller-manager; the server in the
//! process does it on request only.
//!
//! ```text
//! cargo run -p kube-controller --example janitor                  # an API server in the process
//! cargo run -p kube-controller --example janitor -- --kubeconfig  # a real cluster
//! ```

mod support;

use std::sync::Arc;

use futures_util::stream;
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use kube_controller::{Context, Controller, ControllerBuilder, Error, Manager, Outcome, Watch, Watched};
use kube_embedded::Server;
use kube_informer::client::{ResourceScope, Served};
use kube_informer::object::Owner;
use kube_informer::{Factory, Index, MetadataOnly, Obj, ObjectKey, Uid};
use serde_json::{Value, json};
pub(crate) use support::{Cluster, Result};
use tokio::sync::mpsc;

/// What is known of all objects.
struct Janitor {
    kinds: Vec<KindCache>,
    client: Client,
}

/// The cache of a kind.
struct KindCache {
    served: Served,
    objects: Watched<MetadataOnly>,
    by_owner: Index<MetadataOnly, Uid>,
    /// Sends the keys of objects whose owner is gone.
    left: mpsc::Sender<ObjectKey>,
}

impl Janitor {
    async fn reconcile(
        self: Arc<Self>,
        ctx: Context,
        kind: ApiResource,
        object: Obj<MetadataOnly>,
    ) -> Result<Outcome, Error> {
        if object.deletion_timestamp().is_some() || object.owners().next().is_none() {
            return Ok(Outcome::Done);
        }
        for owner in object.owners() {
            if self.exists(&owner, object.namespace().unwrap_or_default()).await? {
                return Ok(Outcome::Done);
            }
        }
        // Refused if the object, and so perhaps its owners, has changed.
        ctx.resource(&kind).delete_unchanged(&object).await?;
        println!("deleted {} {}, which its owner left", kind.kind, object.key());
        Ok(Outcome::Done)
    }

    async fn exists(&self, owner: &Owner<'_>, namespace: &str) -> Result<bool, kube::Error> {
        let group = owner.api_version().split_once('/').map_or("", |(group, _)| group);
        let is_kind = |kind: &&KindCache| (kind.served.group(), kind.served.kind()) == (group, owner.kind());
        // Of a kind that is not served now, nothing is known.
        let Some(kind) = self.kinds.iter().find(is_kind) else { return Ok(true) };
        let is_namespaced = kind.served.scope() == ResourceScope::Namespaced;
        let key = ObjectKey::namespaced(if is_namespaced { namespace } else { "" }, owner.name());
        if kind.objects.get(&key).is_some_and(|found| found.uid() == Some(&owner.uid())) {
            return Ok(true);
        }
        // The cache of the owner's kind may be behind that of the object's.
        let (client, resource) = (self.client.clone(), kind.served.resource());
        let api: Api<DynamicObject> = if is_namespaced {
            Api::namespaced_with(client, namespace, &resource)
        } else {
            Api::all_with(client, &resource)
        };
        let found = api.get_metadata_opt(owner.name()).await?;
        Ok(found.is_some_and(|found| found.metadata.uid == Some(owner.uid().to_string())))
    }

    /// An object is gone: those that it owned are looked at.
    async fn leave(self: Arc<Self>, owner: Uid) -> Result<Outcome, Error> {
        for kind in &self.kinds {
            for object in kind.by_owner.get(&owner) {
                kind.left.send(object.key().clone()).await?;
            }
        }
        Ok(Outcome::Done)
    }
}

/// Declares a controller for each kind; all of them read all caches.
async fn controllers(factory: &Factory) -> Result<Vec<Controller>> {
    let resources = factory.resources().await?;
    let mut builders: Vec<ControllerBuilder<MetadataOnly>> = Vec::new();
    let mut kinds = Vec::new();
    for served in resources.preferred().filter(|served| served.is_watchable()) {
        let mut builder = Controller::builder_with(factory, Watch::<MetadataOnly>::resource(served));
        let by_owner = builder.index(|object| object.owners().map(|owner| owner.uid()).collect::<Vec<_>>());
        let (left, keys) = mpsc::channel(16);
        builder.workers(1).trigger(stream::unfold(keys, |mut keys| async { Some((keys.recv().await?, keys)) }));
        kinds.push(KindCache { served: served.clone(), objects: builder.own(), by_owner, left });
        builders.push(builder);
    }
    let janitor = Arc::new(Janitor { kinds, client: factory.client().clone() });
    let controllers = builders.into_iter().zip(&janitor.kinds).map(|(mut builder, kind)| {
        let leaving = Arc::clone(&janitor);
        builder.gone(move |_, last| {
            let janitor = Arc::clone(&leaving);
            async move {
                match last.uid() {
                    Some(uid) => janitor.leave(uid.clone()).await,
                    None => Ok(Outcome::Done),
                }
            }
        });
        let (janitor, kind) = (Arc::clone(&janitor), kind.served.resource());
        builder.reconcile(move |ctx, object| Arc::clone(&janitor).reconcile(ctx, kind.clone(), object))
    });
    Ok(controllers.collect())
}

pub(crate) async fn run(cluster: &Cluster) -> Result<()> {
    if let Cluster::Embedded(server) = cluster {
        // Left before the janitor comes.
        server.create(&map("old", Some(&json!({"metadata": {"name": "gone", "uid": "0-0"}}))))?;
    }
    let factory = Factory::new(cluster.client());
    let mut manager = Manager::builder(&factory);
    for controller in controllers(&factory).await? {
        manager = manager.controller(controller);
    }
    cluster.run(manager.build()?, demonstrate).await
}

/// Makes a chain of owners, and deletes its beginning.
async fn demonstrate(server: &Server) -> Result<()> {
    let maps = server.objects("v1", "ConfigMap")?;
    server.until(|_| maps.get("old").is_err()).await;
    let first = server.create(&map("first", None))?;
    let second = server.create(&map("second", Some(&first)))?;
    server.create(&map("third", Some(&second)))?;
    server.create(&map("other", None))?;
    maps.delete("first")?;
    server.until(|_| maps.len() == 1).await;
    println!("only {} is left", maps.list()[0]["metadata"]["name"]);
    Ok(())
}

/// A config map that another one owns.
fn map(name: &str, owner: Option<&Value>) -> Value {
    let reference = |owner: &Value| {
        let (name, uid) = (&owner["metadata"]["name"], &owner["metadata"]["uid"]);
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid})
    };
    let owners: Vec<Value> = owner.map(reference).into_iter().collect();
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", "ownerReferences": owners},
    })
}

#[tokio::main]
async fn main() -> Result<()> {
    run(&Cluster::from_args().await?).await
}
