//! Objects outside of any cache.

use std::any::type_name;
use std::sync::Arc;

use bytes::Bytes;

use crate::body::{Arrival, Keeper};
use crate::body::{Obj, Untyped};
use crate::object::DecodeError;
use crate::reflector::Whence;

/// An object that nobody keeps.
pub(crate) fn accept(json: &Bytes, _: Whence) -> Result<Obj<Untyped>, DecodeError> {
    Keeper::loose().accept(json, Arrival::Listed)
}

/// What errors call objects of a type: its name without the modules it is in.
pub(crate) fn name_of<K>() -> Arc<str> {
    let name = type_name::<K>();
    let outer = name.split('<').next().unwrap_or(name);
    outer.rsplit("::").next().unwrap_or(outer).into()
}
