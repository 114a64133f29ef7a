//! Sorting of the fields of messages into the order that servers write.

use super::MAX_DEPTH;
use super::envelope::Envelope;
use super::table::{Field, MessageType, Repeats, Table, Type};
use super::value::entry_of;
use super::wire::{Datum, Fields, put, put_bytes};
use crate::codec::Broken;

/// The object with the fields of all its messages in ascending order: elements of a list adjacent,
/// no field repeated. Fields that are not in the table are dropped.
pub(crate) fn sort_fields(object: &[u8]) -> Result<Vec<u8>, Broken> {
    let envelope = Envelope::open(object)?;
    let (api_version, kind) = envelope.texts()?;
    let of = Table::get().of_kind(api_version, kind).ok_or(Broken::Kind)?;
    let raw = ordered(of, envelope.raw, 0)?;
    Ok(Envelope { raw: &raw, ..envelope }.close())
}

fn ordered(of: &'static MessageType, message: &[u8], depth: u32) -> Result<Vec<u8>, Broken> {
    if depth > MAX_DEPTH {
        return Err(Broken::Deep);
    }
    let (mut fields, mut found) = (Fields::of(message), Vec::new());
    while let Some((number, wire)) = fields.next()? {
        if let Some((_, field)) = of.field(number) {
            found.push((field, wire));
        }
    }
    found.sort_by_key(|(field, _)| field.number);
    let mut ordered = Vec::with_capacity(message.len());
    let mut rest = &found[..];
    while let Some((field, wire)) = rest.first() {
        let same = rest.iter().take_while(|(other, _)| other.number == field.number).count();
        let (all, further) = rest.split_at(same);
        rest = further;
        if field.repeats != Repeats::Once {
            for (field, wire) in all {
                put_part(&mut ordered, field, *wire, depth)?;
            }
            continue;
        }
        let mut wire = all.last().map_or(*wire, |(_, wire)| *wire);
        // Repeated parts of a message field are merged, which is the same as concatenating them.
        let joined;
        if let (Type::Message(_) | Type::Inline(_), true) = (field.of, same > 1) {
            joined = all.iter().map(|(_, wire)| bytes(*wire)).collect::<Result<Vec<_>, _>>()?.concat();
            wire = Datum::Bytes(&joined);
        }
        put_part(&mut ordered, field, wire, depth)?;
    }
    Ok(ordered)
}

fn put_part(to: &mut Vec<u8>, field: &Field, wire: Datum<'_>, depth: u32) -> Result<(), Broken> {
    let (Type::Message(message) | Type::Inline(message)) = field.of else {
        put(to, field.number, wire);
        return Ok(());
    };
    let of = Table::get().at(message);
    if field.repeats != Repeats::Map {
        put_bytes(to, field.number, &ordered(of, bytes(wire)?, depth + 1)?);
        return Ok(());
    }
    let (key, value) = entry_of(bytes(wire)?)?;
    let mut entry = Vec::new();
    put_bytes(&mut entry, 1, key);
    put_bytes(&mut entry, 2, &ordered(of, value.map_or(Ok(&b""[..]), bytes)?, depth + 1)?);
    put_bytes(to, field.number, &entry);
    Ok(())
}

fn bytes(wire: Datum<'_>) -> Result<&[u8], Broken> {
    match wire {
        Datum::Bytes(bytes) => Ok(bytes),
        Datum::Number(_) | Datum::Fixed(_) => Err(Broken::Protobuf),
    }
}
