//! Tests of the comparison on consistent runs, and on the same runs with one error.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::*;

const SEEDS: std::ops::Range<u64> = 0..60;

#[test]
fn runs_that_agree_agree() {
    let (mut compared, mut allowed) = (0, [0; 2]);
    for seed in SEEDS {
        let agreement = compare(&trial(seed)).unwrap_or_else(|differences| panic!("seed {seed}: {differences}"));
        compared += agreement.compared;
        allowed[0] += agreement.new_uids;
        allowed[1] += agreement.unchanged;
    }
    assert!(compared > 1_000 && allowed.iter().all(|&times| times > 50), "{compared} {allowed:?}");
}

#[test]
fn an_event_that_one_did_not_deliver_is_found() {
    each_line(|trial, side, nth| {
        let line = lines(trial, side).remove(nth);
        // Whether unchanged objects are reported is an allowed difference.
        !matches!(line, Line::Updated { old, object } if old == object)
    });
}

#[test]
fn an_event_delivered_twice_is_found() {
    each_line(|trial, side, nth| {
        let line = lines(trial, side)[nth].clone();
        lines(trial, side).insert(nth, line.clone());
        !matches!(line, Line::Updated { old, object } if old == object)
    });
}

#[test]
fn two_events_of_one_object_in_the_wrong_order_are_found() {
    each_line(|trial, side, nth| {
        let lines = lines(trial, side);
        let Some(key) = lines[nth].object().map(|object| object.key.clone()) else { return false };
        let later = (nth + 1..lines.len()).find(|&at| lines[at].object().is_some_and(|object| object.key == key));
        let Some(later) = later else { return false };
        lines.swap(nth, later);
        lines[nth] != lines[later]
    });
}

#[test]
fn a_version_or_content_that_only_one_delivered_is_found() {
    each_line(|trial, side, nth| {
        let other = if side == Side::Ours { Side::Theirs } else { Side::Ours };
        let in_both = lines(trial, other).clone().contains(&lines(trial, side)[nth]);
        match &mut lines(trial, side)[nth] {
            Line::Added { object, .. } | Line::Updated { object, .. } => object.step.push('x'),
            // The version of a deletion that only one informer observed cannot be checked.
            Line::Deleted { object, missed: false } if in_both => object.version += 1,
            Line::Deleted { object, missed: true } => object.version -= 1,
            Line::Deleted { .. } | Line::Synced { .. } | Line::Cache { .. } => return false,
        }
        true
    });
}

#[test]
fn a_deletion_that_one_missed_to_the_end_is_found() {
    let mut tried = 0;
    for seed in SEEDS {
        for side in [Side::Ours, Side::Theirs] {
            let mut trial = trial(seed);
            let deleted = lines(&mut trial, side).iter().rposition(|line| matches!(line, Line::Deleted { .. }));
            let Some(deleted) = deleted else { continue };
            let line = lines(&mut trial, side).remove(deleted);
            let Line::Deleted { object, .. } = line else { continue };
            if lines(&mut trial, side)[deleted..].iter().any(|line| line.object().is_some_and(|o| o.key == object.key))
            {
                continue;
            }
            // A consistent miss: the informer's cache contains the object too.
            let last = lines(&mut trial, side)[..deleted].iter().rev().find_map(|line| match line.object() {
                Some(state) if state.key == object.key => Some(state.clone()),
                _ => None,
            });
            cache(&mut trial, side).extend(last);
            found(&trial, seed);
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn a_cache_that_differs_from_the_events_is_found() {
    for seed in SEEDS {
        for side in [Side::Ours, Side::Theirs] {
            let mut less = trial(seed);
            cache(&mut less, side).pop();
            found(&less, seed);
            let mut more = trial(seed);
            cache(&mut more, side).push(state("a/unknown", "u", 7));
            found(&more, seed);
            let mut other = trial(seed);
            cache(&mut other, side)[0].version -= 1;
            found(&other, seed);
        }
    }
}

#[test]
fn two_that_agree_with_one_another_but_not_with_the_server_are_found() {
    let mut trial = trial(1);
    trial.listed.pop();
    found(&trial, 1);
}

#[test]
fn an_update_without_a_change_is_allowed_of_client_go_where_connections_were_cut() {
    let agreed = |ours: Vec<Line>, theirs: Vec<Line>, terms| compare(&short(ours, theirs, terms)).is_ok();
    let (first, second) = (state("a/b", "u", 5), state("a/barrier", "v", 9));
    let lines = [added(&first), Line::Synced { version: 5 }, added(&second)].to_vec();
    let again = Line::Updated { old: first.clone(), object: first };
    let with_update = |at: usize| {
        let mut lines = lines.clone();
        lines.insert(at, again.clone());
        lines
    };
    // Before and after the barrier object: events of a relist come in any order.
    for at in [2, 3] {
        assert!(agreed(lines.clone(), with_update(at), Terms::Cut));
        assert!(!agreed(lines.clone(), with_update(at), Terms::Connected));
        assert!(!agreed(with_update(at), lines.clone(), Terms::Cut));
    }
}

#[test]
fn a_new_uid_as_an_update_is_allowed_of_client_go_where_connections_were_cut() {
    let agreed = |ours: Vec<Line>, theirs: Vec<Line>, terms| compare(&short(ours, theirs, terms)).is_ok();
    let [old, new, barrier] = [("a/b", "u", 5), ("a/b", "w", 8), ("a/barrier", "v", 9)].map(|(k, u, v)| state(k, u, v));
    let begun = [added(&old), Line::Synced { version: 5 }];
    let whole = |lines: &[Line]| [&begun[..], lines, &[added(&barrier)]].concat();
    let apart = whole(&[Line::Deleted { object: old.clone(), missed: true }, added(&new)]);
    let as_one = whole(&[Line::Updated { old, object: new }]);
    assert!(agreed(apart.clone(), as_one.clone(), Terms::Cut));
    assert!(agreed(apart.clone(), apart.clone(), Terms::Cut));
    assert!(!agreed(as_one.clone(), as_one.clone(), Terms::Cut));
    assert!(!agreed(apart, as_one, Terms::Connected));
}

#[test]
fn a_resync_must_deliver_every_object_after_the_last_change() {
    let (first, barrier) = (state("a/b", "u", 5), state("a/barrier", "v", 9));
    let again = |state: &State| Line::Updated { old: state.clone(), object: state.clone() };
    let begun = [added(&first), Line::Synced { version: 5 }, again(&first), added(&barrier)].to_vec();
    let whole = [&begun[..], &[again(&barrier), again(&first)]].concat();
    let part = [&begun[..], &[again(&barrier)]].concat();
    let verdict = |ours: &Vec<Line>, theirs: &Vec<Line>| {
        let mut trial = short(ours.clone(), theirs.clone(), Terms::Connected);
        trial.resync = Resync::On;
        compare(&trial)
    };
    assert_eq!(verdict(&whole, &whole).map(|agreement| agreement.resyncs), Ok([3, 3]));
    assert!(verdict(&part, &whole).is_err());
    assert!(verdict(&whole, &part).is_err());
    let stale = state("a/b", "u", 4);
    let wrong = [&begun[..], &[again(&barrier), again(&stale)]].concat();
    assert!(verdict(&wrong, &whole).is_err());
}

#[test]
fn the_comparison_begins_at_the_first_version_that_both_have_synced_to() {
    let [early, mid, late] = [3, 5, 8].map(|version| state("a/b", "u", version));
    let barrier = state("a/barrier", "v", 9);
    let gone = state("a/gone", "x", 2);
    // client-go started first: its earlier events are folded into the state, not compared.
    let theirs = vec![
        added(&early),
        added(&gone),
        Line::Synced { version: 3 },
        Line::Deleted { object: State { version: 4, ..gone.clone() }, missed: false },
        Line::Updated { old: early.clone(), object: mid.clone() },
        Line::Updated { old: mid.clone(), object: late.clone() },
        added(&barrier),
    ];
    let ours =
        vec![added(&mid), Line::Synced { version: 5 }, Line::Updated { old: mid, object: late }, added(&barrier)];
    assert_eq!(
        compare(&short(ours.clone(), theirs.clone(), Terms::Connected)).map(|agreement| agreement.compared),
        Ok(2)
    );
    let mut initial = ours;
    initial[3] = Line::Added { object: barrier, initial: true };
    assert!(compare(&short(initial, theirs, Terms::Connected)).is_err(), "the first list is over");
}

/// Modifies each line of either transcript, and checks that the comparison fails if `corrupt`
/// returns true.
fn each_line(corrupt: impl Fn(&mut Trial, Side, usize) -> bool) {
    let mut tried = 0;
    for seed in SEEDS.take(3) {
        let mut whole = trial(seed);
        for side in [Side::Ours, Side::Theirs] {
            for (nth, line) in lines(&mut whole, side).clone().iter().enumerate() {
                let mut trial = whole.clone();
                if line.object().is_some() && corrupt(&mut trial, side, nth) {
                    assert!(compare(&trial).is_err(), "seed {seed}, {side}, line {nth} {line:?}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 150, "{tried}");
}

fn found(trial: &Trial, seed: u64) {
    assert!(compare(trial).is_err(), "seed {seed}");
}

fn lines(trial: &mut Trial, side: Side) -> &mut Vec<Line> {
    match side {
        Side::Ours => &mut trial.ours.lines,
        Side::Theirs => &mut trial.theirs.lines,
    }
}

fn cache(trial: &mut Trial, side: Side) -> &mut Vec<State> {
    match side {
        Side::Ours => &mut trial.ours.cache,
        Side::Theirs => &mut trial.theirs.cache,
    }
}

fn state(key: &str, uid: &str, version: u64) -> State {
    State { key: key.into(), uid: uid.into(), version, step: version.to_string() }
}

fn added(object: &State) -> Line {
    Line::Added { object: object.clone(), initial: false }
}

/// A run with one window.
fn short(ours: Vec<Line>, theirs: Vec<Line>, terms: Terms) -> Trial {
    let end = |lines: &[Line]| {
        let mut states = BTreeMap::new();
        for line in lines {
            match line {
                Line::Added { object, .. } | Line::Updated { object, .. } => {
                    states.insert(object.key.clone(), object.clone());
                }
                Line::Deleted { object, .. } => drop(states.remove(&object.key)),
                Line::Synced { .. } | Line::Cache { .. } => {}
            }
        }
        states.into_values().collect::<Vec<_>>()
    };
    Trial {
        windows: vec![Window { end: 9, terms }],
        written: ours.iter().chain(&theirs).filter_map(written).collect(),
        listed: end(&ours),
        resync: Resync::Off,
        ours: Transcript { cache: end(&ours), lines: ours },
        theirs: Transcript { cache: end(&theirs), lines: theirs },
    }
}

/// The state that must have been written for a line to be reported.
fn written(line: &Line) -> Option<State> {
    line.object().filter(|_| !matches!(line, Line::Deleted { .. })).cloned()
}

/// A server's history, and the transcripts of two informers: from the watch, or after a cut from a
/// relist.
fn trial(seed: u64) -> Trial {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut version = 1;
    let mut now = BTreeMap::<String, State>::new();
    let mut trial = Trial {
        ours: Transcript::default(),
        theirs: Transcript::default(),
        windows: Vec::new(),
        written: BTreeSet::new(),
        listed: Vec::new(),
        resync: Resync::Off,
    };
    for side in [Side::Ours, Side::Theirs] {
        lines(&mut trial, side).push(Line::Synced { version });
    }
    for window in 0..7 {
        let terms = if window % 2 == 1 { Terms::Cut } else { Terms::Connected };
        let before = now.clone();
        let mut live = Vec::new();
        for _ in 0..12 {
            let key = format!("a/{}", rng.random_range(0..4));
            version += 1;
            match (now.get(&key).cloned(), rng.random_range(0..3)) {
                (Some(old), 0) => {
                    now.remove(&key);
                    live.push(Line::Deleted { object: State { version, ..old }, missed: false });
                }
                (Some(old), _) => {
                    let object = state(&key, &old.uid, version);
                    now.insert(key, object.clone());
                    live.push(Line::Updated { old, object });
                }
                (None, _) => {
                    let object = state(&key, &format!("uid-{version}"), version);
                    now.insert(key, object.clone());
                    live.push(added(&object));
                }
            }
        }
        version += 1;
        let barrier = state(&format!("a/barrier-{window}"), "b", version);
        now.insert(barrier.key.clone(), barrier.clone());
        live.push(added(&barrier));
        trial.windows.push(Window { end: version, terms });
        trial.written.extend(live.iter().filter_map(written));
        for side in [Side::Ours, Side::Theirs] {
            let relists = terms == Terms::Cut && rng.random_range(0..3) > 0;
            let events = if relists { relist(side, &before, &now) } else { live.clone() };
            lines(&mut trial, side).extend(events);
        }
    }
    trial.listed = now.into_values().collect();
    trial.ours.cache.clone_from(&trial.listed);
    trial.theirs.cache.clone_from(&trial.listed);
    trial
}

/// The events of a relist, given the objects known before and those listed.
fn relist(side: Side, before: &BTreeMap<String, State>, now: &BTreeMap<String, State>) -> Vec<Line> {
    let (mut deleted, mut rest) = (Vec::new(), Vec::new());
    for old in before.values() {
        let object = old.clone();
        match (now.get(&old.key), side) {
            (None, _) => deleted.push(Line::Deleted { object, missed: true }),
            (Some(new), Side::Ours) if new.uid != old.uid => deleted.push(Line::Deleted { object, missed: true }),
            (Some(new), Side::Ours) if new == old => {}
            (Some(new), _) => rest.push(Line::Updated { old: object, object: new.clone() }),
        }
    }
    for new in now.values() {
        match (before.get(&new.key), side) {
            (None, _) => rest.push(added(new)),
            (Some(old), Side::Ours) if new.uid != old.uid => rest.push(added(new)),
            _ => {}
        }
    }
    // Items of a relist come in any order.
    rest.sort_by_key(|line| line.object().map(|object| object.step.len() * 7 % 3));
    deleted.into_iter().chain(rest).collect()
}
