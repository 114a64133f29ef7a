//! Field selectors: the selectable fields of a kind and their values.

use std::borrow::Cow;

use serde_json::Value;

/// A field that can be used in field selectors.
#[derive(Debug, Clone)]
pub(crate) struct Selectable {
    name: Cow<'static, str>,
    origin: Origin,
}

#[derive(Debug, Clone)]
enum Origin {
    /// The path of the field, and its value if it is absent.
    Path(Vec<Cow<'static, str>>, &'static str),
    /// `source.component` of an event, or its `reportingComponent` if that is empty.
    EventComponent,
    /// Accepted in selectors, but always empty.
    Nothing,
}

impl Selectable {
    /// A selectable field of a built-in kind.
    pub(crate) fn built_in(name: &'static str) -> Selectable {
        let (path, absent) = match name {
            "spec.host" => ("spec.nodeName", ""),
            "spec.hostNetwork" | "spec.unschedulable" => (name, "false"),
            // The defaults that kube-apiserver sets on create.
            "spec.schedulerName" => (name, "default-scheduler"),
            "spec.restartPolicy" => (name, "Always"),
            "status.replicas" => (name, "0"),
            "status.successful" => ("status.succeeded", "0"),
            "status.podIPs" => return Selectable { name: name.into(), origin: Origin::Nothing },
            "source" => return Selectable { name: name.into(), origin: Origin::EventComponent },
            _ => (name, ""),
        };
        let path = path.split('.').map(Cow::Borrowed).collect();
        Selectable { name: name.into(), origin: Origin::Path(path, absent) }
    }

    /// A selectable field of a custom resource, by its JSON path such as `.spec.color`.
    pub(crate) fn custom(json_path: &str) -> Selectable {
        let name = json_path.strip_prefix('.').unwrap_or(json_path);
        let path = name.split('.').map(|part| Cow::Owned(part.to_owned())).collect();
        Selectable { name: name.to_owned().into(), origin: Origin::Path(path, "") }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The value that selectors compare. An absent field has its zero value.
    pub(crate) fn value<'a>(&self, object: &'a Value) -> Cow<'a, str> {
        match &self.origin {
            Origin::Path(path, absent) => match path.iter().try_fold(object, |at, part| at.get(part.as_ref())) {
                Some(Value::String(text)) => Cow::Borrowed(text),
                Some(Value::Bool(true)) => Cow::Borrowed("true"),
                Some(Value::Bool(false)) => Cow::Borrowed("false"),
                Some(Value::Number(number)) => Cow::Owned(number.to_string()),
                Some(Value::Null | Value::Array(_) | Value::Object(_)) | None => Cow::Borrowed(absent),
            },
            Origin::EventComponent => {
                let text = |value: &'a Value| value.as_str().filter(|text| !text.is_empty());
                let component = text(&object["source"]["component"]).or_else(|| text(&object["reportingComponent"]));
                Cow::Borrowed(component.unwrap_or_default())
            }
            Origin::Nothing => Cow::Borrowed(""),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn absent_fields_have_the_text_of_their_zero_value() {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}});
        let value = |name| Selectable::built_in(name).value(&pod).into_owned();
        assert_eq!(value("metadata.name"), "a");
        assert_eq!(value("spec.host"), "n1");
        assert_eq!(value("spec.hostNetwork"), "false");
        assert_eq!(value("status.phase"), "");
        assert_eq!(value("status.replicas"), "0");
    }

    #[test]
    fn an_events_source_falls_back_to_its_reporter() {
        let source = Selectable::built_in("source");
        assert_eq!(source.value(&json!({"source": {"component": "kubelet"}, "reportingComponent": "x"})), "kubelet");
        assert_eq!(source.value(&json!({"source": {}, "reportingComponent": "x"})), "x");
        assert_eq!(source.value(&json!([])), "");
    }

    #[test]
    fn custom_fields_may_be_numbers_and_booleans() {
        let object = json!({"spec": {"size": 3, "on": true, "list": []}});
        assert_eq!(Selectable::custom(".spec.size").value(&object), "3");
        assert_eq!(Selectable::custom(".spec.on").value(&object), "true");
        assert_eq!(Selectable::custom(".spec.list").value(&object), "");
        assert_eq!(Selectable::custom(".spec.size").name(), "spec.size");
    }
}
