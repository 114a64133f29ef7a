//! Comparing settings.

use std::fmt;
use std::sync::Arc;

use super::InformerSettings;

impl<K> InformerSettings<K> {
    /// Returns the first setting that differs: its name, its value in `self` and in `other`.
    pub(crate) fn difference(&self, other: &Self) -> Option<Difference> {
        // Without `..`, so that no setting is forgotten here.
        let Self {
            scopes,
            labels,
            fields,
            shard,
            resync,
            wire,
            keep,
            drop_fields,
            decode_managed_fields,
            keep_if,
            transform,
            on_watch_error,
            when_refused,
            discipline,
            reflector,
            metrics,
            name,
            seed,
            shutdown_grace,
            // An error, not a setting.
            invalid: _,
            kind: _,
        } = self;
        [
            differ("namespaces", scopes, &other.scopes),
            differ_if_set("labels", labels, &other.labels),
            differ_if_set("fields", fields, &other.fields),
            differ_if_set("shard", shard, &other.shard),
            differ_if_set("resync", resync, &other.resync),
            differ("wire", wire, &other.wire),
            differ("keep", keep, &other.keep),
            differ("drop_fields", drop_fields, &other.drop_fields),
            differ("decode_managed_fields", decode_managed_fields, &other.decode_managed_fields),
            differ_in_place("keep_if", keep_if, &other.keep_if),
            differ_in_place("transform", transform, &other.transform),
            differ_in_place("on_watch_error", on_watch_error, &other.on_watch_error),
            differ("when_refused", when_refused, &other.when_refused),
            differ("queue", discipline, &other.discipline),
            differ("reflector", reflector, &other.reflector),
            differ_in_place("metrics", metrics, &other.metrics),
            differ_if_set("name", name, &other.name),
            differ_if_set("seed", seed, &other.seed),
            differ_if_set("shutdown_grace", shutdown_grace, &other.shutdown_grace),
        ]
        .into_iter()
        .flatten()
        .next()
    }
}

/// The name of a setting, and its two values.
type Difference = (&'static str, String, String);

fn differ<T: PartialEq + fmt::Debug>(name: &'static str, ours: &T, theirs: &T) -> Option<Difference> {
    (ours != theirs).then(|| (name, format!("{ours:?}"), format!("{theirs:?}")))
}

fn differ_if_set<T: PartialEq + fmt::Debug>(
    name: &'static str,
    ours: &Option<T>,
    theirs: &Option<T>,
) -> Option<Difference> {
    let shown = |value: &Option<T>| value.as_ref().map_or_else(|| "none".to_owned(), |value| format!("{value:?}"));
    (ours != theirs).then(|| (name, shown(ours), shown(theirs)))
}

/// Compares functions by address.
fn differ_in_place<F: ?Sized>(
    name: &'static str,
    ours: &Option<Arc<F>>,
    theirs: &Option<Arc<F>>,
) -> Option<Difference> {
    let place = |value: &Option<Arc<F>>| value.as_ref().map(|value| Arc::as_ptr(value).cast::<()>());
    let shown = |value: &Option<Arc<F>>, some: &str| value.as_ref().map_or("none", |_| some).to_owned();
    (place(ours) != place(theirs)).then(|| (name, shown(ours, "one"), shown(theirs, "another")))
}
