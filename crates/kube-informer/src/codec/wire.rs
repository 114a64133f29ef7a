//! The wire format of objects.

use super::protobuf;

/// The format of objects, as the server sends them and the cache stores them.
///
/// [`RequestedWire`](crate::client::RequestedWire) says which one is requested.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// # server.create(&serde_json::json!({
/// #     "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {"k": "v"},
/// # }))?;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, Wire};
///
/// let maps = Informer::<ConfigMap>::builder(client).wire(Wire::Protobuf).start();
/// maps.synced().await?;
/// let map = &maps.lister().list()[0];
/// assert_eq!(map.get()?.data.as_ref().unwrap()["k"], "v");
/// assert_eq!(map.value_at("data.k")?.as_deref(), Some("v"), "paths work as on JSON");
/// # Ok(()) });
/// ```
///
/// Reads return the same in both formats: types of `k8s_openapi`, projections, `DynamicObject`,
/// paths, `json()`. Only the built-in kinds have protobuf, and only on servers that support it:
/// custom resources and all other kinds are sent as JSON, whatever is set here.
///
/// Protobuf fields are read through a table of the built-in kinds of one Kubernetes release. **A
/// field that is newer than the table is not visible through protobuf**, not even to a type that
/// has it; through JSON it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Wire {
    /// JSON, which every kind supports.
    #[default]
    Json,
    /// Protobuf, of built-in kinds; smaller and faster to read.
    Protobuf,
}

impl Wire {
    /// Detects the format of an object.
    pub(crate) fn of(object: &[u8]) -> Self {
        if protobuf::is_protobuf(object) { Self::Protobuf } else { Self::Json }
    }
}
