//! The settings of a group.

use std::fmt;
use std::time::Duration;

use kube::Client;
use kube_informer::shard::ShardKey;

use super::record::{MAX_RANGES, is_range_count};
use super::{Settings, ShardGroup};
use crate::leadership::{Clock, LeaseTiming};
use crate::names::{host_name, is_dns_name};
use crate::rng::Rng;

/// Builds a [`ShardGroup`].
#[must_use]
pub struct ShardGroupBuilder {
    client: Client,
    namespace: String,
    name: String,
    key: ShardKey,
    member: Option<String>,
    ranges: usize,
    timing: LeaseTiming,
    drain_deadline: Duration,
    clock: Option<Clock>,
    seed: Option<u64>,
}

/// A group was built with a setting that is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidShardGroup {
    /// No lease can have this namespace or name.
    #[error(
        "no group can be named {name:?} in namespace {namespace:?}: both must be lower case names of DNS, \
         and a group's at most 63 characters long"
    )]
    Name {
        /// The namespace.
        namespace: String,
        /// The name of the group.
        name: String,
    },
    /// The leases of a member are named after it.
    #[error("no member can be named {0:?}: it must be a lower case name of DNS of at most 120 characters")]
    Member(String),
    /// The record of more ranges would not fit.
    #[error("a group can have a power of two of ranges up to {MAX_RANGES}, and not {0}")]
    Ranges(usize),
}

impl ShardGroupBuilder {
    pub(super) fn new(client: Client, namespace: String, name: String) -> Self {
        Self {
            client,
            namespace,
            name,
            key: ShardKey::Namespace,
            member: None,
            ranges: 64,
            timing: LeaseTiming::default(),
            drain_deadline: Duration::from_secs(20),
            clock: None,
            seed: None,
        }
    }

    /// Sets what decides to which range an object belongs. Its namespace by default.
    ///
    /// The same for all members, for good: a member with another key than the record's does
    /// nothing.
    pub fn key(mut self, key: ShardKey) -> Self {
        self.key = key;
        self
    }

    /// Sets the name of this process among the members. By default it is the name of the host, in a
    /// pod that of the pod, and a random suffix.
    ///
    /// It must be unique for each process.
    pub fn member(mut self, name: impl Into<String>) -> Self {
        self.member = Some(name.into());
        self
    }

    /// Sets how many ranges the group has: a power of two up to 256. 64 by default.
    ///
    /// Only the first member of a group decides that. Members hold at most one range more than
    /// others, so a group should have several times as many ranges as members.
    pub fn ranges(mut self, ranges: usize) -> Self {
        self.ranges = ranges;
        self
    }

    /// Sets the times of the members' leases. 15 s, 10 s and 2 s by default.
    ///
    /// The same for all members. A member writes for the renew deadline after a renewal, renews every
    /// retry period, and reads what others have written as often.
    pub fn timing(mut self, timing: LeaseTiming) -> Self {
        self.timing = timing;
        self
    }

    /// Sets how long attempts that run for a range have to end before it is released. 20 s by
    /// default. Attempts that run then are cancelled, and their writes fail.
    pub fn drain_deadline(mut self, deadline: Duration) -> Self {
        self.drain_deadline = deadline;
        self
    }

    /// Sets the clock by which leases expire. [`Clock::system`] by default.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the seed of the jitter and of the default name, for tests.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Checks the settings. Sends nothing.
    pub fn build(self) -> Result<ShardGroup, InvalidShardGroup> {
        let Self { client, namespace, name, key, member, ranges, timing, drain_deadline, clock, seed } = self;
        if !is_dns_name(&namespace) || !is_dns_name(&name) || name.len() > 63 {
            return Err(InvalidShardGroup::Name { namespace, name });
        }
        let mut rng = seed.map_or_else(Rng::random, Rng::seeded);
        let member = member.unwrap_or_else(|| default_member(&host_name(), rng.next_u64()));
        if !is_dns_name(&member) || member.len() > 120 {
            return Err(InvalidShardGroup::Member(member));
        }
        if !is_range_count(ranges) {
            return Err(InvalidShardGroup::Ranges(ranges));
        }
        let clock = clock.unwrap_or_default();
        let settings = Settings { client, namespace, key, member, ranges, timing, drain_deadline, clock };
        Ok(ShardGroup::new(name.into(), settings, rng))
    }
}

/// A name of DNS made of that of the host.
fn default_member(host: &str, random: u64) -> String {
    let fit = |character: char| match character.to_ascii_lowercase() {
        fit if fit.is_ascii_alphanumeric() => fit,
        _ => '-',
    };
    let host: String = host.chars().map(fit).take(80).collect();
    let host = host.trim_matches('-');
    let host = if host.is_empty() { "member" } else { host };
    format!("{host}-{random:016x}")
}

impl fmt::Debug for ShardGroupBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardGroupBuilder")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("key", &self.key)
            .field("member", &self.member)
            .field("ranges", &self.ranges)
            .field("timing", &self.timing)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_name_of_a_member_is_a_name_of_dns() {
        for host in ["websites-7d4b9c-x2x", "Laptop_of.Someone", "", "-", "ä"] {
            let member = default_member(host, 7);
            assert!(is_dns_name(&member) && member.ends_with("-0000000000000007"), "{member}");
        }
    }
}
