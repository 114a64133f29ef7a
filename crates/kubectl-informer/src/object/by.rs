//! Values to look for: `--by`.

use std::str::FromStr;
use std::sync::LazyLock;

use kube_informer::Obj;
use kube_informer::object::FieldPath;
use serde_json::Value;

/// A place in objects, and the value to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct By {
    place: Place,
    value: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
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
                "expected WHAT=VALUE, as in node=node-1, ip=10.0.0.1, label:app=web or spec.nodeName=node-1".to_owned()
            );
        };
        let place = match name {
            "node" => Place::Node,
            "ip" => Place::Ip,
            "owner" => Place::Owner,
            _ => match name.strip_prefix("label:") {
                Some(label) => Place::Label(label.to_owned()),
                None => {
                    Place::Path(name.parse().map_err(|error: kube_informer::object::ParseError| error.to_string())?)
                }
            },
        };
        Ok(Self { place, value: value.to_owned() })
    }
}

impl By {
    /// The path, if the value is at one.
    pub(super) fn path(&self) -> Option<&FieldPath> {
        match &self.place {
            Place::Path(path) => Some(path),
            Place::Node | Place::Ip | Place::Owner | Place::Label(_) => None,
        }
    }

    /// Returns whether an object has the value.
    pub(super) fn fits(&self, object: &Obj<Value>) -> bool {
        match &self.place {
            Place::Node => object.value_at(&*NODE).as_ref() == Some(&self.value),
            Place::Ip => ADDRESSES.iter().any(|path| object.values_at(path).contains(&self.value)),
            Place::Owner => object.owners().any(|owner| owner.name() == self.value),
            Place::Label(label) => object.label(label) == Some(self.value.as_str()),
            Place::Path(path) => object.value_at(path).as_ref() == Some(&self.value),
        }
    }
}

static NODE: LazyLock<FieldPath> = LazyLock::new(|| path("spec.nodeName"));

/// Where pods, nodes, services and endpoint slices have their IP addresses.
static ADDRESSES: LazyLock<Vec<FieldPath>> = LazyLock::new(|| {
    [
        "status.podIP",
        "status.podIPs[*].ip",
        "status.addresses[*].address",
        "status.loadBalancer.ingress[*].ip",
        "spec.clusterIP",
        "spec.clusterIPs[*]",
        "spec.externalIPs[*]",
        "endpoints[*].addresses[*]",
    ]
    .map(path)
    .into()
});

fn path(text: &str) -> FieldPath {
    text.parse().expect("the paths above are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_of_an_object_is_found() {
        let has = |json: &str, ip: &str| {
            format!("ip={ip}").parse::<By>().unwrap().fits(&Obj::from_json(json.to_owned()).unwrap())
        };
        let pod =
            r#"{"metadata":{"name":"a"},"status":{"podIP":"10.0.0.1","podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}}"#;
        assert!(has(pod, "10.0.0.1") && has(pod, "fd00::1") && !has(pod, "10.0.0.2"));
        let node = r#"{"metadata":{"name":"a"},"status":{"addresses":[{"type":"InternalIP","address":"10.1.0.1"}]}}"#;
        assert!(has(node, "10.1.0.1"));
        let slice = r#"{"metadata":{"name":"a"},"endpoints":[{"addresses":["10.2.0.1"]},{"addresses":["10.2.0.2"]}]}"#;
        assert!(has(slice, "10.2.0.2"));
    }

    #[test]
    fn an_index_is_named_or_a_path() {
        assert_eq!(
            "label:app.kubernetes.io/name=web".parse::<By>().unwrap().place,
            Place::Label("app.kubernetes.io/name".to_owned())
        );
        assert!(matches!("spec.nodeName=n".parse::<By>().unwrap().place, Place::Path(_)));
        assert!("node".parse::<By>().is_err());
    }
}
