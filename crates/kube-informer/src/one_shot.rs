//! Lists and watches without a cache: one paged list, one resumed watch, one awaited state.
//!
//! Stores no object, and starts no task except for read-ahead.

// Uses `body`, `client`, `codec`, `object` and the reflector's parts for requests and backoff; must
// not use `informer`, `store` or `pipeline`.

pub use self::pager::{List, Pager};
pub use self::retry_watch::{RetryWatch, WatchEvent, WatchStream};
pub use self::until::until;

mod accept;
mod pager;
mod retry_watch;
mod until;
