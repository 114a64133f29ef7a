//! The metadata of objects, without the rest.

use std::ops::Deref;

use kube::core::{ApiResource, DynamicObject, PartialObjectMeta};

use super::DecodeError;
use super::kind::{Encoded, Kind, Object};

/// The metadata of objects of kind `K`: the server sends nothing else.
///
/// An informer of this type has a separate watch and cache, because its objects have no body. It
/// dereferences to kube's `PartialObjectMeta`. An informer of `PartialObjectMeta` itself caches
/// whole objects, of which it reads the metadata.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// # server.create(&serde_json::json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}))?;
/// use k8s_openapi::api::core::v1::Secret;
/// use kube_informer::{Informer, MetadataOnly};
///
/// let secrets = Informer::<MetadataOnly<Secret>>::builder(client).start();
/// secrets.synced().await?;
/// for secret in secrets.lister().list() {
///     assert_eq!(secret.get()?.metadata.name.as_deref(), Some("a"));
/// }
/// # Ok(()) });
/// ```
#[derive(Debug, Clone)]
#[doc(alias = "PartialObjectMetadata")]
pub struct MetadataOnly<K = DynamicObject>(PartialObjectMeta<K>);

impl<K> MetadataOnly<K> {
    /// The metadata as kube's type.
    #[must_use]
    pub fn into_inner(self) -> PartialObjectMeta<K> {
        self.0
    }
}

impl<K> Deref for MetadataOnly<K> {
    type Target = PartialObjectMeta<K>;

    fn deref(&self) -> &PartialObjectMeta<K> {
        &self.0
    }
}

impl<K: Send + Sync + 'static> Object for MetadataOnly<K> {
    const METADATA_ONLY: bool = true;

    fn decode(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
        PartialObjectMeta::decode(encoded).map(Self)
    }

    fn decode_without_managed_fields(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
        PartialObjectMeta::decode_without_managed_fields(encoded).map(Self)
    }
}

impl<K: Kind> Kind for MetadataOnly<K> {
    fn resource() -> ApiResource {
        K::resource()
    }

    fn in_namespaces() -> bool {
        K::in_namespaces()
    }
}
