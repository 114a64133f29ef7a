//! Continue tokens: the position of a paginated list and the revision at which it continues.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use crate::http::status::Status;

/// The revision at which a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageRevision {
    /// The revision of the first page.
    At(u64),
    /// The latest revision, which a token that was sent with a 410 requests.
    Latest,
}

/// A decoded continue token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContinueToken {
    pub(crate) revision: PageRevision,
    /// The first key to read, relative to the listed collection.
    pub(crate) start: String,
}

impl ContinueToken {
    /// Encodes the token that continues after a key. Kinds with a watch cache put a slash before
    /// the key, the others do not.
    pub(crate) fn after(key: &str, revision: u64, cached: bool) -> String {
        let slash = if cached { "/" } else { "" };
        Self::encode(revision.to_string(), &format!("{slash}{key}\0"))
    }

    /// Encodes the token that is sent with a 410: it continues at the same key at the latest
    /// revision.
    pub(crate) fn rest(&self) -> String {
        Self::encode("-1", &self.start)
    }

    fn encode(revision: impl AsRef<str>, start: &str) -> String {
        let mut json = format!("{{\"v\":\"meta.k8s.io/v1\",\"rv\":{},\"start\":", revision.as_ref()).into_bytes();
        crate::encoding::escape::push_string(&mut json, start);
        json.push(b'}');
        URL_SAFE_NO_PAD.encode(json)
    }

    pub(crate) fn parse(token: &str) -> Result<Self, Status> {
        Self::decode(token)
            .map_err(|why| Status::bad_request(format!("invalid continue token: continue key is not valid: {why}")))
    }

    fn decode(token: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default)]
            v: String,
            #[serde(default)]
            rv: i64,
            #[serde(default)]
            start: String,
        }
        let json = decode_base64(token)?;
        // Go's type errors differ from serde's: only syntax errors and the shape of messages are
        // reproduced.
        let value: Value = serde_json::from_slice(&json).map_err(|error| go_syntax_error(&json, &error))?;
        let wire: Wire = serde_json::from_value(value).map_err(|error| error.to_string())?;
        if wire.v != "meta.k8s.io/v1" {
            return Err(format!("server does not recognize this encoded version {}", wire.v));
        }
        if wire.rv == 0 {
            return Err("incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into());
        }
        if wire.start.is_empty() {
            return Err("encoded start key empty (version meta.k8s.io/v1)".into());
        }
        let start = wire.start.strip_prefix('/').unwrap_or(&wire.start);
        // A key is a clean path. One that Go's path cleaning would change was not created by this
        // server.
        let bare = start.strip_suffix('\0').unwrap_or(start);
        if bare.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(wire.start);
        }
        let revision = u64::try_from(wire.rv).map_or(PageRevision::Latest, PageRevision::At);
        Ok(Self { revision, start: start.to_owned() })
    }
}

/// Decodes base64, with Go's error message.
fn decode_base64(token: &str) -> Result<Vec<u8>, String> {
    URL_SAFE_NO_PAD.decode(token).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol { offset: at, .. } => at,
            // Go reports an incomplete group of four at the position of its first byte.
            _ => token.len() - token.len() % 4,
        };
        format!("illegal base64 data at input byte {at}")
    })
}

/// The error message of Go's JSON decoder for invalid JSON.
fn go_syntax_error(json: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".into();
    }
    let at = error.column().saturating_sub(1);
    let found = json.get(at).map_or('?', |byte| *byte as char);
    match at {
        0 => format!("invalid character {found:?} looking for beginning of value"),
        _ => format!("invalid character {found:?} after object key:value pair"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_is_spelled_as_the_real_server_spells_it() {
        let token = ContinueToken::after("c1", 275, true);
        let json = URL_SAFE_NO_PAD.decode(&token).unwrap();
        assert_eq!(json, br#"{"v":"meta.k8s.io/v1","rv":275,"start":"/c1\u0000"}"#);
    }

    #[test]
    fn wrong_tokens_are_refused_in_the_real_servers_words() {
        let why = |json: &str| {
            let error = ContinueToken::parse(&URL_SAFE_NO_PAD.encode(json)).unwrap_err();
            let message = error.message().to_owned();
            message.strip_prefix("invalid continue token: continue key is not valid: ").unwrap().to_owned()
        };
        assert_eq!(why(r#"{"v":"x"}"#), "server does not recognize this encoded version x");
        let no_revision = "incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
        assert_eq!(why(r#"{"v":"meta.k8s.io/v1","start":"a"}"#), no_revision);
        assert_eq!(why(r#"{"v":"meta.k8s.io/v1","rv":1}"#), "encoded start key empty (version meta.k8s.io/v1)");
        assert_eq!(why(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"/../x"}"#), "/../x");
        assert!(ContinueToken::parse("!").unwrap_err().message().ends_with("illegal base64 data at input byte 0"));
    }

    proptest! {
        #[test]
        fn a_token_comes_back_as_it_went(key in "[a-z0-9.-]{1,20}(/[a-z0-9-]{1,20})?", revision in 1..i64::MAX as u64, cached: bool) {
            prop_assume!(key.split('/').all(|part| part != "." && part != ".."));
            let token = ContinueToken::parse(&ContinueToken::after(&key, revision, cached)).unwrap();
            prop_assert_eq!(token.revision, PageRevision::At(revision));
            prop_assert_eq!(&token.start, &format!("{key}\0"));
            let rest = ContinueToken::parse(&token.rest()).unwrap();
            prop_assert_eq!(rest.revision, PageRevision::Latest);
            prop_assert_eq!(rest.start, token.start);
        }
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_token_is_read_or_refused() {
        let pieces = [
            "{",
            "}",
            "\"v\":",
            "\"meta.k8s.io/v1\"",
            "\"rv\":",
            "\"start\":",
            "\"/a/b\\u0000\"",
            "\"..\"",
            ",",
            "1",
            "-1",
            "9223372036854775807",
            "9223372036854775808",
            "null",
            "[",
            "é",
        ];
        fuzz(1000, |source| {
            let text = if source.one_in(8) { source.nested(300) } else { source.text(&pieces, 12).into_bytes() };
            drop(ContinueToken::parse(&URL_SAFE_NO_PAD.encode(&text)));
            drop(ContinueToken::parse(&String::from_utf8_lossy(&text)));
            if let Ok(token) = ContinueToken::parse(&URL_SAFE_NO_PAD.encode(source.bytes(40))) {
                drop(ContinueToken::parse(&token.rest()));
            }
        });
    }
}
