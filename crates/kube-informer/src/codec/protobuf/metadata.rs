//! Scanning of an object's bytes for its metadata.

use super::envelope::Envelope;
use super::value::entry_of;
use super::wire::{Datum, Fields};
use crate::codec::json::scan::{Deleted, OwnerFound, ScannedObject};
use crate::codec::{Broken, Text, Wire};

/// Scans an object for its metadata. Fields after the metadata are not read.
pub(crate) fn scan(object: &[u8]) -> Result<ScannedObject<'_>, Broken> {
    let envelope = Envelope::open(object)?;
    let mut found = ScannedObject {
        kind: Text::of_bytes(envelope.kind).filled(),
        api_version: Text::of_bytes(envelope.api_version).filled(),
        wire: Wire::Protobuf,
        ..ScannedObject::default()
    };
    // Servers write metadata first.
    let mut fields = Fields::of(envelope.raw);
    match fields.next()? {
        Some((1, Datum::Bytes(metadata))) => {
            found.has_metadata = true;
            read(&mut found, metadata)?;
        }
        Some(_) => return Err(Broken::Protobuf),
        None => {}
    }
    match fields.next_if(1)? {
        Some(_) => Err(Broken::Protobuf),
        None => Ok(found),
    }
}

fn read<'a>(found: &mut ScannedObject<'a>, metadata: &'a [u8]) -> Result<(), Broken> {
    let mut fields = Fields::of(metadata);
    let mut last = 0;
    loop {
        let before = fields.rest;
        let Some((number, wire)) = fields.next()? else { return Ok(()) };
        if number < last {
            return Err(Broken::Protobuf);
        }
        last = number;
        match (number, wire) {
            (1, Datum::Bytes(text)) => found.name = Text::of_bytes(text).filled(),
            (3, Datum::Bytes(text)) => found.namespace = Text::of_bytes(text).filled(),
            (5, Datum::Bytes(text)) => found.uid = Text::of_bytes(text).filled(),
            (6, Datum::Bytes(text)) => found.version = Text::of_bytes(text).filled(),
            (7, Datum::Number(generation)) if generation > 0 => found.generation = Some(generation.cast_signed()),
            (9, Datum::Bytes(time)) => found.deletion = seconds(time)?.map(Deleted::Seconds),
            (11..=13, _) => {
                while fields.next_if(number)?.is_some() {}
                let all = &before[..before.len() - fields.rest.len()];
                match number {
                    11 => found.labels = Some(all),
                    12 => found.annotations = Some(all),
                    _ => found.owners = Some(all),
                }
            }
            _ => {}
        }
    }
}

fn seconds(time: &[u8]) -> Result<Option<i64>, Broken> {
    let (mut fields, mut seconds) = (Fields::of(time), None);
    while let Some(field) = fields.next()? {
        if let (1, Datum::Number(number)) = field {
            seconds = Some(number.cast_signed());
        }
    }
    Ok(seconds)
}

/// Calls `take` for each entry of a map of strings, such as labels.
pub(crate) fn each_string<'a>(
    entries: &'a [u8],
    mut take: impl FnMut(Text<'a>, Text<'a>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let mut fields = Fields::of(entries);
    while let Some((_, wire)) = fields.next()? {
        let Datum::Bytes(entry) = wire else { return Err(Broken::Protobuf) };
        let (key, value) = entry_of(entry)?;
        let value = match value {
            Some(Datum::Bytes(value)) => value,
            None => b"",
            Some(_) => return Err(Broken::Protobuf),
        };
        take(Text::of_bytes(key), Text::of_bytes(value))?;
    }
    Ok(())
}

/// Calls `take` for each owner reference.
pub(crate) fn each_owner<'a>(
    owners: &'a [u8],
    mut take: impl FnMut(OwnerFound<'a>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let mut all = Fields::of(owners);
    while let Some((_, wire)) = all.next()? {
        let Datum::Bytes(owner) = wire else { return Err(Broken::Protobuf) };
        let (mut fields, mut found) = (Fields::of(owner), OwnerFound::default());
        while let Some(field) = fields.next()? {
            match field {
                (1, Datum::Bytes(text)) => found.kind = Some(Text::of_bytes(text)),
                (3, Datum::Bytes(text)) => found.name = Some(Text::of_bytes(text)),
                (4, Datum::Bytes(text)) => found.uid = Some(Text::of_bytes(text)),
                (5, Datum::Bytes(text)) => found.api_version = Some(Text::of_bytes(text)),
                (6, Datum::Number(controls)) => found.controls = controls != 0,
                _ => {}
            }
        }
        take(found)?;
    }
    Ok(())
}

/// Encodes labels as servers do, in the given order.
pub(crate) fn put_labels<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>, to: &mut Vec<u8>) {
    use super::wire::put_bytes;
    let mut entry = Vec::new();
    for (key, value) in labels {
        entry.clear();
        put_bytes(&mut entry, 1, key.as_bytes());
        put_bytes(&mut entry, 2, value.as_bytes());
        put_bytes(to, 11, &entry);
    }
}
