//! Paths that name no resource: the version and the probes.

use http::Response;

use crate::body::Body;
use crate::negotiate::{Layout, Wish};
use crate::reply;

/// The release this server imitates, in the real server's form.
const VERSION: &[u8] = br#"{"major":"1","minor":"37","emulationMajor":"1","emulationMinor":"37","minCompatibilityMajor":"1","minCompatibilityMinor":"36","gitVersion":"v1.37.1+embedded","gitCommit":"","gitTreeState":"clean","buildDate":"2026-10-01T00:00:00Z","goVersion":"","compiler":"","platform":""}"#;

/// The answer at a path, if there is one.
pub(crate) fn answer(path: &str, wish: &Wish) -> Option<Response<Body>> {
    match path.trim_end_matches('/') {
        "/version" => {
            // The one document that is always indented, whoever asks.
            let wish = Wish { layout: Layout::Pretty, ..*wish };
            Some(reply::json_response(200, VERSION.into(), &wish, Layout::Pretty))
        }
        "/livez" | "/readyz" | "/healthz" => Some(reply::text_response(200, "ok")),
        _ => None,
    }
}
