//! The traits of types that objects are read as.

use std::any::TypeId;

use k8s_openapi::ClusterResourceScope;
use kube::core::ApiResource;
use serde::de::DeserializeOwned;

use super::DecodeError;
use super::is_built_in_cluster_scoped;
use crate::codec::{decode_protobuf, protobuf};

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
}

impl<T: DeserializeOwned + Send + Sync + 'static> Object for T {
    fn decode(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
        match encoded {
            Encoded::Json(json) => {
                // Validates UTF-8 once for the whole body, which is faster than string by string.
                let read = match str::from_utf8(json) {
                    Ok(text) => serde_json::from_str(text),
                    Err(_) => serde_json::from_slice(json),
                };
                read.map_err(|error| DecodeError::of_json::<T>(&error, json))
            }
            Encoded::Protobuf(object) => match decode_protobuf(object) {
                Some(value) => Ok(value),
                // Converts to JSON, for errors that name the field, and because some types can only
                // be decoded from JSON.
                None => {
                    let json = protobuf::to_json(object).map_err(DecodeError::broken::<T>)?;
                    Self::decode(Encoded::Json(&json))
                }
            },
        }
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
