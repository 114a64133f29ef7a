//! A `Status` in protobuf: returned by a server if protobuf was requested, and by some proxies
//! whatever was requested.

use super::envelope::Envelope;
use super::wire::{Datum, Fields};
use crate::codec::{Broken, ServerStatus, StatusCause, StatusDetails};

/// Decodes a status from its envelope; none if it is not a status.
pub(crate) fn status(body: &[u8]) -> Option<ServerStatus> {
    let envelope = Envelope::open(body).ok()?;
    if envelope.raw.is_empty() || !matches!(envelope.kind, b"" | b"Status") {
        return None;
    }
    read(envelope.raw).ok()
}

fn read(raw: &[u8]) -> Result<ServerStatus, Broken> {
    let (mut fields, mut status) = (Fields::of(raw), ServerStatus::default());
    while let Some(field) = fields.next()? {
        match field {
            (3, Datum::Bytes(message)) => status.message = text(message),
            (4, Datum::Bytes(reason)) => status.reason = text(reason),
            (5, Datum::Bytes(of)) => details(of, &mut status.details)?,
            (6, Datum::Number(code)) => status.code = u16::try_from(code).map_err(|_| Broken::Protobuf)?,
            _ => {}
        }
    }
    Ok(status)
}

fn details(bytes: &[u8], details: &mut StatusDetails) -> Result<(), Broken> {
    let mut fields = Fields::of(bytes);
    while let Some(field) = fields.next()? {
        match field {
            (4, Datum::Bytes(cause)) => {
                let (mut fields, mut found) = (Fields::of(cause), StatusCause::default());
                while let Some(field) = fields.next()? {
                    match field {
                        (1, Datum::Bytes(reason)) => found.reason = text(reason),
                        (2, Datum::Bytes(message)) => found.message = text(message),
                        _ => {}
                    }
                }
                details.causes.push(found);
            }
            (5, Datum::Number(seconds)) => details.retry_after_seconds = u32::try_from(seconds).unwrap_or(0),
            _ => {}
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::wire::put_bytes;
    use super::*;

    #[test]
    fn a_protobuf_status_is_read() {
        let (mut raw, mut details, mut cause) = (Vec::new(), Vec::new(), Vec::new());
        put_bytes(&mut cause, 1, b"ResourceVersionTooLarge");
        put_bytes(&mut details, 4, &cause);
        details.extend([5 << 3, 7]);
        put_bytes(&mut raw, 2, b"Failure");
        put_bytes(&mut raw, 3, b"no");
        put_bytes(&mut raw, 4, b"Forbidden");
        put_bytes(&mut raw, 5, &details);
        raw.extend([6 << 3, 0x93, 0x03]);
        let body = Envelope { api_version: b"v1", kind: b"Status", raw: &raw }.close();
        let status = status(&body).unwrap();
        assert_eq!((status.code, &*status.reason, &*status.message), (403, "Forbidden", "no"));
        assert_eq!(status.details.retry_after_seconds, 7);
        assert_eq!(status.details.causes[0].reason, "ResourceVersionTooLarge");
    }

    #[test]
    fn broken_protobuf_is_no_status_and_no_panic() {
        for body in [&b"k8s\0"[..], b"k8s\0\x12\xff", b"k8s\0\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"x"] {
            assert_eq!(status(body), None);
        }
    }
}
