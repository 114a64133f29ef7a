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
