//! The queue between reflector and controller: both disciplines, batches and bounds.

use crate::objects::{begun, changed, deleted, ended, list, listed};
use kube_informer::Version;
use kube_informer::pipeline::{DeltaFifo, DeltaFifoBounds, DeltaFifoFull, Discipline};
use kube_informer::store::{Delta, MAX_BATCH, WatchScope};

const BOTH: [Discipline; 2] = [Discipline::Ordered, Discipline::Keyed];

fn queue(discipline: Discipline) -> DeltaFifo {
    queue_knowing(discipline, &[])
}

fn queue_knowing(discipline: Discipline, known: &'static [&'static str]) -> DeltaFifo {
    let bounds = DeltaFifoBounds { deltas: 10_000, bytes: usize::MAX };
    DeltaFifo::new(discipline, bounds, move |key| known.contains(&key.as_str()))
}

fn push(queue: &mut DeltaFifo, deltas: impl IntoIterator<Item = Delta>) {
    for delta in deltas {
        queue.push(delta).expect("there is room");
    }
}

fn resync() -> Delta {
    Delta::Resync { except: Vec::new() }
}

/// Formats a delta: `a1` changed, `-a1` deleted, `=a1` listed.
fn word(delta: &Delta) -> String {
    let named = |sign: &str| delta.object().map(|o| format!("{sign}{}{}", o.key(), o.version())).unwrap_or_default();
    match delta {
        Delta::Changed(_) => named(""),
        Delta::Deleted(_) => named("-"),
        Delta::Listed(_) => named("="),
        Delta::RelistBegun(_) => "[".to_owned(),
        Delta::RelistEnded { .. } => "]".to_owned(),
        Delta::Resync { except } => {
            let mut except: Vec<_> = except.iter().map(ToString::to_string).collect();
            except.sort();
            format!("resync but {except:?}")
        }
        Delta::Bookmark { .. } => "bookmark".to_owned(),
        other => format!("{other:?}"),
    }
}

fn batch(queue: &mut DeltaFifo) -> String {
    queue.pop().iter().map(word).collect::<Vec<_>>().join(" ")
}

fn batches(queue: &mut DeltaFifo) -> Vec<String> {
    let mut all = Vec::new();
    while !queue.is_empty() {
        all.push(batch(queue));
    }
    all
}

#[test]
fn deltas_of_each_producer_keep_their_order() {
    for discipline in BOTH {
        let mut queue = queue(discipline);
        push(&mut queue, (1..50).flat_map(|n| [changed(&format!("a{n}"), n), changed(&format!("b{n}"), n)]));
        let popped: Vec<_> = queue.pop().iter().map(word).collect();
        for producer in ["a", "b"] {
            let own: Vec<_> = popped.iter().filter(|word| word.starts_with(producer)).cloned().collect();
            assert_eq!(own, (1..50).map(|n| format!("{producer}{n}{n}")).collect::<Vec<_>>());
        }
    }
}

#[test]
fn an_ordered_queue_delivers_every_delta_in_order() {
    let mut queue = queue(Discipline::Ordered);
    push(&mut queue, [changed("a", 1), changed("a", 2), changed("b", 3), deleted("a", 4)]);
    assert_eq!(batches(&mut queue), ["a1", "a2 b3", "-a4"]);
}

#[test]
fn a_keyed_queue_gathers_the_deltas_of_an_object_at_its_place() {
    let mut queue = queue(Discipline::Keyed);
    push(&mut queue, [changed("a", 1), changed("b", 2), changed("a", 3), deleted("a", 4), changed("c", 5)]);
    assert_eq!(batch(&mut queue), "a1 a3 -a4 b2 c5");
}

#[test]
fn a_hot_object_keeps_its_place_once_and_then_stands_at_the_end() {
    let mut ordered = queue(Discipline::Ordered);
    push(&mut ordered, [changed("hot", 1), changed("a", 2), changed("hot", 3), changed("b", 4)]);
    assert_eq!(batches(&mut ordered), ["hot1 a2", "hot3 b4"]);

    let mut keyed = queue(Discipline::Keyed);
    push(&mut keyed, [changed("hot", 1), begun(), changed("a", 2)]);
    assert_eq!(batch(&mut keyed), "hot1");
    push(&mut keyed, [changed("hot", 3)]);
    assert_eq!(batches(&mut keyed), ["[", "a2 hot3"]);
}

#[test]
fn a_keyed_queue_makes_one_of_consecutive_deletes() {
    let mut queue = queue(Discipline::Keyed);
    push(&mut queue, [changed("a", 1), deleted("a", 2), deleted("a", 3), changed("a", 4), deleted("a", 5)]);
    assert_eq!(queue.len(), 4);
    assert_eq!(batch(&mut queue), "a1 -a2 a4 -a5");
}

#[test]
fn only_a_keyed_queue_drops_the_delete_of_an_unknown_object() {
    let mut ordered = queue(Discipline::Ordered);
    push(&mut ordered, [deleted("a", 1)]);
    assert_eq!(batch(&mut ordered), "-a1");

    let mut keyed = queue(Discipline::Keyed);
    push(&mut keyed, [deleted("a", 1)]);
    assert!(keyed.is_empty());
}

#[test]
fn a_keyed_queue_keeps_the_delete_of_an_object_the_store_has() {
    let mut queue = queue_knowing(Discipline::Keyed, &["a"]);
    push(&mut queue, [deleted("a", 1)]);
    assert_eq!(batch(&mut queue), "-a1");
}

#[test]
fn a_keyed_queue_keeps_the_delete_of_an_object_on_its_way_to_the_store() {
    let mut queue = queue(Discipline::Keyed);
    push(&mut queue, [changed("a", 1)]);
    assert_eq!(batch(&mut queue), "a1");
    push(&mut queue, [deleted("a", 2)]);
    assert_eq!(batch(&mut queue), "-a2");
}

#[test]
fn a_change_and_a_delete_not_yet_applied_are_both_kept() {
    for discipline in BOTH {
        let mut queue = queue(discipline);
        push(&mut queue, [changed("a", 1), deleted("a", 2)]);
        assert_eq!(batches(&mut queue).join(" "), "a1 -a2");
    }
}

#[test]
fn a_list_is_a_stream_between_its_begin_and_its_end() {
    for discipline in BOTH {
        let mut queue = queue(discipline);
        push(&mut queue, [deleted("x", 1), changed("a", 1)]);
        push(&mut queue, list(3, &[("a", 2), ("b", 3)]));
        push(&mut queue, [changed("a", 4)]);
        let first = if discipline == Discipline::Ordered { "-x1 a1" } else { "a1" };
        assert_eq!(batches(&mut queue), [first, "[", "=a2 =b3", "]", "a4"], "{discipline:?}");
    }
}

#[test]
fn nothing_gathers_across_the_end_of_a_list() {
    let mut queue = queue(Discipline::Keyed);
    push(&mut queue, [begun(), listed("a", 1), changed("b", 2), ended(1), changed("b", 3), deleted("b", 4)]);
    assert_eq!(batches(&mut queue), ["[", "=a1 b2", "]", "b3 -b4"]);
}

#[test]
fn a_resync_is_one_delta_behind_earlier_ones_and_spares_what_is_queued() {
    for discipline in BOTH {
        let mut queue = queue_knowing(discipline, &["b"]);
        push(&mut queue, [changed("a", 1), resync(), deleted("b", 2)]);
        let spared = if discipline == Discipline::Ordered { r#"["b"]"# } else { r#"["a", "b"]"# };
        assert_eq!(batches(&mut queue), ["a1".to_owned(), format!("resync but {spared}"), "-b2".to_owned()]);
    }
}

#[test]
fn a_bookmark_keeps_its_place() {
    for discipline in BOTH {
        let mut queue = queue(discipline);
        let bookmark = Delta::Bookmark { scope: WatchScope::Everything, version: Version::from(2) };
        push(&mut queue, [changed("a", 1), bookmark, changed("a", 3)]);
        assert_eq!(batches(&mut queue), ["a1", "bookmark", "a3"]);
    }
}

#[test]
fn a_batch_is_no_larger_than_it_may_be() {
    for discipline in BOTH {
        let mut queue = queue(discipline);
        push(&mut queue, (0..2 * MAX_BATCH + 50).map(|n| changed(&format!("a{n}"), n as u64)));
        let sizes: Vec<_> = (0..3).map(|_| queue.pop().len()).collect();
        assert_eq!(sizes, [MAX_BATCH, MAX_BATCH, 50]);
        assert!(queue.pop().is_empty());
    }
}

#[test]
fn a_full_queue_hands_the_delta_back_until_there_is_room() {
    for discipline in BOTH {
        let mut queue = DeltaFifo::new(discipline, DeltaFifoBounds { deltas: 2, bytes: usize::MAX }, |_| true);
        push(&mut queue, [changed("a", 1), changed("b", 2)]);
        assert!(!queue.has_room());
        let Err(DeltaFifoFull(back)) = queue.push(changed("c", 3)) else { panic!("taken by a full queue") };
        assert_eq!(word(&back), "c3");
        assert_eq!(batch(&mut queue), "a1 b2");
        queue.push(back).expect("there is room again");
    }
}

#[test]
fn bytes_fill_a_queue_as_well_but_never_an_empty_one() {
    for discipline in BOTH {
        let mut queue = DeltaFifo::new(discipline, DeltaFifoBounds { deltas: 100, bytes: 10 }, |_| true);
        push(&mut queue, [changed("a", 1)]);
        assert!(queue.bytes() > 10);
        assert!(queue.push(changed("b", 2)).is_err());
        assert_eq!(batch(&mut queue), "a1");
        assert_eq!(queue.bytes(), 0);
    }
}
