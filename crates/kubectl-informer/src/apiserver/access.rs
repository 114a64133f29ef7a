//! Users and access rules of the `apiserver` command.

use kube_embedded::access::{Access, Rule, User};

use crate::args::servers::AllowRule;

const MASTERS: &str = "system:masters";

/// A line of the token file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) token: String,
    user: String,
    uid: String,
    groups: Vec<String>,
}

impl Known {
    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// Parses kube-apiserver's token file: token, user, uid and groups (quoted if there are several).
pub(crate) fn read_tokens(text: &str) -> Result<Vec<Known>, String> {
    let mut known = Vec::new();
    for (nth, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fields = fields(line).ok_or_else(|| format!("line {}: a quote is not closed", nth + 1))?;
        let [token, user, uid, rest @ ..] = fields.as_slice() else {
            return Err(format!("line {}: needs at least a token, a user and a uid", nth + 1));
        };
        if token.is_empty() || user.is_empty() {
            return Err(format!("line {}: the token or the user is empty", nth + 1));
        }
        let groups = rest.first().map(|groups| groups.split(',').map(str::trim).filter(|group| !group.is_empty()));
        let groups = groups.into_iter().flatten().map(str::to_owned).collect();
        known.push(Known { token: token.clone(), user: user.clone(), uid: uid.clone(), groups });
    }
    Ok(known)
}

/// Builds the access rules; members of `system:masters` may do everything.
pub(crate) fn access(known: Vec<Known>, allowed: &[AllowRule]) -> Result<Access, String> {
    let mut access = Access::closed();
    for Known { token, user, uid, groups } in known {
        access = access.token(token, groups.into_iter().fold(User::new(user).uid(uid), User::group));
    }
    for allowance in allowed {
        access = access.allow(rule(allowance)?);
    }
    Ok(access)
}

fn rule(allowance: &AllowRule) -> Result<Rule, String> {
    let mut rule = match allowance.who.split_once('=') {
        Some(("group", group)) => Rule::new().group(group),
        _ if allowance.who == "*" => Rule::new(),
        _ => Rule::new().user(&allowance.who),
    };
    if !allowance.verbs.iter().any(|verb| verb == "*") {
        for name in &allowance.verbs {
            let is_constrained = name.starts_with("impersonate:") || name.starts_with("impersonate-on:");
            if !is_constrained && !VERBS.contains(&name.as_str()) {
                return Err(format!("--allow: {name:?} is not a verb; verbs are {} and *", VERBS.join(", ")));
            }
            rule = rule.verb(name.as_str());
        }
    }
    for resource in &allowance.resources {
        // `deployments.apps/status` is the resource `deployments/status` of the group `apps`.
        let (name, subresource) = resource.split_once('/').map_or((resource.as_str(), ""), |(name, sub)| (name, sub));
        let (name, group) = match name.split_once('.') {
            _ if name == "*" => ("*", "*"),
            Some((name, group)) => (name, group),
            None => (name, ""),
        };
        let resource = if subresource.is_empty() { name.to_owned() } else { format!("{name}/{subresource}") };
        rule = rule.resource(group, &resource);
    }
    Ok(match allowance.namespace.as_deref() {
        None | Some("*") => rule,
        Some(namespace) => rule.namespace(namespace),
    })
}

const VERBS: [&str; 9] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate"];

/// Splits a CSV line; quoted fields may contain commas, and a doubled quote is a literal quote.
fn fields(line: &str) -> Option<Vec<String>> {
    let (mut fields, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(std::mem::take(&mut field).trim().to_owned()),
            c => field.push(c),
        }
    }
    fields.push(field.trim().to_owned());
    (!quoted).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube_embedded::Verb;
    use kube_embedded::access::{Action, Attributes};

    #[test]
    fn the_file_is_read_as_kube_apiserver_reads_it() {
        let text = "s3cret,admin,1,\"system:masters,ops\"\n# comment\n\ntoken,alice,2\nother,\"bob, jr\",3,dev\n";
        let known = read_tokens(text).unwrap();
        let parsed: Vec<(&str, &str, usize)> =
            known.iter().map(|known| (known.token.as_str(), known.user.as_str(), known.groups.len())).collect();
        assert_eq!(parsed, [("s3cret", "admin", 2), ("token", "alice", 0), ("other", "bob, jr", 1)]);
        assert!(known[0].is_master() && !known[2].is_master());
        assert!(read_tokens("a,b\n").unwrap_err().contains("line 1"));
        assert!(read_tokens("a,\"b,c\n").is_err());
    }

    #[test]
    fn others_may_do_what_they_are_allowed_and_nothing_else() {
        let known = read_tokens("t,alice,1,dev").unwrap();
        let allowed = [
            "alice get,list,watch pods,deployments.apps web",
            "group=dev get nodes",
            "alice impersonate serviceaccounts web",
            "alice impersonate:user-info users.authentication.k8s.io",
        ];
        let allowed: Vec<AllowRule> = allowed.iter().map(|rule| rule.parse().unwrap()).collect();
        let access = access(known, &allowed).unwrap();
        let alice = access.authenticate(Some("Bearer t")).unwrap();
        let may = |action: Action<'_>| access.check(&Attributes { user: &alice, action }).is_ok();
        assert!(may(Action::on("", "pods").verb(Verb::List).namespace("web")));
        assert!(may(Action::on("apps", "deployments").verb(Verb::Watch).namespace("web")));
        assert!(may(Action::on("", "nodes").verb(Verb::Get)));
        assert!(!may(Action::on("", "pods").verb(Verb::List).namespace("other")));
        assert!(!may(Action::on("", "pods").verb(Verb::Delete).namespace("web")));
        assert!(!may(Action::on("", "nodes").verb(Verb::List)));
        assert!(may(Action::on("", "serviceaccounts").verb("impersonate").namespace("web").name("robot")));
        assert!(may(Action::on("authentication.k8s.io", "users").verb("impersonate:user-info").name("ann")));
        assert!(!may(Action::on("", "users").verb("impersonate").name("ann")));
        assert!(rule(&"alice fetch pods".parse().unwrap()).unwrap_err().contains("is not a verb"));
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_token_file_and_any_rules_are_read_or_refused() {
        let lines =
            ["token", "user", "1", "\"", "\"\"", ",", "group", "\n", "\r\n", "#", " ", "system:masters", "\0", "é"];
        let words = ["alice", "group=dev", "*", "get", ",", "list", " ", "pods", ".apps", "/status", "=", "é"];
        fuzz(1000, |source| {
            let Ok(known) = read_tokens(&source.text(&lines, 30)) else { return };
            let allowed: Vec<AllowRule> = (0..3).filter_map(|_| source.text(&words, 9).parse().ok()).collect();
            if let Ok(access) = access(known, &allowed) {
                drop(access.authenticate(Some(&source.text(&["Bearer ", "bearer", "token", " ", "é"], 4))));
            }
        });
    }
}
