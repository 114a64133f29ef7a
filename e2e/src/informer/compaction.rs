//! Watches that cannot continue, because the server has compacted the changes they missed.

use kube_informer::client::ServerError;
use serde_json::json;

use super::deadline::eventually;
use super::playground::{Playground, Query, builtin, config_maps};
use super::watched::{Plain, Watched};
use crate::Error;
use crate::control_plane::ControlPlane;
use crate::link::{Link, Mode};

pub(super) async fn run(playground: &Playground, control_plane: &ControlPlane) -> Result<String, Error> {
    let namespace = playground.namespace("compaction").await?;
    let (link, config) = Link::between(&playground.target.config).await?;
    let client = kube_informer::client(config)?;
    let query = Query { namespaces: Some(vec![namespace.clone()]), ..Query::default() };
    // The server has no watch cache for events: it reads from etcd, which is compacted.
    let events = builtin("", "v1", "Event", "events");
    let forgotten = Watched::start("across a compaction", client.clone(), &events, query.clone(), &Plain)?;
    let remembered = Watched::start("across a compaction", client, &config_maps(), query, &Plain)?;
    let path = |plural: &str| format!("/api/v1/namespaces/{namespace}/{plural}");
    let write = async |name: &str| {
        let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": namespace}});
        playground.ask("POST", &path("events"), &event).await?;
        playground.ask("POST", &path("configmaps"), &json!({"metadata": {"name": name}})).await
    };
    for name in ["stays", "goes"] {
        write(name).await?;
    }
    for one in [&forgotten, &remembered] {
        one.synced().await?;
        one.agrees(playground).await?;
    }

    link.set(Mode::Slam);
    link.cut();
    eventually("the watches are cut", async || {
        let cut = forgotten.errors.count() > 0 && remembered.errors.count() > 0;
        if cut { Ok(()) } else { Err("nothing has failed yet".to_owned()) }
    })
    .await?;
    for name in ["comes", "comes-too"] {
        write(name).await?;
    }
    for plural in ["events", "configmaps"] {
        playground.ask("DELETE", &format!("{}/goes", path(plural)), &serde_json::Value::Null).await?;
    }
    let revision = control_plane.compact().await?;
    link.heal();
    let objects = forgotten.agrees(playground).await? + remembered.agrees(playground).await?;
    if !forgotten.errors.any(ServerError::is_expired) {
        return Err("the server remembered what it was made to forget".into());
    }
    for one in [forgotten, remembered] {
        one.shutdown().await?;
    }
    Ok(format!("compacted at revision {revision}: 410, listed again, a missed deletion delivered; {objects} objects"))
}
