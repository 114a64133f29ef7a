//! Decoding with the managed fields, which `Obj::get` leaves out.

use kube_informer::object::Encoded;
use kube_informer::{DecodeError, Obj, Object as _};
use serde_json::Value;

/// Decodes an object with its `metadata.managedFields`.
pub(crate) fn with_managed_fields(object: &Obj<Value>) -> Result<Value, DecodeError> {
    Value::decode(Encoded::Json(&object.json()))
}
