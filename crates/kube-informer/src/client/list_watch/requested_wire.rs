//! The wire format to request.

use crate::codec::Wire;

/// The wire format in which objects are requested.
///
/// ```
/// # kube_embedded::doctest(["a"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::client::RequestedWire;
/// use kube_informer::{Informer, Wire};
///
/// let maps = Informer::<ConfigMap>::builder(client).wire(RequestedWire::Auto).start();
/// maps.synced().await?;
/// assert_eq!(maps.health().wire, Some(Wire::Protobuf), "the server is not newer than this crate");
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RequestedWire {
    /// JSON, which every kind supports.
    #[default]
    Json,
    /// Protobuf where the kind and the server support it, which is smaller and faster to read; JSON
    /// otherwise.
    Protobuf,
    /// [`Protobuf`](Self::Protobuf) if the server is not newer than the table of this crate, so
    /// that no field is lost; JSON otherwise.
    ///
    /// The version of the server is requested before each list and each watch, because the server
    /// may have been upgraded since: one more small request for an informer of a built-in kind. If
    /// it fails or takes longer than five seconds, JSON is used.
    /// [`Health::wire`](crate::Health::wire) is what was chosen.
    Auto,
}

impl From<Wire> for RequestedWire {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::Json => Self::Json,
            Wire::Protobuf => Self::Protobuf,
        }
    }
}
