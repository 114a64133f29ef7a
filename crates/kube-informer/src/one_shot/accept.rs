//! Objects outside of any cache.

use std::any::type_name;
use std::sync::Arc;

use bytes::Bytes;

use crate::body::{Arrival, BodyEncoder};
use crate::body::{Obj, Untyped};
use crate::object::DecodeError;
use crate::reflector::ObjectSource;

/// An object that nobody keeps.
pub(crate) fn accept(json: &Bytes, _: ObjectSource) -> Result<Obj<Untyped>, DecodeError> {
    BodyEncoder::loose().accept(json, Arrival::Listed)
}

/// What errors call objects of a type: its name without the modules it is in.
pub(crate) fn name_of<K>() -> Arc<str> {
    let name = type_name::<K>();
    let outer = name.split('<').next().unwrap_or(name);
    outer.rsplit("::").next().unwrap_or(outer).into()
}
