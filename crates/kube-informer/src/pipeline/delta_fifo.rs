//! The bounded queue of deltas between the reflectors and the controller.

use std::fmt;

use hashbrown::HashSet;

use self::keyed::Keyed;
use self::ordered::Ordered;
use crate::object::ObjectKey;
use crate::store::{Delta, MAX_BATCH};

mod keyed;
mod ordered;

/// How the queue treats several deltas of one object.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::pipeline::Discipline;
///
/// // client-go's DeltaFIFO, as it was before 1.36.
/// let maps = Informer::<ConfigMap>::builder(client).queue(Discipline::Keyed).start();
/// maps.synced().await?;
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
#[doc(alias("Queue", "QueueWithBatch"))]
pub enum Discipline {
    /// Every delta is kept, in the server's order across objects.
    #[default]
    #[doc(alias = "RealFIFO")]
    #[doc(alias("NewRealFIFO", "NewRealFIFOWithOptions", "RealFIFOOptions"))]
    Ordered,
    /// Deltas accumulate at the queue position of their object while the controller lags.
    /// Consecutive deletes are merged into one, and a delete of an unknown object is dropped.
    #[doc(alias = "DeltaFIFO")]
    #[doc(alias("NewDeltaFIFO", "NewDeltaFIFOWithOptions", "DeltaFIFOOptions"))]
    Keyed,
}

/// Limits of a [`DeltaFifo`]. The byte limit may be exceeded by one delta, so that a delta of any
/// size can pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaFifoBounds {
    /// The maximum number of deltas.
    pub deltas: usize,
    /// The maximum number of bytes, approximately.
    pub bytes: usize,
}

impl Default for DeltaFifoBounds {
    fn default() -> Self {
        Self { deltas: 2_000, bytes: 16 << 20 }
    }
}

/// A bounded queue of deltas with one of two disciplines.
///
/// It never blocks: a full queue returns the delta, and the reflector waits until
/// [`pop`](Self::pop) has made room, so backpressure reaches the server instead of filling memory.
pub struct DeltaFifo {
    lane: Lane,
    bounds: DeltaFifoBounds,
    deltas: usize,
    bytes: usize,
    is_known: Known,
}

/// Whether the store has an object of this key.
type Known = Box<dyn Fn(&ObjectKey) -> bool + Send + Sync>;

/// A [`DeltaFifo`] is full; returns the delta.
#[derive(Debug)]
pub struct DeltaFifoFull(pub Delta);

enum Lane {
    Ordered(Ordered),
    Keyed(Keyed),
}

impl DeltaFifo {
    /// Creates an empty queue. `is_known` looks up a key in the store that the deltas are applied
    /// to; only the keyed discipline calls it.
    #[must_use]
    pub fn new(
        discipline: Discipline,
        bounds: DeltaFifoBounds,
        is_known: impl Fn(&ObjectKey) -> bool + Send + Sync + 'static,
    ) -> Self {
        let lane = match discipline {
            Discipline::Ordered => Lane::Ordered(Ordered::default()),
            Discipline::Keyed => Lane::Keyed(Keyed::default()),
        };
        Self { lane, bounds, deltas: 0, bytes: 0, is_known: Box::new(is_known) }
    }

    /// Queues a delta, or returns it if there is no room.
    pub fn push(&mut self, delta: Delta) -> Result<(), DeltaFifoFull> {
        if !self.has_room() {
            return Err(DeltaFifoFull(delta));
        }
        let weight = delta.weight();
        let kept = match &mut self.lane {
            Lane::Ordered(ordered) => {
                ordered.push(delta);
                true
            }
            Lane::Keyed(keyed) => keyed.push(delta, &self.is_known),
        };
        if kept {
            self.deltas += 1;
            self.bytes += weight;
        }
        Ok(())
    }

    /// The next deltas to apply, in order: at most [`MAX_BATCH`], or all accumulated deltas of
    /// one object. No two deltas concern the same object, except accumulated ones. A delta that
    /// concerns no single object is returned alone. Empty if nothing is queued.
    ///
    /// The caller must apply the batch before the next call.
    pub fn pop(&mut self) -> Vec<Delta> {
        let batch = match &mut self.lane {
            Lane::Ordered(ordered) => ordered.pop(MAX_BATCH),
            Lane::Keyed(keyed) => keyed.pop(MAX_BATCH),
        };
        self.deltas -= batch.len();
        self.bytes -= batch.iter().map(Delta::weight).sum::<usize>().min(self.bytes);
        if self.deltas == 0 {
            // An object may be packed while queued, and then weigh less than when it was pushed.
            self.bytes = 0;
        }
        batch
    }

    /// Whether another delta would be accepted.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.deltas == 0 || (self.deltas < self.bounds.deltas && self.bytes < self.bounds.bytes)
    }

    /// The number of queued deltas.
    #[must_use]
    pub fn len(&self) -> usize {
        self.deltas
    }

    /// Whether nothing is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deltas == 0
    }

    /// The number of queued bytes, approximately.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for DeltaFifo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let discipline = match self.lane {
            Lane::Ordered(_) => Discipline::Ordered,
            Lane::Keyed(_) => Discipline::Keyed,
        };
        f.debug_struct("DeltaFifo")
            .field("discipline", &discipline)
            .field("deltas", &self.deltas)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// Excludes the objects that have queued deltas from a resync.
fn exclude_queued(delta: &mut Delta, queued: impl Iterator<Item = ObjectKey>) {
    if let Delta::Resync { except } = delta {
        let mut all: HashSet<ObjectKey> = except.drain(..).collect();
        all.extend(queued);
        except.extend(all);
    }
}
