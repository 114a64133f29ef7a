//! Fuzzing without a framework: random mutations of recorded bodies, in reproducible cases.
//!
//! A target is a test in a module named `fuzz`; it calls [`fuzz`]. It runs a fixed number of cases
//! with fixed seeds, unless these variables are set:
//!
//! - `FUZZ_SECONDS`: runs each target for that long, with random seeds; `just fuzz` sets it.
//! - `FUZZ_CASES`: the number of cases instead of the target's own.
//! - `FUZZ_SEED`: runs one case only; the seed is printed when a case fails.
//!
//! `kube-informer` includes this file in its tests.

#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use serde_json::Value;

/// The first seed where none is set.
const FIRST_SEED: u64 = 0x5eed;

/// Small, so that recursion without a limit overflows it; debug builds have large frames.
const STACK: usize = 1 << 20;

/// Bytes and texts that parsers treat specially, inserted by [`Source::mutate`].
const TOKENS: [&[u8]; 32] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b",",
    b":",
    b"\\",
    b"\\u0000",
    b"\\ud83d",
    b"null",
    b"true",
    b"0",
    b"-1",
    b"1e999",
    b"9223372036854775807",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"\n",
    b"\0",
    b"\xff",
    b"\xc3",
    b"\x80",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x0a",
    b"k8s\0",
    b"\"metadata\"",
    b"\"items\"",
    b"\"kind\"",
    b"*",
    b"..",
    b"'",
];

/// Runs a target with the seeds of its cases, on a thread with a stack of 1 MiB. A target fails by
/// panicking.
pub(crate) fn fuzz(cases: u64, target: impl Fn(&mut Source) + Send) {
    fuzz_on_stack(STACK, cases, target);
}

/// The same on a stack of that many bytes.
pub(crate) fn fuzz_on_stack(stack: usize, cases: u64, target: impl Fn(&mut Source) + Send) {
    thread::scope(|scope| {
        let name = thread::current().name().unwrap_or_default().to_owned();
        let runs = thread::Builder::new().name(name).stack_size(stack).spawn_scoped(scope, || run(cases, target));
        if let Err(panic) = runs.expect("a thread can be started").join() {
            std::panic::resume_unwind(panic);
        }
    });
}

fn run(cases: u64, target: impl Fn(&mut Source)) {
    if let Some(seed) = number("FUZZ_SEED") {
        return case(seed, &target);
    }
    let Some(seconds) = number("FUZZ_SECONDS") else {
        return (0..number("FUZZ_CASES").unwrap_or(cases)).for_each(|nth| case(FIRST_SEED + nth, &target));
    };
    let first: u64 = rand::random();
    eprintln!("seeds from {first} on");
    let (begun, mut nth) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(seconds) {
        case(first.wrapping_add(nth), &target);
        nth += 1;
    }
    eprintln!("{nth} cases");
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}

fn case(seed: u64, target: &impl Fn(&mut Source)) {
    /// Prints the seed of a case that panics.
    struct Seed(u64);

    impl Drop for Seed {
        fn drop(&mut self) {
            if thread::panicking() {
                eprintln!("FUZZ_SEED={} runs this case again", self.0);
            }
        }
    }
    let _seed = Seed(seed);
    target(&mut Source(Pcg64Mcg::seed_from_u64(seed)));
}

/// The random choices of one case.
#[derive(Debug)]
pub(crate) struct Source(Pcg64Mcg);

impl Source {
    /// A number below `end`; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        if end == 0 { 0 } else { self.0.random_range(0..end) }
    }

    /// True in one of `n` calls.
    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of several values.
    pub(crate) fn choose<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }

    /// Up to `max` random bytes.
    pub(crate) fn bytes(&mut self, max: usize) -> Vec<u8> {
        let len = self.below(max + 1);
        (0..len).map(|_| self.0.random()).collect()
    }

    /// A text of up to `max` pieces.
    pub(crate) fn text(&mut self, pieces: &[&str], max: usize) -> String {
        let len = self.below(max + 1);
        (0..len).map(|_| *self.choose(pieces)).collect()
    }

    /// JSON nested up to `depth` levels in arrays and objects, closed or cut off.
    pub(crate) fn nested(&mut self, depth: usize) -> Vec<u8> {
        let levels: Vec<bool> = (0..self.below(depth + 1)).map(|_| self.one_in(2)).collect();
        let mut json: Vec<u8> =
            levels.iter().flat_map(|array| if *array { &b"["[..] } else { br#"{"a":"# }).copied().collect();
        if self.one_in(2) {
            json.push(b'0');
            json.extend(levels.iter().rev().map(|array| if *array { b']' } else { b'}' }));
        }
        json
    }

    /// One of the bodies, mutated one to four times, or not at all.
    pub(crate) fn mutated(&mut self, bodies: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = self.choose(bodies).clone();
        for _ in 0..self.below(5) {
            self.mutate(&mut bytes, bodies);
        }
        bytes
    }

    /// Changes bytes once: flips a bit, replaces, removes, repeats or inserts bytes, truncates, or
    /// splices a part of another body in.
    pub(crate) fn mutate(&mut self, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
        let at = self.below(bytes.len() + 1);
        let end = (at + self.below(40)).min(bytes.len());
        match self.below(8) {
            0 => {
                let bit = self.below(8);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
            1 => bytes.truncate(at),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let repeated = bytes[at..end].repeat(1 + self.below(50));
                bytes.splice(at..at, repeated);
            }
            4 => {
                let noise = self.bytes(8);
                bytes.splice(at..end, noise);
            }
            5 => {
                let nested = self.nested(200);
                bytes.splice(at..at, nested);
            }
            6 => {
                let other = self.choose(others);
                let from = self.below(other.len() + 1);
                let part = other[from..].iter().take(self.below(300)).copied().collect::<Vec<u8>>();
                bytes.splice(at..end, part);
            }
            _ => {
                let token = *self.choose(&TOKENS);
                bytes.splice(at..(at + self.below(2) * token.len()).min(bytes.len()), token.iter().copied());
            }
        }
    }

    /// The bytes in up to eight chunks.
    pub(crate) fn chunks(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut cuts: Vec<usize> = (0..self.below(8)).map(|_| self.below(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        cuts.windows(2).map(|cut| bytes[cut[0]..cut[1]].to_vec()).collect()
    }
}

/// Responses recorded from a real server: JSON, and the protobuf of the same objects.
pub(crate) fn recorded() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    // The same file from either crate.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kube-embedded/src/encoding/protobuf/recorded.jsonl");
    let text = std::fs::read_to_string(path).expect("the recorded responses are in the repository");
    let both = |line: &str| {
        let mut recorded: Value = serde_json::from_str(line).expect("one response per line");
        let protobuf: k8s_openapi::ByteString = serde_json::from_value(recorded["protobuf"].take()).expect("base64");
        (recorded["json"].to_string().into_bytes(), protobuf.0)
    };
    text.lines().map(both).unzip()
}
