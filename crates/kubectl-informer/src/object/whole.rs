//! The whole object, of which `Obj::get` leaves the managers out.

use kube_informer::object::Encoded;
use kube_informer::{DecodeError, Obj, Object as _};
use serde_json::Value;

/// Decodes an object with its `metadata.managedFields`.
pub(crate) fn whole(object: &Obj<Value>) -> Result<Value, DecodeError> {
    Value::decode(Encoded::Json(&object.json()))
}
