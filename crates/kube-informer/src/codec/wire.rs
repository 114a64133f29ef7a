//! In which form objects travel.

use super::protobuf;

/// In which form objects travel from the server, and are held.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
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
/// assert_eq!(map.value_at(&"data.k".parse()?).as_deref(), Some("v"), "paths work as on JSON");
/// # Ok(())
/// # }
/// ```
///
/// What is read is the same in both: types of `k8s_openapi`, projections, `DynamicObject`, paths, `json()`. Only the built-in kinds
/// have protobuf, and only servers that speak it: custom resources, and all others, come as JSON whatever is set here.
///
/// Fields are read by a table of the built-in kinds, which is as of one release of Kubernetes. **A field that is newer than the
/// table is not seen through protobuf**, not even by a type that has it; through JSON it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Wire {
    /// JSON, which every kind has.
    #[default]
    Json,
    /// Protobuf where there is such a form, which is smaller and quicker to read; JSON elsewhere.
    Protobuf,
}

impl Wire {
    /// What the bytes of an object are.
    pub(crate) fn of(object: &[u8]) -> Self {
        if protobuf::is_protobuf(object) { Self::Protobuf } else { Self::Json }
    }
}
