//! Asks a server whether it obeys shard selectors.

use std::sync::Arc;

use futures_util::StreamExt;

use super::api::ApiListWatch;
use super::query::{Parameters, SHARD_SELECTOR};
use crate::client::{Operation, ServerError};
use crate::codec::protobuf::Table;
use crate::codec::{ListSplitter, MAX_OBJECT_SIZE};
use crate::shard::{Echo, HashRange, Shard, ShardSupport};

/// A selector that no server accepts.
const INVALID: &str = "invalid()";

/// What the error of a server that parses selectors begins with.
const REFUSED: &str = "invalid shard selector";

impl ApiListWatch {
    /// Asks with one small request.
    ///
    /// A list of whole objects of a built-in kind names the selector that was applied
    /// (`metadata.shardInfo`); those of custom kinds and of metadata do not, nor do streaming
    /// lists. Of custom kinds, an invalid selector is sent: a server that obeys selectors refuses
    /// it, any other one ignores it.
    pub(super) async fn ask_shard_support(&self, shard: &Shard) -> Result<ShardSupport, ServerError> {
        let is_built_in = {
            let resource = self.resource();
            Table::get().of_kind(&resource.api_version, &resource.kind).is_some()
        };
        if is_built_in { self.ask_for_echo(shard).await } else { self.ask_for_refusal().await }
    }

    /// One object of the shard: the server finds one soon, without looking at all objects.
    async fn ask_for_echo(&self, shard: &Shard) -> Result<ShardSupport, ServerError> {
        let everything = Shard::new(shard.key, HashRange::ALL);
        let shard = if shard.ranges.is_empty() { &everything } else { shard };
        let mut body = self.list_one(&shard.query()).await?;
        let mut list = ListSplitter::new(MAX_OBJECT_SIZE);
        let error = |broken: crate::codec::ListError| ServerError::new(Operation::Probe, self.what(), broken.into());
        while let Some(bytes) = body.next().await {
            list.push(bytes?);
            while let Some(item) = list.next() {
                drop(item.map_err(error)?);
            }
        }
        let applied = list.finish().map_err(error)?.shard_selector;
        Ok(match (Echo::of(applied.as_deref(), shard), applied) {
            (Echo::Same, _) => ShardSupport::Honoured,
            (Echo::Unclear, None) => ShardSupport::Ignored,
            (Echo::Other | Echo::Unclear, _) => ShardSupport::Unknown,
        })
    }

    async fn ask_for_refusal(&self) -> Result<ShardSupport, ServerError> {
        match self.list_one(INVALID).await {
            Ok(_) => Ok(ShardSupport::Ignored),
            Err(error) if error.status().is_some_and(|status| status.message.starts_with(REFUSED)) => {
                Ok(ShardSupport::Honoured)
            }
            Err(error) => Err(error),
        }
    }

    async fn list_one(&self, selector: &str) -> Result<super::Body, ServerError> {
        let mut parameters = Parameters::default();
        parameters.set("limit", "1");
        parameters.set(SHARD_SELECTOR, selector);
        self.request_json(Operation::Probe, parameters).await
    }
}

impl ApiListWatch {
    pub(super) async fn shard_support_here(&self, shard: Arc<Shard>) -> Result<ShardSupport, ServerError> {
        match self.served_version().await? {
            Some(there) => there.ask_shard_support(&shard).await,
            None => self.ask_shard_support(&shard).await,
        }
    }
}
