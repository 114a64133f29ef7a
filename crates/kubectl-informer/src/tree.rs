//! The `tree` command: an object, its owners and what it owns.
//!
//! Owner references lead upwards only, so what an object owns is found by listing the metadata of
//! all kinds in its namespace. `live` follows the kinds that occur in such references.

mod live;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use kube_informer::Obj;
use kube_informer::client::{ApiListWatch, ResourceScope, Resources, Served, ServerError};
use kube_informer::one_shot::Pager;
use serde_json::Value;

use crate::args::Tree;
use crate::client::connection::Connected;
use crate::client::kinds;
use crate::client::targets;
use crate::failure::Failure;
use crate::object::tree::{Forest, readiness};
use crate::terminal::output::Output;
use crate::terminal::progress::Waiting;
use crate::terminal::stderr::stderr;

/// Kinds that are usually owned. With `--watch` they are followed though none of their objects has
/// an owner yet.
const OWNED_KINDS: [(&str, &str); 8] = [
    ("", "pods"),
    ("", "persistentvolumeclaims"),
    ("apps", "replicasets"),
    ("apps", "deployments"),
    ("apps", "statefulsets"),
    ("apps", "controllerrevisions"),
    ("batch", "jobs"),
    ("discovery.k8s.io", "endpointslices"),
];
/// The number of lists requested at the same time.
const CONCURRENT_LISTS: usize = 8;
/// Up to this number of objects of a kind, each is requested by name.
const MAX_BY_NAME: usize = 8;

pub(crate) async fn run(args: Tree) -> Result<(), Failure> {
    let connected = args.connection.connect().await?;
    let served = kinds::served(&connected).await?;
    let subject = Subject::find(&args, &connected, &served).await?;
    let found = Found::read(&connected, &served, &subject).await?;
    let mut out = Output::new(args.color);
    if args.watch {
        return live::run(&args, &connected, &subject, found, &mut out).await;
    }
    let states = found.states(&connected, &subject).await?;
    let status = |uid: &str| {
        let (kind, object) = states.get(uid)?;
        Some(readiness(kind, object.get().ok()?))
    };
    for line in found.forest.lines(&subject.uid, &status) {
        out.styled(&line)?;
    }
    Ok(out.flush()?)
}

/// The object whose tree is shown.
struct Subject {
    kind: Served,
    name: String,
    namespace: Option<String>,
    uid: String,
}

impl Subject {
    async fn find(args: &Tree, connected: &Connected, served: &Resources) -> Result<Self, Failure> {
        let targets = targets::kinds_then_names(served, &args.words)?;
        let [target] = targets.as_slice() else {
            return Err(Failure::Usage(format!(
                "{}: tree shows one object, as in tree deploy/web",
                args.words.join(" ")
            )));
        };
        let [name] = target.names.as_slice() else {
            return Err(Failure::Usage(format!("{}: name one object, as in tree deploy/web", args.words.join(" "))));
        };
        let kind = target.kind.clone();
        let namespace = (kind.scope() == ResourceScope::Namespaced).then(|| connected.namespace.clone());
        let source =
            scoped(connected, &kind, namespace.as_deref()).fields(format!("metadata.name={name}")).metadata_only();
        let found = Pager::<Value>::new(source).stream().try_next().await;
        let object = found.map_err(|error| Failure::of_list(&connected.address, &kind.full_name(), &error))?;
        let object = object.ok_or_else(|| Failure::NotFound(format!("{} {name:?} not found", kind.full_name())))?;
        let uid = object.uid().map(ToString::to_string).unwrap_or_default();
        Ok(Self { kind, name: name.clone(), namespace, uid })
    }

    /// Where what it owns can be: in its own namespace, or anywhere if it is in none.
    fn list(&self, connected: &Connected, kind: &Served) -> ApiListWatch {
        scoped(connected, kind, self.namespace.as_deref())
    }
}

fn scoped(connected: &Connected, kind: &Served, namespace: Option<&str>) -> ApiListWatch {
    let source = ApiListWatch::new(connected.client.clone(), kind);
    match namespace {
        Some(namespace) if kind.scope() == ResourceScope::Namespaced => source.namespace(namespace),
        _ => source,
    }
}

/// The objects around the subject.
struct Found {
    forest: Forest,
    /// The kinds of objects that own others or are owned, or may be.
    kinds: Vec<Served>,
    /// The kind and the name of each object, by its uid.
    names: HashMap<String, (usize, String)>,
}

impl Found {
    /// Lists the metadata of every kind. Kinds that cannot be listed are counted.
    async fn read(connected: &Connected, served: &Resources, subject: &Subject) -> Result<Self, Failure> {
        let is_candidate = |kind: &&Served| {
            let is_near = subject.namespace.is_none() || kind.scope() == ResourceScope::Namespaced;
            kind.is_watchable() && (is_near || **kind == subject.kind) && !matches!(kind.plural(), "events" | "leases")
        };
        let candidates: Vec<Served> = served.preferred().filter(is_candidate).cloned().collect();
        let (total, done) = (candidates.len(), Arc::new(AtomicUsize::new(0)));
        let waiting = Waiting::with({
            let done = Arc::clone(&done);
            move || format!("{} of {total} kinds listed", done.load(Ordering::Relaxed))
        });
        let mut lists = stream::iter(candidates.iter().enumerate())
            .map(async |(number, kind)| {
                let source = subject.list(connected, kind).metadata_only();
                let objects: Result<Vec<Obj<Value>>, ServerError> = Pager::new(source).stream().try_collect().await;
                (number, objects)
            })
            .buffer_unordered(CONCURRENT_LISTS);
        let (mut forest, mut names, mut related) = (Forest::default(), HashMap::new(), HashSet::new());
        let (mut read, mut refused) = (HashSet::new(), Vec::new());
        while let Some((number, objects)) = lists.next().await {
            done.fetch_add(1, Ordering::Relaxed);
            let Ok(objects) = objects else {
                refused.push(candidates[number].full_name());
                continue;
            };
            read.insert(number);
            for object in objects {
                forest.add(candidates[number].kind(), &object);
                let Some(uid) = object.uid() else { continue };
                names.insert(uid.to_string(), (number, object.name().to_owned()));
                if object.owners().next().is_some() {
                    related.insert(number);
                }
            }
        }
        drop(lists);
        drop(waiting);
        if !refused.is_empty() {
            stderr(&format!(
                "! {} of {} kinds cannot be listed: {}",
                refused.len(),
                candidates.len(),
                refused.join(", ")
            ));
        }
        related.extend(forest.members(&subject.uid).iter().filter_map(|uid| names.get(uid)).map(|(number, _)| *number));
        let is_usual = |kind: &Served| OWNED_KINDS.contains(&(kind.group(), kind.plural()));
        let usual = candidates.iter().enumerate().filter(|(number, kind)| read.contains(number) && is_usual(kind));
        related.extend(usual.map(|(number, _)| number));
        let mut numbers: Vec<usize> = related.into_iter().collect();
        numbers.sort_unstable();
        let place: HashMap<usize, usize> = numbers.iter().enumerate().map(|(to, from)| (*from, to)).collect();
        names.retain(|_, (number, _)| place.get(number).map(|to| *number = *to).is_some());
        let kinds = numbers.into_iter().map(|number| candidates[number].clone()).collect();
        Ok(Self { forest, kinds, names })
    }

    /// The states of the objects in the tree, by uid.
    async fn states(
        &self,
        connected: &Connected,
        subject: &Subject,
    ) -> Result<HashMap<String, (&str, Obj<Value>)>, Failure> {
        let mut wanted: HashMap<usize, HashSet<String>> = HashMap::new();
        for uid in self.forest.members(&subject.uid) {
            if let Some((number, name)) = self.names.get(&uid) {
                wanted.entry(*number).or_default().insert(name.clone());
            }
        }
        let _waiting = Waiting::on("reading the objects of the tree");
        let mut states = HashMap::new();
        for (number, names) in wanted {
            let kind = &self.kinds[number];
            let source = || subject.list(connected, kind);
            let sources: Vec<ApiListWatch> = match names.len() {
                0..=MAX_BY_NAME => names.iter().map(|name| source().fields(format!("metadata.name={name}"))).collect(),
                _ => vec![source()],
            };
            for source in sources {
                let mut objects = Pager::<Value>::new(source).stream();
                while let Some(object) = objects
                    .try_next()
                    .await
                    .map_err(|error| Failure::of_list(&connected.address, &kind.full_name(), &error))?
                {
                    if let Some(uid) = object.uid().filter(|_| names.contains(object.name())) {
                        states.insert(uid.to_string(), (kind.kind(), object));
                    }
                }
            }
        }
        Ok(states)
    }
}
