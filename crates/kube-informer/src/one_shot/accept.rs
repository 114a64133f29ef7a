//! Decoding of objects that are not stored in a cache.

use std::any::type_name;
use std::sync::Arc;

use bytes::Bytes;

use crate::body::{Arrival, BodyEncoder};
use crate::body::{Obj, Untyped};
use crate::object::DecodeError;
use crate::reflector::ObjectSource;

/// Decodes an object without compression, interning or a cache of decoded bodies.
pub(crate) fn accept(json: &Bytes, _: ObjectSource) -> Result<Obj<Untyped>, DecodeError> {
    BodyEncoder::detached().accept(json, Arrival::Listed)
}

/// The name of a type in error messages: without its module path.
pub(crate) fn name_of<K>() -> Arc<str> {
    let name = type_name::<K>();
    let outer = name.split('<').next().unwrap_or(name);
    outer.rsplit("::").next().unwrap_or(outer).into()
}
