//! A small client for tests: requests to the in-process service, responses as bytes and JSON.

// Each test binary uses only a part of this module.
#![allow(dead_code, reason = "every test file uses another part")]

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt as _, Full};
use kube_embedded::{Body, FirstAccess, Server, Service};
use serde_json::Value;
use tower::ServiceExt as _;

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the answer is text")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Asserts the status code.
    #[track_caller]
    pub(crate) fn expect(self, code: u16) -> Self {
        assert_eq!(self.code, code, "{}", self.text());
        self
    }

    /// The resource version of a list or an object.
    pub(crate) fn version(&self) -> u64 {
        version(&self.json())
    }

    /// The message of a failure Status.
    pub(crate) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }

    /// The warnings in the headers.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let warnings = self.headers.get_all("warning").iter();
        warnings.map(|value| value.to_str().expect("a warning is text").to_owned()).collect()
    }

    /// The names of a list's items.
    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.json()["items"].as_array().cloned().expect("a list has items");
        items.iter().map(|item| item["metadata"]["name"].as_str().expect("items have names").to_owned()).collect()
    }
}

/// The resource version in an object's or list's metadata.
pub(crate) fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a revision")
}

/// Starts a server without a socket, with the same names and uids in each run.
pub(crate) async fn server() -> Server {
    let builder = Server::builder().in_process().seed(1).first_access(FirstAccess::Served);
    builder.start().await.expect("nothing can go wrong without a socket")
}

/// The types of events.
pub(crate) fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("an event has a type")).collect()
}

/// A client of the in-process service.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    service: Service,
    token: Option<String>,
}

impl Client {
    pub(crate) fn of(server: &Server) -> Self {
        Self { service: server.service(), token: None }
    }

    pub(crate) fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Sends a request and returns the response before its body is read.
    pub(crate) async fn open(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> std::io::Result<http::Response<Body>> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::new(body.into())).expect("the request is well-formed");
        self.service.clone().oneshot(request).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let response = self.open(method, path, headers, body).await.expect("the server answers");
        let (parts, body) = response.into_parts();
        let body = body.collect().await.expect("the body comes to its end").to_bytes();
        Answer { code: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::POST, path, &[], body.to_string()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PUT, path, &[], body.to_string()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], "").await
    }

    pub(crate) async fn merge(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, path, &[("content-type", "application/merge-patch+json")], body.to_string()).await
    }

    pub(crate) async fn json_patch(&self, path: &str, body: &Value) -> Answer {
        self.send(Method::PATCH, path, &[("content-type", "application/json-patch+json")], body.to_string()).await
    }

    /// The changes of a collection after a version until now. Waits a second, so time should be
    /// paused.
    pub(crate) async fn events(&self, path: &str, version: u64) -> Vec<Value> {
        let answer = self.get(&format!("{path}?watch=1&timeoutSeconds=1&resourceVersion={version}")).await.expect(200);
        answer.text().lines().map(|line| serde_json::from_str(line).expect("a frame is JSON")).collect()
    }

    pub(crate) async fn delete_with(&self, path: &str, options: &Value) -> Answer {
        self.send(Method::DELETE, path, &[("content-type", "application/json")], options.to_string()).await
    }

    /// Opens a watch, which must be accepted.
    pub(crate) async fn watch(&self, path: &str) -> Frames {
        self.watch_as(path, &[]).await
    }

    /// Opens a watch with these headers.
    pub(crate) async fn watch_as(&self, path: &str, headers: &[(&str, &str)]) -> Frames {
        let response = self.open(Method::GET, path, headers, "").await.expect("the server answers");
        assert_eq!(response.status(), 200);
        Frames { body: response.into_body(), buffer: BytesMut::new() }
    }
}

/// The frames of a watch.
#[derive(Debug)]
pub(crate) struct Frames {
    body: Body,
    buffer: BytesMut,
}

impl Frames {
    /// The next frame. `None` at a clean end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        self.try_next().await.expect("the stream does not break")
    }

    /// The next frame, or the error that broke the stream.
    pub(crate) async fn try_next(&mut self) -> std::io::Result<Option<Value>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                return Ok(Some(serde_json::from_slice(&line).expect("a frame is JSON")));
            }
            match self.body.frame().await {
                Some(frame) => self.buffer.extend_from_slice(&frame?.into_data().expect("no trailers")),
                None => return Ok(None),
            }
        }
    }

    /// The type, name and resource version of the next frame.
    pub(crate) async fn step(&mut self) -> Option<(String, String, u64)> {
        let frame = self.next().await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Some((text(&frame["type"]), text(&frame["object"]["metadata"]["name"]), version(&frame["object"])))
    }
}
