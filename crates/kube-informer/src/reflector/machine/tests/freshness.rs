use super::*;

fn revision(bench: &mut Bench, version: &str) {
    bench.step(Input::Revision(Ok(server_at(version))));
}

/// A machine whose watch broke after two seconds and is open again.
fn reconnected() -> Bench {
    let mut bench = Bench::watching_from("10");
    bench.after(2.0).fail(cut());
    assert_eq!(bench.degraded_since(), Some(2.0), "though the watch is opened again at once");
    assert_eq!(bench.after(1.0).step(Input::Opened(Lane::Main)), ["ask revision"]);
    assert_eq!(bench.degraded_since(), Some(2.0), "the server answers, but has not said what was missed");
    bench
}

#[test]
fn retries_do_not_end_a_doubt() {
    let mut bench = Bench::watching_from("10");
    bench.after(2.0).fail(cut());
    for failure in [refused(), answered(500), answered(429)] {
        bench.after(1.0).fail(failure);
        bench.tick();
        assert_eq!(bench.degraded_since(), Some(2.0));
    }
    bench.step(Input::Opened(Lane::Main));
    bench.step(Input::Bytes(Lane::Main));
    assert_eq!(bench.degraded_since(), Some(2.0), "bytes may be anything");
    bench.receive(Change::Modified, "a", "11");
    assert_eq!(bench.degraded_since(), None);
}

#[test]
fn a_server_at_the_reached_version_has_nothing_that_was_missed() {
    let mut bench = reconnected();
    revision(&mut bench, "10");
    assert_eq!((bench.degraded_since(), bench.caught_up()), (None, Some(3.0)));
}

#[test]
fn an_open_watch_that_delivers_nothing_after_a_failure_is_probed_soon() {
    let mut bench = reconnected();
    revision(&mut bench, "30");
    assert_eq!(bench.tick(), (10.0, vec!["ask revision".to_owned(), "beside watch 10".to_owned()]));
    bench.step(Input::Opened(Lane::Second));
    revision(&mut bench, "30");
    assert_eq!(bench.degraded_since(), Some(2.0));
    assert_eq!(bench.tick(), (10.0, vec!["close beside".to_owned()]));
    assert_eq!((bench.degraded_since(), bench.caught_up()), (None, Some(13.0)));
}

#[test]
fn what_a_watch_replays_does_not_show_that_it_has_caught_up() {
    let mut bench = reconnected();
    revision(&mut bench, "30");
    bench.after(5.0).receive(Change::Modified, "a", "12");
    assert_eq!((bench.degraded_since(), bench.caught_up()), (None, Some(0.0)), "it may lag behind");
    bench.after(5.0).receive(Change::Modified, "a", "30");
    assert_eq!(bench.caught_up(), Some(13.0));
    bench.after(5.0).receive(Change::Modified, "a", "31");
    assert_eq!(bench.caught_up(), Some(18.0), "from now on changes are received as they happen");
}

#[test]
fn a_bookmark_shows_that_a_watch_has_caught_up() {
    let mut bench = reconnected();
    bench.receive(Change::Modified, "a", "12");
    assert_eq!(bench.caught_up(), Some(0.0));
    bench.after(5.0).bookmark("13", false);
    assert_eq!(bench.caught_up(), Some(8.0));
}

#[test]
fn a_clean_close_does_not_interrupt_what_is_known() {
    let mut bench = Bench::watching_from("10");
    bench.after(20.0).step(Input::Ended(Lane::Main));
    bench.after(0.5).step(Input::Opened(Lane::Main));
    assert_eq!(bench.degraded_since(), None);
    bench.receive(Change::Modified, "a", "11");
    assert_eq!(bench.caught_up(), Some(20.5));
    bench.step(Input::Ended(Lane::Main));
    bench.after(5.0).step(Input::Opened(Lane::Main));
    bench.receive(Change::Modified, "a", "12");
    assert_eq!(bench.caught_up(), Some(20.5), "changes of five seconds are replayed");
}

#[test]
fn a_list_shows_what_there_was_when_it_was_requested() {
    let mut bench = Bench::new(ReflectorSettings::default());
    bench.after(3.0).step(Input::Start);
    bench.step(Input::Opened(Lane::Main));
    bench.after(20.0).receive(Change::Added, "a", "3");
    assert_eq!(bench.caught_up(), None);
    bench.bookmark("9", true);
    assert_eq!(bench.caught_up(), Some(3.0));
    bench.receive(Change::Modified, "a", "10");
    assert_eq!(bench.caught_up(), Some(3.0), "what changed during the list follows it");

    let mut bench = Bench::paged();
    bench.after(3.0).step(Input::Start);
    bench.after(20.0).step(page_end("9", Some("x")));
    bench.after(20.0).step(page_end("9", None));
    assert_eq!(bench.caught_up(), Some(3.0));
}

#[test]
fn what_is_read_after_a_long_wait_downstream_may_be_old() {
    let mut bench = Bench::watching_from("10");
    bench.after(5.0).receive(Change::Modified, "a", "11");
    bench.after(60.0).step(Input::Resumed);
    bench.receive(Change::Modified, "a", "12");
    assert_eq!(bench.caught_up(), Some(5.0));
}

#[test]
fn a_watch_that_is_known_to_stall_is_a_doubt_until_the_second_one_takes_over() {
    let mut bench = Bench::watching_from("10");
    bench.tick();
    bench.step(Input::Opened(Lane::Second));
    revision(&mut bench, "30");
    bench.step(Input::Frame(Lane::Second, Frame::Changed(Change::Modified, object("a", "12"))));
    assert_eq!(bench.degraded_since(), Some(70.0));
    assert_eq!(bench.tick().1, ["switch", "changed a@12"]);
    assert_eq!((bench.degraded_since(), bench.caught_up()), (None, Some(0.0)), "it may still lag behind");
    bench.receive(Change::Modified, "a", "30");
    assert_eq!(bench.caught_up(), Some(75.0));
}

#[test]
fn a_probe_without_an_answer_is_a_doubt_long_before_it_is_given_up() {
    let mut bench = Bench::watching_from("10");
    bench.tick();
    assert_eq!(bench.tick(), (10.0, vec![]));
    assert_eq!(bench.degraded_since(), Some(80.0));
    assert_eq!(bench.tick(), (50.0, vec!["report".to_owned(), "close beside".to_owned()]));
    assert_eq!(bench.degraded_since(), Some(80.0));
}

#[test]
fn a_watch_that_is_refused_is_a_doubt_that_lists_do_not_end() {
    let mut bench = Bench::watching_from("10");
    bench.after(2.0).step(Input::Ended(Lane::Main));
    for _ in 0..3 {
        bench.fail(answered(403));
        bench.tick();
        let requested = bench.now.as_secs_f64();
        bench.step(page_end("10", None));
        assert_eq!((bench.degraded_since(), bench.caught_up()), (Some(2.0), Some(requested)));
    }
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.degraded_since(), None);
}

#[test]
fn a_complete_list_ends_any_other_doubt() {
    let mut bench = Bench::watching_from("10");
    bench.step(Input::FailureFrame(Lane::Main, answered(410)));
    bench.tick();
    assert_eq!(bench.degraded_since(), Some(0.0));
    bench.step(page_end("12", None));
    assert_eq!(bench.degraded_since(), None);
}

#[test]
fn waits_after_a_rejected_request_grow_to_minutes() {
    let mut bench = Bench::paged();
    bench.step(Input::Start);
    let waits: Vec<f64> = (0..11)
        .map(|_| {
            bench.fail(answered(400));
            bench.tick().0.round()
        })
        .collect();
    assert_eq!(waits, [1.0, 2.0, 3.0, 6.0, 13.0, 26.0, 51.0, 102.0, 205.0, 300.0, 300.0]);
    bench.fail(refused());
    assert!((bench.tick().0 - 30.0).abs() < 1e-9, "other failures wait no longer than usual");
}

#[test]
fn a_bookmark_that_the_server_cannot_have_sent_shows_nothing() {
    for version in ["garbage", "", "9"] {
        let mut bench = reconnected();
        revision(&mut bench, "30");
        bench.after(5.0).bookmark(version, false);
        assert_eq!((bench.degraded_since(), bench.caught_up()), (Some(2.0), Some(0.0)), "{version}");
        assert_eq!(bench.version(), "10");
        bench.bookmark("30", false);
        assert_eq!((bench.degraded_since(), bench.caught_up()), (None, Some(8.0)));
    }
    let mut bench = Bench::watching_from("text");
    bench.after(5.0).bookmark("other text", false);
    assert_eq!(bench.caught_up(), Some(5.0), "the versions of this server have never been numbers");
}

#[test]
fn a_change_whose_version_the_server_cannot_have_sent_shows_nothing() {
    let mut bench = reconnected();
    revision(&mut bench, "30");
    assert_eq!(bench.after(5.0).receive(Change::Modified, "a", "garbage"), ["changed a@garbage"]);
    assert_eq!((bench.degraded_since(), bench.caught_up()), (Some(2.0), Some(0.0)));
}
