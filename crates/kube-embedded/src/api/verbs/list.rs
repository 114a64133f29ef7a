//! Lists: selects the state to read, filters and paginates it, and encodes the result.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::api::filter::{Filter, Selectors};
use crate::api::tabulate::{self, ColumnDefinitions};
use crate::api::view::View;
use crate::cluster::Cluster;
use crate::encoding::escape::push_string;
use crate::encoding::protobuf::{self, ListFields, ListMetadata};
use crate::http::negotiate::{Form, MetaVersion};
use crate::http::query::{ListOptions, Match, parse_version};
use crate::http::status::Status;
use crate::kinds::Kind;
use crate::storage::continue_token::{ContinueToken, PageRevision};
use crate::storage::{KeyRange, Object, Snapshot};

/// The approximate size of the chunks in which a long list is encoded.
const CHUNK: usize = 64 * 1024;

/// The number of messages that are encoded before the task yields.
const MESSAGES_PER_YIELD: usize = 64;

/// The result of a list, ready to be encoded.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) revision: u64,
    pub(crate) objects: Vec<Arc<Object>>,
    continue_token: Option<String>,
    remaining: Option<usize>,
    shard_info: Option<String>,
}

/// The state that a list reads.
enum Read {
    /// The latest revision.
    Latest,
    /// The revision of the cache.
    Cached,
    /// At least this revision.
    NotOlderThan(u64),
    /// Exactly this revision.
    Exact(u64),
    /// The next page of an earlier list.
    Continue(ContinueToken),
}

/// Reads a collection.
pub(crate) async fn list(
    cluster: &Cluster,
    view: &View,
    namespace: Option<&str>,
    options: &ListOptions,
    within: Option<Duration>,
) -> Result<Listing, Status> {
    let kind = &*view.kind;
    let filter = Filter::new(kind, namespace, Selectors::of(options)?)?.in_shard(cluster, options)?;
    let read = Read::of(options)?;
    let limit = limit(kind, options);
    let range = filter.range();
    let storage = &cluster.storage;
    let table = &kind.storage;
    let page_size = limit.filter(|_| filter.is_everything());
    let mut start = range.clone();
    // Such a recent revision is missing only if a compaction ran between the two locks; then a
    // later revision is read.
    let at_least = |now| storage.list_at(table, range, now, page_size).unwrap_or_else(|| storage.list(table, range));
    let snapshot = match read {
        Read::Latest => at_least(storage.progress(table)),
        Read::Cached => at_least(storage.cached_revision(table)),
        Read::NotOlderThan(revision) => {
            cluster.reach(kind, revision, within).await?;
            let now = match storage.cached_revision(table) {
                cached if cached >= revision => cached,
                _ => storage.progress(table),
            };
            at_least(now)
        }
        Read::Exact(revision) => {
            cluster.reach(kind, revision, within).await?;
            storage
                .list_at(table, range, revision, page_size)
                .ok_or_else(|| Status::expired("The resourceVersion for the provided list is too old."))?
        }
        Read::Continue(token) => {
            let revision = match token.revision {
                PageRevision::At(revision) => revision,
                PageRevision::Latest => storage.progress(table),
            };
            cluster.reach(kind, revision, within).await?;
            start = range.clone().starting_at(&token.start);
            storage.list_at(table, &start, revision, page_size).ok_or_else(|| Status::expired_continue(token.rest()))?
        }
    };
    Ok(Listing::page(view, &filter, snapshot, limit, &start))
}

impl Read {
    fn of(options: &ListOptions) -> Result<Self, Status> {
        let version = options.resource_version.as_str();
        if !options.continue_token.is_empty() {
            let token = ContinueToken::parse(&options.continue_token)?;
            if !matches!(version, "" | "0") {
                return Err(Status::bad_request("specifying resource version is not allowed when using continue"));
            }
            return Ok(Self::Continue(token));
        }
        if version.is_empty() {
            return Ok(Self::Latest);
        }
        let revision =
            parse_version(version).map_err(|why| Status::bad_request(format!("invalid resource version: {why}")))?;
        Ok(match (revision, options.version_match) {
            (0, _) => Self::Cached,
            (_, Some(Match::Exact)) => Self::Exact(revision),
            (_, Some(Match::NotOlderThan)) => Self::NotOlderThan(revision),
            // Pages must be consistent: with a limit the version is matched exactly.
            (_, None) if options.limit.is_some() => Self::Exact(revision),
            (_, None) => Self::NotOlderThan(revision),
        })
    }
}

/// The effective limit: a read of version "0" returns the complete state of the cache.
fn limit(kind: &Kind, options: &ListOptions) -> Option<usize> {
    let whole = options.resource_version == "0" && !kind.is_uncached();
    options.limit.filter(|_| !whole)
}

impl Listing {
    fn page(view: &View, filter: &Filter, read: Snapshot, limit: Option<usize>, range: &KeyRange) -> Self {
        let Snapshot { revision, objects, mut remaining } = read;
        let mut kept = Vec::with_capacity(if filter.is_everything() { objects.len() } else { 0 });
        let found = objects.len();
        for (at, object) in objects.into_iter().enumerate() {
            if filter.matches(view, &object) {
                kept.push(object);
                if limit.is_some_and(|limit| kept.len() == limit) {
                    remaining += found - at - 1;
                    break;
                }
            }
        }
        // A list of a single name is a single read and has no further pages.
        let more = limit.is_some() && remaining > 0 && filter.name().is_none();
        let last = kept.last().filter(|_| more);
        Self {
            revision,
            continue_token: last
                .map(|last| ContinueToken::after(range.relative(last.key()), revision, !view.kind.is_uncached())),
            remaining: last.filter(|_| filter.is_everything()).map(|_| remaining),
            // Only typed lists have the field: lists of custom kinds, metadata and tables do not.
            shard_info: filter.shard_info().filter(|_| view.form == Form::Full && !view.kind.is_custom()),
            objects: kept,
        }
    }

    /// The list as JSON, in chunks, without a trailing line break.
    pub(crate) fn write(self, view: View) -> impl Iterator<Item = Bytes> + Send + 'static {
        let (head, tail) = self.envelope(&view);
        let mut head = Some(head);
        let mut tail = Some(tail);
        let (objects, marked) = arrange(&view, self.objects);
        let mut objects = objects.into_iter().enumerate();
        std::iter::from_fn(move || {
            tail.as_ref()?;
            let mut out = head.take().unwrap_or_default();
            for (at, object) in objects.by_ref() {
                if at > 0 {
                    out.push(b',');
                }
                match &marked {
                    None => view.push_item(&mut out, &object),
                    marked => view.push_row(&mut out, &object, marked.as_deref()),
                }
                if out.len() >= CHUNK {
                    return Some(out.into());
                }
            }
            out.extend_from_slice(&tail.take()?);
            Some(out.into())
        })
    }

    /// Encodes the protobuf messages that the objects do not have yet. Yields in between, because
    /// many messages take long.
    pub(crate) async fn prepare(&self, view: &View) {
        for some in self.objects.chunks(MESSAGES_PER_YIELD) {
            some.iter().for_each(|object| view.prepare(object));
            tokio::task::yield_now().await;
        }
    }

    /// The list as an enclosed protobuf message, in chunks. The length comes first, so all messages
    /// are encoded before the first chunk.
    pub(crate) fn write_messages(self, view: &View) -> impl Iterator<Item = Bytes> + Send + use<> {
        let made: Vec<ItemMessage> = self.objects.into_iter().map(|object| ItemMessage::new(view, object)).collect();
        let (named, fields) = match view.form {
            Form::Full => ((view.kind.api_version(), &*view.kind.list_kind), ListFields::USUAL),
            Form::Metadata(version) | Form::MetadataList(version) | Form::Table(version, _) => {
                let fields = match version {
                    MetaVersion::V1 => ListFields::USUAL,
                    MetaVersion::V1Beta1 => ListFields::ITEMS_FIRST,
                };
                ((version.api_version(), "PartialObjectMetadataList"), fields)
            }
        };
        let lengths = made.iter().map(|made| made.bytes().len());
        let metadata = ListMetadata {
            revision: self.revision,
            continue_token: self.continue_token.as_deref(),
            remaining: self.remaining,
            shard_info: self.shard_info.as_deref(),
        };
        let (head, tail) = protobuf::list(named, fields, &metadata, lengths);
        let (mut head, mut tail) = (Some(head), Some(tail));
        let mut items = made.into_iter();
        std::iter::from_fn(move || {
            tail.as_ref()?;
            let mut out = head.take().unwrap_or_default();
            for item in items.by_ref() {
                protobuf::push_item(&mut out, fields, item.bytes());
                if out.len() >= CHUNK {
                    return Some(out.into());
                }
            }
            out.extend_from_slice(&tail.take()?);
            Some(out.into())
        })
    }

    /// The bytes before the first item and after the last.
    fn envelope(&self, view: &View) -> (Vec<u8>, Vec<u8>) {
        let kind = &view.kind;
        if view.form == Form::Full && kind.is_custom() {
            let mut head = b"{\"apiVersion\":".to_vec();
            push_string(&mut head, kind.api_version());
            head.extend_from_slice(b",\"items\":[");
            let mut tail = b"],\"kind\":".to_vec();
            push_string(&mut tail, &kind.list_kind);
            tail.extend_from_slice(b",\"metadata\":{\"continue\":");
            push_string(&mut tail, self.continue_token.as_deref().unwrap_or_default());
            if let Some(remaining) = self.remaining {
                tail.extend_from_slice(format!(",\"remainingItemCount\":{remaining}").as_bytes());
            }
            tail.extend_from_slice(format!(",\"resourceVersion\":\"{}\"}}}}", self.revision).as_bytes());
            return (head, tail);
        }
        let (list_kind, api_version) = match view.form {
            Form::Full => (&*kind.list_kind, kind.api_version()),
            Form::Metadata(version) | Form::MetadataList(version) => {
                ("PartialObjectMetadataList", version.api_version())
            }
            Form::Table(version, _) => ("Table", version.api_version()),
        };
        let mut head = b"{\"kind\":".to_vec();
        push_string(&mut head, list_kind);
        head.extend_from_slice(b",\"apiVersion\":");
        push_string(&mut head, api_version);
        head.extend_from_slice(format!(",\"metadata\":{{\"resourceVersion\":\"{}\"", self.revision).as_bytes());
        if let Some(token) = &self.continue_token {
            head.extend_from_slice(b",\"continue\":");
            push_string(&mut head, token);
        }
        if let Some(remaining) = self.remaining {
            head.extend_from_slice(format!(",\"remainingItemCount\":{remaining}").as_bytes());
        }
        if let Some(shard) = &self.shard_info {
            head.extend_from_slice(b",\"shardInfo\":{\"selector\":");
            push_string(&mut head, shard);
            head.push(b'}');
        }
        if view.is_time_dependent() {
            let columns = kind.columns();
            tabulate::push_columns(&mut head, columns, ColumnDefinitions::Included);
            if self.objects.is_empty() && columns.empty_is_null() {
                head.pop();
                return (head, b"null}".to_vec());
            }
            return (head, b"]}".to_vec());
        }
        // The real server builds this list itself, and Go encodes a nil slice as null.
        if view.form != Form::Full && self.objects.is_empty() {
            return (head, b"},\"items\":null}".to_vec());
        }
        head.extend_from_slice(b"},\"items\":[");
        (head, b"]}".to_vec())
    }
}

/// The message of one item: the cached one of the object, or one encoded for this list.
enum ItemMessage {
    Cached(Arc<Object>, usize),
    Owned(Vec<u8>),
}

impl ItemMessage {
    fn new(view: &View, object: Arc<Object>) -> Self {
        match view.message(&object) {
            Cow::Owned(message) => Self::Owned(message),
            // The item is the whole cached message, or a prefix of it.
            Cow::Borrowed(message) => {
                let length = message.len();
                Self::Cached(object, length)
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Cached(object, length) => &object.cached_message()[..*length],
            Self::Owned(message) => message,
        }
    }
}

/// The objects in the order of the table, and the name of the default object.
fn arrange(view: &View, objects: Vec<Arc<Object>>) -> (Vec<Arc<Object>>, Option<String>) {
    let columns = view.kind.columns();
    if !view.is_time_dependent() || !columns.needs_all_objects() {
        return (objects, None);
    }
    let values: Vec<_> = objects.iter().map(|object| view.value(object)).collect();
    let marked = columns.marked(&values).map(str::to_owned);
    (columns.order(&values).into_iter().map(|at| objects[at].clone()).collect(), marked)
}
