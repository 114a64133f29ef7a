//! The attributes of a request that decide about access.

use http::Method;

use super::User;
use crate::http::request::{Head, Target, Verb};
use crate::http::status::{Details, Status};
use crate::storage::selector::FieldSelector;

/// A user and the action it requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// The user.
    pub user: &'a User,
    /// The action.
    pub action: Action<'a>,
}

/// An action for which access is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action<'a> {
    /// An action on a resource.
    #[non_exhaustive]
    Resource {
        /// The verb; empty for an HTTP method that corresponds to none.
        verb: &'a str,
        /// The API group of the resource, empty for the core group.
        group: &'a str,
        /// The plural of the resource.
        resource: &'a str,
        /// The subresource, such as `status`.
        subresource: Option<&'a str>,
        /// The namespace; `None` at cluster scope. For a request on a namespace object it is that
        /// namespace.
        namespace: Option<&'a str>,
        /// The name of the object, if the request is for a single one: from the path, or fixed by a
        /// field selector.
        name: Option<&'a str>,
    },
    /// A request to a path that is not a resource.
    #[non_exhaustive]
    Path {
        /// The method, in lower case.
        method: &'a str,
        /// The path.
        path: &'a str,
    },
}

impl<'a> Action<'a> {
    /// An action on a resource at cluster scope, without a verb. The following methods refine it.
    #[must_use]
    pub fn on(group: &'a str, resource: &'a str) -> Self {
        Self::Resource { verb: "", group, resource, subresource: None, namespace: None, name: None }
    }

    /// A request to a path that is not a resource; the method in lower case.
    #[must_use]
    pub fn path(method: &'a str, path: &'a str) -> Self {
        Self::Path { method, path }
    }

    /// Sets the verb: a [`Verb`] of requests, or the name of another one, such as `impersonate`.
    /// Has no effect on paths.
    #[must_use]
    pub fn verb(mut self, of: impl Into<&'a str>) -> Self {
        if let Self::Resource { verb, .. } = &mut self {
            *verb = of.into();
        }
        self
    }

    /// Sets the subresource. Has no effect on paths.
    #[must_use]
    pub fn subresource(mut self, of: &'a str) -> Self {
        if let Self::Resource { subresource, .. } = &mut self {
            *subresource = Some(of);
        }
        self
    }

    /// Sets the namespace. Has no effect on paths.
    #[must_use]
    pub fn namespace(mut self, within: &'a str) -> Self {
        if let Self::Resource { namespace, .. } = &mut self {
            *namespace = Some(within);
        }
        self
    }

    /// Sets the name of the object. Has no effect on paths.
    #[must_use]
    pub fn name(mut self, of: &'a str) -> Self {
        if let Self::Resource { name, .. } = &mut self {
            *name = Some(of);
        }
        self
    }
}

impl<'a> Action<'a> {
    /// The verb, or the method of a path.
    pub(super) fn verb_name(&self) -> &'a str {
        match self {
            Self::Resource { verb, .. } => verb,
            Self::Path { method, .. } => method,
        }
    }

    /// The same action with another verb, also for a path.
    pub(super) fn renamed<'b>(&self, name: &'b str) -> Action<'b>
    where
        'a: 'b,
    {
        match self.clone() {
            Self::Resource { group, resource, subresource, namespace, name: object, .. } => {
                Action::Resource { verb: name, group, resource, subresource, namespace, name: object }
            }
            Self::Path { path, .. } => Action::Path { method: name, path },
        }
    }
}

impl Attributes<'_> {
    /// The 403 status for this action; `reason` follows the message if it is not empty.
    pub(super) fn forbidden(&self, reason: &str) -> Status {
        let user = self.user.name();
        let explained = |message: String| match reason {
            "" => without_markup(&message),
            reason => format!("{}: {reason}", without_markup(&message)),
        };
        match &self.action {
            Action::Path { method, path } => {
                let message = explained(format!("User {user:?} cannot {method} path {path:?}"));
                Status::new(403, "Forbidden", format!("forbidden: {message}")).with_details(Details::default())
            }
            Action::Resource { verb, group, resource, subresource, namespace, name } => {
                let whole = match subresource {
                    Some(subresource) => format!("{resource}/{subresource}"),
                    None => (*resource).to_owned(),
                };
                let scope = match namespace {
                    Some(namespace) => format!("in the namespace {namespace:?}"),
                    None => "at the cluster scope".to_owned(),
                };
                let why =
                    explained(format!("User {user:?} cannot {verb} resource {whole:?} in API group {group:?} {scope}"));
                Status::forbidden(group, resource, name.unwrap_or_default(), &why)
            }
        }
    }
}

/// Replaces the characters of HTML, so that a message is never rendered as such.
fn without_markup(message: &str) -> String {
    message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The action of a request. Owns the values that do not occur in the request as such.
#[derive(Debug)]
pub(crate) struct RequestAction {
    method: String,
    selected_name: Option<String>,
}

impl RequestAction {
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
        // A create request has no name, unless it is for a subresource.
        let name = match (path.name.as_deref(), head.verb()) {
            (None, Some(Verb::List | Verb::Watch | Verb::DeleteCollection)) => self.selected_name.as_deref(),
            (name, _) => name,
        };
        let namespace = path.namespace.as_deref().or(itself);
        let verb = head.verb().filter(|_| head.method != Method::OPTIONS).map_or("", Verb::name);
        let subresource = path.subresource.as_deref();
        Action::Resource { verb, group: &path.group, resource: &path.resource, subresource, namespace, name }
    }
}
