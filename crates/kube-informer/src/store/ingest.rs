//! Filter and transform functions applied before an object is stored.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;

use crate::body::{Arrival, BodyEncoder};
use crate::body::{Obj, Untyped};
use crate::object::{Encoded, Object, ObjectKey};

/// What to do with an object that has been transformed.
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::store::Verdict;
///
/// let maps = Informer::<ConfigMap>::builder(client)
///     .transform(|map| {
///         map["data"] = serde_json::Value::Null;
///         if map["metadata"]["name"] == "b" { Verdict::Drop } else { Verdict::Keep }
///     })
///     .start();
/// maps.synced().await?;
/// assert_eq!(maps.lister().len(), 1);
/// assert!(maps.lister().list()[0].get()?.data.is_none());
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Store it.
    Keep,
    /// Do not store it. If it is in the cache, it is deleted from it, as
    /// [`Filtered`](crate::FinalState::Filtered).
    Drop,
}

type KeepIf = Box<dyn Fn(&Obj<Untyped>) -> bool + Send + Sync>;
type Transform = Box<dyn Fn(&mut Value) -> Verdict + Send + Sync>;

/// The user's functions that filter and transform objects before they are stored.
///
/// They are called once for each object that is new or has changed, and not for objects that a list
/// returns unchanged. If a function panics, or a transform returns what is not an object of the
/// same key, that is logged and the object is stored as if the function were not set.
#[derive(Default)]
pub struct Ingest {
    keep_if: Option<KeepIf>,
    transform: Option<(Transform, BodyEncoder)>,
    /// How often the result of a transform was rejected.
    unusable: AtomicU64,
}

impl Ingest {
    /// Stores only objects for which `test` returns true.
    #[must_use]
    pub fn keep_if(self, test: impl Fn(&Obj<Untyped>) -> bool + Send + Sync + 'static) -> Self {
        Self { keep_if: Some(Box::new(test)), ..self }
    }

    /// Transforms objects before they are stored, and may drop them. `encoder` encodes the results;
    /// the original objects are not stored, and are best accepted as
    /// [in transit](Arrival::InTransit).
    #[must_use]
    pub fn transform(self, encoder: BodyEncoder, f: impl Fn(&mut Value) -> Verdict + Send + Sync + 'static) -> Self {
        Self { transform: Some((Box::new(f), encoder)), ..self }
    }

    /// The object to store, or the original as an error if it is rejected.
    pub(super) fn admit(&self, object: Obj<Untyped>, arrival: Arrival) -> Result<Obj<Untyped>, Obj<Untyped>> {
        if self.keep_if.is_none() && self.transform.is_none() {
            return Ok(object);
        }
        let keeps = |kept: &Obj<Untyped>| {
            let call = |keep_if: &KeepIf| guarded_for("keep_if", kept.key(), || keep_if(kept)).unwrap_or(true);
            self.keep_if.as_ref().is_none_or(call)
        };
        self.transformed(object.clone(), arrival).filter(keeps).ok_or(object)
    }

    /// The transformed object, without the `keep_if` test; none if the transform drops it. Also
    /// used for the final state of an object that was stored.
    pub(super) fn transformed(&self, object: Obj<Untyped>, arrival: Arrival) -> Option<Obj<Untyped>> {
        let Some((transform, encoder)) = &self.transform else { return Some(object) };
        let json = object.json();
        let mut value = match Value::decode(Encoded::Json(&json)) {
            Ok(value) => value,
            Err(error) => {
                self.log_unusable(object.key(), &error);
                return Some(encoder.accept(&json, arrival).unwrap_or(object));
            }
        };
        let verdict = guarded_for("transform", object.key(), || transform(&mut value));
        if verdict == Some(Verdict::Drop) {
            return None;
        }
        let kept = verdict.and_then(|_| {
            let changed = encoder.accept(&value.to_string().into(), arrival);
            match changed {
                Ok(kept) if kept.key() == object.key() => return Some(kept),
                Ok(kept) => self.log_unusable(object.key(), &format_args!("it changed the key to {}", kept.key())),
                Err(error) => self.log_unusable(object.key(), &format_args!("its result: {error}")),
            }
            None
        });
        Some(kept.or_else(|| encoder.accept(&json, arrival).ok()).unwrap_or(object))
    }

    /// Logs that a transform could not be applied: the first time, and then ever less often.
    fn log_unusable(&self, key: &ObjectKey, why: &dyn fmt::Display) {
        let times = self.unusable.fetch_add(1, Ordering::Relaxed) + 1;
        if times.is_power_of_two() {
            tracing::error!(%key, times, "the result of the transform was rejected, and the object is stored as received: {why}");
        }
    }
}

/// Calls a user's function; returns none if it panics.
pub(crate) fn guarded<T>(what: &str, run: impl FnOnce() -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(run));
    result.map_err(|_| tracing::error!("{what}: the function panicked; the cache goes on without its answer")).ok()
}

/// The same for a function of one object.
pub(crate) fn guarded_for<T>(what: &str, key: &ObjectKey, run: impl FnOnce() -> T) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(run));
    result
        .map_err(|_| tracing::error!(%key, "{what}: the function panicked; the cache goes on without its answer"))
        .ok()
}

impl fmt::Debug for Ingest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ingest")
            .field("keep_if", &self.keep_if.is_some())
            .field("transform", &self.transform.is_some())
            .finish()
    }
}
