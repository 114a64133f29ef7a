//! The scope of an informer: a subset of the objects of a resource.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::informer::InformerSettings;
use crate::object::{FieldSelector, Selector};
use crate::store::WatchScope;

/// A subset of the objects of a resource, by namespaces, labels and fields. All objects by default.
///
/// Informers with the same resource and the same scope share a cache; see
/// [`Factory::within`](crate::Factory::within).
///
/// ```
/// use kube_informer::Scope;
///
/// let scope = Scope::everything().namespaces(["kube-system", "default"]).labels("tier=gold".parse()?);
/// assert_eq!(scope.to_string(), "in default, kube-system where tier=gold");
/// assert_eq!(Scope::everything().to_string(), "");
/// # Ok::<_, kube_informer::object::ParseError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[must_use = "a scope does nothing by itself"]
pub struct Scope {
    /// `None` means all namespaces.
    namespaces: Option<BTreeSet<Arc<str>>>,
    labels: Selector,
    fields: FieldSelector,
}

impl Scope {
    /// Creates the scope of all objects.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Restricts the scope to one namespace. Has no effect on cluster-scoped kinds.
    pub fn namespace(self, namespace: impl Into<Arc<str>>) -> Self {
        self.namespaces([namespace])
    }

    /// Restricts the scope to these namespaces. Has no effect on cluster-scoped kinds.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Self {
        self.namespaces = Some(namespaces.into_iter().map(Into::into).collect());
        self
    }

    /// Restricts the scope to objects that match a label selector.
    pub fn labels(mut self, labels: Selector) -> Self {
        self.labels = labels;
        self
    }

    /// Restricts the scope to objects that match a field selector.
    pub fn fields(mut self, fields: FieldSelector) -> Self {
        self.fields = fields;
        self
    }

    pub(super) fn all_namespaces(mut self) -> Self {
        self.namespaces = None;
        self
    }

    pub(super) fn of<K>(settings: &InformerSettings<K>) -> Self {
        let one = |scope: &WatchScope| match scope {
            WatchScope::Everything => None,
            WatchScope::Namespace(namespace) => Some(Arc::clone(namespace)),
        };
        Self {
            namespaces: settings.scopes.iter().map(one).collect(),
            labels: settings.labels.clone().unwrap_or_default(),
            fields: settings.fields.clone().unwrap_or_default(),
        }
    }

    pub(super) fn applied_to<K>(&self, mut settings: InformerSettings<K>) -> InformerSettings<K> {
        settings.scopes = match &self.namespaces {
            None => vec![WatchScope::Everything],
            Some(namespaces) => namespaces.iter().cloned().map(WatchScope::Namespace).collect(),
        };
        settings.labels = Some(self.labels.clone()).filter(|labels| !labels.is_everything());
        settings.fields = Some(self.fields.clone()).filter(|fields| !fields.is_everything());
        settings
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        if let Some(namespaces) = &self.namespaces {
            let names: Vec<&str> = namespaces.iter().map(|name| &**name).collect();
            write!(f, "in {}", if names.is_empty() { "no namespace".to_owned() } else { names.join(", ") })?;
            before = " ";
        }
        if !self.labels.is_everything() {
            write!(f, "{before}where {}", self.labels)?;
            before = " ";
        }
        if !self.fields.is_everything() {
            write!(f, "{before}with {}", self.fields)?;
        }
        Ok(())
    }
}
