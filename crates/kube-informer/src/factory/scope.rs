//! The scope of an informer: a subset of the objects of a resource.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use crate::informer::{InformerSettings, InvalidSetting, ScopeText};
use crate::object::{FieldSelector, ParseError, Selector, check_namespace};
use crate::store::WatchScope;

/// A subset of the objects of a resource, by namespaces, labels and fields. All objects by default.
///
/// Informers with the same resource and the same scope share a cache; see
/// [`Factory::within`](crate::Factory::within).
///
/// ```
/// use kube_informer::Scope;
///
/// let scope = Scope::everything().namespaces(["kube-system", "default"]).labels("tier=gold").checked()?;
/// assert_eq!(scope.to_string(), "in default, kube-system where tier=gold");
/// assert_eq!(Scope::everything().to_string(), "");
/// assert!(Scope::everything().namespace("../kube-system").checked().is_err());
/// # Ok::<_, kube_informer::informer::InvalidSetting>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[must_use = "a scope does nothing by itself"]
pub struct Scope {
    /// `None` means all namespaces.
    namespaces: Option<BTreeSet<Arc<str>>>,
    labels: Selector,
    fields: FieldSelector,
    /// The first part that could not be parsed.
    invalid: Option<InvalidSetting>,
}

impl Scope {
    /// Creates the scope of all objects.
    pub fn everything() -> Self {
        Self::default()
    }

    /// Restricts the scope to one namespace; to all of them with `""`. Has no effect on
    /// cluster-scoped kinds.
    pub fn namespace(self, namespace: impl Into<Arc<str>>) -> Self {
        self.namespaces([namespace])
    }

    /// Restricts the scope to these namespaces; not at all if `""` is among them. Has no effect on
    /// cluster-scoped kinds.
    pub fn namespaces(mut self, namespaces: impl IntoIterator<Item: Into<Arc<str>>>) -> Self {
        let namespaces: BTreeSet<Arc<str>> = namespaces.into_iter().map(Into::into).collect();
        self.namespaces = (!namespaces.contains("")).then_some(namespaces);
        self
    }

    /// Restricts the scope to objects that match a label selector, or the text of one.
    pub fn labels(mut self, labels: impl TryInto<Selector, Error: Into<ParseError>>) -> Self {
        self.labels = self.parsed("label selector", labels);
        self
    }

    /// Restricts the scope to objects that match a field selector, or the text of one.
    pub fn fields(mut self, fields: impl TryInto<FieldSelector, Error: Into<ParseError>>) -> Self {
        self.fields = self.parsed("field selector", fields);
        self
    }

    /// Returns the scope, or the first part of it that is not valid.
    ///
    /// Without this call, an informer of an invalid scope never runs, and waits for it return the
    /// error.
    pub fn checked(self) -> Result<Self, InvalidSetting> {
        if let Some(invalid) = self.invalid {
            return Err(invalid);
        }
        for namespace in self.namespaces.iter().flatten() {
            check_namespace(namespace).map_err(|reason| InvalidSetting::new("namespace", reason))?;
        }
        Ok(self)
    }

    fn parsed<T: Default>(&mut self, setting: &'static str, value: impl TryInto<T, Error: Into<ParseError>>) -> T {
        match value.try_into() {
            Ok(parsed) => parsed,
            Err(reason) => {
                self.invalid.get_or_insert(InvalidSetting::new(setting, reason));
                T::default()
            }
        }
    }

    pub(super) fn all_namespaces(mut self) -> Self {
        self.namespaces = None;
        self
    }

    pub(super) fn of<K>(settings: &InformerSettings<K>) -> Self {
        Self {
            namespaces: settings.scopes.iter().map(|scope| scope.namespace().map(Arc::from)).collect(),
            labels: settings.labels.clone().unwrap_or_default(),
            fields: settings.fields.clone().unwrap_or_default(),
            invalid: settings.invalid.clone(),
        }
    }

    pub(super) fn applied_to<K>(&self, mut settings: InformerSettings<K>) -> InformerSettings<K> {
        settings.scopes = match &self.namespaces {
            None => vec![WatchScope::Everything],
            Some(namespaces) => namespaces.iter().cloned().map(WatchScope::Namespace).collect(),
        };
        settings.labels = Some(self.labels.clone()).filter(|labels| !labels.is_everything());
        settings.fields = Some(self.fields.clone()).filter(|fields| !fields.is_everything());
        settings.invalid = settings.invalid.or_else(|| self.invalid.clone());
        settings
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces = self.namespaces.as_ref().map(|names| names.iter().map(|name| &**name).collect());
        ScopeText { namespaces, labels: Some(&self.labels), fields: Some(&self.fields), shard: None }.fmt(f)
    }
}
