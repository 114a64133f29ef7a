//! Removing every object that a list would show.

use crate::delete_options::DeleteOptions;
use crate::query::ListOptions;
use crate::reply::{Content, Reply};
use crate::status::Status;
use crate::verbs::delete::delete;
use crate::verbs::list;
use crate::write::Write;

/// Deletes a collection; the answer is the list of what was deleted, as it was before.
///
/// # Errors
///
/// Those of a list and of a deletion. An object that is already gone is none.
pub(crate) async fn delete_collection(
    write: &Write<'_>,
    list_options: &ListOptions,
    options: &DeleteOptions,
) -> Result<Reply, Status> {
    let listing = list::list(write.cluster, write.view, write.namespace, list_options, None).await?;
    for object in &listing.objects {
        let one = Write { namespace: object.key().namespace(), ..*write };
        match delete(&one, object.key().name(), options) {
            Ok(_) => {}
            Err(status) if status.code() == 404 => {}
            Err(status) => return Err(status),
        }
    }
    Ok(Reply::ok(Content::List(listing)))
}
