//! What goes into the machine and what comes out of it.

use super::definition_watch::DefinitionState;
use crate::body::{Obj, Untyped};
use crate::client::ServerError;
use crate::client::{ListQuery, WatchQuery};
use crate::codec::{Broken, Change, ListEnd};
use crate::object::Version;
use crate::store::Delta;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// Begin.
    Start,
    /// An answer has begun.
    Opened(Lane),
    /// Bytes have arrived. Comes before whatever is read out of them.
    Bytes(Lane),
    /// An item of a list.
    Item(Obj<Untyped>),
    /// A list, or a page of it, is complete.
    PageEnded(ListEnd),
    /// A change or a bookmark.
    Frame(Lane, Frame),
    /// The server has sent a failure as an event.
    FailureFrame(Lane, ServerError),
    /// One object could not be read; where the next one begins is known.
    BadObject(Lane),
    /// A frame could not be read, and nothing of what follows can be trusted.
    BadFrame(Lane, Broken),
    /// A stream has ended as it should.
    Ended(Lane),
    /// A request was refused, or its answer broke off.
    Failed(Lane, ServerError),
    /// The present version, asked for because of a doubt.
    Revision(Result<Version, ServerError>),
    /// Whether the resource is defined, as far as whoever looks out for it can see.
    Sighted(DefinitionState),
    /// The time that was asked for has come.
    Tick,
    /// Whoever takes the deltas had kept us waiting: for that long nothing was read, and silence meant nothing.
    Resumed,
}

/// A change or a bookmark out of a watch.
#[derive(Debug)]
pub(crate) enum Frame {
    Changed(Change, Obj<Untyped>),
    Bookmark { version: Version, initial_events_end: bool },
}

/// Which of the two streams that may be open at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The list or the watch.
    Main,
    /// The second watch, beside one that is doubted.
    Beside,
}

/// Something to do, in order.
#[derive(Debug)]
pub(crate) enum Action {
    /// Drop the main stream and ask for a list.
    List(ListQuery),
    /// Drop the main stream and ask for a watch.
    Watch(WatchQuery),
    /// Drop the main stream.
    Close,
    /// Ask for the present version.
    AskRevision(ListQuery),
    /// Ask for a second watch beside the main one.
    WatchBeside(WatchQuery),
    /// Read no further on the second watch for now.
    HoldBeside,
    /// Drop the second watch and the question for the version.
    CloseBeside,
    /// The second watch takes the place of the main one.
    Switch,
    /// Have somebody look out for the resource, which the server does not know.
    LookOut,
    /// The resource is there.
    LookAway,
    /// Hand on a delta.
    Deliver(Delta),
    /// Tell of a failure.
    Report(ServerError),
}
