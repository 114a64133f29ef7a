//! The traits of types that objects are read as.

use std::any::TypeId;
use std::sync::LazyLock;

use bytes::Bytes;
use k8s_openapi::ClusterResourceScope;
use kube::core::ApiResource;
use serde::de::DeserializeOwned;

use super::is_built_in_cluster_scoped;
use super::{DecodeError, FieldPath};
use crate::codec::{Broken, FieldCutter, JsonFault, Omit, Wire, decode_json, protobuf};

/// A type that bodies can be decoded into: anything that serde can deserialize. Implemented for all
/// such types.
///
/// ```
/// use kube_informer::Obj;
/// use serde::Deserialize;
///
/// // Only the fields that are needed of a pod.
/// #[derive(Deserialize)]
/// struct Placed { spec: Spec }
/// #[derive(Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Spec { node_name: Option<String> }
///
/// let pod = Obj::<Placed>::from_json(r#"{"metadata":{"name":"a"},"spec":{"nodeName":"n1","containers":[]}}"#)?;
/// assert_eq!(pod.get()?.spec.node_name.as_deref(), Some("n1"));
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from a cache",
    note = "derive `serde::Deserialize` for it; it must own its data and be `Send + Sync + 'static`"
)]
pub trait Object: Sized + Send + Sync + 'static {
    /// Whether only metadata is requested from the server; see
    /// [`MetadataOnly`](crate::MetadataOnly).
    const METADATA_ONLY: bool = false;

    /// Decodes one object.
    fn decode(encoded: Encoded<'_>) -> Result<Self, DecodeError>;

    /// Decodes one object as if it had no `metadata.managedFields`, which are half of a pod and
    /// most of the work of decoding it. This is what [`Obj::get`](crate::Obj::get) calls unless the
    /// informer [decodes them](crate::InformerBuilder::decode_managed_fields).
    fn decode_without_managed_fields(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
        let cut = encoded.cut_managed_fields().map_err(DecodeError::broken::<Self>)?;
        Self::decode(Encoded::of(&cut))
    }
}

impl<T: DeserializeOwned + Send + Sync + 'static> Object for T {
    fn decode(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
        decode_omitting(encoded, Omit::Nothing)
    }

    fn decode_without_managed_fields(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
        decode_omitting(encoded, Omit::ManagedFieldsOfMetadata)
    }
}

fn decode_omitting<T: DeserializeOwned>(encoded: Encoded<'_>, omit: Omit) -> Result<T, DecodeError> {
    match encoded {
        Encoded::Json(json) => {
            // Validates UTF-8 once for the whole body, which is faster than string by string. Go
            // replaces invalid UTF-8 in the same way.
            let text = String::from_utf8_lossy(json);
            match decode_json(&text, omit) {
                Err(error) if error.fault == JsonFault::NotOmitted => {
                    let cut = encoded.cut_managed_fields().map_err(DecodeError::broken::<T>)?;
                    decode_omitting(Encoded::of(&cut), Omit::Nothing)
                }
                decoded => decoded.map_err(|error| DecodeError::of_json::<T>(&error, text.as_bytes())),
            }
        }
        Encoded::Protobuf(object) => match protobuf::decode(object, omit) {
            Some(value) => Ok(value),
            // Converts to JSON, for errors that name the field, and because some types can only be
            // decoded from JSON.
            None => {
                let json = protobuf::to_json(object).map_err(DecodeError::broken::<T>)?;
                decode_omitting(Encoded::Json(&json), omit)
            }
        },
    }
}

/// The bytes of one object, in the encoding the server sent.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Object;
/// use kube_informer::object::Encoded;
///
/// let map = ConfigMap::decode(Encoded::Json(br#"{"metadata":{"name":"a"}}"#))?;
/// assert_eq!(map.metadata.name.as_deref(), Some("a"));
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Encoded<'a> {
    /// JSON text.
    Json(&'a [u8]),
    /// Protobuf of a built-in kind, in the envelope of Kubernetes, which starts with `k8s` and a
    /// zero byte.
    Protobuf(&'a [u8]),
}

impl<'a> Encoded<'a> {
    /// Recognizes the encoding of an object.
    pub(crate) fn of(object: &'a [u8]) -> Self {
        match Wire::of(object) {
            Wire::Json => Self::Json(object),
            Wire::Protobuf => Self::Protobuf(object),
        }
    }

    /// The bytes without `metadata.managedFields`.
    fn cut_managed_fields(self) -> Result<Bytes, Broken> {
        static CUTTER: LazyLock<FieldCutter> =
            LazyLock::new(|| FieldCutter::new("metadata.managedFields".parse::<FieldPath>()));
        let (Self::Json(object) | Self::Protobuf(object)) = self;
        CUTTER.cut(&Bytes::copy_from_slice(object))
    }
}

/// A type with a statically known resource, so that an informer can be built from the type alone.
///
/// Implemented for types of `k8s_openapi` and derived ones. For a projection it takes one line:
///
/// ```
/// use kube::core::ApiResource;
/// use kube_informer::Kind;
///
/// #[derive(serde::Deserialize)]
/// struct PodIps { status: Option<Status> }
/// #[derive(serde::Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct Status { pod_ip: Option<String> }
///
/// impl Kind for PodIps {
///     fn resource() -> ApiResource { k8s_openapi::api::core::v1::Pod::resource() }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which resource it is of",
    label = "a kind known when compiling is needed here",
    note = "for your own struct: `impl Kind for {Self} {{ fn resource() -> ApiResource {{ Pod::resource() }} }}`",
    note = "for a kind known only at run time (`DynamicObject`): name the resource, as in `builder_for(client, resource)`"
)]
pub trait Kind: Object {
    /// The resource of this type.
    fn resource() -> ApiResource;

    /// Whether the objects are namespaced, as those of most kinds are. A projection of a
    /// cluster-scoped custom kind must return false to be used with a [`Factory`](crate::Factory)
    /// that has namespaces among its defaults. Of built-in kinds it is known.
    #[must_use]
    fn in_namespaces() -> bool {
        !is_built_in_cluster_scoped(&Self::resource())
    }
}

impl<K> Kind for K
where
    K: kube::Resource + Object,
    K::DynamicType: KnownWhenCompiled,
{
    fn resource() -> ApiResource {
        ApiResource::erase::<K>(&K::DynamicType::VALUE)
    }

    fn in_namespaces() -> bool {
        TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>()
    }
}

/// A `DynamicType` without run-time data: only `()`.
// The compiler names this trait, not `Kind`, for types such as `DynamicObject`.
#[diagnostic::on_unimplemented(
    message = "the type does not say which resource it is of",
    label = "a kind known when compiling is needed here",
    note = "for a kind known only at run time (`DynamicObject`): name the resource, as in `Informer::builder_for(client, resource)` or `factory.informer_for(resource)`"
)]
pub trait KnownWhenCompiled: sealed::Sealed {
    /// The only value of the type.
    const VALUE: Self;
}

impl KnownWhenCompiled for () {
    const VALUE: Self = ();
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{Node, Pod};

    use super::*;
    use crate::MetadataOnly;

    #[test]
    fn the_type_says_its_resource() {
        let resource = Deployment::resource();
        assert_eq!((resource.group.as_str(), resource.plural.as_str()), ("apps", "deployments"));
    }

    #[test]
    fn the_type_says_whether_it_is_in_namespaces() {
        assert!(Deployment::in_namespaces() && MetadataOnly::<Pod>::in_namespaces());
        assert!(!Node::in_namespaces() && !MetadataOnly::<Node>::in_namespaces());
    }
}
