//! Reading of a single object.

use std::sync::Arc;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::http::query::parse_version;
use crate::http::status::Status;
use crate::kinds::Kind;
use crate::storage::{Key, Object};

/// The object, not older than the requested version. `""` and `"0"` accept any version: there is
/// only one state.
pub(crate) async fn get(
    cluster: &Cluster,
    kind: &Kind,
    key: &Key,
    version: &str,
    within: Option<Duration>,
) -> Result<Arc<Object>, Status> {
    if !version.is_empty() {
        let version = parse_version(version).map_err(|why| match kind.is_uncached() {
            true => Status::bad_request(format!("invalid resource version: {why}")),
            false => Status::internal(why),
        })?;
        cluster.reach(kind, version, within).await?;
    }
    find(cluster, kind, key)
}

/// The object in its current state.
pub(crate) fn find(cluster: &Cluster, kind: &Kind, key: &Key) -> Result<Arc<Object>, Status> {
    cluster.storage.get(&kind.storage, key).ok_or_else(|| Status::not_found(&kind.group, &kind.plural, key.name()))
}
