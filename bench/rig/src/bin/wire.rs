//! Potential savings of protobuf on the wire: `wire JSON-CORPUS PROTOBUF-CORPUS`, of the same
//! objects.
//!
//! For both formats: bytes, the time to extract an object's metadata and copy it, the size after
//! zstd compression with a dictionary, and the time to decode it, with and without managedFields.
//! The protobuf reader is a prototype: it extracts the same fields as the JSON scanner, without
//! decoding the rest of the message.

use std::hint::black_box;
use std::path::Path;

use k8s_openapi::api::core::v1::Pod;
use kube_informer::codec::{Envelope, Extent, FieldCutter, decode_protobuf, scan};
use rig::corpus::Corpus;
use rig::process;

const ROUNDS: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [json, protobuf] = [1, 2].map(|nth| std::env::args().nth(nth).unwrap_or_default());
    let (json, protobuf) = (Corpus::read(Path::new(&json))?, Corpus::read(Path::new(&protobuf))?);
    let each =
        |corpus: &Corpus, f: &mut dyn FnMut(&[u8])| (0..corpus.count()).for_each(|nth| f(&corpus.object(nth, 0).0));
    let mean = |corpus: &Corpus| {
        let mut bytes = 0;
        each(corpus, &mut |object| bytes += object.len());
        bytes / corpus.count()
    };
    println!("bytes an object: JSON {}, protobuf {}", mean(&json), mean(&protobuf));
    // The minimum of several rounds, in microseconds per object.
    let time = |corpus: &Corpus, f: &mut dyn FnMut(&[u8])| {
        let round = |_| {
            let start = process::cpu();
            each(corpus, f);
            (process::cpu() - start).as_secs_f64() * 1e6 / corpus.count() as f64
        };
        (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
    };
    println!(
        "metadata found, us: JSON {:.2}, protobuf {:.2}",
        time(&json, &mut |object| _ = black_box(scan(object, Extent::Metadata).is_ok())),
        time(&protobuf, &mut |object| _ = black_box(metadata(object))),
    );
    println!(
        "the same and the bytes copied, us: JSON {:.2}, protobuf {:.2}",
        time(&json, &mut |object| _ = black_box((scan(object, Extent::Metadata).is_ok(), object.to_vec()))),
        time(&protobuf, &mut |object| _ = black_box((metadata(object), object.to_vec()))),
    );
    for (name, corpus) in [("JSON", &json), ("protobuf", &protobuf)] {
        let samples: Vec<_> =
            (0..corpus.count()).step_by(corpus.count().div_ceil(512)).map(|nth| corpus.object(nth, 0).0).collect();
        let dictionary = zstd::dict::from_samples(&samples, 110 << 10)?;
        let mut packer = zstd::bulk::Compressor::with_dictionary(3, &dictionary)?;
        let mut unpacker = zstd::bulk::Decompressor::with_dictionary(&dictionary)?;
        let packed: Vec<Vec<u8>> =
            (0..corpus.count()).map(|nth| packer.compress(&corpus.object(nth, 0).0)).collect::<Result<_, _>>()?;
        let bytes = packed.iter().map(Vec::len).sum::<usize>() / packed.len();
        let pack = time(corpus, &mut |object| _ = black_box(packer.compress(object)));
        let mut nth = 0;
        let unpack = time(corpus, &mut |object| {
            _ = black_box(unpacker.decompress(&packed[nth % packed.len()], object.len()));
            nth += 1;
        });
        println!("{name} packed: {bytes} bytes an object, {pack:.1} us to pack, {unpack:.1} us to unpack");
    }
    let cutter = FieldCutter::new(["metadata.managedFields".parse()?]);
    let whole = |raw: &[u8]| Envelope { api_version: b"v1", kind: b"Pod", raw }.close();
    type Decode = fn(&[u8]) -> Option<Pod>;
    let forms: [(&str, &Corpus, Vec<Vec<u8>>, Decode); 2] = [
        ("JSON", &json, objects(&json, <[u8]>::to_vec), |object| serde_json::from_slice(object).ok()),
        ("protobuf", &protobuf, objects(&protobuf, whole), |object| decode_protobuf(object)),
    ];
    for (name, corpus, objects, decode) in forms {
        let lean = objects.iter().map(|object| cutter.cut(&object.clone().into())).collect::<Result<Vec<_>, _>>()?;
        let bytes = lean.iter().flatten().count() / lean.len();
        let decoding = |bodies: &[&[u8]]| {
            let mut bodies = bodies.iter().cycle();
            time(corpus, &mut |_| assert!(black_box(bodies.next().and_then(|body| decode(body))).is_some()))
        };
        let full = decoding(&objects.iter().map(|object| &object[..]).collect::<Vec<_>>());
        let less = decoding(&lean.iter().map(|object| &object[..]).collect::<Vec<_>>());
        println!("{name} decoded into a Pod, us: {full:.1}; without managedFields ({bytes} bytes) {less:.1}");
    }
    Ok(())
}

fn objects(corpus: &Corpus, whole: impl Fn(&[u8]) -> Vec<u8>) -> Vec<Vec<u8>> {
    (0..corpus.count()).map(|nth| whole(&corpus.object(nth, 0).0)).collect()
}

/// The metadata that is always needed, borrowed from the object's bytes.
#[derive(Debug, Default)]
struct Metadata<'b> {
    name: &'b [u8],
    namespace: &'b [u8],
    uid: &'b [u8],
    version: &'b [u8],
    generation: u64,
    deletion: Option<&'b [u8]>,
    /// Bytes of the entries, which are not interpreted otherwise, as in JSON.
    labels: usize,
    owners: usize,
}

/// Extracts the metadata of an object. Stops before spec and status.
fn metadata(object: &[u8]) -> Option<Metadata<'_>> {
    let mut fields = Fields(object);
    let (1, Value::Bytes(meta)) = fields.next()? else { return None };
    let mut found = Metadata::default();
    for (field, value) in Fields(meta) {
        match (field, value) {
            (1, Value::Bytes(bytes)) => found.name = std::str::from_utf8(bytes).ok()?.as_bytes(),
            (3, Value::Bytes(bytes)) => found.namespace = std::str::from_utf8(bytes).ok()?.as_bytes(),
            (5, Value::Bytes(bytes)) => found.uid = std::str::from_utf8(bytes).ok()?.as_bytes(),
            (6, Value::Bytes(bytes)) => found.version = std::str::from_utf8(bytes).ok()?.as_bytes(),
            (7, Value::Number(number)) => found.generation = number,
            (9, Value::Bytes(bytes)) => found.deletion = Some(bytes),
            (11, Value::Bytes(entry)) => {
                for (_, text) in Fields(entry) {
                    let Value::Bytes(text) = text else { return None };
                    found.labels += std::str::from_utf8(text).ok()?.len();
                }
            }
            (13, Value::Bytes(entry)) => {
                for (_, text) in Fields(entry) {
                    let Value::Bytes(text) = text else { continue };
                    found.owners += std::str::from_utf8(text).ok()?.len();
                }
            }
            _ => {}
        }
    }
    (!found.name.is_empty()).then_some(found)
}

enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// Iterates over the fields of a message; ends at invalid data.
struct Fields<'b>(&'b [u8]);

impl<'b> Fields<'b> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = (u64, Value<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            2 => {
                let len = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(len)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}
