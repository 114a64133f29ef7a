//! Inputs and actions of the state machine.

use std::sync::Arc;

use super::definition_watch::DefinitionState;
use crate::body::{Obj, Untyped};
use crate::client::{Failure, ServerError};
use crate::client::{ListQuery, WatchQuery};
use crate::codec::{Change, ListEnd};
use crate::object::Version;
use crate::shard::{Shard, ShardSupport};
use crate::store::Delta;

/// An input of the machine.
#[derive(Debug)]
pub(crate) enum Input {
    /// The reflector has started.
    Start,
    /// A response has begun.
    Opened(Lane),
    /// Bytes have arrived. Precedes the inputs decoded from them.
    Bytes(Lane),
    /// An item of a list.
    Item(Obj<Untyped>),
    /// An item of a list that does not belong to the shard.
    ItemOutside,
    /// A list, or one page of it, is complete.
    PageEnded(ListEnd),
    /// A change or a bookmark.
    Frame(Lane, Frame),
    /// The server has sent an error as a watch event.
    FailureFrame(Lane, ServerError),
    /// An object or a frame could not be decoded. What follows it is not used: a deletion may be
    /// among what is missing.
    BadFrame(Lane, Failure),
    /// A stream has ended regularly.
    Ended(Lane),
    /// A request was refused, or its response was cut off.
    Failed(Lane, ServerError),
    /// The server's current version, requested by [`Action::RequestRevision`].
    Revision(Result<ServerState, ServerError>),
    /// Whether the resource is defined, according to the definition watch.
    Definition(DefinitionState),
    /// The reflector has another shard from now on.
    ShardMoved(Option<Arc<Shard>>),
    /// Whether the server obeys shard selectors, requested by [`Action::AskShardSupport`].
    ShardSupport(Result<ShardSupport, ServerError>),
    /// The time returned by `Machine::due` has been reached.
    Tick,
    /// How many bytes of objects the sink holds, requested by [`Action::MeasureHeld`].
    Held(u64),
    /// Backpressure from the sink has ended: nothing was read meanwhile, so the silence of a stream
    /// meant nothing.
    Resumed,
}

/// The response to a request for the server's version.
#[derive(Debug)]
pub(crate) struct ServerState {
    pub(crate) version: Version,
    /// The requested object, if the server has it.
    pub(crate) object: Option<Obj<Untyped>>,
    /// Whether the response contained other objects: the source cannot request a single one.
    pub(crate) has_others: bool,
}

impl ServerState {
    /// Whether the response shows the state of the requested object, or that it does not exist.
    pub(crate) fn is_of_requested_object(&self) -> bool {
        self.object.is_some() || !self.has_others
    }
}

/// A change or a bookmark from a watch.
#[derive(Debug)]
pub(crate) enum Frame {
    Changed(Change, Obj<Untyped>),
    /// A change of an object that does not belong to the shard.
    Outside {
        version: Version,
    },
    Bookmark {
        version: Version,
        initial_events_end: bool,
    },
}

/// Identifies one of the two streams that may be open at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The list or the watch.
    Main,
    /// The second watch, opened while the main one is suspected to be stalled.
    Second,
}

/// An action to execute, in order.
#[derive(Debug)]
pub(crate) enum Action {
    /// Drop the main stream and request a list.
    List(ListQuery),
    /// Drop the main stream and request a watch.
    Watch(WatchQuery),
    /// Ask whether the server obeys shard selectors.
    AskShardSupport(Arc<Shard>),
    /// Drop the main stream.
    Close,
    /// Request the server's current version, and the state of an object.
    RequestRevision(ListQuery),
    /// Open the second watch, in addition to the main one.
    WatchSecond(WatchQuery),
    /// Stop reading the second watch for now.
    PauseSecond,
    /// Drop the second watch and the request for the version.
    CloseSecond,
    /// Make the second watch the main one.
    Switch,
    /// Start the definition watch of the resource, which the server does not know.
    WatchDefinition,
    /// Stop the definition watch: the server knows the resource.
    UnwatchDefinition,
    /// Pass a delta to the sink.
    Deliver(Delta),
    /// Ask the sink how many bytes of objects it holds.
    MeasureHeld,
    /// Report a failure to `on_error`.
    Report(ServerError),
}
