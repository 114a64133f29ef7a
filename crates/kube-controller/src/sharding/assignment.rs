//! Which member is to hold which range. Pure.

use kube_informer::shard::fnv_1a;

use crate::rng::Rng;

/// Assigns ranges to members by rendezvous hashing with bounded loads: the member of each range.
///
/// Every pair of a range and a member has a score, and pairs are accepted from the highest score
/// on. Each member gets the mean number of ranges, rounded down or up. Every process computes the
/// same from the same members, and only their names matter. A member that joins or leaves moves
/// little more than its own part; see the tests.
pub(super) fn assign(ranges: usize, members: &[&str]) -> Vec<usize> {
    if members.is_empty() {
        return Vec::new();
    }
    let (least, mut extra) = (ranges / members.len(), ranges % members.len());
    let mut scores: Vec<(u64, usize, usize)> = Vec::with_capacity(ranges * members.len());
    for (member, name) in members.iter().enumerate() {
        let seed = fnv_1a(name);
        scores.extend((0..ranges).map(|range| (score(seed, range), range, member)));
    }
    scores.sort_unstable_by_key(|(score, range, member)| (std::cmp::Reverse(*score), *range, *member));
    let (mut assigned, mut loads) = (vec![None; ranges], vec![0; members.len()]);
    for (_, range, member) in scores {
        let load: &mut usize = &mut loads[member];
        if assigned[range].is_some() || *load > least || (*load == least && extra == 0) {
            continue;
        }
        extra -= usize::from(*load == least);
        *load += 1;
        assigned[range] = Some(member);
    }
    // Members that are full hold all ranges together, so no range is left.
    assigned.into_iter().map(Option::unwrap_or_default).collect()
}

fn score(member: u64, range: usize) -> u64 {
    // Consecutive states of splitmix64 are not independent, their outputs are.
    let range = Rng::seeded(range as u64).next_u64();
    Rng::seeded(member ^ range).next_u64()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_precision_loss, reason = "small numbers")]

    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|nth| format!("controller-7d4b9c-{nth:05x}")).collect()
    }

    fn assigned(names: &[String]) -> Vec<&str> {
        let members: Vec<&str> = names.iter().map(String::as_str).collect();
        assign(64, &members).into_iter().map(|member| members[member]).collect()
    }

    fn moved(before: &[&str], after: &[&str]) -> usize {
        before.iter().zip(after).filter(|(before, after)| before != after).count()
    }

    #[test]
    fn members_differ_by_one_range_at_most() {
        for count in 1..=70 {
            let names = names(count);
            let assigned = assigned(&names);
            let loads = names.iter().map(|name| assigned.iter().filter(|member| *member == name).count());
            let loads: Vec<usize> = loads.collect();
            let (least, most) = (loads.iter().min(), loads.iter().max());
            assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{count}: {loads:?}");
        }
    }

    #[test]
    fn a_member_that_joins_or_leaves_moves_at_most_twice_its_part() {
        let all = names(12);
        let (mut total, mut least) = (0, 0.0);
        for count in 1..all.len() {
            for left in 0..=count {
                let with: Vec<String> = all[..=count].to_vec();
                let without: Vec<String> = with.iter().filter(|name| **name != all[left]).cloned().collect();
                let moved = moved(&assigned(&with), &assigned(&without));
                let part = 64.0 / with.len() as f64;
                assert!(moved as f64 <= 2.0 * part.ceil(), "{left} of {}: {moved} for {part}", with.len());
                total += moved;
                least += part;
            }
        }
        // Plain rendezvous hashing moves the least possible, but its loads are not bounded.
        assert!((total as f64) < 1.5 * least, "{total} ranges moved in all, at least {least}");
    }

    #[test]
    fn the_order_of_members_does_not_matter() {
        let mut names = names(7);
        let before: Vec<String> = assigned(&names).into_iter().map(str::to_owned).collect();
        names.reverse();
        assert_eq!(assigned(&names), before);
    }

    #[test]
    fn members_of_the_same_name_share_their_part() {
        let loads = assign(64, &["a", "a", "b"]).into_iter().fold([0; 3], |mut loads, member| {
            loads[member] += 1;
            loads
        });
        assert!(loads.iter().all(|load| *load == 21 || *load == 22), "{loads:?}");
    }

    #[test]
    fn without_members_nothing_is_assigned() {
        assert!(assign(64, &[]).is_empty());
    }
}
