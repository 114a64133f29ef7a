//! Candidates from the kubeconfig and from the server.
//!
//! A server that does not answer in time, or not at all, has no candidates.

use std::future::Future;
use std::time::Duration;

use clap_complete::CompletionCandidate;
use futures_util::{StreamExt as _, TryStreamExt as _};
use kube::config::Kubeconfig;
use kube_informer::client::{ApiListWatch, ResourceScope, Resources, Served};
use kube_informer::one_shot::Pager;
use serde_json::Value;

use super::words;
use crate::client::connection::Connected;
use crate::client::kinds;
use crate::failure::Failure;
use crate::terminal::terminal_text::is_hidden;

/// How long a user waits for a server.
const TIMEOUT: Duration = Duration::from_secs(3);
/// More names than anyone reads.
const MAX_NAMES: usize = 1_000;

pub(crate) fn contexts() -> Vec<CompletionCandidate> {
    named(|config| config.contexts.iter().map(|context| context.name.clone()).collect())
}

pub(crate) fn clusters() -> Vec<CompletionCandidate> {
    named(|config| config.clusters.iter().map(|cluster| cluster.name.clone()).collect())
}

pub(crate) fn users() -> Vec<CompletionCandidate> {
    named(|config| config.auth_infos.iter().map(|user| user.name.clone()).collect())
}

pub(crate) fn namespaces() -> Vec<CompletionCandidate> {
    from_server(async |connected| {
        let served = kinds::served(&connected).await?;
        let kind = kinds::find(&served, ["namespaces"])?;
        names(&connected, &kind, Scope::All).await
    })
}

/// Kinds, or after `KIND/` the names of its objects.
pub(crate) fn kinds() -> Vec<CompletionCandidate> {
    from_server(async |connected| {
        let served = kinds::served(&connected).await?;
        match words::current().split_once('/') {
            Some((kind, _)) => prefixed(&connected, &served, kind).await,
            None => Ok(all_kinds(&served)),
        }
    })
}

/// Kinds, and after one the names of its objects.
pub(crate) fn kinds_and_names() -> Vec<CompletionCandidate> {
    match words::positionals().first() {
        Some(kind) if !kind.contains('/') => from_server(async |connected| {
            let served = kinds::served(&connected).await?;
            names(&connected, &kinds::find(&served, [*kind])?, Scope::Selected).await
        }),
        _ => kinds(),
    }
}

/// Kinds by their names, and by their short names if those are what is being typed; after a comma,
/// with what stands before it.
fn all_kinds(served: &Resources) -> Vec<CompletionCandidate> {
    let before = words::current().rfind(',').map_or("", |comma| &words::current()[..=comma]);
    let mut names: Vec<String> = Vec::new();
    for kind in served.preferred().filter(|kind| kind.is_watchable()) {
        // A name that a kind of another group has, too, needs its group.
        let plural =
            if names.iter().any(|name| name == kind.plural()) { kind.full_name() } else { kind.plural().to_owned() };
        names.push(plural);
    }
    names.sort();
    names.iter().map(|name| CompletionCandidate::new(format!("{before}{name}"))).collect()
}

/// Which objects are candidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    /// Those of the namespace on the command line.
    Selected,
}

async fn prefixed(connected: &Connected, served: &Resources, kind: &str) -> Result<Vec<CompletionCandidate>, Failure> {
    let names = names(connected, &kinds::find(served, [kind])?, Scope::Selected).await?;
    Ok(names
        .into_iter()
        .map(|name| CompletionCandidate::new(format!("{kind}/{}", name.get_value().to_string_lossy())))
        .collect())
}

async fn names(connected: &Connected, kinds: &[Served], scope: Scope) -> Result<Vec<CompletionCandidate>, Failure> {
    let mut found = Vec::new();
    for kind in kinds {
        let mut source = ApiListWatch::new(connected.client.clone(), kind).metadata_only();
        if scope == Scope::Selected && kind.scope() == ResourceScope::Namespaced && !words::all_namespaces() {
            source = source.namespace(connected.namespace.clone());
        }
        let objects = Pager::<Value>::new(source).stream().take(MAX_NAMES);
        let names = objects.map_ok(|object| CompletionCandidate::new(object.name())).try_collect::<Vec<_>>().await;
        found.extend(names.map_err(|error| Failure::of_list(&connected.address, kind.plural(), &error))?);
    }
    Ok(found)
}

fn named(names: impl FnOnce(&Kubeconfig) -> Vec<String>) -> Vec<CompletionCandidate> {
    let config = words::connection().read_kubeconfig();
    let names = config.map(|config| names(&config)).unwrap_or_default();
    names.into_iter().filter(|name| !name.contains(is_hidden)).map(CompletionCandidate::new).collect()
}

/// Asks the server that the flags so far select.
pub(super) fn from_server<F>(ask: impl FnOnce(Connected) -> F) -> Vec<CompletionCandidate>
where
    F: Future<Output = Result<Vec<CompletionCandidate>, Failure>>,
{
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return Vec::new() };
    let asked = runtime.block_on(async {
        tokio::time::timeout(TIMEOUT, async { ask(words::connection().connect().await?).await }).await
    });
    runtime.shutdown_background();
    // Nothing may be printed here but candidates.
    let mut found = asked.ok().and_then(Result::ok).unwrap_or_default();
    // What acts on a terminal is not handed to a shell.
    found.retain(|candidate| !candidate.get_value().to_string_lossy().contains(is_hidden));
    found
}
