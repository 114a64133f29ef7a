//! Field ownership: `metadata.managedFields` and server-side apply.
//!
//! Pure functions on values and sets of fields. A set is a tree of path elements in the notation of
//! `fieldsV1`: `f:name` is a field, `k:{"name":"a"}` an item by its keys, `v:"x"` a value of a set,
//! `.` the parent itself.

mod compare;
mod fields;
mod managers;
mod merge;
mod scale;
mod types;

pub(crate) use self::managers::{Author, Conflicts, apply, create, differ_in_times_only, update};
pub(crate) use self::scale::{from_scale, to_scale};

#[cfg(test)]
mod tests;

#[cfg(test)]
mod fuzz {
    use serde_json::Value;

    use super::*;
    use crate::encoding::depth::depth;
    use crate::fuzzing::{fuzz, recorded};
    use crate::kinds::Registry;

    #[test]
    fn any_configuration_is_applied_or_refused() {
        let (bodies, _) = recorded();
        let kinds: Vec<_> = Registry::new().kinds().cloned().collect();
        let deep = |levels| {
            (0..levels).fold(serde_json::json!({}), |inner, _| serde_json::json!({"f:a": inner, "k:{\"a\":1}": {}}))
        };
        fuzz(200, |source| {
            let kind = source.choose(&kinds);
            let parsed = |bytes: &[u8]| {
                serde_json::from_slice::<Value>(bytes).ok().filter(|value| value.is_object() && depth(value) <= 100)
            };
            let value = |source: &mut crate::fuzzing::Source| match source.one_in(3) {
                true => parsed(&source.nested(100)),
                false => parsed(&source.mutated(&bodies)),
            };
            let (Some(mut live), Some(config)) = (value(source), value(source)) else { return };
            if live["metadata"].is_object() {
                let levels = source.below(90);
                live["metadata"]["managedFields"] = serde_json::json!([
                    {"manager": "x", "operation": "Apply", "apiVersion": kind.api_version(), "fieldsV1": deep(levels)},
                    {"manager": "y", "operation": "Update", "apiVersion": "v1", "time": "t", "fieldsV1": value(source)},
                ]);
            }
            let author = Author { manager: "m", time: "2026-01-01T00:00:00Z", part: None };
            for conflicts in [Conflicts::Refused, Conflicts::Forced] {
                if let Ok(applied) = apply(kind, author, Some(&live), &config, conflicts) {
                    assert!(depth(&applied) < 120, "{}", depth(&applied));
                }
            }
            let mut new = config;
            update(kind, author, &live, &mut new);
            create(kind, author, &mut new);
        });
    }
}
