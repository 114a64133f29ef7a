//! Servers that stop and restart during writes.

use kube_informer::client::ServerError;
use kube_informer::pipeline::Backlog;
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::{InformerBuilder, Object};

use super::deadline::eventually;
use super::playground::{Playground, Query};
use super::watched::{Eager, HandlerFilter, Shape, Watched, eager};
use super::writer::{Writer, Writing, kinds};
use crate::Error;
use crate::control_plane::ControlPlane;

const SEED: u64 = 503;
const ROUNDS: usize = 3;

/// Lists in pages, with a low backoff cap.
struct InPages;

impl Shape for InPages {
    fn shape<K: Object>(&self, builder: InformerBuilder<K>) -> InformerBuilder<K> {
        builder.reflector(ReflectorSettings {
            streaming: Streaming::Never,
            page_size: Some(5),
            backoff: eager(),
            ..ReflectorSettings::default()
        })
    }
}

/// Kills kube-apiserver repeatedly.
pub(super) async fn apiserver_killed(
    playground: &Playground,
    control_plane: &mut ControlPlane,
) -> Result<String, Error> {
    let outage = Outage::set(playground, "killed").await?;
    for _ in 0..ROUNDS {
        outage.until_received().await?;
        control_plane.apiserver.kill().await?;
        outage.until_noticed().await?;
        control_plane.apiserver.start()?;
        control_plane.ready().await?;
    }
    outage.end(&format!("killed {ROUNDS} times")).await
}

/// Stops and starts etcd, while kube-apiserver keeps running.
pub(super) async fn etcd_stopped(playground: &Playground, control_plane: &mut ControlPlane) -> Result<String, Error> {
    let outage = Outage::set(playground, "stopped").await?;
    outage.until_received().await?;
    control_plane.etcd.stop().await?;
    let client = control_plane.target().client()?;
    eventually("kube-apiserver misses etcd", async || {
        let request = http::Request::get("/readyz/etcd").body(Vec::new()).map_err(|error| error.to_string())?;
        match client.request_text(request).await {
            Err(_) => Ok(()),
            Ok(said) => Err(said),
        }
    })
    .await?;
    control_plane.etcd.start()?;
    control_plane.ready().await?;
    outage.until_received().await?;
    outage.end("stopped once").await
}

/// Informers and a continuous writer, during an outage.
struct Outage<'a> {
    playground: &'a Playground,
    watched: Vec<Watched>,
    writing: Writing,
}

impl<'a> Outage<'a> {
    async fn set(playground: &'a Playground, stem: &str) -> Result<Self, Error> {
        let namespaces = playground.namespaces(stem, 2).await?;
        let mut writer = Writer::new(playground.client.clone(), SEED, kinds(), namespaces.clone());
        writer.write(60).await;
        let mut watched = Vec::new();
        for kind in &kinds() {
            let client = || playground.client.clone();
            let here = Query { namespaces: Some(namespaces.clone()), ..Query::default() };
            let gold = Query { labels: Some("tier=gold"), ..Query::default() };
            let mut whole = Watched::start("streamed", client(), kind, Query::default(), &Eager)?;
            whole.add_handler("filtered", HandlerFilter::Gold, Backlog::default());
            whole.add_handler("latest", HandlerFilter::All, Backlog::Latest);
            watched.push(whole);
            watched.push(Watched::start("in pages", client(), kind, here, &InPages)?);
            watched.push(Watched::start("by label", client(), kind, gold, &Eager)?);
        }
        for one in &watched {
            one.synced().await?;
        }
        Ok(Self { playground, watched, writing: writer.write_on() })
    }

    /// Waits until something new has been received of each kind.
    async fn until_received(&self) -> Result<(), Error> {
        let whole = || self.watched.iter().step_by(3);
        let before: Vec<usize> = whole().map(Watched::events).collect();
        eventually("writes are received", async || {
            let quiet = whole().zip(&before).find(|(one, before)| one.events() <= **before);
            quiet.map_or(Ok(()), |(one, _)| Err(format!("{:?}", one.informer.health())))
        })
        .await
    }

    /// Waits until every informer has detected that the server is unreachable.
    async fn until_noticed(&self) -> Result<(), Error> {
        for one in &self.watched {
            one.degraded("that the server is unreachable", ServerError::is_connection_refused).await?;
        }
        Ok(())
    }

    async fn end(self, what: &str) -> Result<String, Error> {
        let writer = self.writing.stop().await?;
        let mut objects = 0;
        for one in &self.watched {
            objects += one.agrees(self.playground).await.map_err(|error| format!("seed {SEED}: {error}"))?;
        }
        let events: usize = self.watched.iter().map(Watched::events).sum();
        let expired = self.watched.iter().filter(|one| one.errors.any(ServerError::is_expired)).count();
        let informers = self.watched.len();
        for one in self.watched {
            one.shutdown().await?;
        }
        let written = writer.written();
        Ok(format!(
            "{what} under {} writes ({} failed; seed {SEED}): {informers} informers, {expired} of which met a 410; \
             {objects} objects compared, {events} events delivered",
            written.count() + written.failures,
            written.failures
        ))
    }
}
