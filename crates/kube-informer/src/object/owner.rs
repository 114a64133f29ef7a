//! A borrowed view of the owner references of an object.

use super::kind::Kind;
use super::strings;
use super::uid::Uid;

/// One owner reference of an object.
///
/// ```
/// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
/// use kube_informer::Obj;
///
/// let pod: Obj = Obj::from_json(
///     r#"{"metadata":{"name":"web-1","ownerReferences":[
///         {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","controller":true}]}}"#,
/// )?;
/// let owner = pod.controller().unwrap();
/// assert!(owner.is::<ReplicaSet>() && !owner.is::<Deployment>());
/// assert_eq!(owner.name(), "web");
/// assert_eq!(owner.uid(), "u");
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    pub(super) api_version: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    pub(super) controller: &'a str,
}

/// Encodes `controller: true`.
pub(crate) const IS_CONTROLLER: &str = "c";

impl<'a> Owner<'a> {
    /// The owner's `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> &'a str {
        self.api_version
    }

    /// The owner's kind.
    #[must_use]
    pub fn kind(&self) -> &'a str {
        self.kind
    }

    /// The name of the owner, which is in the namespace of the object it owns, or cluster-scoped.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// The owner's uid.
    #[must_use]
    pub fn uid(&self) -> Uid {
        Uid::new(self.uid)
    }

    /// The owner's uid as received, without conversion.
    pub(crate) fn uid_text(&self) -> &'a str {
        self.uid
    }

    /// Whether the owner is the controller of the object.
    #[must_use]
    pub fn is_controller(&self) -> bool {
        self.controller == IS_CONTROLLER
    }

    /// Whether the owner is of kind `K`, in any version.
    #[must_use]
    pub fn is<K: Kind>(&self) -> bool {
        let resource = K::resource();
        let group = self.api_version.split_once('/').map_or("", |(group, _)| group);
        self.kind == resource.kind && group == resource.group
    }
}

/// Iterator over owners, stored as five strings each.
#[derive(Debug, Clone)]
pub(crate) struct Owners<'a>(strings::Iter<'a>);

impl<'a> Owners<'a> {
    /// Skips the labels that precede the owners.
    pub(super) fn new(mut strings: strings::Iter<'a>, labels: usize) -> Self {
        for _ in 0..2 * labels {
            strings.next();
        }
        Self(strings)
    }
}

impl<'a> Iterator for Owners<'a> {
    type Item = Owner<'a>;

    fn next(&mut self) -> Option<Owner<'a>> {
        let strings = &mut self.0;
        Some(Owner {
            api_version: strings.next()?,
            kind: strings.next()?,
            name: strings.next()?,
            uid: strings.next()?,
            controller: strings.next()?,
        })
    }
}
