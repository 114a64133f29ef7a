//! The manifests in the guides, and the access that their roles give.

use kube_embedded::access::{Access, Rule};
use serde_json::Value;

/// The objects in the first YAML of a guide.
pub(crate) fn manifests(guide: &str) -> Vec<Value> {
    let yaml = guide.split("```yaml").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    serde_saphyr::from_str_multiple(yaml).unwrap()
}

/// The access of all roles among these objects, and no other.
pub(crate) fn access(manifests: &[Value]) -> Access {
    let roles = manifests.iter().filter(|object| object["rules"].is_array());
    roles.flat_map(rules).fold(Access::closed(), Access::allow)
}

/// The server's rules for a `Role` or `ClusterRole`.
fn rules(role: &Value) -> Vec<Rule> {
    let texts = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap_or_default() };
    let mut all = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        for (group, resource) in texts(&rule["apiGroups"])
            .iter()
            .flat_map(|group| texts(&rule["resources"]).into_iter().map(move |r| (group, r)))
        {
            let verbs = texts(&rule["verbs"]);
            let allowed = Rule::new().resource(group.clone(), &resource).verbs(verbs.iter().map(String::as_str));
            let allowed = match role["metadata"]["namespace"].as_str() {
                Some(namespace) => allowed.namespace(namespace),
                None => allowed,
            };
            let names = texts(&rule["resourceNames"]);
            if names.is_empty() {
                all.push(allowed);
            } else {
                all.extend(names.into_iter().map(|name| allowed.clone().name(name)));
            }
        }
    }
    all
}
