//! Objects in a file, as they go over the wire: JSON from the generator, and protobuf that the Go program makes of it.
//!
//! Little endian: eight bytes of magic, a `u64` that tells one content from another, the number of objects as `u32`; then for
//! each object its two states, each a `u32` length, a `u32` offset of its ten digits of resourceVersion, and the bytes. A second
//! state of no length is like the first.

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use kube_embedded::generate::{Generator, Sample};

use crate::work::Work;

const MAGIC: &[u8; 8] = b"corpus01";
const HEADER: usize = 20;

/// What stands where a version goes: ten digits that nothing else in an object has.
const PLACEHOLDER: u64 = 7_777_777_777;
const SEED: u64 = 7;

/// The least version; all have ten digits.
pub const BASE_VERSION: u64 = 1_000_000_000;

/// Objects, read.
#[derive(Debug)]
pub struct Corpus {
    bytes: Vec<u8>,
    objects: Vec<[State; 2]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    at: usize,
    len: usize,
    version_at: usize,
}

impl Corpus {
    /// Reads a file.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::open(path)?.read_to_end(&mut bytes)?;
        let broken = || io::Error::new(io::ErrorKind::InvalidData, format!("{} is no corpus", path.display()));
        if bytes.len() < HEADER || &bytes[..8] != MAGIC {
            return Err(broken());
        }
        let number = |at: usize| {
            let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).ok_or_else(broken)?;
            io::Result::Ok(u32::from_le_bytes(four) as usize)
        };
        let count = number(16)?;
        let mut objects = Vec::with_capacity(count);
        let mut at = HEADER;
        for _ in 0..count {
            let mut states = [State::default(); 2];
            for state in &mut states {
                *state = State { at: at + 8, len: number(at)?, version_at: number(at + 4)? };
                at += 8 + state.len;
            }
            if states[1].len == 0 {
                states[1] = states[0];
            }
            objects.push(states);
        }
        if at == bytes.len() { Ok(Self { bytes, objects }) } else { Err(broken()) }
    }

    /// How many objects.
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// An object in a state, and where its version stands in it.
    pub fn object(&self, object: usize, state: usize) -> (&[u8], usize) {
        let State { at, len, version_at } = self.objects[object][state];
        (&self.bytes[at..at + len], version_at)
    }
}

/// Where the corpus of so many objects lies, by form.
pub fn path(folder: &Path, work: Work, count: u64, form: &str) -> PathBuf {
    folder.join(format!("{work}-{count}.{form}"))
}

/// Makes the JSON corpus, unless there is the same already; where it is, and what tells its content.
pub fn make(folder: &Path, work: Work, count: u64) -> io::Result<(PathBuf, u64)> {
    let cluster = Generator::new(SEED);
    let mut objects: Vec<_> = (0..count).map(|index| work.states(cluster, index)).collect();
    objects.sort_by(|(a, _), (b, _)| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
    let mut content = Vec::new();
    for (first, second) in &objects {
        push(&mut content, Some(first))?;
        push(&mut content, second.as_ref())?;
    }
    let mut hasher = DefaultHasher::new();
    hasher.write(&content);
    let hash = hasher.finish();
    let path = path(folder, work, count, "json");
    if tag(&path) != Some(hash) {
        let mut file = BufWriter::new(File::create(&path)?);
        file.write_all(MAGIC)?;
        file.write_all(&hash.to_le_bytes())?;
        file.write_all(&u32::try_from(count).map_err(io::Error::other)?.to_le_bytes())?;
        file.write_all(&content)?;
        file.flush()?;
    }
    Ok((path, hash))
}

/// What tells the content of a corpus, if there is one.
pub fn tag(path: &Path) -> Option<u64> {
    let mut header = [0; HEADER];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    (&header[..8] == MAGIC).then(|| u64::from_le_bytes(header[8..16].try_into().expect("eight bytes")))
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
