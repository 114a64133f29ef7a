//! From deltas to handlers: the delta queue, the controller and the processor, with their limits,
//! metrics and health.
//!
//! Programs use the limits of a handler's queue ([`Backlog`]), [`Metrics`] and [`Health`].
//! [`DeltaFifo`] is the advanced layer, for a [`Reflector`](crate::reflector::Reflector) without an
//! informer.

// The controller is client-go's: the one task that writes the store, not a controller that users
// write. Uses `reflector`, `store` and `body`; must not use `informer` or `factory`.

pub use self::delta_fifo::{DeltaFifo, DeltaFifoBounds, DeltaFifoFull, Discipline};
pub use self::health::{Condition, Health};
pub use self::informer_name::InformerName;
#[cfg(feature = "metrics")]
pub use self::metrics::Facade;
pub use self::metrics::{Figures, HandlerFigures, Metrics};
pub use self::processor::{Backlog, Overflow};

pub(crate) mod controller;
mod delta_fifo;
pub(crate) mod health;
mod informer_name;
pub(crate) mod metrics;
pub(crate) mod platform;
pub(crate) mod processor;
pub(crate) mod watchdog;
