//! A kind that is deleted while it is watched, and defined again.

use kube::api::{Api, DeleteParams};
use kube::core::DynamicObject;
use kube_informer::SyncError;
use kube_informer::client::ServerError;

use super::deadline::{eventually, in_time};
use super::playground::{Playground, Query, definitions};
use super::watched::{Plain, Watched};
use super::writer::Writer;
use crate::Error;

const SEED: u64 = 404;

pub(super) async fn run(playground: &Playground) -> Result<String, Error> {
    let namespaces = playground.namespaces("definitions", 2).await?;
    let widgets = playground.define("definitions").await?;
    let write = || Writer::new(playground.client.clone(), SEED, vec![widgets.clone()], namespaces.clone());
    let mut writer = write();
    writer.write(40).await;
    let start = |name: &str| Watched::start(name, playground.client.clone(), &widgets, Query::default(), &Plain);
    let watched = start("from the first")?;
    watched.synced().await?;
    let first = watched.agrees(playground).await?;

    let api: Api<DynamicObject> = Api::all_with(playground.client.clone(), &definitions());
    let name = format!("widgets.{}", widgets.group);
    api.delete(&name, &DeleteParams::default()).await?;
    watched.degraded("that the kind is unknown", ServerError::is_not_found).await?;
    eventually("the definition is gone", async || match api.get_opt(&name).await {
        Ok(None) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await?;
    let late = start("from when it was gone")?;
    match in_time("synced without a definition", late.informer.synced()).await? {
        Err(SyncError::Refused(cause)) if cause.is_not_found() => {}
        other => return Err(format!("without a definition, synced() says {other:?}").into()),
    }

    playground.define("definitions").await?;
    // The same names again, as different objects.
    let mut writer = write();
    writer.write(60).await;
    let second = watched.agrees(playground).await?;
    if second != late.agrees(playground).await? {
        return Err("the two informers do not agree".into());
    }
    let events = watched.events();
    watched.shutdown().await?;
    late.shutdown().await?;
    Ok(format!(
        "{first} objects, 404, {second} objects of the same names and other uids; {events} events (seed {SEED})"
    ))
}
