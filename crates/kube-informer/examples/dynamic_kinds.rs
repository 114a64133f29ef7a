//! Reads a kind that is known only at run time, looked up by name: as a dynamic object, as metadata
//! only, and as a struct with the two fields that are needed. The kind is not even defined when the
//! program starts.
//!
//! ```text
//! cargo run -p kube-informer --example dynamic_kinds                 # an API server in the process
//! cargo run -p kube-informer --example dynamic_kinds -- --kubeconfig # a real cluster: its custom resource definitions
//! ```

mod support;

use std::error::Error;

use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube_embedded::Server;
use kube_informer::informer::WhenRefused;
use kube_informer::{Event, Factory, Informer, MetadataOnly, ObjectKey};
use serde::Deserialize;
use serde_json::json;
use support::Cluster;

/// The fields that are needed of a widget. Serde skips the rest.
#[derive(Deserialize)]
struct Widget {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    colour: String,
    #[serde(default)]
    size: u32,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let cluster = Cluster::from_args([]).await?;
    // Waits for kinds that are not defined yet.
    let factory = Factory::builder(cluster.client()).defaults(|all| all.when_refused(WhenRefused::Wait)).build()?;
    factory.start();

    let Some(server) = cluster.server() else { return definitions(&factory).await };
    let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let early: Informer<Widget> = factory.informer_for(widgets);
    println!("asked for {}: {}", early.resource().plural, if early.is_synced() { "there" } else { "not there yet" });
    if let Err(unknown) = factory.informer_named("widget").await {
        println!("{unknown}");
    }
    define(server)?;
    early.synced().await?;
    early.wait_until(ObjectKey::namespaced("default", "right"), |widget| widget.is_some()).await?;
    println!("now it is, with {} objects", early.lister().len());

    // Looks up the short name. Both informers share one cache; the metadata has its own.
    let dynamic = factory.informer_named("wd").await?;
    let metadata: Informer<MetadataOnly<DynamicObject>> = factory.informer_for(dynamic.resource().clone());
    metadata.synced().await?;
    for widget in early.lister().sorted() {
        let Spec { colour, size } = &widget.get()?.spec;
        println!("{} is {colour}, size {size}", widget.key());
    }
    for widget in dynamic.lister().sorted() {
        println!("{} has these fields: {}", widget.name(), fields(&widget.get()?.data));
    }
    for widget in metadata.lister().sorted() {
        println!("{} has tier {:?}, and nothing else was sent", widget.name(), widget.label("tier").unwrap_or("none"));
    }

    // Events are typed as well.
    let mut events = early.subscribe();
    server.objects("example.com/v1", "Widget")?.patch("left", &json!({"spec": {"colour": "green"}}))?;
    while let Some(event) = events.next().await {
        if let Event::Updated { old, new, .. } = event {
            println!("{}: {} -> {}", new.name(), old.get()?.spec.colour, new.get()?.spec.colour);
            break;
        }
    }
    factory.shutdown().await;
    Ok(())
}

/// Counts the custom resources of a real cluster, with one metadata-only informer per kind.
async fn definitions(factory: &Factory) -> Result<(), Box<dyn Error>> {
    let definitions = factory.informer_named("crd").await?;
    definitions.synced().await?;
    for definition in definitions.lister().sorted() {
        let resource = factory.resource_named(definition.name()).await?;
        let objects: Informer<MetadataOnly<DynamicObject>> = factory.informer_for(resource);
        objects.synced().await?;
        println!("{:>6} {}", objects.lister().len(), definition.name());
    }
    factory.shutdown().await;
    Ok(())
}

fn fields(data: &serde_json::Value) -> String {
    let names = data["spec"].as_object().into_iter().flat_map(|spec| spec.keys());
    names.map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Defines the kind and creates two objects of it.
fn define(server: &Server) -> Result<(), Box<dyn Error>> {
    server.create(&json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    }))?;
    for (name, colour, tier) in [("left", "red", "gold"), ("right", "blue", "tin")] {
        server.create(&json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": name, "namespace": "default", "labels": {"tier": tier}},
            "spec": {"colour": colour, "size": 7, "note": "not for us"},
        }))?;
    }
    Ok(())
}
