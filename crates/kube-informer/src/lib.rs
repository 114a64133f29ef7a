//! Kubernetes informers: list once, watch, answer every read from an indexed local cache, hear of every change.
//!
//! A program must not poll the API server. An [`Informer`] lists a resource once, then watches it, keeps a local cache that is always
//! close behind the cluster, answers every read from that cache, and tells handlers what is added, updated and deleted: reliably, in
//! order and soon.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use serde_json::json;
//! # let server = kube_embedded::Server::builder().in_process().start().await?;
//! # for nth in 0..3 {
//! #     server.create(&json!({
//! #         "apiVersion": "v1", "kind": "ConfigMap", "data": {"colour": "blue"},
//! #         "metadata": {"name": format!("map-{nth}"), "namespace": "kube-system", "labels": {"app": "dns"}},
//! #     }))?;
//! # }
//! # let client = kube::Client::new(server.service(), "default");
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_informer::{Event, Informer};
//!
//! let maps = Informer::<ConfigMap>::builder(client).namespace("kube-system").drop_managed_fields().build();
//! let printer = maps.on_event(|event| match event {
//!     Event::Added { object, .. } => println!("+ {}", object.key()),
//!     Event::Updated { old, new, .. } => println!("~ {} {} -> {}", new.key(), old.version(), new.version()),
//!     Event::Deleted { last, .. } => println!("- {}", last.key()),
//! });
//! let by_app = maps.index_by_label("app");
//! maps.start();
//! printer.synced().await?; // the cache is full, and the printer has heard all of it
//!
//! for map in maps.lister().namespace("kube-system").list() {
//!     println!("{} has {:?}", map.name(), map.get()?.data);
//! }
//! assert_eq!(by_app.count("dns"), 3);
//! # Ok(())
//! # }
//! ```
//!
//! # The way of the data
//!
//! ```text
//! API server ──LIST/WATCH──▶ reflector ──delta──▶ queue ──batch──▶ controller ──▶ store + indexes ◀── Lister, Index
//!     ▲                     frames, scans        bounded         the only writer      │
//!     └── relist if it must ───┘                                                      │ event, after readers can see it
//!                                                                                     ▼
//!                                                                    a bounded queue for each handler ─▶ handlers, streams
//! ```
//!
//! Bytes in, objects on demand: what comes from the server stays bytes, packed small, beside the metadata that is always needed. Of an
//! [`Obj`] the key, version, labels and owners are at hand; its body is decoded when somebody calls [`get`](Obj::get), into whatever
//! type they ask for, and at most once.
//!
//! | to | use |
//! |---|---|
//! | share one cache among many, find kinds by name, wait for kinds to come | [`Factory`], [`Scope`] |
//! | read | [`Lister`], [`Index`], [`Snapshot`] |
//! | hear of changes | [`Informer::on_event`], [`Informer::on_event_async`], [`Informer::subscribe`], [`HandlerBuilder`] |
//! | wait | [`Informer::synced`], [`Registration::synced`], [`Informer::wait_for`], [`Informer::wait_until`] |
//! | know how it fares | [`Health`], [`Metrics`], [`InformerBuilder::on_watch_error`], [`Lister::fresh_within`] |
//! | list, watch or wait without a cache | [`Pager`], [`RetryWatch`], [`until()`] |
//! | bring objects from elsewhere, or in tests | [`ListWatch`], [`Lister::fixed`], [`Obj::from_json`] |
//!
//! The [`guide`] has a tutorial, what to choose for memory and speed, how to test, and what becomes of what you know from client-go and
//! kube-runtime.
//!
//! # Guarantees
//!
//! Each has a test of its name in `tests/informer/guarantees.rs`.
//!
//! 1. *It lists once, then watches, and reads never reach the server.* A list is made anew only where the watch cannot go on.
//! 2. *Readers see a change before handlers hear of it.* A handler that reads the cache finds what it was told of, or something newer.
//! 3. *Every read is of one moment*, indexes included, and neither waits for the writer nor keeps it waiting.
//! 4. *The story of each object is whole*: added once, updated from the state last told with versions that never go back, deleted once.
//!    The same name with a new uid is a new object.
//! 5. *A late handler hears the present state once and then every change*: nothing twice, nothing lost.
//! 6. *A slow handler holds up nobody*: not the cache, not the watch, not another handler. What waits for it is bounded by its
//!    [`Backlog`].
//! 7. *A panicking handler goes on with the next event.* The panic is counted.
//! 8. *What happened while nobody watched is told, deletions too*: after a lost watch every handler hears the difference, deletions
//!    first.
//! 9. *A body is decoded once, and only if somebody reads it*, however many handlers and indexes look at one event.
//! 10. *An object that does not fit its type stops nothing.* Only reading its body fails.
//! 11. *Synced says why where waiting cannot help*: missing permissions, credentials or definitions are an error of the wait, while the
//!     informer keeps trying.
//! 12. *Whoever waits for the version of their write reads it.*
//! 13. *When the server goes back the cache follows, and whoever waits learns of it*, as after a restored backup.
//! 14. *A resync tells everything again without asking the server.*
//! 15. *The last handle to go stops everything.*
//! 16. *Shutdown leaves no task and no connection.*
//! 17. *One watch and one cache serve all who ask a factory for a resource*, under whatever type they view it.
//!
//! What is not promised: that every state an object was in is told (the server itself leaves states out when a watch is taken up again
//! after a list), that events of different objects keep their order across a relist or an overflow, and that a cache that is cut off
//! knows of it at once: see [`Health::last_contact`].

#[doc(hidden)]
pub mod body;
mod client;
#[doc(hidden)]
pub mod codec;
mod factory;
pub mod guide;
mod informer;
mod object;
mod one_shot;
#[doc(hidden)]
pub mod pipeline;
pub mod reflector;
#[doc(hidden)]
pub mod store;
mod workqueue;

pub use self::body::{Keep, Obj, Untyped};
pub use self::client::{
    ApiListWatch, Body, Bookmarks, Compression, Detail, Doing, Failure, Frame, ListQuery, ListVersion, ListWatch,
    LookupError, Parameters, Placing, Resources, Served, ServerError, WatchQuery, WatchStart, client,
};
pub use self::codec::{ServerStatus, StatusCause, StatusDetails, Wire};
pub use self::factory::{Factory, FactoryBuilder, FactorySyncError, Missing, NotSynced, Scope, SettingsConflict};
pub use self::informer::{
    HandlerBuilder, Index, Informer, InformerBuilder, InformerSettings, Lister, NamespaceLister, NamespacesShared,
    ObjRef, Registration, Snapshot, Stale, Subscription, SyncError, WaitError, WhenRefused,
};
pub use self::object::{
    DecodeError, Encoded, FieldPath, FieldSelector, Kind, Labels, Object, ObjectKey, Owner, ParseError, Selector, Uid,
    Version,
};
pub use self::one_shot::{List, Pager, RetryWatch, WatchEvent, WatchStream, until};
pub use self::pipeline::delta_fifo::Discipline;
pub use self::pipeline::health::{Condition, Health};
#[cfg(feature = "metrics")]
pub use self::pipeline::metrics::Facade;
pub use self::pipeline::metrics::{Figures, HandlerFigures, Metrics};
pub use self::pipeline::processor::{Backlog, Overflow};
pub use self::store::{Event, FinalState, Origin, Verdict};
pub use self::workqueue::{Item, Next, Outcome, Priority, QueueMetrics, RateLimit, WorkQueue, WorkQueueBuilder};
