//! From deltas to handlers: the delta queue, the controller and the processor.
//!
//! The controller is client-go's: the one task that writes the store, not a controller that users
//! write. Uses `reflector`, `store` and `body`; must not use `informer` or `factory`.

pub(crate) mod controller;
#[doc(hidden)]
pub mod delta_fifo;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod processor;
