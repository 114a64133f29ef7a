//! JSON: reading fields, skipping values, and incremental splitting of lists and watches.

pub(super) mod cursor;
pub(super) mod deserializer;
pub(super) mod fields;
pub(super) mod frame;
pub(super) mod list;
pub(super) mod scan;
pub(super) mod skip;
pub(super) mod types;
pub(super) mod value;
pub(super) mod watch;
