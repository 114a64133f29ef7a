//! The context of a reconciliation step: its writes, time and random numbers.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use serde_json::Value;

use super::part::text;
use crate::pretend::events::{About, EventContent, EventLog};
use crate::pretend::write::{Verb, Write};

/// The field manager of the controllers.
pub(super) const MANAGER: &str = "kube-controller-manager";

/// The writes of one step.
#[derive(Debug)]
pub(super) struct Book<'a> {
    /// The server's time, in seconds and in RFC 3339.
    pub(super) now: i64,
    pub(super) time: String,
    pub(super) event_log: &'a mut EventLog,
    pub(super) rng: &'a mut Pcg64Mcg,
    pub(super) writes: Vec<Write>,
}

impl Book<'_> {
    pub(super) fn write(&mut self, manager: &'static str, verb: Verb) {
        self.writes.push(Write::by(manager, verb));
    }

    /// Writes an event about an object.
    pub(super) fn record(
        &mut self,
        kind: &'static str,
        api_version: &'static str,
        object: &Value,
        reason: &'static str,
        message: String,
        component: &'static str,
    ) {
        let about = About {
            kind,
            api_version,
            namespace: text(object, "/metadata/namespace"),
            name: text(object, "/metadata/name"),
            uid: text(object, "/metadata/uid"),
        };
        self.event_log.announce(self.now, &EventContent { about, reason, message, component }, &mut self.writes);
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        let product = u128::from(self.rng.next_u64()) * u128::from(limit);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// A random suffix for a pod's name.
    pub(super) fn suffix(&mut self) -> String {
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5).map(|_| char::from(LETTERS[self.below(27) as usize])).collect()
    }

    /// Random hexadecimal digits.
    pub(super) fn hex(&mut self, letters: usize) -> String {
        (0..letters).map(|_| char::from(b"0123456789abcdef"[self.below(16) as usize])).collect()
    }
}
