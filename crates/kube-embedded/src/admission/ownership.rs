//! Who owns which field: `metadata.managedFields`, and server-side apply.
//!
//! Everything here is pure: values in, values and sets of fields out. A set is a tree of path elements, spelled as
//! `fieldsV1` spells them: `f:name` a field, `k:{"name":"a"}` an item by its keys, `v:"x"` a value of a set, `.` the place
//! itself.

mod compare;
mod fields;
mod kind_of;
mod managers;
mod merge;

pub(crate) use self::managers::{Author, Conflicts, apply, create, differ_in_times_only, update};

#[cfg(test)]
mod tests;
