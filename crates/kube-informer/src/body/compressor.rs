//! Packing one object.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::Raw;
use super::delta_encoding::{LONGEST_PATTERN, Pattern};
use super::dictionary::Dictionary;
use super::shared::Home;
use super::strip_metadata::Stripped;
use super::unpacker::{LARGEST_KEPT, Unpacker};
use crate::codec::Found;
use crate::object::Meta;

/// Presses kept between objects: one for whoever brings objects in, one for whoever packs cold ones.
const PRESSES: usize = 2;

/// Packs objects, one after the other: as differences from a pattern, or with a dictionary.
#[derive(Debug, Default)]
pub(crate) struct Press {
    stripped: Stripped,
    packed: Vec<u8>,
    pattern: Pattern,
    /// Whose bytes the pattern has. Siblings follow one another in a list.
    whose: Weak<Raw>,
}

/// Presses that nobody uses.
#[derive(Debug, Default)]
pub(super) struct Presses(Mutex<Vec<Press>>);

impl Presses {
    pub(super) fn take(&self) -> Press {
        self.0.lock().pop().unwrap_or_default()
    }

    pub(super) fn put(&self, press: Press) {
        let mut kept = self.0.lock();
        if kept.len() < PRESSES && press.size() <= LARGEST_KEPT {
            kept.push(press);
        }
    }
}

impl Press {
    /// Begins with an object: leaves out what its metadata holds.
    pub(crate) fn lay(&mut self, plain: &[u8], found: &Found<'_>, meta: &Meta) {
        self.stripped.strip(plain, found, meta);
    }

    /// Packs it as a difference from the pattern that lives in this home. None if that takes more than `limit` bytes.
    pub(super) fn difference(&mut self, home: &Home, limit: usize) -> Option<Box<[u8]>> {
        let pattern = home.pattern()?;
        if !std::ptr::eq(Weak::as_ptr(&self.whose), Arc::as_ptr(pattern)) {
            self.whose = Weak::new();
            let mut unpacker = Unpacker::take()?;
            let unpacked = unpacker.rest_of(pattern, self.pattern.begin());
            unpacker.put();
            unpacked?;
            self.whose = Arc::downgrade(pattern);
        }
        let Stripped { head, rest, .. } = &self.stripped;
        self.packed.clear();
        self.packed.extend_from_slice(head);
        self.pattern.write(rest, limit.checked_sub(head.len())?, &mut self.packed)?;
        Some(self.packed.as_slice().into())
    }

    /// Packs it with a dictionary. None if that saves nothing.
    pub(super) fn whole(&mut self, dictionary: &Dictionary, plain: usize) -> Option<Box<[u8]>> {
        let Stripped { head, rest, .. } = &self.stripped;
        dictionary.compress(rest, &mut self.packed)?;
        let saves = head.len() + self.packed.len() < plain;
        saves.then(|| [head.as_slice(), &self.packed].concat().into())
    }

    /// What was packed last is the pattern now, and its bytes are at hand.
    pub(super) fn keep_as_pattern(&mut self, raw: &Arc<Raw>) {
        std::mem::swap(self.pattern.begin(), &mut self.stripped.rest);
        self.whose = Arc::downgrade(raw);
    }

    /// Whether others can be told from it.
    pub(super) fn makes_a_pattern(&self) -> bool {
        self.stripped.rest.len() <= LONGEST_PATTERN
    }

    fn size(&self) -> usize {
        self.stripped.rest.capacity() + self.packed.capacity() + self.pattern.size()
    }
}
