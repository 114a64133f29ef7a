//! Kubernetes informers: one list, then a watch; an indexed local cache that serves all reads; and
//! event handlers that are called for every change.
//!
//! A program should not poll the API server. An [`Informer`] lists a resource once and then watches
//! it. It keeps a local cache close to the state of the cluster, serves every read from that cache,
//! and calls handlers when objects are added, updated and deleted: reliably, in order and with low
//! latency.
//!
//! ```
//! # kube_embedded::doctest([], async |server| {
//! # use serde_json::json;
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
//! printer.synced().await?; // the cache is complete and the printer has received all of it
//!
//! for map in maps.lister().namespace("kube-system").list() {
//!     println!("{} has {:?}", map.name(), map.get()?.data);
//! }
//! assert_eq!(by_app.count("dns"), 3);
//! # Ok(()) });
//! ```
//!
//! # Data flow
//!
//! ```text
//! API server ──LIST/WATCH──▶ reflector ──delta──▶ queue ──batch──▶ controller ──▶ store + indexes ◀── Lister, Index
//!     ▲                     frames, scans        bounded         the only writer      │
//!     └── relist if needed ────┘                                                      │ event, after readers can see it
//!                                                                                     ▼
//!                                                                    a bounded queue for each handler ─▶ handlers, streams
//! ```
//!
//! Bodies are decoded on demand: the cache stores the bytes received from the server, compressed,
//! next to the decoded metadata. The key, version, labels and owners of an [`Obj`] are always
//! available; its body is decoded when [`get`](Obj::get) is called, into the type of the caller, at
//! most once.
//!
//! What to use to:
//!
//! - share one cache, find kinds by name, wait for kinds to be defined: [`Factory`], [`Scope`]
//! - read: [`Lister`], [`Index`], [`Snapshot`]
//! - receive changes: [`Informer::on_event`], [`Informer::on_event_async`],
//!   [`Informer::subscribe`], [`HandlerBuilder`]
//! - wait: [`Informer::synced`], [`Registration::synced`], [`Informer::wait_for`],
//!   [`Informer::wait_until`]
//! - monitor: [`Health`], [`pipeline::Metrics`], [`InformerBuilder::on_watch_error`],
//!   [`Lister::fresh_within`]
//! - process keys with retries and backoff, as controllers do: [`WorkQueue`]
//! - list, watch or wait without a cache: [`one_shot`]
//! - supply objects from other sources, or in tests: [`client::ListWatch`], [`Lister::fixed`],
//!   [`Obj::from_json`]
//!
//! The root of the crate has what most programs name; the rest is in the module that it belongs to.
//!
//! The [`guide`] has a tutorial, programs in their shortest form, advice on controllers, on memory
//! and speed, on testing and on misuse, and on moving from client-go and kube-runtime.
//!
//! # Guarantees
//!
//! Each has a test of the same name in `tests/informer/guarantees.rs`.
//!
//! 1. *It lists once, then watches, and reads never reach the server.* It relists only if the watch
//!    cannot be resumed.
//! 2. *Readers see a change before handlers receive it.* A handler that reads the cache finds the
//!    state of its event, or a newer one.
//! 3. *Every read is a consistent snapshot*, indexes included, that neither blocks the writer nor
//!    is blocked by it.
//! 4. *Each object has one addition, ordered updates and one deletion*: each update starts from the
//!    last delivered state, with versions that never decrease. The same name with a new uid is a
//!    new object.
//! 5. *A late handler receives the current state once and then every change*: no duplicates,
//!    no gaps.
//! 6. *A slow handler delays nothing else*: not the cache, not the watch, not another handler. Its
//!    queue is bounded by its [`Backlog`](pipeline::Backlog).
//! 7. *A panicking handler continues with the next event.* The panic is counted.
//! 8. *A relist delivers the missed changes, deletions included*: after a lost watch every handler
//!    receives the difference as events, deletions first.
//! 9. *A body is decoded at most once, and only when it is read*, however many handlers and indexes
//!    read the object of one event.
//! 10. *An object that does not fit its type stops nothing.* Only decoding its body fails.
//! 11. *Synced returns an error when waiting cannot help*: if permissions, credentials or resource
//!     definitions are missing, or the server rejects the request itself, the wait returns an error,
//!     and the informer keeps retrying.
//! 12. *A caller that waits for the version of its write reads it.*
//! 13. *When the server goes back the cache follows, and waiting callers get an error*, as after
//!     the restore of a backup. A backup that has been written to beyond the version of the cache
//!     before the informer reconnects is recognized by the object that changed last, or by the one
//!     that was added or deleted last. If both have changed again, only the next list shows it, and
//!     [`Health::unverified_since`] says so until then.
//! 14. *A resync delivers every object again without a request*, as an update from the cache.
//! 15. *Dropping the last handle stops everything.* A lister is a handle too.
//! 16. *Shutdown leaves no task and no connection.*
//! 17. *One watch and one cache serve every view of a resource in a factory*, whatever their types.
//! 18. *Health never claims more than is known.* After a failure it is degraded, with the cause and
//!     since when, or shows the progress of a list, and is not synced again until the watch has
//!     delivered something, a list is complete, or a probe has shown that nothing was missed.
//!
//! What ensures each, besides the test of its name:
//!
//! | | mechanism | tests |
//! |---|---|---|
//! | 1 | reads use a snapshot in memory; the reflector's state machine knows the only reasons to relist | `a_watch_that_ended_is_opened_again_at_once_from_where_it_was`, `a_cut_connection_is_made_again_without_a_list` |
//! | 2 | one task writes: it publishes the state, then queues the events | `whatever_happens_the_cache_and_every_handler_end_at_the_truth` |
//! | 3 | a persistent trie, replaced by an atomic pointer | `readers_never_see_half_of_a_batch`, `a_snapshot_has_objects_and_indexes_of_one_moment` |
//! | 4 | the store, not the server, decides what an event is | `both_disciplines_report_the_same_correct_events`, `the_model_detects_every_fault` |
//! | 5 | handlers are added between two batches, by the task that writes | `handlers_added_and_removed_under_load_receive_consistent_events` |
//! | 6 | a queue for each handler, folded per object when it is full | `whatever_the_backlog_each_object_has_one_addition_ordered_updates_and_one_deletion_and_ends_at_the_truth` |
//! | 7 | each call of a handler is guarded | `a_function_that_panics_finds_nothing_and_harms_nothing` |
//! | 8 | a list is compared with the store while it arrives | `a_relist_delivers_changes_at_once_and_additions_after_the_missed_deletes` |
//! | 9 | bytes are kept, metadata is scanned, the decoded body is attached to its object | `what_reads_only_metadata_decodes_no_body`, `two_handlers_and_an_index_that_read_the_body_decode_it_once_for_an_event` |
//! | 10 | only metadata is read on arrival | `an_object_that_does_not_fit_delays_no_other` |
//! | 11 | the reflector's status has the refusal, which the wait returns | `synced_names_what_is_missing_and_why`, `a_refusal_may_be_waited_out` |
//! | 12 | the version is published with the state | `whatever_happens_the_cache_and_every_handler_end_at_the_truth` |
//! | 13 | the server's version is requested after failures, on silence, and when it is too low for a list | `a_restored_backup_is_detected_and_reported`, `a_restored_backup_that_others_write_to_is_noticed_too`, `a_history_that_cannot_be_verified_is_shown_until_the_next_list` |
//! | 14 | a resync is a delta in the queue | `a_resync_delivers_every_object_but_those_with_a_queued_delta`, `resyncs_faster_than_their_handler_do_not_starve_changes` |
//! | 15 | tasks hold no handle | `an_informer_stops_when_its_last_user_drops_it_and_starts_again_when_asked_for_again` |
//! | 16 | each task holds a token, and `shutdown` waits for all tokens | `shutdown_leaves_no_task_and_no_connection_of_any_informer` |
//! | 17 | informers are registered by resource and scope, weakly | `every_view_of_a_resource_shares_one_watch_and_one_cache` |
//! | 18 | only what the main watch delivers, a complete list or a probe that missed nothing end a failure | `retries_do_not_end_a_doubt`, `a_bookmark_that_the_server_cannot_have_sent_shows_nothing`, `a_complete_list_ends_any_other_doubt`, `a_watch_that_is_known_to_stall_is_a_doubt_until_the_second_one_takes_over` |
//!
//! Of the guarantees that do not depend on time, each test runs twice: on one thread with paused
//! time, and on several threads. [What a hostile server can do](guide::hostile_server) has the
//! bounds under which these hold.
//!
//! Not guaranteed: that every intermediate state of an object is delivered (the server omits states
//! when a watch is resumed after a list), that events of different objects keep their order across
//! a relist or a queue overflow, and that a disconnected cache is detected at once: see
//! [`Health::caught_up`].

pub mod body;
pub mod client;
pub mod codec;
pub mod factory;
#[cfg(test)]
#[path = "../../kube-embedded/src/fuzzing.rs"]
mod fuzzing;
pub mod guide;
pub mod informer;
pub mod object;
pub mod one_shot;
pub mod pipeline;
pub mod reflector;
pub mod shard;
pub mod store;
pub mod workqueue;

pub use self::body::{Keep, Obj, Untyped};
pub use self::client::client;
pub use self::codec::Wire;
pub use self::factory::{Factory, FactoryBuilder, Scope};
pub use self::informer::{
    HandlerBuilder, Index, Informer, InformerBuilder, Lister, ObjRef, Registration, Snapshot, Subscription, SyncError,
    WaitError,
};
pub use self::object::{DecodeError, FieldSelector, Kind, MetadataOnly, Object, ObjectKey, Selector, Uid, Version};
pub use self::pipeline::{Condition, Health};
pub use self::store::{Event, FinalState, Origin};
pub use self::workqueue::{Outcome, WorkQueue};
