//! Index lookups of `get --by`.

use std::str::FromStr;

use kube_informer::object::FieldPath;
use kube_informer::{Index, Informer, Obj};
use serde_json::Value;

/// An index and the value to look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct By {
    index: IndexKind,
    value: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum IndexKind {
    Node,
    Ip,
    Owner,
    Label(String),
    Path(FieldPath),
}

impl FromStr for By {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(
                "write INDEX=VALUE, as in node=node-1, ip=10.0.0.1, label:app=web or spec.nodeName=node-1".to_owned()
            );
        };
        let index = match name {
            "node" => IndexKind::Node,
            "ip" => IndexKind::Ip,
            "owner" => IndexKind::Owner,
            _ => match name.strip_prefix("label:") {
                Some(label) => IndexKind::Label(label.to_owned()),
                None => {
                    IndexKind::Path(name.parse().map_err(|error: kube_informer::object::ParseError| error.to_string())?)
                }
            },
        };
        Ok(Self { index, value: value.to_owned() })
    }
}

impl By {
    /// Adds the index to an informer.
    pub(crate) fn look_up(&self, informer: &Informer<Value>) -> Lookup {
        let index = match &self.index {
            IndexKind::Node => informer.index(|object: &Obj<Value>| text(object, "/spec/nodeName")),
            IndexKind::Ip => informer.index(addresses),
            IndexKind::Owner => informer
                .index(|object: &Obj<Value>| object.owners().map(|owner| owner.name().to_owned()).collect::<Vec<_>>()),
            IndexKind::Label(label) => informer.index_by_label(label.clone()),
            IndexKind::Path(path) => informer.index_by_path(path.clone()),
        };
        Lookup { by: self.clone(), index }
    }

    fn fits(&self, object: &Obj<Value>) -> bool {
        match &self.index {
            IndexKind::Node => text(object, "/spec/nodeName").as_ref() == Some(&self.value),
            IndexKind::Ip => addresses(object).contains(&self.value),
            IndexKind::Owner => object.owners().any(|owner| owner.name() == self.value),
            IndexKind::Label(label) => object.label(label) == Some(self.value.as_str()),
            IndexKind::Path(path) => object.value_at(path).as_ref() == Some(&self.value),
        }
    }
}

/// An index of an informer, with the value to look up.
#[derive(Debug)]
pub(crate) struct Lookup {
    by: By,
    index: Index<Value, String>,
}

impl Lookup {
    pub(crate) fn get(&self) -> Vec<Obj<Value>> {
        self.index.get(&self.by.value)
    }

    /// The path, if the index is by one.
    pub(crate) fn path(&self) -> Option<&FieldPath> {
        match &self.by.index {
            IndexKind::Path(path) => Some(path),
            IndexKind::Node | IndexKind::Ip | IndexKind::Owner | IndexKind::Label(_) => None,
        }
    }

    /// Returns whether the lookup would return an object.
    pub(crate) fn fits(&self, object: &Obj<Value>) -> bool {
        self.by.fits(object)
    }
}

fn text(object: &Obj<Value>, pointer: &str) -> Option<String> {
    object.get().ok()?.pointer(pointer)?.as_str().map(str::to_owned)
}

/// All IP addresses of a pod, node, service or endpoint slice.
fn addresses(object: &Obj<Value>) -> Vec<String> {
    let Ok(value) = object.get() else { return Vec::new() };
    let items = |pointer: &str| value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    let texts = ["/status/podIP", "/spec/clusterIP"].iter().filter_map(|pointer| value.pointer(pointer));
    let nested = items("/status/podIPs").iter().filter_map(|item| item.get("ip"));
    let nodes = items("/status/addresses").iter().filter_map(|item| item.get("address"));
    let balancers = items("/status/loadBalancer/ingress").iter().filter_map(|item| item.get("ip"));
    let endpoints = items("/endpoints").iter().filter_map(|item| item["addresses"].as_array()).flatten();
    let plain = items("/spec/clusterIPs").iter().chain(items("/spec/externalIPs"));
    for address in texts.chain(nested).chain(nodes).chain(balancers).chain(endpoints).chain(plain) {
        if let Some(address) = address.as_str()
            && !found.iter().any(|known| known == address)
        {
            found.push(address.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_an_object_is_found() {
        let object = |json: &str| Obj::<Value>::from_json(json.to_owned()).unwrap();
        let pod = object(
            r#"{"metadata":{"name":"a"},"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}}"#,
        );
        assert_eq!(addresses(&pod), ["10.0.0.1", "fd00::1"]);
        let node =
            object(r#"{"metadata":{"name":"a"},"status":{"addresses":[{"type":"InternalIP","address":"10.1.0.1"}]}}"#);
        assert_eq!(addresses(&node), ["10.1.0.1"]);
    }

    #[test]
    fn an_index_is_named_or_a_path() {
        assert_eq!(
            "label:app.kubernetes.io/name=web".parse::<By>().unwrap().index,
            IndexKind::Label("app.kubernetes.io/name".to_owned())
        );
        assert!(matches!("spec.nodeName=n".parse::<By>().unwrap().index, IndexKind::Path(_)));
        assert!("node".parse::<By>().is_err());
    }
}
