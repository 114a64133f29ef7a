use super::template::{matches, without_managed_fields};
use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

/// A complete response.
pub(crate) struct Answer {
    pub(crate) asked: String,
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Asserts the status code.
    #[track_caller]
    pub(crate) fn is(&self, code: u16) -> &Self {
        assert!(
            self.code == code,
            "{}\n  expected code {code}\n  but got      {}\n  {}",
            self.asked,
            self.code,
            self.text()
        );
        self
    }

    /// Asserts the status code and the exact body, except for placeholders (see [`matches`]).
    #[track_caller]
    pub(crate) fn says(&self, code: u16, template: &str) -> &Self {
        assert!(
            self.code == code && matches(template, &without_managed_fields(&self.text())),
            "{}\n  expected {code} {}\n  but got  {} {}",
            self.asked,
            template.escape_debug(),
            self.code,
            self.text().escape_debug(),
        );
        self
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{}: {error} in {} {}", self.asked, self.code, self.text()))
    }

    /// The resource version of the object or list.
    #[track_caller]
    pub(crate) fn version(&self) -> u64 {
        version(&self.json())
    }

    #[track_caller]
    pub(crate) fn uid(&self) -> String {
        self.json()["metadata"]["uid"]
            .as_str()
            .unwrap_or_else(|| panic!("{}: no uid in {}", self.asked, self.text()))
            .to_owned()
    }

    /// The names of a list's items, in order.
    #[track_caller]
    pub(crate) fn names(&self) -> Vec<String> {
        let json = self.json();
        let items = json["items"].as_array().unwrap_or_else(|| panic!("{}: not a list: {}", self.asked, self.text()));
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The continue token of a page, if there is one.
    #[track_caller]
    pub(crate) fn token(&self) -> Option<String> {
        self.json()["metadata"]["continue"].as_str().filter(|token| !token.is_empty()).map(str::to_owned)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("headers are ASCII"))
    }
}

#[track_caller]
pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|version| version.parse().ok())
        .unwrap_or_else(|| panic!("no resourceVersion in {object}"))
}

/// The body of a failure Status; `rest` follows `"status":"Failure",`.
pub(crate) fn failure(rest: &str) -> String {
    format!("{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",{rest}}}\n")
}

/// The Status of conflicting list options; each cause has a reason, a field and a message.
pub(crate) fn invalid_list_options(causes: &[(&str, &str, &str)]) -> String {
    let quote = |text: &str| Value::from(text).to_string();
    let parts: Vec<_> = causes.iter().map(|(_, field, message)| format!("{field}: {message}")).collect();
    let all = if let [one] = &parts[..] { one.clone() } else { format!("[{}]", parts.join(", ")) };
    let causes: Vec<_> = causes
        .iter()
        .map(|(reason, field, message)| {
            format!("{{\"reason\":{},\"message\":{},\"field\":{}}}", quote(reason), quote(message), quote(field))
        })
        .collect();
    failure(&format!(
        "\"message\":{},\"reason\":\"Invalid\",\"details\":{{\"group\":\"meta.k8s.io\",\"kind\":\"ListOptions\",\"causes\":[{}]}},\"code\":422",
        quote(&format!("ListOptions.meta.k8s.io \"\" is invalid: {all}")),
        causes.join(",")
    ))
}
