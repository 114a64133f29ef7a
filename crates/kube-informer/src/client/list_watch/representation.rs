//! What is requested of a list or a watch, and in which wire format.

use crate::codec::Wire;

/// What is requested, and in which wire format.
pub(super) enum Representation {
    Objects(Wire),
    Metadata(Wire),
}

pub(super) const PROTOBUF_OR_JSON: &str = "application/vnd.kubernetes.protobuf,application/json;q=0.9";
