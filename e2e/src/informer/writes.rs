//! Random writes: informers in all configurations agree with LIST and with `kubectl`.

use kube::core::ApiResource;
use kube_informer::client::Compression;
use kube_informer::pipeline::{Backlog, Discipline};
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::{InformerBuilder, Keep, Object, ObjectKey, Selector};
use serde_json::Value;

use super::deadline::eventually;
use super::playground::{Content, Playground, Query, by_key};
use super::watched::{HandlerFilter, Plain, Shape, Watched};
use super::writer::{Writer, kinds};
use crate::Error;

const SEED: u64 = 20_260_601;
const WRITES: usize = 400;
/// A selector with several types of requirements.
const SELECTED: &str = "tier in (gold,tin),tier!=clay,!legacy";

/// Lists in small pages instead of a stream, with a keyed queue, plain storage, uncompressed
/// responses and a frequent resync.
struct Paged;

impl Shape for Paged {
    fn shape<K: Object>(&self, builder: InformerBuilder<K>) -> InformerBuilder<K> {
        builder
            .reflector(ReflectorSettings {
                streaming: Streaming::Never,
                page_size: Some(3),
                ..ReflectorSettings::default()
            })
            .queue(Discipline::Keyed)
            .keep(Keep::Plain)
            .resync(std::time::Duration::from_secs(1))
            .source(|source| source.compression(Compression::None))
    }
}

pub(super) async fn run(playground: &Playground) -> Result<String, Error> {
    let namespaces = playground.namespaces("writes", 3).await?;
    let mut kinds = kinds();
    kinds.push(playground.define("writes").await?);
    let mut writer = Writer::new(playground.client.clone(), SEED, kinds.clone(), namespaces.clone());
    // These objects are in the first list; the watch receives the later ones.
    writer.write(WRITES / 4).await;
    let mut watched = Vec::new();
    for kind in &kinds {
        watched.extend(watch(playground, kind, &namespaces)?);
    }
    writer.write(WRITES / 4).await;
    for one in &mut watched {
        one.synced().await?;
        one.add_handler("late", HandlerFilter::All, Backlog::default());
    }
    let before = writer.written().states.len();
    writer.write(WRITES / 2).await;
    let written = writer.written();
    if written.failures > 0 {
        return Err(format!("{} writes failed (seed {SEED})", written.failures).into());
    }
    let mut objects = 0;
    for one in &watched {
        objects += one.agrees(playground).await.map_err(|error| format!("seed {SEED}: {error}"))?;
    }
    for (kind, all) in kinds.iter().zip(watched.chunks(WAYS)) {
        let states = written.states[before..].iter().filter(|(plural, ..)| *plural == kind.plural);
        // No watch was interrupted, so no state can have been skipped.
        for (_, key, version) in states {
            if !all[0].has_received(key, version) {
                return Err(format!("no handler has received {} {key} at {version} (seed {SEED})", kind.plural).into());
            }
        }
        agrees_with_kubectl(playground, kind, &namespaces, &all[0]).await?;
    }
    let events: usize = watched.iter().map(Watched::events).sum();
    let informers = watched.len();
    for one in watched {
        one.shutdown().await?;
    }
    Ok(format!(
        "{} writes of {} kinds (seed {SEED}), {informers} informers, {objects} objects compared, {events} events delivered",
        written.count(),
        kinds.len()
    ))
}

/// Number of configurations in which each kind is watched.
const WAYS: usize = 7;

fn watch(playground: &Playground, kind: &ApiResource, namespaces: &[String]) -> Result<[Watched; WAYS], Error> {
    let whole = Query { namespaces: Some(namespaces.to_vec()), ..Query::default() };
    let fields = match kind.plural.as_str() {
        "pods" => "status.phase=Pending,spec.schedulerName!=default-scheduler,metadata.name!=m0",
        "secrets" => "type=Opaque",
        _ => "metadata.name=m3",
    };
    let start = |name: &str, query: Query| Watched::start(name, playground.client.clone(), kind, query, &Plain);
    let mut everything = start("everything", Query::default())?;
    everything.add_handler("filtered", HandlerFilter::Gold, Backlog::default());
    everything.add_handler("latest", HandlerFilter::All, Backlog::Latest);
    Ok([
        start("in three namespaces", whole.clone())?,
        everything,
        Watched::start("in pages", playground.client.clone(), kind, whole.clone(), &Paged)?,
        start("by label", Query { labels: Some(SELECTED), ..Query::default() })?,
        start("by field", Query { fields: Some(fields), ..whole })?,
        start("as metadata", Query { content: Content::Metadata, ..Query::default() })?,
        start("in one namespace", Query { namespaces: Some(vec![namespaces[0].clone()]), ..Query::default() })?,
    ])
}

/// Checks that lister and handlers agree with `kubectl get`.
async fn agrees_with_kubectl(
    playground: &Playground,
    kind: &ApiResource,
    namespaces: &[String],
    watched: &Watched,
) -> Result<(), Error> {
    let resource = match kind.group.as_str() {
        "" => kind.plural.clone(),
        group => format!("{}.{group}", kind.plural),
    };
    let lister = watched.informer.lister();
    let mut all = Vec::new();
    for namespace in namespaces {
        let get = ["get", &resource, "--namespace", namespace, "--show-managed-fields"];
        let got = items(playground.target.kubectl(&get).await?);
        let here = lister.namespace(namespace.as_str());
        let listed = here.sorted();
        let names: Vec<&str> = got.iter().filter_map(|object| object["metadata"]["name"].as_str()).collect();
        if listed.iter().map(kube_informer::Obj::name).ne(names.iter().copied()) || here.len() != names.len() {
            return Err(format!("the lister of {namespace} has {listed:?}, kubectl {names:?}").into());
        }
        let selected = playground.target.kubectl(&[&get[..], &["--selector", SELECTED]].concat()).await?;
        let selected = by_key(items(selected)).into_keys().collect::<Vec<_>>();
        let selector: Selector = SELECTED.parse()?;
        let mut chosen: Vec<String> = here.select(&selector).iter().map(|object| object.key().to_string()).collect();
        chosen.sort_unstable();
        if chosen != selected {
            return Err(format!("{SELECTED} selects {chosen:?} here and {selected:?} for kubectl").into());
        }
        if let Some(missing) = names.iter().find(|name| lister.get(&ObjectKey::namespaced(namespace, name)).is_none()) {
            return Err(format!("{namespace}/{missing} cannot be got").into());
        }
        all.extend(got);
    }
    let truth = by_key(all);
    eventually("kubectl", async || watched.compare(&truth)).await
}

fn items(mut list: Value) -> Vec<Value> {
    match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}
