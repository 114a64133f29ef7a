//! What a request wants to do, as far as access goes.

use http::Method;

use super::User;
use crate::http::request::{Head, Target, Verb};
use crate::http::status::{Details, Status};
use crate::storage::selector::FieldSelector;

/// Who wants to do what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Who.
    pub user: &'a User,
    /// What.
    pub action: Action<'a>,
}

/// What somebody wants to do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action<'a> {
    /// Something with a resource.
    #[non_exhaustive]
    Resource {
        /// What with it; `None` for a method that is no verb.
        verb: Option<Verb>,
        /// Its API group, empty for the core group.
        group: &'a str,
        /// Its plural.
        resource: &'a str,
        /// Its subresource, such as `status`.
        subresource: Option<&'a str>,
        /// The namespace; `None` at the cluster's scope. A namespace itself counts as within itself.
        namespace: Option<&'a str>,
        /// The object's name, if only one is meant: in the path, or fixed by a field selector.
        name: Option<&'a str>,
    },
    /// Anything else.
    #[non_exhaustive]
    Path {
        /// The method, in lower case.
        method: &'a str,
        /// The path.
        path: &'a str,
    },
}

impl<'a> Action<'a> {
    /// Something with a resource, at the cluster's scope. Say more with the methods that follow.
    #[must_use]
    pub fn on(group: &'a str, resource: &'a str) -> Self {
        Self::Resource { verb: None, group, resource, subresource: None, namespace: None, name: None }
    }

    /// A request for a path that is no resource; the method in lower case.
    #[must_use]
    pub fn path(method: &'a str, path: &'a str) -> Self {
        Self::Path { method, path }
    }

    /// With this verb. Paths have none.
    #[must_use]
    pub fn verb(mut self, of: Verb) -> Self {
        if let Self::Resource { verb, .. } = &mut self {
            *verb = Some(of);
        }
        self
    }

    /// Of this subresource.
    #[must_use]
    pub fn subresource(mut self, of: &'a str) -> Self {
        if let Self::Resource { subresource, .. } = &mut self {
            *subresource = Some(of);
        }
        self
    }

    /// In this namespace.
    #[must_use]
    pub fn namespace(mut self, within: &'a str) -> Self {
        if let Self::Resource { namespace, .. } = &mut self {
            *namespace = Some(within);
        }
        self
    }

    /// Of the object with this name.
    #[must_use]
    pub fn name(mut self, of: &'a str) -> Self {
        if let Self::Resource { name, .. } = &mut self {
            *name = Some(of);
        }
        self
    }
}

impl Attributes<'_> {
    /// The refusal.
    pub(super) fn forbidden(&self) -> Status {
        self.refusal("")
    }

    /// The refusal to do it as somebody else.
    pub(crate) fn forbidden_as_another(&self) -> Status {
        self.refusal("impersonate-on:user-info:")
    }

    fn refusal(&self, manner: &str) -> Status {
        let user = self.user.name();
        match &self.action {
            Action::Path { method, path } => {
                let message = format!("forbidden: User {user:?} cannot {manner}{method} path {path:?}");
                Status::new(403, "Forbidden", message).with_details(Details::default())
            }
            Action::Resource { verb, group, resource, subresource, namespace, name } => {
                let verb = verb.map_or("", Verb::name);
                let whole = match subresource {
                    Some(subresource) => format!("{resource}/{subresource}"),
                    None => (*resource).to_owned(),
                };
                let scope = match namespace {
                    Some(namespace) => format!("in the namespace {namespace:?}"),
                    None => "at the cluster scope".to_owned(),
                };
                let why =
                    format!("User {user:?} cannot {manner}{verb} resource {whole:?} in API group {group:?} {scope}");
                Status::forbidden(group, resource, name.unwrap_or_default(), &why)
            }
        }
    }
}

/// What a request wants to do, with whatever of it had to be computed.
#[derive(Debug)]
pub(crate) struct Wanted {
    method: String,
    selected_name: Option<String>,
}

impl Wanted {
    pub(crate) fn read(head: &Head) -> Self {
        let selector = head.query.text("fieldSelector");
        let selected =
            FieldSelector::parse(selector).ok().and_then(|parsed| parsed.fixed("metadata.name").map(str::to_owned));
        Self { method: head.method.as_str().to_ascii_lowercase(), selected_name: selected }
    }

    pub(crate) fn action<'a>(&'a self, head: &'a Head) -> Action<'a> {
        let Target::Resource(path) = &head.target else {
            return Action::Path { method: &self.method, path: head.uri.path() };
        };
        let itself = (path.group.is_empty() && path.resource == "namespaces").then_some(path.name.as_deref()).flatten();
        // A create names nothing yet, unless it is of a subresource.
        let name = match (path.name.as_deref(), head.verb()) {
            (None, Some(Verb::List | Verb::Watch | Verb::DeleteCollection)) => self.selected_name.as_deref(),
            (name, _) => name,
        };
        let namespace = path.namespace.as_deref().or(itself);
        let verb = head.verb().filter(|_| head.method != Method::OPTIONS);
        let subresource = path.subresource.as_deref();
        Action::Resource { verb, group: &path.group, resource: &path.resource, subresource, namespace, name }
    }
}
