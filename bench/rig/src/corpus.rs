//! Corpus files with objects in wire format: JSON from the generator, and protobuf converted from
//! it by the Go program.
//!
//! Little endian: eight bytes of magic, a `u64` content hash, the number of objects as `u32`; then
//! for each object its two states, each a `u32` length, a `u32` offset of its ten-digit
//! resourceVersion, and the bytes; a second state of length 0 equals the first. At the end, as a
//! `u32` each, the objects in the order of their keys.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kube_embedded::generate::{Generator, Sample};
use parking_lot::RwLock;

use crate::work::Work;

const MAGIC: &[u8; 8] = b"corpus02";
const HEADER: usize = 20;

/// The placeholder of a resource version: ten digits that do not occur elsewhere in an object.
const PLACEHOLDER: u64 = 7_777_777_777;
const SEED: u64 = 7;
/// Number of sampled objects for the content hash.
const SAMPLED: u64 = 64;
/// Larger corpora are not loaded but read from the file, relying on the page cache.
const IN_MEMORY: u64 = 2 << 30;

/// The minimum resource version; all have ten digits.
pub const BASE_VERSION: u64 = 1_000_000_000;

/// A corpus, with its objects ordered by key.
#[derive(Debug)]
pub struct Corpus {
    bytes: Bytes,
    objects: Vec<[State; 2]>,
}

#[derive(Debug)]
enum Bytes {
    Memory(Vec<u8>),
    File(File),
    Made(Made),
}

/// Objects that are generated when they are read, in the order of their numbers.
#[derive(Debug)]
struct Made {
    work: Work,
    is_protobuf: bool,
    /// Objects that were made ahead, by object and state.
    ahead: RwLock<HashMap<(usize, usize), ReadyObject>>,
}

/// An object, and the offset of its resource version.
type ReadyObject = (Vec<u8>, usize);

#[derive(Debug, Clone, Copy, Default)]
struct State {
    at: u64,
    len: usize,
    version_at: usize,
}

impl Corpus {
    /// Opens a corpus file.
    pub fn read(path: &Path) -> io::Result<Self> {
        let broken = || io::Error::new(io::ErrorKind::InvalidData, format!("{} is no corpus", path.display()));
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        let mut header = [0; HEADER];
        reader.read_exact(&mut header)?;
        if &header[..8] != MAGIC {
            return Err(broken());
        }
        let mut bytes = (size <= IN_MEMORY).then(|| Vec::with_capacity(size as usize));
        let count = u32::from_le_bytes(header[16..].try_into().expect("four bytes"));
        let mut made = Vec::with_capacity(count as usize);
        let mut at = 0;
        for _ in 0..count {
            let mut states = [State::default(); 2];
            for state in &mut states {
                let (len, version_at) = (number(&mut reader)?, number(&mut reader)?);
                let start = bytes.as_ref().map_or(HEADER as u64 + at + 8, |bytes| bytes.len() as u64);
                *state = State { at: start, len: len as usize, version_at: version_at as usize };
                match &mut bytes {
                    Some(bytes) => drop(io::copy(&mut (&mut reader).take(u64::from(len)), bytes)?),
                    None => reader.seek_relative(i64::from(len))?,
                }
                at += 8 + u64::from(len);
            }
            if states[1].len == 0 {
                states[1] = states[0];
            }
            made.push(states);
        }
        let mut objects = Vec::with_capacity(made.len());
        for _ in 0..count {
            objects.push(*made.get(number(&mut reader)? as usize).ok_or_else(broken)?);
        }
        if HEADER as u64 + at + 4 * u64::from(count) != size {
            return Err(broken());
        }
        drop(reader);
        Ok(Self { bytes: bytes.map_or(Bytes::File(file), Bytes::Memory), objects })
    }

    /// A corpus of this many objects that is not stored: each is generated when it is read.
    pub fn made(work: Work, count: usize, is_protobuf: bool) -> Self {
        let made = Made { work, is_protobuf, ahead: RwLock::default() };
        Self { bytes: Bytes::Made(made), objects: vec![[State::default(); 2]; count] }
    }

    /// Generates objects before they are read, if they are not stored: so that reading them takes
    /// no longer than from a stored corpus.
    pub fn make_ahead(&self, objects: impl Iterator<Item = (usize, usize)>) {
        let Bytes::Made(made) = &self.bytes else { return };
        let objects: HashMap<_, _> =
            objects.map(|(object, state)| ((object, state), made.object(object, state))).collect();
        *made.ahead.write() = objects;
    }

    /// Number of objects.
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// The size in bytes of an object in a state.
    pub fn len(&self, object: usize, state: usize) -> usize {
        match &self.bytes {
            Bytes::Made(_) => self.object(object, state).0.len(),
            _ => self.objects[object][state].len,
        }
    }

    /// An object in a state, and the offset of its resource version.
    pub fn object(&self, object: usize, state: usize) -> (Cow<'_, [u8]>, usize) {
        if let Bytes::Made(made) = &self.bytes {
            let ready = made.ahead.read().get(&(object, state)).cloned();
            let (bytes, version_at) = ready.unwrap_or_else(|| made.object(object, state));
            return (Cow::Owned(bytes), version_at);
        }
        let State { at, len, version_at } = self.objects[object][state];
        let bytes = match &self.bytes {
            Bytes::Memory(bytes) => Cow::Borrowed(&bytes[at as usize..at as usize + len]),
            Bytes::File(file) => {
                let mut bytes = vec![0; len];
                file.read_exact_at(&mut bytes, at).expect("the corpus stays where it is while it is served");
                Cow::Owned(bytes)
            }
            Bytes::Made(_) => unreachable!("made objects are not stored"),
        };
        (bytes, version_at)
    }
}

impl Made {
    fn object(&self, object: usize, state: usize) -> ReadyObject {
        let sample = self.work.state(Generator::new(SEED), object as u64, state as u64);
        let version = PLACEHOLDER.to_string();
        let (bytes, before) = if self.is_protobuf {
            // Field 6 of the metadata, ten bytes long.
            (sample.to_protobuf(PLACEHOLDER).expect("the kind has protobuf"), "\x32\x0a".to_owned())
        } else {
            (sample.at_version(PLACEHOLDER), r#""resourceVersion":""#.to_owned())
        };
        let at = memchr::memmem::find(&bytes, (before.clone() + &version).as_bytes()).expect("it has a version");
        (bytes, at + before.len())
    }
}

fn number(reader: &mut impl Read) -> io::Result<u32> {
    let mut four = [0; 4];
    reader.read_exact(&mut four)?;
    Ok(u32::from_le_bytes(four))
}

/// The path of the corpus with this many objects in this format.
pub fn path(folder: &Path, work: Work, count: u64, form: &str) -> PathBuf {
    folder.join(format!("{work}-{count}.{form}"))
}

/// Generates the JSON corpus, unless it already exists; returns its path and content hash. Objects
/// are written as they are generated, so their number is limited only by the disk.
pub fn make(folder: &Path, work: Work, count: u64) -> io::Result<(PathBuf, u64)> {
    let cluster = Generator::new(SEED);
    let hash = content_hash(cluster, work, count)?;
    let path = path(folder, work, count, "json");
    if tag(&path) == Some(hash) {
        return Ok((path, hash));
    }
    let unfinished = path.with_extension("unfinished");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
    file.write_all(MAGIC)?;
    file.write_all(&hash.to_le_bytes())?;
    file.write_all(&u32::try_from(count).map_err(io::Error::other)?.to_le_bytes())?;
    let mut keys = Vec::with_capacity(count as usize);
    let mut buffer = Vec::new();
    for index in 0..count {
        let (first, second) = work.states(cluster, index);
        buffer.clear();
        push(&mut buffer, Some(&first))?;
        push(&mut buffer, second.as_ref())?;
        file.write_all(&buffer)?;
        keys.push((format!("{}/{}", first.namespace().unwrap_or_default(), first.name()), index as u32));
    }
    keys.sort_unstable();
    for (_, index) in keys {
        file.write_all(&index.to_le_bytes())?;
    }
    file.flush()?;
    std::fs::rename(&unfinished, &path)?;
    Ok((path, hash))
}

/// The content hash of a corpus, if it exists.
pub fn tag(path: &Path) -> Option<u64> {
    let mut header = [0; HEADER];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    (&header[..8] == MAGIC).then(|| u64::from_le_bytes(header[8..16].try_into().expect("eight bytes")))
}

/// Hashes a sample of the objects: any change of the generator changes at least one of them.
fn content_hash(cluster: Generator, work: Work, count: u64) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    let mut buffer = Vec::new();
    for nth in 0..SAMPLED.min(count) {
        let (first, second) = work.states(cluster, nth * count / SAMPLED.min(count));
        buffer.clear();
        push(&mut buffer, Some(&first))?;
        push(&mut buffer, second.as_ref())?;
        hasher.write(&buffer);
    }
    Ok(hasher.finish())
}

fn push(out: &mut Vec<u8>, sample: Option<&Sample>) -> io::Result<()> {
    let json = sample.map(|sample| sample.at_version(PLACEHOLDER)).unwrap_or_default();
    let key = format!(r#""resourceVersion":"{PLACEHOLDER}""#);
    let at = memchr::memmem::find(&json, key.as_bytes()).map_or(0, |at| at + key.len() - 11);
    if !json.is_empty() && at == 0 {
        return Err(io::Error::other("an object without a version"));
    }
    for number in [json.len(), at] {
        out.extend_from_slice(&u32::try_from(number).map_err(io::Error::other)?.to_le_bytes());
    }
    out.extend_from_slice(&json);
    Ok(())
}
