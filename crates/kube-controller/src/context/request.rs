//! The requests of a controller, as HTTP. Pure.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use kube::core::{ApiResource, DynamicObject, Resource};
use serde_json::Value;

const JSON: &str = "application/json";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Where an object is, or is to be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) resource: &'a ApiResource,
    pub(crate) namespace: Option<&'a str>,
}

/// How a body changes an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    Apply,
    Json,
    Merge,
    Strategic,
}

impl PatchType {
    fn content_type(self) -> &'static str {
        match self {
            Self::Apply => "application/apply-patch+yaml",
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::Strategic => "application/strategic-merge-patch+json",
        }
    }
}

type Built = Result<Request<Vec<u8>>, kube::Error>;

impl Target<'_> {
    pub(crate) fn create(self, manager: &str, body: &Value) -> Built {
        request(Method::POST, &self.path("", ""), &[("fieldManager", manager)], JSON, JSON, body.to_string().into())
    }

    /// Patches an object, or its status with the subresource `status`. An apply takes over the
    /// fields of other managers, as controllers do.
    pub(crate) fn patch(self, name: &str, subresource: &str, patch: PatchType, manager: &str, body: &Value) -> Built {
        let mut query = vec![("fieldManager", manager)];
        if patch == PatchType::Apply {
            query.push(("force", "true"));
        }
        let path = self.path(name, subresource);
        request(Method::PATCH, &path, &query, JSON, patch.content_type(), body.to_string().into())
    }

    pub(crate) fn delete(self, name: &str, options: &Value) -> Built {
        request(Method::DELETE, &self.path(name, ""), &[], JSON, JSON, options.to_string().into())
    }

    fn path(self, name: &str, subresource: &str) -> String {
        let mut path = DynamicObject::url_path(self.resource, self.namespace);
        for part in [name, subresource].into_iter().filter(|part| !part.is_empty()) {
            path.push('/');
            path.push_str(part);
        }
        path
    }
}

/// A consistent list of at most one object, metadata only.
pub(crate) fn list_one(resource: &ApiResource, namespace: Option<&str>) -> Built {
    let path = Target { resource, namespace }.path("", "");
    request(Method::GET, &path, &[("limit", "1")], METADATA_LIST, JSON, Vec::new())
}

fn request(method: Method, path: &str, query: &[(&str, &str)], accept: &str, content: &str, body: Vec<u8>) -> Built {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    let request = Request::builder().method(method).uri(uri).header(ACCEPT, accept).header(CONTENT_TYPE, content);
    request.body(body).map_err(kube::Error::HttpError)
}

/// Returns why a text cannot be a segment of a path, such as the name of an object.
pub(crate) fn check_segment(what: &'static str, text: &str) -> Result<(), String> {
    let is_fit = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'%' | b'?' | b'#');
    match text {
        "" => Err(format!("the {what} is empty")),
        "." | ".." => Err(format!("the {what} is {text:?}")),
        _ if !text.bytes().all(is_fit) => Err(format!("the {what} {text:?} has characters that it must not have")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

    use k8s_openapi::api::apps::v1::Deployment;
    use kube_informer::Kind;
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_name_the_object_and_the_field_manager() {
        let resource = <Deployment as Kind>::resource();
        let target = Target { resource: &resource, namespace: Some("shop") };
        let apply = target.patch("web", "status", PatchType::Apply, "a b", &json!({})).unwrap();
        assert_eq!(
            apply.uri().to_string(),
            "/apis/apps/v1/namespaces/shop/deployments/web/status?fieldManager=a+b&force=true"
        );
        assert_eq!(apply.headers()[CONTENT_TYPE], "application/apply-patch+yaml");
        let list = list_one(&resource, None).unwrap();
        assert_eq!(list.uri().to_string(), "/apis/apps/v1/deployments?limit=1");
    }

    #[test]
    fn names_that_would_change_the_path_are_refused() {
        for name in ["", ".", "..", "a/b", "a?b", "a#b", "a%2fb", "a b", "\u{e4}"] {
            assert!(check_segment("name", name).is_err(), "{name:?}");
        }
        assert!(check_segment("name", "system:node:a.b-c").is_ok());
    }
}
