//! Kind and apiVersion of items that come without.

use bytes::{BufMut, Bytes, BytesMut};

use super::cursor::Broken;
use super::list::ListEnd;
use super::scan::{Extent, scan};

/// Gives the items of a list the kind and apiVersion they lack: a `PodList` of `v1` holds a `Pod` of `v1` each.
///
/// Whether an item has its own is told by its first fields: servers write kind and apiVersion before metadata. An item that begins
/// otherwise is looked through to its end the first time, and later ones of the same list are taken to be alike.
#[derive(Debug, Default)]
pub struct Types {
    /// What to write behind the opening brace, once known.
    prefix: Option<Bytes>,
    looked_through: bool,
}

impl Types {
    pub(super) fn fill(&mut self, item: Bytes, list: &ListEnd) -> Result<Bytes, Broken> {
        let mut found = scan(&item, Extent::Types)?;
        if found.kind.is_some() && found.api_version.is_some() {
            return Ok(item);
        }
        if !self.looked_through {
            found = scan(&item, Extent::Whole)?;
            if found.kind.is_some() && found.api_version.is_some() {
                return Ok(item);
            }
            self.looked_through = true;
        }
        if found.kind.is_some() || found.api_version.is_some() {
            // Half a type is the item's own affair.
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
