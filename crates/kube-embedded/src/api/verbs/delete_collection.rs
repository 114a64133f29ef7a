//! Deletion of all objects of a collection that match the selectors.

use super::delete::delete;
use super::list;
use crate::api::delete_options::DeleteOptions;
use crate::api::write::Write;
use crate::http::query::ListOptions;
use crate::http::reply::{Content, Reply};
use crate::http::status::Status;

/// Deletes a collection; the reply is the list of the deleted objects as they were before.
///
/// # Errors
///
/// Those of a list and of a deletion. Objects that are already deleted are skipped.
pub(crate) async fn delete_collection(
    write: &Write<'_>,
    list_options: &ListOptions,
    options: &DeleteOptions,
) -> Result<Reply, Status> {
    let listing = list::list(write.cluster, write.view, write.namespace, list_options, None).await?;
    for object in &listing.objects {
        let one = Write { namespace: object.key().namespace(), ..*write };
        write.gate.inspect(|gate| gate.next_object());
        loop {
            let deleted = delete(&one, object.key().name(), options);
            // A webhook has to be called first.
            if let (Err(_), Some(gate)) = (&deleted, write.gate)
                && gate.answer(write.cluster).await
            {
                continue;
            }
            match deleted {
                Err(status) if status.code() != 404 => return Err(status),
                _ => break,
            }
        }
    }
    Ok(Reply::ok(Content::List(listing)))
}
