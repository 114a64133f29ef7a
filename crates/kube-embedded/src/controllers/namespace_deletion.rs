//! Namespace deletion: deletes the contents of terminating namespaces, and then the namespaces.

use std::sync::Arc;

use serde_json::json;

use super::namespaces;
use crate::admission::decode::{self, Decoded};
use crate::admission::metadata;
use crate::api::delete_options::{DeleteOptions, Policy};
use crate::api::verbs::delete::delete;
use crate::api::verbs::update::update;
use crate::api::view::View;
use crate::api::write::{Authorship, Write};
use crate::api::write_options::FieldValidation;
use crate::cluster::Cluster;
use crate::http::negotiate::Form;
use crate::kinds::{Kind, Part, Registry, ResourceScope};
use crate::storage::{KeyRange, Object};

/// Objects deleted before the task yields.
const TURN: usize = 256;

/// Empties and finalizes terminating namespaces until the future is dropped or the storage is
/// closed.
pub(crate) async fn delete_namespaces(cluster: &Cluster) {
    let mut revisions = cluster.storage.revisions();
    loop {
        revisions.mark_seen();
        for namespace in namespaces::terminating(cluster) {
            while empty(cluster, &namespace) == Progress::More {
                tokio::task::yield_now().await;
            }
        }
        if revisions.changed().await.is_err() {
            return;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    More,
    Done,
}

/// Deletes up to [`TURN`] objects of a namespace, and finalizes the namespace if none is left.
fn empty(cluster: &Cluster, namespace: &str) -> Progress {
    let registry = cluster.registry();
    let mut left = 0;
    let mut deleted = 0;
    for kind in kinds(&registry) {
        let view = View::new(kind.clone(), kind.clone(), Form::Full, cluster.clock);
        let write = Write::internal(cluster, &view, Some(namespace), Authorship::Untracked);
        let options = DeleteOptions { policy: Some(Policy::Background), ..DeleteOptions::default() };
        for object in cluster.storage.list_cached(&kind.storage, &KeyRange::of(Some(namespace))).objects {
            if is_deleting(&object) {
                left += 1;
                continue;
            }
            if deleted == TURN {
                return Progress::More;
            }
            // Fails if the object is already deleted.
            drop(delete(&write, object.key().name(), &options));
            deleted += 1;
            if write.find(object.key()).is_some() {
                left += 1;
            }
        }
    }
    if left == 0 {
        finalize(cluster, namespace);
    }
    Progress::Done
}

/// The namespaced kinds, one per storage table.
fn kinds(registry: &Registry) -> Vec<Arc<Kind>> {
    let mut tables: Vec<_> = registry
        .kinds()
        .filter(|kind| kind.scope == ResourceScope::Namespaced)
        .map(|kind| kind.storage.clone())
        .collect();
    tables.sort();
    tables.dedup();
    tables.iter().filter_map(|table| registry.stored(table)).collect()
}

fn is_deleting(object: &Arc<Object>) -> bool {
    metadata::is_deleting(&object.to_value())
}

/// Removes the `kubernetes` finalizer from a namespace's spec.
fn finalize(cluster: &Cluster, name: &str) {
    let Some(kind) = cluster.registry().find("", "v1", "namespaces") else { return };
    let view = View::new(kind.clone(), kind, Form::Full, cluster.clock);
    let write = Write::internal(cluster, &view, None, Authorship::Untracked);
    loop {
        let Some(namespace) = write.find(&write.key(name)) else { return };
        let mut object = namespace.to_value();
        let kept: Vec<String> =
            namespaces::finalizers(&object).into_iter().filter(|each| each != namespaces::FINALIZER).collect();
        namespaces::set_finalizers(&mut object, Some(json!(kept)));
        let Ok(Decoded { object, warnings }) = decode::conform(&view.kind, object, FieldValidation::Ignore) else {
            return;
        };
        match update(&write, name, Decoded { object, warnings }, Some(Part::Finalize)) {
            Err(status) if status.code() == 409 => {}
            Ok(_) | Err(_) => return,
        }
    }
}
