//! JSON: reading it field by field, skipping values, splitting lists and watches while they arrive.

pub(super) mod cursor;
pub(super) mod fields;
pub(super) mod frame;
pub(super) mod list;
pub(super) mod scan;
pub(super) mod skip;
pub(super) mod types;
pub(super) mod value;
pub(super) mod watch;
