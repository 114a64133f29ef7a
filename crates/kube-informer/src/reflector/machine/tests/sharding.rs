use super::*;
use crate::shard::{HashRanges, Shard, ShardKey, ShardSupport};

fn shard(parts: &[usize]) -> Arc<Shard> {
    let quarters = HashRanges::parts(4);
    Arc::new(Shard::new(ShardKey::Namespace, parts.iter().flat_map(|at| quarters[*at].iter()).collect::<HashRanges>()))
}

fn sharded(parts: &[usize]) -> Bench {
    let mut bench = Bench::paged();
    bench.machine.begin_with_shard(shard(parts));
    bench
}

/// A machine that watches a shard from version 10.
fn watching(parts: &[usize]) -> Bench {
    let mut bench = sharded(parts);
    bench.step(Input::Start);
    bench.step(listed("10", Some(&shard(parts).to_string())));
    bench.step(Input::Opened(Lane::Main));
    bench
}

/// The end of a list with this echo.
fn listed(version: &str, echo: Option<&str>) -> Input {
    let Input::PageEnded(end) = page_end(version, None) else { unreachable!() };
    Input::PageEnded(ListEnd { shard_selector: echo.map(ToOwned::to_owned), ..end })
}

fn moved(bench: &mut Bench, parts: &[usize]) -> Vec<String> {
    bench.step(Input::ShardMoved(Some(shard(parts))))
}

#[test]
fn a_list_that_names_the_selector_is_honoured_and_one_that_names_another_fails() {
    let bench = watching(&[0]);
    assert_eq!(bench.machine.sharding.support(), Some(ShardSupport::Honoured));
    let mut bench = sharded(&[0]);
    bench.step(Input::Start);
    let actions = bench.step(listed("10", Some(&shard(&[1]).to_string())));
    assert_eq!(actions, ["report", "close"]);
    bench = sharded(&[0]);
    bench.step(Input::Start);
    let actions = bench.step(listed("10", None));
    assert!(actions.contains(&"ask shard support".to_owned()), "{actions:?}");
    bench.step(Input::ShardSupport(Err(cut())));
    assert_eq!(bench.machine.sharding.support(), Some(ShardSupport::Unknown));
    assert!(bench.step(Input::Opened(Lane::Main)).contains(&"ask shard support".to_owned()), "asked again");
    bench.step(Input::ShardSupport(Ok(ShardSupport::Honoured)));
    assert_eq!(bench.machine.sharding.support(), Some(ShardSupport::Honoured));
    bench.step(Input::Frame(Lane::Main, Frame::Outside { version: Version::new("11") }));
    assert_eq!(bench.machine.sharding.support(), Some(ShardSupport::Ignored), "an object outside shows it");
    assert_eq!(bench.version(), "11", "and that the watch has come this far");
}

#[test]
fn an_object_outside_in_a_list_shows_that_the_selector_is_ignored() {
    let mut bench = sharded(&[0]);
    bench.step(Input::Start);
    bench.step(Input::ItemOutside);
    let actions = bench.step(listed("10", None));
    assert!(!actions.contains(&"ask shard support".to_owned()), "{actions:?}");
    assert_eq!(bench.machine.sharding.support(), Some(ShardSupport::Ignored));
    assert_eq!((bench.machine.counters.outside, bench.machine.counters.listed), (1, 0));
}

#[test]
fn a_shard_that_shrinks_is_watched_again_without_a_list() {
    let mut bench = watching(&[0, 1]);
    let (left, held) = (format!("left for {}", shard(&[1]).ranges), format!("held {}", shard(&[1]).ranges));
    assert_eq!(moved(&mut bench, &[1]), [left, held, "watch 10".to_owned()]);
}

#[test]
fn what_enters_is_listed_and_the_watch_continues_from_where_it_was() {
    let mut bench = watching(&[0]);
    bench.receive(Change::Added, "a", "12");
    assert_eq!(moved(&mut bench, &[0, 1]).last().unwrap(), "list latest by 500");
    assert_eq!(bench.step(Input::Item(object("b", "15"))), ["entered b@15"]);
    let actions = bench.step(listed("17", Some(&shard(&[1]).to_string())));
    assert_eq!(actions, [format!("held {}", shard(&[0, 1]).ranges), "watch 12".to_owned()]);
}

#[test]
fn a_failed_list_of_what_enters_is_repeated_before_the_watch() {
    let mut bench = watching(&[0]);
    moved(&mut bench, &[0, 1]);
    assert_eq!(bench.fail(answered(500)), ["report", "close"]);
    assert_eq!(bench.tick().1, ["list latest by 500"]);
    bench.step(page_end("20", Some("more")));
    // The pages have expired: without pagination they cannot.
    assert_eq!(bench.fail(answered(410)), ["report", "list latest"]);
    // Another move meanwhile: what still enters is listed from the beginning.
    assert_eq!(moved(&mut bench, &[1, 2]).last().unwrap(), "list latest by 500");
    bench.step(listed("20", None));
    assert_eq!(bench.version(), "10");
}

#[test]
fn a_server_that_is_older_than_the_watch_when_a_shard_moves_went_back() {
    let mut bench = watching(&[0]);
    moved(&mut bench, &[0, 1]);
    let actions = bench.step(listed("9", None));
    assert_eq!(actions.last().unwrap(), "list latest by 500", "{actions:?}");
    assert_eq!(bench.relists().went_back, 1);
}

#[test]
fn the_watch_does_not_repeat_what_the_list_of_what_enters_had() {
    let mut bench = watching(&[0]);
    let all = [0, 1, 2, 3];
    moved(&mut bench, &all);
    bench.step(listed("20", None));
    bench.step(Input::Opened(Lane::Main));
    // The hash of no namespace is in the last quarter.
    assert!(shard(&[3]).contains(&object("a", "1")));
    assert!(bench.receive(Change::Added, "a", "15").is_empty(), "created and deleted before the list");
    assert_eq!(bench.receive(Change::Deleted, "a", "16"), ["deleted a@16"]);
    assert!(bench.receive(Change::Added, "a", "20").is_empty());
    assert_eq!(bench.receive(Change::Modified, "a", "21"), ["changed a@21"]);
    assert_eq!(bench.version(), "21");
}
