//! Removal of fields.

use super::MAX_DEPTH;
use super::envelope::Envelope;
use super::table::{Field, MessageType, Repeats, Table, Type};
use super::value::entry_of;
use super::wire::{Datum, Fields, put_bytes};
use crate::codec::Broken;
use crate::codec::json::fields::Node;

/// The object without the fields; none if the result can be expressed only in JSON: if a field is
/// inside embedded JSON, or if a list would become empty, which protobuf cannot distinguish from an
/// absent list.
pub(crate) fn cut(object: &[u8], root: &Node) -> Result<Option<Vec<u8>>, Broken> {
    let envelope = Envelope::open(object)?;
    let (api_version, kind) = envelope.texts()?;
    let Some(of) = Table::get().of_kind(api_version, kind) else { return Ok(None) };
    if root.field("kind").is_some() || root.field("apiVersion").is_some() {
        return Ok(None);
    }
    let mut raw = Vec::with_capacity(envelope.raw.len());
    match message(of, envelope.raw, &[root], 0, &mut raw)? {
        Cut::Done => Ok(Some(Envelope { raw: &raw, ..envelope }.close())),
        Cut::OnlyInJson => Ok(None),
    }
}

enum Cut {
    Done,
    OnlyInJson,
}

fn message(
    of: &'static MessageType,
    bytes: &[u8],
    nodes: &[&Node],
    depth: u32,
    to: &mut Vec<u8>,
) -> Result<Cut, Broken> {
    if depth > MAX_DEPTH {
        return Err(Broken::Deep);
    }
    let is_cut = |name: &str| nodes.iter().filter_map(|node| node.field(name)).any(|node| node.here);
    if of.nulls.iter().any(|place| is_cut(of.at(*place).name)) {
        // JSON contains null for an absent field.
        return Ok(Cut::OnlyInJson);
    }
    let mut fields = Fields::of(bytes);
    // Elements of the current list or map.
    let mut parts = Parts::default();
    let mut last = 0;
    loop {
        let before = fields.rest;
        let Some((number, wire)) = fields.next()? else { break };
        let all = &before[..before.len() - fields.rest.len()];
        if number < last {
            // The index of an element is unknown if the fields are not in order.
            return Ok(Cut::OnlyInJson);
        }
        if number != last {
            if parts.all_removed() {
                return Ok(Cut::OnlyInJson);
            }
            parts = Parts::default();
            last = number;
        }
        let Some((_, field)) = of.field(number) else {
            to.extend_from_slice(all);
            continue;
        };
        if let (Type::Inline(inner), Datum::Bytes(bytes)) = (field.of, wire) {
            let mut inside = Vec::with_capacity(bytes.len());
            if let Cut::OnlyInJson = message(Table::get().at(inner), bytes, nodes, depth + 1, &mut inside)? {
                return Ok(Cut::OnlyInJson);
            }
            put_bytes(to, number, &inside);
            continue;
        }
        let below: Vec<&Node> = nodes.iter().filter_map(|node| node.field(field.name)).collect();
        if below.is_empty() {
            to.extend_from_slice(all);
        } else if below.iter().any(|node| node.here) {
            // The whole field is removed.
        } else if let Cut::OnlyInJson = part(field, wire, all, &below, &mut parts, depth, to)? {
            return Ok(Cut::OnlyInJson);
        }
    }
    Ok(if parts.all_removed() { Cut::OnlyInJson } else { Cut::Done })
}

#[derive(Default)]
struct Parts {
    seen: usize,
    kept: usize,
}

impl Parts {
    fn all_removed(&self) -> bool {
        self.seen > 0 && self.kept == 0
    }
}

/// Handles a value from which something is removed, or one element of a list or map.
fn part(
    field: &'static Field,
    wire: Datum<'_>,
    all: &[u8],
    nodes: &[&Node],
    parts: &mut Parts,
    depth: u32,
    to: &mut Vec<u8>,
) -> Result<Cut, Broken> {
    let Datum::Bytes(bytes) = wire else {
        to.extend_from_slice(all);
        return Ok(Cut::Done);
    };
    let nth = parts.seen;
    let mut value = bytes;
    let mut key: &[u8] = b"";
    let below: Vec<&Node> = match field.repeats {
        Repeats::Once => nodes.to_vec(),
        Repeats::List => nodes.iter().flat_map(|node| node.element(nth)).collect(),
        Repeats::Map => {
            let (name, entry) = entry_of(bytes)?;
            let Ok(text) = std::str::from_utf8(name) else { return Ok(Cut::OnlyInJson) };
            key = name;
            value = match entry {
                Some(Datum::Bytes(value)) => value,
                _ => b"",
            };
            nodes.iter().filter_map(|node| node.field(text)).collect()
        }
    };
    if field.repeats != Repeats::Once {
        parts.seen += 1;
        if below.iter().any(|node| node.here) {
            return Ok(Cut::Done);
        }
        parts.kept += 1;
    }
    match field.of {
        _ if below.is_empty() => to.extend_from_slice(all),
        Type::Message(inner) => {
            let mut inside = Vec::with_capacity(value.len());
            if let Cut::OnlyInJson = message(Table::get().at(inner), value, &below, depth + 1, &mut inside)? {
                return Ok(Cut::OnlyInJson);
            }
            if field.repeats == Repeats::Map {
                let mut entry = Vec::with_capacity(inside.len() + key.len() + 8);
                put_bytes(&mut entry, 1, key);
                put_bytes(&mut entry, 2, &inside);
                inside = entry;
            }
            put_bytes(to, field.number, &inside);
        }
        Type::Json | Type::Either(..) | Type::Texts | Type::Inline(_) => return Ok(Cut::OnlyInJson),
        // A scalar has no fields to remove.
        _ => to.extend_from_slice(all),
    }
    Ok(Cut::Done)
}
