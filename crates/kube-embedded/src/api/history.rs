//! The history of all writes, without HTTP.

use serde_json::Value;

use crate::http::status::Status;
use crate::server::Server;
use crate::storage;

/// One write to one object, by a client or by the server's own controllers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Change {
    /// The revision of the write.
    pub revision: u64,
    /// What happened to the object.
    pub kind: ChangeKind,
    /// The object after the write, in the version it is stored in; for a deletion its last state.
    pub object: Value,
}

/// What a write did to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// The object was created.
    Created,
    /// The object was changed, or its deletion began.
    Updated,
    /// The object is gone.
    Deleted,
}

impl Server {
    /// Every write after a revision, to objects of any kind, in the order of revisions.
    ///
    /// A test can follow the cluster's state through every revision, which a list of the final
    /// state cannot show.
    ///
    /// ```
    /// # kube_embedded::doctest([], async |server| {
    /// use kube_embedded::ChangeKind;
    /// use serde_json::json;
    ///
    /// let before = server.revision();
    /// server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))?;
    /// server.objects("v1", "ConfigMap")?.delete("a")?;
    /// let changes = server.changes_after(before)?;
    /// assert_eq!(changes[0].kind, ChangeKind::Created);
    /// assert_eq!(changes[1].kind, ChangeKind::Deleted);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    ///
    /// 410 if the history does not reach back that far; see
    /// [`ServerBuilder::history`](crate::ServerBuilder::history).
    pub fn changes_after(&self, revision: u64) -> Result<Vec<Change>, Status> {
        let storage = &self.cluster().storage;
        let mut found = Vec::new();
        for table in storage.tables() {
            match storage.changes(&table, revision, usize::MAX) {
                Ok((changes, _)) => found.extend(changes),
                Err(storage::CursorError::Compacted { .. }) => {
                    return Err(Status::expired(format!("the changes after revision {revision} are compacted")));
                }
                // The kind was removed since the tables were listed, and its objects with it.
                Err(storage::CursorError::Closed) => {}
            }
        }
        found.sort_by_key(|change| change.revision());
        Ok(found.iter().map(|change| Change::of(change)).collect())
    }
}

impl Change {
    fn of(change: &storage::Change) -> Self {
        let kind = match change.kind {
            storage::ChangeKind::Created => ChangeKind::Created,
            storage::ChangeKind::Updated => ChangeKind::Updated,
            storage::ChangeKind::Deleted => ChangeKind::Deleted,
        };
        Self { revision: change.revision(), kind, object: change.object.to_value() }
    }
}
