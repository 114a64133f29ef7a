//! What a type must be to be read from a cache.

use std::any::{TypeId, type_name};

use k8s_openapi::ClusterResourceScope;
use kube::core::ApiResource;
use serde::de::DeserializeOwned;

use super::DecodeError;
use crate::codec::{decode_protobuf, protobuf};

/// A type that bodies can be read as: anything that serde can deserialize. There is nothing to implement.
///
/// ```
/// use kube_informer::Obj;
/// use serde::Deserialize;
///
/// // Of a pod, only what is needed.
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
    /// Reads one object.
    fn decode(encoded: Encoded<'_>) -> Result<Self, DecodeError>;
}

impl<T: DeserializeOwned + Send + Sync + 'static> Object for T {
    fn decode(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
        match encoded {
            Encoded::Json(json) => {
                // Looked through once as a whole, which is quicker than string by string.
                let read = match str::from_utf8(json) {
                    Ok(text) => serde_json::from_str(text),
                    Err(_) => serde_json::from_slice(json),
                };
                read.map_err(|error| DecodeError::of_json::<T>(&error, json))
            }
            Encoded::Protobuf(object) => match decode_protobuf(object) {
                Some(value) => Ok(value),
                // What is wrong, and with which field, is told as of JSON; and some types can be read out of nothing else.
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
/// use kube_informer::{Encoded, Object};
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
    /// Protobuf of a built-in kind, in the envelope that servers send: it begins with `k8s` and a zero.
    Protobuf(&'a [u8]),
}

/// A type that says which resource it is of, so that an informer can be built from the type alone.
///
/// Types of `k8s_openapi` and derived ones have it. A projection gets it in one line:
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
    /// The resource.
    fn resource() -> ApiResource;

    /// Whether the server is to send metadata alone (`PartialObjectMeta`).
    #[must_use]
    fn metadata_only() -> bool {
        false
    }

    /// Whether its objects are in namespaces, as those of most kinds are. A projection of a kind without, such as nodes, says so, if
    /// a [`Factory`](crate::Factory) with namespaces among its defaults is to serve it.
    #[must_use]
    fn in_namespaces() -> bool {
        true
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

    fn metadata_only() -> bool {
        is_partial::<K>()
    }

    fn in_namespaces() -> bool {
        TypeId::of::<K::Scope>() != TypeId::of::<ClusterResourceScope>()
    }
}

/// Whether a type is kube's `PartialObjectMeta`, whatever of.
pub(crate) fn is_partial<K>() -> bool {
    // No trait tells `PartialObjectMeta<K>` from `K`; a test holds this to kube's name for it.
    type_name::<K>().starts_with("kube_core::metadata::PartialObjectMeta<")
}

/// A kind's run-time part that is empty: only `()`.
pub trait KnownWhenCompiled: sealed::Sealed {
    #[doc(hidden)]
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
    use kube::core::PartialObjectMeta;

    use super::*;

    #[test]
    fn the_type_says_its_resource() {
        let resource = Deployment::resource();
        assert_eq!((resource.group.as_str(), resource.plural.as_str()), ("apps", "deployments"));
    }

    #[test]
    fn the_type_says_whether_it_is_in_namespaces() {
        assert!(Deployment::in_namespaces() && PartialObjectMeta::<Pod>::in_namespaces());
        assert!(!Node::in_namespaces() && !PartialObjectMeta::<Node>::in_namespaces());
    }

    #[test]
    fn only_partial_metadata_asks_for_metadata_alone() {
        assert!(PartialObjectMeta::<Pod>::metadata_only());
        assert!(!Pod::metadata_only());
        assert_eq!(PartialObjectMeta::<Pod>::resource(), Pod::resource());
    }
}
