//! Shards: their text, and sets of hashes against a bitmap.

use proptest::prelude::*;

use super::*;

fn range(start: u64, end: u128) -> HashRange {
    HashRange::new(start, end).unwrap()
}

#[test]
fn a_range_is_never_empty_and_ends_at_two_to_the_64th_at_most() {
    assert_eq!(HashRange::new(0, 0), None);
    assert_eq!(HashRange::new(7, 7), None);
    assert_eq!(HashRange::new(0, (1 << 64) + 1), None);
    assert_eq!(HashRange::new(0, 1 << 64), Some(HashRange::ALL));
    assert_eq!(HashRange::ALL.size(), 1 << 64);
    assert_eq!(range(u64::MAX, 1 << 64).size(), 1);
}

#[test]
fn parts_are_everything_without_overlap() {
    for count in 1..70 {
        let parts = HashRanges::parts(count);
        assert_eq!(parts.len(), count as usize);
        assert_eq!(parts.iter().map(HashRanges::size).sum::<u128>(), 1 << 64);
        assert_eq!(parts.iter().flat_map(HashRanges::iter).collect::<HashRanges>(), HashRanges::all());
        let sizes = parts.iter().map(HashRanges::size);
        assert!(sizes.clone().max().unwrap() - sizes.min().unwrap() <= 1);
    }
    assert_eq!(HashRanges::parts(0), []);
}

#[test]
fn a_selector_is_rendered_as_the_server_renders_it() {
    let shard =
        Shard::new(ShardKey::Namespace, [range(0, 16), range(1 << 63, 1 << 64)].into_iter().collect::<HashRanges>());
    assert_eq!(
        shard.selector().unwrap(),
        "shardRange(object.metadata.namespace, '0x0000000000000000', '0x0000000000000010') || \
         shardRange(object.metadata.namespace, '0x8000000000000000', '0x10000000000000000')"
    );
    assert_eq!(Shard::new(ShardKey::Uid, HashRanges::NONE).selector(), None);
}

#[test]
fn a_selector_means_the_same_in_any_order_and_spelling() {
    let half: Shard = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')".parse().unwrap();
    for same in [
        "shardRange(object.metadata.uid,\"0x0000000000000000\",'0x8000000000000000')",
        "  shardRange ( object.metadata.uid , '0x0000000000000000' , '0x8000000000000000' )\n",
        "shardRange(object.metadata.uid, '0x4000000000000000', '0x8000000000000000') || \
         shardRange(object.metadata.uid, '0x0000000000000000', '0x4000000000000000')",
        "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')||\
         shardRange(object.metadata.uid, '0x0000000000000001', '0x0000000000000002')",
    ] {
        assert_eq!(same.parse::<Shard>().as_ref(), Ok(&half), "{same}");
    }
}

#[test]
fn what_is_no_selector_is_an_error_that_says_how_one_is_written() {
    for (refused, why) in [
        ("", "not a range of a shard selector: \"\"; write it as shardRange(object.metadata.uid, "),
        ("garbage", "not a range of a shard selector: \"garbage\""),
        ("shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')", "not a range"),
        ("shardRange(object.metadata.uid, '0x0', '0x8000000000000000')", "not a range"),
        ("shardRange(object.metadata.uid, '0x0000000000000000', '0x800000000000000A')", "not a range"),
        ("shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000001')", "not a range"),
        ("shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')", "not a range"),
        ("shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000', '')", "not a range"),
        ("shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') ||", "not a range"),
        (
            "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') || \
             shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')",
            "of one field, not of object.metadata.uid and of object.metadata.namespace",
        ),
    ] {
        let error = refused.parse::<Shard>().unwrap_err().to_string();
        assert!(error.contains(why), "{refused}: {error}");
    }
    let error = "0..9".parse::<HashRange>().unwrap_err().to_string();
    assert!(error.ends_with("write it as 0x0000000000000000..0x10000000000000000"), "{error}");
}

/// The hashes are divided into this many equal blocks; ranges begin and end at blocks, so that a
/// bitmap describes any set.
const BLOCKS: u32 = 8;

fn set_of(bitmap: u8) -> HashRanges {
    let blocks = HashRanges::parts(BLOCKS);
    let chosen = blocks.iter().enumerate().filter(|(at, _)| bitmap >> at & 1 == 1);
    chosen.flat_map(|(_, block)| block.iter()).collect()
}

proptest! {
    #[test]
    fn operations_on_sets_are_those_on_bitmaps(a: u8, b: u8, hash: u64) {
        let (left, right) = (set_of(a), set_of(b));
        prop_assert_eq!(left.union(&right), set_of(a | b));
        prop_assert_eq!(left.intersection(&right), set_of(a & b));
        prop_assert_eq!(left.difference(&right), set_of(a & !b));
        prop_assert_eq!(left.complement(), set_of(!a));
        prop_assert_eq!(left.is_subset(&right), a & !b == 0);
        prop_assert_eq!(left.is_disjoint(&right), a & b == 0);
        prop_assert_eq!(left.is_empty(), a == 0);
        prop_assert_eq!(left.size(), u128::from(a.count_ones()) << 61);
        prop_assert_eq!(left.contains(hash), a >> (hash >> 61) & 1 == 1);
    }

    #[test]
    fn sets_of_any_ranges_contain_what_a_range_contains(
        ranges in proptest::collection::vec((any::<u64>(), 1_u128..1 << 64), 0..6),
        hash: u64,
    ) {
        let ranges: Vec<_> =
            ranges.into_iter().filter_map(|(start, size)| HashRange::new(start, u128::from(start) + size)).collect();
        let set: HashRanges = ranges.iter().copied().collect();
        let edges = ranges.iter().flat_map(|range| [range.start(), range.last()]);
        for hash in edges.flat_map(|edge| [edge, edge.wrapping_sub(1), edge.wrapping_add(1)]).chain([hash]) {
            prop_assert_eq!(set.contains(hash), ranges.iter().any(|range| range.contains(hash)));
            prop_assert_eq!(set.complement().contains(hash), !set.contains(hash));
        }
        let all: Vec<_> = set.iter().collect();
        prop_assert!(all.windows(2).all(|pair| pair[0].end() < u128::from(pair[1].start())), "neither overlap nor touch");
        prop_assert!(all.iter().all(|range| range.to_string().parse() == Ok(*range)));
        let shard = Shard::new(ShardKey::Uid, set);
        let parsed = shard.selector().map(|text| text.parse::<Shard>());
        prop_assert_eq!(parsed.transpose().unwrap(), (!shard.ranges.is_empty()).then_some(shard));
    }
}
