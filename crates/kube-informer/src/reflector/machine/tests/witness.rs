use super::*;

const RELIST: [&str; 2] = ["close beside", "list latest by 500"];

/// Reaches version 20, loses the connection, and is connected again. Object "b" was added last, and
/// object "a" was modified last.
fn reconnected() -> Bench {
    let mut bench = Bench::watching_from("10");
    bench.receive(Change::Added, "b", "14");
    bench.receive(Change::Modified, "a", "15");
    bench.bookmark("20", false);
    bench.after(2.0).fail(cut());
    assert_eq!(bench.step(Input::Opened(Lane::Main)), ["ask revision"]);
    bench
}

/// The server is at a version and has an object in this state, or none.
fn answer(bench: &mut Bench, version: &str, found: Option<Obj<Untyped>>) -> Vec<String> {
    let state = ServerState { version: Version::new(version), object: found, has_others: false };
    bench.step(Input::Revision(Ok(state)))
}

fn with_uid(key: &str, version: &str, uid: &str) -> Obj<Untyped> {
    let json = format!(r#"{{"metadata":{{"name":"{key}","uid":"{uid}","resourceVersion":"{version}"}}}}"#);
    Obj::from_json(json).unwrap()
}

#[test]
fn the_last_known_state_shows_that_nothing_is_lost() {
    let mut bench = reconnected();
    assert_eq!(answer(&mut bench, "30", Some(object("a", "15"))), [""; 0]);
    assert_eq!(bench.bookmark("40", false), ["bookmark @40"]);
    assert_eq!(bench.relists().total(), 0);
}

#[test]
fn an_older_state_shows_that_the_server_went_back() {
    let mut bench = reconnected();
    assert_eq!(answer(&mut bench, "30", Some(object("a", "9"))), RELIST);
    assert_eq!(bench.relists().went_back, 1);
}

#[test]
fn another_object_at_the_same_version_shows_that_the_server_went_back() {
    let mut bench = reconnected();
    assert_eq!(answer(&mut bench, "30", Some(with_uid("a", "15", "other"))), RELIST);
}

#[test]
fn an_object_that_is_gone_must_be_deleted_by_the_watch() {
    for deleted in [true, false] {
        let mut bench = reconnected();
        assert_eq!(answer(&mut bench, "30", None), [""; 0]);
        assert_eq!(bench.receive(Change::Modified, "c", "25"), ["changed c@25"], "it may still come");
        if deleted {
            assert_eq!(bench.receive(Change::Deleted, "a", "26"), ["deleted a@26"]);
            assert_eq!(bench.bookmark("31", false), ["bookmark @31"]);
        } else {
            assert_eq!(bench.bookmark("31", false), ["bookmark @31", "list latest by 500"]);
        }
        assert_eq!(bench.relists().went_back, u64::from(!deleted));
    }
}

#[test]
fn a_deletion_that_came_before_the_answer_counts() {
    let mut bench = reconnected();
    bench.receive(Change::Deleted, "a", "26");
    assert_eq!(answer(&mut bench, "30", None), [""; 0]);
    bench.bookmark("31", false);
    assert_eq!(bench.relists().total(), 0);
}

#[test]
fn an_object_that_is_gone_without_a_sign_on_either_watch_shows_that_the_server_went_back() {
    let mut bench = reconnected();
    answer(&mut bench, "30", None);
    assert_eq!(bench.tick(), (10.0, vec!["ask revision".to_owned(), "beside watch 20".to_owned()]));
    bench.step(Input::Opened(Lane::Second));
    answer(&mut bench, "30", None);
    assert_eq!(bench.tick(), (10.0, RELIST.map(str::to_owned).to_vec()));
    assert_eq!(bench.relists().went_back, 1);
}

#[test]
fn an_object_that_is_gone_at_the_reached_version_was_never_deleted() {
    let mut bench = reconnected();
    assert_eq!(answer(&mut bench, "20", None), RELIST);
}

#[test]
fn where_the_last_object_has_changed_the_last_addition_is_asked_for() {
    for (found, went_back) in [(Some(object("b", "14")), 0), (Some(object("b", "12")), 1)] {
        let mut bench = reconnected();
        assert_eq!(answer(&mut bench, "30", Some(object("a", "28"))), ["ask revision"]);
        answer(&mut bench, "31", found);
        assert_eq!(bench.relists().went_back, went_back);
    }
}

#[test]
fn a_deleted_object_that_exists_again_shows_that_the_server_went_back() {
    let deleted = || {
        let mut bench = Bench::watching_from("10");
        let frame = Frame::Changed(Change::Deleted, with_uid("a", "15", "one"));
        bench.step(Input::Frame(Lane::Main, frame));
        bench.after(2.0).fail(cut());
        bench.step(Input::Opened(Lane::Main));
        bench
    };
    assert_eq!(answer(&mut deleted(), "30", Some(with_uid("a", "28", "one"))), RELIST);
    assert_eq!(answer(&mut deleted(), "30", Some(with_uid("a", "28", "two"))), [""; 0], "a new one");
    assert_eq!(answer(&mut deleted(), "30", None), [""; 0]);
}

#[test]
fn a_source_that_cannot_request_one_object_proves_nothing() {
    let mut bench = reconnected();
    assert_eq!(bench.step(Input::Revision(Ok(server_at("30")))), [""; 0]);
    bench.bookmark("31", false);
    assert_eq!(bench.relists().total(), 0);
}

#[test]
fn objects_from_before_a_list_are_no_witnesses() {
    let mut bench = reconnected();
    bench.step(Input::FailureFrame(Lane::Main, answered(410)));
    bench.tick();
    bench.step(page_end("40", None));
    bench.step(Input::Opened(Lane::Main));
    answer(&mut bench, "50", None);
    bench.bookmark("51", false);
    assert_eq!((bench.relists().expired, bench.relists().went_back), (1, 0));
}

#[test]
fn only_the_object_that_changed_last_verifies_the_history() {
    let states = [
        (Some(object("a", "15")), None, "unchanged"),
        (Some(object("a", "28")), Some(2.0), "changed again, as it may have in either history"),
        (None, Some(2.0), "gone, as it may be in either history"),
    ];
    for (found, unverified, why) in states {
        let mut bench = reconnected();
        assert_eq!(bench.unverified_since(), Some(2.0));
        answer(&mut bench, "30", found);
        assert_eq!(bench.unverified_since(), unverified, "{why}");
    }
}

#[test]
fn an_addition_that_is_not_the_last_change_does_not_verify_the_history() {
    let mut bench = reconnected();
    answer(&mut bench, "30", Some(object("a", "28")));
    answer(&mut bench, "31", Some(object("b", "14")));
    assert_eq!(bench.unverified_since(), Some(2.0), "what changed after it may be lost");
}

#[test]
fn the_absence_of_a_deleted_object_does_not_verify_the_history() {
    let mut bench = Bench::watching_from("10");
    bench.receive(Change::Deleted, "a", "15");
    bench.after(2.0).fail(cut());
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(answer(&mut bench, "30", None), [""; 0]);
    assert_eq!(bench.unverified_since(), Some(2.0));
}

#[test]
fn an_empty_cache_has_no_object_that_verifies_the_history() {
    let mut bench = Bench::watching_from("10");
    bench.bookmark("20", false);
    bench.after(2.0).fail(cut());
    assert_eq!(bench.step(Input::Opened(Lane::Main)), ["ask revision"]);
    assert_eq!(bench.step(Input::Revision(Ok(server_at("30")))), [""; 0]);
    assert_eq!(bench.bookmark("31", false), ["bookmark @31"]);
    assert_eq!(bench.unverified_since(), Some(2.0), "a restored backup may have objects");
}

#[test]
fn changes_after_a_failure_do_not_verify_what_was_before_it() {
    let mut bench = reconnected();
    answer(&mut bench, "30", Some(object("a", "28")));
    answer(&mut bench, "31", None);
    bench.receive(Change::Deleted, "b", "29");
    bench.receive(Change::Modified, "c", "31");
    bench.tick();
    bench.step(Input::Opened(Lane::Second));
    answer(&mut bench, "31", Some(object("c", "31")));
    assert_eq!(bench.unverified_since(), Some(2.0), "both may be of a restored backup");
}

#[test]
fn a_complete_list_replaces_what_could_not_be_verified() {
    let mut bench = reconnected();
    answer(&mut bench, "30", Some(object("a", "28")));
    bench.step(Input::FailureFrame(Lane::Main, answered(410)));
    bench.tick();
    assert_eq!(bench.unverified_since(), Some(2.0));
    bench.step(page_end("40", None));
    assert_eq!(bench.unverified_since(), None);
}

#[test]
fn a_version_that_could_not_be_requested_is_requested_after_the_next_opening() {
    let mut bench = reconnected();
    bench.step(Input::Revision(Err(answered(500))));
    assert_eq!(bench.unverified_since(), Some(2.0));
    bench.after(300.0).step(Input::Ended(Lane::Main));
    assert_eq!(bench.step(Input::Opened(Lane::Main)), ["ask revision"]);
    answer(&mut bench, "30", Some(object("a", "15")));
    assert_eq!(bench.unverified_since(), None);
}

#[test]
fn a_watch_that_the_server_ended_is_of_the_same_server() {
    let mut bench = Bench::watching_from("10");
    bench.receive(Change::Modified, "a", "15");
    bench.after(300.0).step(Input::Ended(Lane::Main));
    assert_eq!(bench.step(Input::Opened(Lane::Main)), [""; 0]);
    assert_eq!(bench.unverified_since(), None);
}
