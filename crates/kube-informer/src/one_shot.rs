//! Lists and watches without a cache: one paged list, one resumed watch, one awaited state.
//!
//! Uses `client` and the reflector's parts for requests and backoff. Starts no task and keeps no object.

pub use self::pager::{List, Pager};
pub use self::retry_watch::{RetryWatch, WatchEvent, WatchStream};
pub use self::until::until;

mod accept;
mod pager;
mod retry_watch;
mod until;
