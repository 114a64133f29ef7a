//! Kind and apiVersion of list items that lack them.

use bytes::{BufMut, Bytes, BytesMut};

use super::cursor::Broken;
use super::list::ListEnd;
use super::scan::{Extent, scan};

/// Adds the missing kind and apiVersion to the items of a list: the items of a `PodList` of `v1`
/// are each a `Pod` of `v1`.
///
/// The first fields of an item show whether it has them: servers write kind and apiVersion before
/// metadata. The first item of a list that begins otherwise is scanned to its end; later items are
/// assumed to have the same layout.
#[derive(Debug, Default)]
pub(super) struct Types {
    /// The fields to insert after the opening brace, once known.
    prefix: Option<Bytes>,
    scanned_whole: bool,
}

impl Types {
    pub(super) fn fill(&mut self, item: Bytes, list: &ListEnd) -> Result<Bytes, Broken> {
        let mut found = scan(&item, Extent::Types)?;
        if found.kind.is_some() && found.api_version.is_some() {
            return Ok(item);
        }
        if !self.scanned_whole {
            found = scan(&item, Extent::Whole)?;
            if found.kind.is_some() && found.api_version.is_some() {
                return Ok(item);
            }
            self.scanned_whole = true;
        }
        if found.kind.is_some() || found.api_version.is_some() {
            // An item with only one of the two is left as it is.
            return Ok(item);
        }
        let Some(prefix) = self.prefix(list) else { return Ok(item) };
        let body = item.trim_ascii_start().strip_prefix(b"{").ok_or(Broken::Byte)?;
        let empty = body.trim_ascii_start().starts_with(b"}");
        let mut filled = BytesMut::with_capacity(prefix.len() + body.len() + 2);
        filled.put_u8(b'{');
        filled.put_slice(&prefix);
        if !empty {
            filled.put_u8(b',');
        }
        filled.put_slice(body);
        Ok(filled.freeze())
    }

    fn prefix(&mut self, list: &ListEnd) -> Option<Bytes> {
        if self.prefix.is_none() {
            let kind = list.kind.as_ref()?.strip_suffix("List")?;
            let (kind, api_version) = (quoted(kind)?, quoted(list.api_version.as_ref()?)?);
            self.prefix = Some(format!(r#""kind":{kind},"apiVersion":{api_version}"#).into());
        }
        self.prefix.clone()
    }
}

fn quoted(text: &str) -> Option<String> {
    serde_json::to_string(text).ok()
}
