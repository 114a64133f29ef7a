//! Watches.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::time::{Instant, sleep_until};

use crate::api::filter::{Filter, Selectors};
use crate::api::tabulate::ColumnDefinitions;
use crate::api::view::{View, push_metadata};
use crate::cluster::Cluster;
use crate::encoding::json::Encoded;
use crate::encoding::protobuf;
use crate::http::lifecycle::{Ending, Lifetime};
use crate::http::negotiate::{Encoding, Form};
use crate::http::query::{InitialEvents, ListOptions, parse_version};
use crate::http::status::Status;
use crate::storage::latest::Receiver;
use crate::storage::{Change, ChangeKind, CursorError, FrameKind, Object};
use crate::webhooks::conversion::Unconverted;

/// The approximate size of a chunk of frames.
const CHUNK: usize = 64 * 1024;

/// The number of changes read from the log at a time.
const BATCH: usize = 256;

/// The delay of the first bookmark after the initial events.
const FIRST_BOOKMARK: Duration = Duration::from_secs(1);

/// How long before its end a watch sends its last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// An open watch.
#[derive(Debug)]
pub(crate) struct Watch {
    cluster: Arc<Cluster>,
    view: View,
    filter: Filter,
    /// The initial objects still to be sent, in reverse order.
    initial: Vec<Arc<Object>>,
    state: WatchState,
    /// All changes up to this revision are sent or part of the initial state.
    cursor: u64,
    /// Bookmarks are sent only for later revisions.
    started: u64,
    end_bookmark: EndBookmark,
    bookmarks: Bookmarks,
    deadline: Instant,
    changed: Receiver<u64>,
    /// How many of the next changes are converted, if the kind has a webhook for that.
    converted: usize,
    /// Whether the column definitions of a table are still to be sent.
    headers: ColumnDefinitions,
}

#[derive(Debug)]
enum WatchState {
    Initial,
    Live,
    /// Sends one ERROR event, then ends.
    Failing(Status),
    Ended,
}

/// Whether a bookmark ends the initial events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndBookmark {
    Send,
    Omit,
}

/// When the next bookmark may be sent.
#[derive(Debug, Clone, Copy)]
enum Bookmarks {
    Never,
    At(Instant),
}

/// Whether a watch with these options is a streaming list: it starts with the current state, which
/// a bookmark ends. The real server compresses only these watches.
pub(crate) fn is_streaming_list(options: &ListOptions) -> bool {
    let promoted =
        matches!(options.resource_version.as_str(), "" | "0") && options.initial_events == InitialEvents::Default;
    options.bookmarks && (promoted || options.initial_events == InitialEvents::Send)
}

impl Watch {
    /// Opens a watch. Waits for the requested version, as the real server does.
    pub(crate) async fn open(
        cluster: Arc<Cluster>,
        view: View,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Self, Status> {
        let kind = view.kind.clone();
        let filter = Filter::new(&kind, namespace, Selectors::of(options)?)?.in_shard(&cluster, options)?;
        let version = match options.resource_version.as_str() {
            "" => None,
            text => Some(parse_version(text).map_err(Status::internal)?),
        };
        let now = Instant::now();
        let deadline = now + options.watch_timeout.unwrap_or_else(|| random_timeout(&cluster));
        let storage = &cluster.storage;
        let table = &kind.storage;
        let changed = storage.follow(table);
        let wants_initial = match options.initial_events {
            InitialEvents::Send => true,
            InitialEvents::Skip => false,
            InitialEvents::Default => matches!(version, None | Some(0)),
        };
        let mut state = if wants_initial { WatchState::Initial } else { WatchState::Live };
        let mut initial = Vec::new();
        let cursor = match version {
            _ if wants_initial => {
                let reached = cluster.reach(&kind, version.unwrap_or(0), None).await;
                let snapshot = match version {
                    None => storage.list(table, filter.range()),
                    Some(version) if storage.cached_revision(table) < version => storage.list(table, filter.range()),
                    Some(_) => storage.list_cached(table, filter.range()),
                };
                match reached {
                    Ok(()) => initial = snapshot.objects,
                    Err(status) => state = WatchState::Failing(status),
                }
                view.foresee(&initial);
                if let Err(why) = view.catch_up(&cluster.rng).await {
                    state = WatchState::Failing(why.into_status());
                }
                initial.retain(|object| filter.matches(&view, object));
                initial.reverse();
                snapshot.revision
            }
            None => storage.progress(table),
            Some(0) => storage.cached_revision(table),
            Some(version) => {
                if let Err(CursorError::Compacted { oldest }) = storage.can_watch_from(table, version) {
                    state = WatchState::Failing(too_old(&view, version, oldest));
                }
                version
            }
        };
        let bookmarks = match options.bookmarks && !kind.is_uncached() {
            true => {
                let first = if wants_initial { FIRST_BOOKMARK } else { cluster.settings.bookmark_interval };
                Bookmarks::At((now + first).min(last_bookmark(now, deadline)))
            }
            false => Bookmarks::Never,
        };
        // The timeout expires before the initial consistent read.
        if version.is_none() && wants_initial && options.watch_timeout == Some(Duration::ZERO) && !kind.is_uncached() {
            state = WatchState::Failing(Status::new(500, "InternalError", "context deadline exceeded"));
        }
        // A list form is invalid for single objects: the real server sends nothing and ends the
        // watch.
        if matches!(view.form, Form::MetadataList(_)) {
            state = WatchState::Ended;
        }
        let end_bookmark = if is_streaming_list(options) { EndBookmark::Send } else { EndBookmark::Omit };
        Ok(Self {
            cluster,
            view,
            filter,
            initial,
            state,
            cursor,
            started: cursor,
            end_bookmark,
            bookmarks,
            deadline,
            changed,
            converted: 0,
            headers: ColumnDefinitions::Included,
        })
    }

    /// The stream of frames, in chunks, until the watch ends or the server shuts down.
    pub(crate) fn into_stream(self, lifetime: Lifetime) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(Some((self, lifetime)), async |open| {
            let (mut watch, mut lifetime) = open?;
            tokio::select! {
                biased;
                ending = lifetime.ended() => match ending {
                    Ending::Closed => None,
                    Ending::Cut => Some((Err(io::ErrorKind::ConnectionReset.into()), None)),
                },
                chunk = watch.next() => Some((Ok(chunk?), Some((watch, lifetime)))),
            }
        })
    }

    /// The next frames; `None` at the end of the watch.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match &self.state {
                WatchState::Initial => {
                    if let Some(chunk) = self.initial_chunk() {
                        return Some(chunk);
                    }
                }
                WatchState::Live => {
                    if let Err(why) = self.convert_ahead().await {
                        self.state = WatchState::Failing(why.into_status());
                        continue;
                    }
                    if let Some(chunk) = self.changes() {
                        return Some(chunk);
                    }
                    if let WatchState::Live = self.state
                        && let Some(bookmark) = self.wait().await
                    {
                        return Some(bookmark);
                    }
                }
                WatchState::Failing(status) => {
                    let frame = error_frame(status, self.view.encoding);
                    self.state = WatchState::Ended;
                    return Some(frame);
                }
                WatchState::Ended => return None,
            }
        }
    }

    /// A chunk of the initial events. The last chunk contains the bookmark that ends them.
    fn initial_chunk(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while let Some(object) = self.initial.pop() {
            let shown = self.show(&object);
            push_frame(&mut out, self.view.encoding, FrameKind::Added.name(), &shown);
            if out.len() >= CHUNK {
                return Some(out.into());
            }
        }
        self.state = WatchState::Live;
        if self.end_bookmark == EndBookmark::Send {
            let headers = std::mem::replace(&mut self.headers, ColumnDefinitions::Omitted);
            let end = &self.view.kind.bookmark().initial_events_end;
            push_bookmark(&mut out, &self.view, end, self.cursor, headers);
        }
        (!out.is_empty()).then(|| out.into())
    }

    /// Converts the objects of the next changes, if the kind has a webhook for that.
    async fn convert_ahead(&mut self) -> Result<(), Unconverted> {
        let Some(conversions) = self.view.conversions() else { return Ok(()) };
        conversions.forget();
        self.changed.mark_seen();
        let next = self.cluster.storage.changes(&self.view.kind.storage, self.cursor, BATCH);
        let Ok((changes, _)) = next else { return Ok(()) };
        self.converted = changes.len();
        let objects = changes.iter().flat_map(|change| change.previous.iter().chain([&change.object]));
        self.view.foresee(objects);
        self.view.catch_up(&self.cluster.rng).await.map(drop)
    }

    /// The frames of the changes after the cursor. Ends the watch if it lags too far or the log is
    /// compacted.
    fn changes(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        loop {
            let most = match self.view.conversions() {
                Some(_) => std::mem::take(&mut self.converted),
                None => {
                    self.changed.mark_seen();
                    BATCH
                }
            };
            let Ok((changes, waiting)) = self.cluster.storage.changes(&self.view.kind.storage, self.cursor, most)
            else {
                self.state = WatchState::Ended;
                break;
            };
            if waiting > self.cluster.settings.watch_backlog {
                self.state = WatchState::Ended;
                break;
            }
            let Some(last) = changes.last() else { break };
            self.cursor = last.revision();
            for change in &changes {
                if let Some(frame) = self.frame(change) {
                    out.extend_from_slice(&frame);
                }
            }
            if out.len() >= CHUNK {
                break;
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    /// An object in the form of this watch, at the current time.
    fn show(&mut self, object: &Arc<Object>) -> Bytes {
        match self.view.form {
            Form::Table(version, _) => {
                let headers = std::mem::replace(&mut self.headers, ColumnDefinitions::Omitted);
                self.view.table(version, object, headers).into()
            }
            _ => self.view.show(object),
        }
    }

    /// The frame of a change; `None` if the change does not match the watch.
    fn frame(&mut self, change: &Change) -> Option<Bytes> {
        if !self.filter.range().contains(change.object.key()) {
            return None;
        }
        let seen = |object: &Arc<Object>| self.filter.matches(&self.view, object);
        let before = change.previous.as_ref().is_some_and(seen);
        let kind = match (change.kind, before) {
            (ChangeKind::Deleted, true) => FrameKind::Deleted,
            (ChangeKind::Deleted, false) => return None,
            (ChangeKind::Created | ChangeKind::Updated, before) => match (before, seen(&change.object)) {
                (false, true) => FrameKind::Added,
                (true, true) => FrameKind::Modified,
                (true, false) => FrameKind::Deleted,
                (false, false) => return None,
            },
        };
        // An object that leaves the selector is sent with its previous content and the new resource
        // version.
        let object = || match (kind, change.kind, &change.previous) {
            (FrameKind::Deleted, ChangeKind::Updated, Some(previous)) => Arc::new(previous.under(change.revision())),
            _ => change.object.clone(),
        };
        let encoding = self.view.encoding;
        let framed = |shown: Bytes| {
            let mut out = Vec::new();
            push_frame(&mut out, encoding, kind.name(), &shown);
            Bytes::from(out)
        };
        Some(match self.view.is_time_dependent() {
            true => framed(self.show(&object())),
            false => change.frame(kind, &self.view, || framed(self.view.show(&object()))),
        })
    }

    /// Waits for a change, the deadline or the time of the next bookmark, which is returned.
    async fn wait(&mut self) -> Option<Bytes> {
        let bookmark_at = match self.bookmarks {
            Bookmarks::At(at) => at,
            Bookmarks::Never => self.deadline + Duration::from_secs(1),
        };
        tokio::select! {
            biased;
            changed = self.changed.changed() => {
                if changed.is_err() {
                    self.state = WatchState::Ended;
                }
                None
            }
            () = sleep_until(self.deadline) => {
                self.state = WatchState::Ended;
                None
            }
            () = sleep_until(bookmark_at) => self.bookmark(),
        }
    }

    /// Pending changes followed by a bookmark. An idle kind sends no bookmarks.
    fn bookmark(&mut self) -> Option<Bytes> {
        let now = Instant::now();
        let interval = self.cluster.settings.bookmark_interval;
        let before_end = last_bookmark(now, self.deadline);
        let next = match now >= before_end {
            true => now + Duration::from_secs(1),
            false => (now + interval).min(before_end),
        };
        self.bookmarks = Bookmarks::At(next);
        // Read before the changes, so that all changes up to this revision are sent before the
        // bookmark.
        let reached = self.cluster.storage.cached_revision(&self.view.kind.storage);
        let pending = self.changes();
        if reached <= self.started || !matches!(self.state, WatchState::Live) {
            return pending;
        }
        let mut out = pending.map(Vec::from).unwrap_or_default();
        let headers = std::mem::replace(&mut self.headers, ColumnDefinitions::Omitted);
        push_bookmark(&mut out, &self.view, &self.view.kind.bookmark().plain, reached, headers);
        Some(out.into())
    }
}

/// The time of a watch's last bookmark.
fn last_bookmark(now: Instant, deadline: Instant) -> Instant {
    deadline - LAST_BOOKMARK.min(deadline.saturating_duration_since(now))
}

fn random_timeout(cluster: &Cluster) -> Duration {
    let minimum = cluster.settings.min_watch_timeout;
    minimum + minimum.mul_f64(cluster.rng.fraction())
}

fn too_old(view: &View, requested: u64, oldest: u64) -> Status {
    Status::expired(match view.kind.is_uncached() {
        true => "The resourceVersion for the provided watch is too old.".to_owned(),
        false => format!("too old resource version: {requested} ({oldest})"),
    })
}

/// Appends an event with an encoded object.
fn push_frame(out: &mut Vec<u8>, encoding: Encoding, kind: &str, object: &[u8]) {
    match encoding {
        Encoding::Json => {
            out.extend_from_slice(b"{\"type\":\"");
            out.extend_from_slice(kind.as_bytes());
            out.extend_from_slice(b"\",\"object\":");
            out.extend_from_slice(object);
            out.extend_from_slice(b"}\n");
        }
        Encoding::Protobuf => protobuf::push_frame(out, kind, object),
    }
}

fn push_bookmark(out: &mut Vec<u8>, view: &View, bookmark: &Encoded, revision: u64, headers: ColumnDefinitions) {
    let bytes = bookmark.at_version(&revision.to_string());
    let object = || serde_json::from_slice(&bytes).unwrap_or_default();
    let shown = match (view.encoding, view.form) {
        (Encoding::Json, Form::Table(..)) => view.unsaved_table(&object(), headers),
        (Encoding::Json, Form::Metadata(version) | Form::MetadataList(version)) => {
            let start = bookmark.metadata().start;
            let digits = bytes.len() - bookmark.head().len() - bookmark.tail().len();
            let mut shown = Vec::new();
            push_metadata(&mut shown, version, &bytes[start..bookmark.metadata().end + digits]);
            shown
        }
        (Encoding::Protobuf, _) => view.show_unsaved(&object()),
        (Encoding::Json, Form::Full) => bytes,
    };
    push_frame(out, view.encoding, "BOOKMARK", &shown);
}

/// An ERROR event, which ends the stream. It does not depend on the form of the other events.
pub(crate) fn error_frame(status: &Status, encoding: Encoding) -> Bytes {
    let json = status.to_json();
    let shown = match encoding {
        Encoding::Json => json,
        Encoding::Protobuf => protobuf::transcode(&json).unwrap_or_default(),
    };
    let mut out = Vec::new();
    push_frame(&mut out, encoding, "ERROR", &shown);
    out.into()
}
