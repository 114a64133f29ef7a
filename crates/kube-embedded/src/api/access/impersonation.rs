//! Impersonation: requests of one user on behalf of another, with kube-apiserver's checks.
//!
//! A requester needs the permissions of one mode. A constrained mode grants impersonation for some
//! requests: it requires `impersonate-on:MODE:VERB` for the request, and `impersonate:MODE` for
//! each property of the other user. The legacy mode requires `impersonate` for each property, and
//! grants it for every request.

use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;

use super::{AUTHENTICATED, Access, Action, Attributes, MASTERS, UNAUTHENTICATED, User};
use crate::http::status::Status;
use crate::kinds::NameRule;

const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA_PREFIX: &str = "impersonate-extra-";

const ANONYMOUS: &str = "system:anonymous";
const NODE_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// The extra field of a service account's token that names the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// The API group of impersonated properties. In legacy mode, users, groups and service accounts are
/// in the core group.
const AUTHENTICATION: &str = "authentication.k8s.io";

/// From this many groups or extra values on, one permission for all of them is checked first.
const MANY: usize = 4;

/// The characters of the path in the key of an extra field, as kube-apiserver's message shows them.
const PATH_PATTERN: &str = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";

/// The user that the headers of a request name; `None` for a request without impersonation.
///
/// # Errors
///
/// 400 for properties of a user without a name.
pub(crate) fn requested(headers: &HeaderMap) -> Result<Option<User>, Status> {
    let first = |name| headers.get(name).map(text).unwrap_or_default();
    let mut wanted = User::new(first(USER)).uid(first(UID));
    wanted.groups = headers.get_all(GROUP).iter().map(text).collect();
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA_PREFIX) {
            wanted = wanted.extra(unescaped(key), text(value));
        }
    }
    if !wanted.name.is_empty() {
        return Ok(Some(wanted));
    }
    if has_only_name(&wanted) {
        return Ok(None);
    }
    Err(Status::bad_request(format!("requested {} without impersonating a user name", in_go(&wanted))))
}

/// The user on whose behalf the request is made, with the groups that every such user has.
///
/// The real server first tries the mode in which the requester last succeeded. That decides which
/// of several refusals is returned, and whether a node that the requester may also impersonate in
/// legacy mode is in the group of nodes; never whether a request is refused.
///
/// # Errors
///
/// 403 of the first mode that could apply.
pub(crate) fn impersonate(
    access: &Access,
    requester: &User,
    wanted: &User,
    action: &Action<'_>,
) -> Result<User, Status> {
    let mut first_refusal = None;
    for mode in Mode::ALL.into_iter().filter(|mode| mode.applies(requester, wanted)) {
        let on = format!("impersonate-on:{}:{}", mode.name(), action.verb_name());
        let check = Check { access, requester, verb: format!("impersonate:{}", mode.name()), mode: Some(mode) };
        let checked = access.check(&Attributes { user: requester, action: action.renamed(&on) });
        match checked.and_then(|()| check.user(wanted)) {
            Ok(user) => return Ok(user),
            Err(refusal) => drop(first_refusal.get_or_insert(refusal)),
        }
    }
    let legacy = Check { access, requester, verb: "impersonate".to_owned(), mode: None };
    legacy.user(wanted).map_err(|refusal| first_refusal.unwrap_or(refusal))
}

/// A constrained mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A service account impersonates the node of its pod.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// All other users.
    UserInfo,
}

impl Mode {
    /// In the order in which they are tried.
    const ALL: [Self; 4] = [Self::AssociatedNode, Self::ArbitraryNode, Self::ServiceAccount, Self::UserInfo];

    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
        }
    }

    fn applies(self, requester: &User, wanted: &User) -> bool {
        let (node, account) = (node(&wanted.name), service_account(&wanted.name));
        match self {
            Self::AssociatedNode => {
                let own = requester.extra.get(NODE_NAME).and_then(|names| match names.as_slice() {
                    [name] => Some(name.as_str()),
                    _ => None,
                });
                has_only_name(wanted) && node.is_some() && node == own && service_account(&requester.name).is_some()
            }
            Self::ArbitraryNode => has_only_name(wanted) && node.is_some(),
            Self::ServiceAccount => has_only_name(wanted) && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
        }
    }
}

/// The checks of one mode for the properties of a user.
struct Check<'c> {
    access: &'c Access,
    requester: &'c User,
    verb: String,
    /// `None` for the legacy mode.
    mode: Option<Mode>,
}

impl Check<'_> {
    /// Checks all properties of a user, and adds the groups that such a user has.
    fn user(&self, wanted: &User) -> Result<User, Status> {
        let mut user = wanted.clone();
        self.name(&mut user)?;
        if !wanted.uid.is_empty() {
            self.permitted(Action::on(AUTHENTICATION, "uids").name(&wanted.uid))?;
        }
        self.groups(&wanted.groups)?;
        self.extra(wanted)?;
        Ok(match wanted.name.as_str() {
            ANONYMOUS => user.within(UNAUTHENTICATED),
            _ if user.groups.iter().any(|group| group == UNAUTHENTICATED) => user,
            _ => user.within(AUTHENTICATED),
        })
    }

    fn name(&self, user: &mut User) -> Result<(), Status> {
        let User { name, groups, .. } = user;
        if let Some((namespace, account)) = service_account(name) {
            if groups.is_empty() {
                *groups = vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")];
            }
            return self.permitted(Action::on(self.group(), "serviceaccounts").namespace(namespace).name(account));
        }
        match (self.mode, node(name)) {
            (Some(mode), Some(node)) => {
                *groups = vec![NODES.to_owned()];
                // The permission to impersonate the own node does not depend on which node that is.
                let node = if mode == Mode::AssociatedNode { "*" } else { node };
                self.permitted(Action::on(self.group(), "nodes").name(node))
            }
            _ => self.permitted(Action::on(self.group(), "users").name(name)),
        }
    }

    fn groups(&self, groups: &[String]) -> Result<(), Status> {
        let resource = || Action::on(self.group(), "groups");
        if self.mode.is_some() {
            if groups.iter().any(String::is_empty) {
                return Err(self.refused(resource(), "impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let action = resource().name(MASTERS);
                return Err(self.refused(action, "impersonating the system:masters group is not allowed"));
            }
            if groups.len() >= MANY && self.permitted(resource().name("*")).is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.permitted(resource().name(group)))
    }

    fn extra(&self, wanted: &User) -> Result<(), Status> {
        let resource = || Action::on(AUTHENTICATION, "userextras");
        let mut values = wanted.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
        if self.mode.is_some() {
            if let Some(why) = values.clone().find_map(|(key, value)| problem(key, value)) {
                return Err(self.refused(resource(), &why));
            }
            if values.clone().count() >= MANY && self.permitted(resource().subresource("*").name("*")).is_ok() {
                return Ok(());
            }
        }
        values.try_for_each(|(key, value)| self.permitted(resource().subresource(key).name(value)))
    }

    /// The API group of users, groups, nodes and service accounts.
    fn group(&self) -> &'static str {
        if self.mode.is_some() { AUTHENTICATION } else { "" }
    }

    fn permitted<'a>(&'a self, action: Action<'a>) -> Result<(), Status> {
        self.access.check(&self.attributes(action))
    }

    fn refused<'a>(&'a self, action: Action<'a>, reason: &str) -> Status {
        self.attributes(action).forbidden(reason)
    }

    fn attributes<'a>(&'a self, action: Action<'a>) -> Attributes<'a> {
        Attributes { user: self.requester, action: action.verb(self.verb.as_str()) }
    }
}

/// Why a constrained mode does not accept an extra field.
fn problem(key: &str, value: &str) -> Option<String> {
    if key.is_empty() {
        return Some("impersonating the empty string key in extra is not allowed".to_owned());
    }
    let invalid = |value: &str, why: &str| format!("extra.key: Invalid value: {value:?}: {why}");
    let problems = match key.split_once('/') {
        Some((domain, path)) if !domain.is_empty() && !path.is_empty() => {
            let domain_problems = NameRule::DnsSubdomain.problems(domain);
            let mut problems: Vec<String> = domain_problems.iter().map(|why| invalid(domain, why)).collect();
            if !path.chars().all(|c| c.is_ascii_alphanumeric() || "/-._~%!$&'()*+,;=:".contains(c)) {
                let why = format!("Invalid path (regex used for validation is '{PATH_PATTERN}')");
                problems.push(invalid(path, &why));
            }
            problems
        }
        _ => vec![invalid(key, r#"must be a domain-prefixed path (such as "acme.io/foo")"#)],
    };
    let listed = match problems.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        many => Some(format!("[{}]", many.join(", "))),
    };
    if let Some(listed) = listed {
        return Some(format!("impersonating an invalid key in extra is not allowed: {listed}"));
    }
    if key.chars().any(char::is_uppercase) {
        return Some(format!("impersonating a non-lowercase key in extra is not allowed: {key:?}"));
    }
    value.is_empty().then(|| "impersonating the empty string value in extra is not allowed".to_owned())
}

fn has_only_name(user: &User) -> bool {
    user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty()
}

/// The node of a node's user name.
fn node(user: &str) -> Option<&str> {
    user.strip_prefix(NODE_PREFIX).filter(|node| NameRule::DnsSubdomain.problems(node).is_empty())
}

/// The namespace and the name of the service account of a user name.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let is_valid =
        NameRule::DnsLabel.problems(namespace).is_empty() && NameRule::DnsSubdomain.problems(name).is_empty();
    is_valid.then_some((namespace, name))
}

/// A header as text. Bytes that are not UTF-8 are replaced, as in the real server's JSON.
fn text(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// The key of an extra field, whose percent-encoding is undone if all of it is valid.
fn unescaped(key: &str) -> String {
    let is_valid = key.split('%').skip(1).all(|rest| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if is_valid { percent_decode_str(key).decode_utf8_lossy().into_owned() } else { key.to_owned() }
}

/// A user as Go prints it.
fn in_go(user: &User) -> String {
    let list = |values: &[String]| {
        let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        format!("[]string{{{}}}", quoted.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let extra: Vec<String> = user.extra.iter().map(|(key, values)| format!("{key:?}:{}", list(values))).collect();
    let extra = match extra.as_slice() {
        [] => "map[string][]string(nil)".to_owned(),
        extra => format!("map[string][]string{{{}}}", extra.join(", ")),
    };
    format!("&user.DefaultInfo{{Name:{:?}, UID:{:?}, Groups:{groups}, Extra:{extra}}}", user.name, user.uid)
}
