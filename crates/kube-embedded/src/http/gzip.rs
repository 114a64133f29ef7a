//! Gzip compression as the real server does it: one member for a list, one for each flush of a
//! streaming list.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body::Frame;

/// How many compressed bytes are buffered before they are sent.
const CHUNK: usize = 32 * 1024;

/// The compression level of the real server.
const LEVEL: Compression = Compression::new(1);

fn encoder() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::with_capacity(CHUNK), LEVEL)
}

/// The end of flushed deflate data: an empty stored block.
const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];

/// Flushes and finishes a member.
///
/// One flush may not be enough: flate2 requests the sync flush only for its first 32 KB output
/// buffer. When the output is longer, it drains the rest without requesting a flush.
fn flushed(mut member: GzEncoder<Vec<u8>>) -> io::Result<Vec<u8>> {
    member.flush()?;
    while !member.get_ref().ends_with(&FLUSHED) {
        member.flush()?;
    }
    member.finish()
}

/// Compresses a complete body.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = encoder();
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}

/// Compresses chunks into one member, lazily.
pub(crate) fn gzip_chunks(mut chunks: impl Iterator<Item = Bytes>) -> impl Iterator<Item = Bytes> {
    let mut open = Some(encoder());
    std::iter::from_fn(move || {
        let mut encoder = open.take()?;
        for chunk in chunks.by_ref() {
            encoder.write_all(&chunk).expect("writing to memory does not fail");
            if encoder.get_ref().len() >= CHUNK {
                let ready = std::mem::take(encoder.get_mut());
                open = Some(encoder);
                return Some(ready.into());
            }
        }
        Some(encoder.finish().expect("writing to memory does not fail").into())
    })
}

/// Compresses a stream into a sequence of members, one for each run of data that is ready at once.
///
/// A member ends where the stream is pending, which is where the real server flushes, so that
/// clients can decode everything sent so far. Each member is flushed before it ends: Go's reader
/// returns the data of the last block only when the next member begins, which on a quiet watch may
/// never happen.
pub(crate) struct GzipMembers<B> {
    inner: Pin<Box<B>>,
    member: Option<GzEncoder<Vec<u8>>>,
    ended: bool,
}

impl<B> GzipMembers<B> {
    pub(crate) fn new(inner: B) -> Self {
        Self { inner: Box::pin(inner), member: None, ended: false }
    }

    fn close(&mut self) -> Option<Bytes> {
        Some(flushed(self.member.take()?).expect("writing to memory does not fail").into())
    }
}

impl<B: http_body::Body<Data = Bytes, Error = io::Error>> http_body::Body for GzipMembers<B> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        if this.ended {
            return Poll::Ready(None);
        }
        loop {
            let polled = this.inner.as_mut().poll_frame(cx);
            if polled.is_pending() && this.member.is_some() {
                return Poll::Ready(this.close().map(|bytes| Ok(Frame::data(bytes))));
            }
            match ready!(polled) {
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    let member = this.member.get_or_insert_with(encoder);
                    member.write_all(&data).expect("writing to memory does not fail");
                    if member.get_ref().len() >= CHUNK {
                        return Poll::Ready(Some(Ok(Frame::data(std::mem::take(member.get_mut()).into()))));
                    }
                }
                Some(Err(error)) => {
                    this.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None => {
                    this.ended = true;
                    return Poll::Ready(this.close().map(|bytes| Ok(Frame::data(bytes))));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The final empty block and the trailer (checksum and size).
    const END: usize = 2 + 8;

    #[test]
    fn a_member_is_flushed_to_its_last_byte_however_long_it_is() {
        let mut state = 1_u64;
        let digits: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            b"0123456789abcdef"[(state >> 60) as usize]
        })
        .take(300_000)
        .collect();
        for length in (1..digits.len()).step_by(19_000) {
            let mut member = encoder();
            member.write_all(&digits[..length]).unwrap();
            let member = flushed(member).unwrap();
            assert!(member[..member.len() - END].ends_with(&FLUSHED), "{length}");
        }
    }
}
