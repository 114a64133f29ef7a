use super::*;

#[test]
fn a_watch_delivers_changes_and_advances_the_version() {
    let mut bench = Bench::watching_from("10");
    assert_eq!(bench.receive(Change::Added, "a", "11"), ["changed a@11"]);
    assert_eq!(bench.receive(Change::Modified, "a", "12"), ["changed a@12"]);
    assert_eq!(bench.receive(Change::Deleted, "a", "13"), ["deleted a@13"]);
    assert_eq!(bench.bookmark("20", false), ["bookmark @20"]);
    assert_eq!(bench.version(), "20");
}

#[test]
fn the_version_never_goes_back_in_a_watch() {
    let mut bench = Bench::watching_from("10");
    assert_eq!(bench.receive(Change::Added, "a", "9"), ["changed a@9"], "the store decides whether that is new");
    assert_eq!(bench.bookmark("8", false), ["bookmark @10"]);
    assert_eq!(bench.version(), "10");
}

#[test]
fn versions_without_an_order_are_taken_as_they_come() {
    let mut bench = Bench::watching_from("x");
    bench.receive(Change::Added, "a", "b");
    bench.receive(Change::Added, "c", "");
    assert_eq!(bench.version(), "b");
}

#[test]
fn a_watch_that_ended_is_opened_again_at_once_from_where_it_was() {
    let mut bench = Bench::watching_from("10");
    bench.receive(Change::Added, "a", "11");
    assert_eq!(bench.step(Input::Ended(Lane::Main)), ["watch 11"], "it was short, but brought something");
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.after(1.0).step(Input::Ended(Lane::Main)), ["watch 11"], "it brought nothing, but was not short");
    assert_eq!(bench.relists().total(), 0);
}

#[test]
fn watches_closed_at_once_wait_longer_and_longer_and_then_list() {
    let mut bench = Bench::watching_from("10");
    let mut waits = Vec::new();
    for _ in 0..2 {
        assert_eq!(bench.after(0.1).step(Input::Ended(Lane::Main)), ["report", "close"]);
        let (wait, words) = bench.tick();
        assert_eq!(words, ["watch 10"]);
        waits.push(wait);
        bench.step(Input::Opened(Lane::Main));
    }
    bench.step(Input::Ended(Lane::Main));
    let (wait, words) = bench.tick();
    waits.push(wait);
    assert_eq!((waits, words), (vec![0.8, 1.6, 3.2], vec!["list from 10".to_owned()]));
    assert_eq!(bench.relists().short_watches, 1);
}

#[test]
fn how_often_a_watch_may_close_at_once_before_a_list_is_made_can_be_set() {
    let settings =
        ReflectorSettings { relist_after_bad_frames: 1, streaming: Streaming::Never, ..ReflectorSettings::default() };
    let mut bench = Bench::new(settings);
    bench.step(Input::Start);
    bench.step(page_end("10", None));
    bench.step(Input::Opened(Lane::Main));
    bench.step(Input::Ended(Lane::Main));
    assert_eq!(bench.tick().1, ["list from 10"]);
}

#[test]
fn an_old_event_again_and_again_does_not_pass_for_progress() {
    let mut bench = Bench::watching_from("10");
    bench.receive(Change::Modified, "a", "10");
    assert_eq!(bench.step(Input::Ended(Lane::Main)), ["report", "close"]);
}

#[test]
fn an_expired_version_makes_a_new_list_at_open_and_in_the_stream() {
    let mut bench = Bench::watching_from("10");
    assert_eq!(bench.step(Input::FailureFrame(Lane::Main, answered(410))), ["report", "close"]);
    assert_eq!(bench.tick(), (0.8, vec!["list from 10".to_owned()]));
    bench.step(page_end("12", None));
    assert_eq!(bench.fail(answered(410)), ["report", "close"]);
    assert_eq!(bench.tick(), (1.6, vec!["list from 12".to_owned()]));
    assert_eq!(bench.relists().expired, 2);
}

#[test]
fn too_many_requests_make_a_watch_wait_but_never_list() {
    let mut bench = Bench::watching_from("10");
    bench.step(Input::FailureFrame(Lane::Main, answered(429)));
    let mut waits = vec![bench.tick()];
    for _ in 0..3 {
        assert_eq!(bench.fail(answered(429)), ["report", "close"]);
        waits.push(bench.tick());
    }
    let again = vec!["watch 10".to_owned()];
    assert_eq!(waits, [0.8, 1.6, 3.2, 6.4].map(|wait| (wait, again.clone())));
    assert_eq!((bench.machine.counters.lists, bench.machine.counters.watches), (1, 5));
}

#[test]
fn a_refused_connection_makes_a_watch_wait_longer_and_longer_but_never_list() {
    let mut bench = Bench::watching_from("10");
    bench.step(Input::Ended(Lane::Main));
    for _ in 0..50 {
        bench.tick();
        bench.fail(refused());
    }
    assert!((bench.tick().0 - 30.0).abs() < 1e-9);
    assert_eq!((bench.machine.counters.lists, bench.relists().total()), (1, 0));
}

#[test]
fn a_server_that_fails_to_open_a_watch_again_and_again_is_listed_in_the_end() {
    let mut bench = Bench::watching_from("10");
    bench.fail(cut());
    for _ in 0..4 {
        assert_eq!(bench.tick().1, ["watch 10"]);
        bench.fail(answered(500));
    }
    bench.tick();
    bench.fail(answered(500));
    assert_eq!(bench.tick().1, ["list from 10"], "its version may be the trouble");
}

#[test]
fn where_watching_is_refused_lists_are_made_instead() {
    for code in [403, 404, 405] {
        let mut bench = Bench::watching_from("10");
        bench.after(2.0).step(Input::Ended(Lane::Main));
        assert_eq!(bench.fail(answered(code))[..2], ["report", "close"]);
        assert_eq!(bench.tick().1, ["list from 10"]);
        assert_eq!(bench.relists().refused, 1);
    }
}

#[test]
fn an_internal_error_in_the_stream_makes_a_new_list() {
    let mut bench = Bench::watching_from("10");
    bench.step(Input::FailureFrame(Lane::Main, answered(500)));
    assert_eq!(bench.tick().1, ["list from 10"]);
    assert_eq!(bench.relists().server_error, 1);
}

#[test]
fn internal_errors_can_be_borne_for_a_while() {
    let settings = ReflectorSettings {
        internal_error_tolerance: Duration::from_secs(30),
        streaming: Streaming::Never,
        ..ReflectorSettings::default()
    };
    let mut bench = Bench::new(settings);
    bench.step(Input::Start);
    bench.step(page_end("10", None));
    let mut borne = Vec::new();
    for pause in [0.0, 20.0, 20.0, 0.0, 61.0] {
        bench.step(Input::Opened(Lane::Main));
        bench.after(pause).step(Input::FailureFrame(Lane::Main, answered(500)));
        let words = bench.tick().1;
        borne.push(words == ["watch 10"]);
        if words == ["list from 10"] {
            bench.step(page_end("10", None));
        }
    }
    assert_eq!(borne, [true, true, false, true, true], "within the window, after it, and long after");
}

#[test]
fn internal_errors_that_are_far_apart_are_each_the_first() {
    let settings = ReflectorSettings {
        internal_error_tolerance: Duration::from_secs(30),
        internal_errors_apart: Duration::from_secs(10),
        streaming: Streaming::Never,
        ..ReflectorSettings::default()
    };
    let mut bench = Bench::new(settings);
    bench.step(Input::Start);
    bench.step(page_end("10", None));
    for _ in 0..10 {
        bench.step(Input::Opened(Lane::Main));
        bench.after(20.0).step(Input::FailureFrame(Lane::Main, answered(500)));
        assert_eq!(bench.tick().1, ["watch 10"]);
    }
}

#[test]
fn a_broken_watch_that_had_lasted_is_opened_again_at_once_however_often() {
    let mut bench = Bench::watching_from("10");
    for _ in 0..100 {
        assert_eq!(bench.after(1.0).fail(cut()).last().map(String::as_str), Some("watch 10"));
        bench.step(Input::Opened(Lane::Main));
    }
    bench.after(1.0).fail(cut());
    bench.fail(refused());
    assert!((bench.tick().0 - 0.8).abs() < 1e-9, "none of that makes the wait for a server that is gone longer");
}

#[test]
fn a_watch_that_broke_at_once_is_opened_again_at_once_after_two_healthy_minutes_and_else_waits() {
    let mut bench = Bench::watching_from("10");
    bench.after(120.0).step(Input::Ended(Lane::Main));
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.fail(cut()), ["report", "watch 10"]);
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.fail(cut()), ["report", "close beside", "close"]);
    assert_eq!(bench.tick(), (1.6, vec!["watch 10".to_owned()]));
}

#[test]
fn healthy_time_goes_on_through_clean_closes() {
    let mut bench = Bench::watching_from("10");
    bench.after(2.0).step(Input::Ended(Lane::Main));
    bench.fail(refused());
    bench.tick();
    for _ in 0..13 {
        bench.step(Input::Opened(Lane::Main));
        bench.after(10.0).step(Input::Ended(Lane::Main));
    }
    bench.fail(refused());
    assert!((bench.tick().0 - 0.8).abs() < 1e-9);
}

#[test]
fn a_frame_or_an_object_that_cannot_be_read_opens_the_watch_again_and_in_the_end_lists() {
    for bad in [broken_frame, bad_object] {
        let mut bench = Bench::watching_from("10");
        for _ in 0..2 {
            assert_eq!(bench.step(bad()), ["report", "close"]);
            assert_eq!(bench.tick().1, ["watch 10"]);
            bench.step(Input::Opened(Lane::Main));
        }
        bench.step(bad());
        assert_eq!(bench.tick().1, ["list from 10"]);
        assert_eq!((bench.relists().undecodable, bench.machine.counters.decode_errors), (1, 3));
    }
}

#[test]
fn an_event_in_between_resets_the_count_of_unreadable_frames() {
    let mut bench = Bench::watching_from("10");
    for version in 11..30 {
        bench.step(broken_frame());
        bench.tick();
        bench.step(Input::Opened(Lane::Main));
        bench.receive(Change::Added, "a", &version.to_string());
    }
    assert_eq!(bench.relists().total(), 0);
}

#[test]
fn a_watch_that_gets_no_answer_is_tried_again() {
    let mut bench = Bench::watching_from("10");
    bench.after(2.0).step(Input::Ended(Lane::Main));
    assert_eq!(bench.tick(), (10.0, vec![]), "it is only considered late");
    assert_eq!(bench.tick(), (50.0, vec!["report".to_owned(), "close".to_owned()]));
    assert_eq!(bench.tick().1, ["watch 10"]);
}

#[test]
fn watches_last_a_random_time_within_what_is_set() {
    for (least, bounds) in [(300, 300..600), (1_800, 1_800..3_600), (1, 1..2)] {
        let settings = ReflectorSettings { watch_timeout: Duration::from_secs(least), ..ReflectorSettings::default() };
        let mut rng = Rng::seeded(7);
        let times: Vec<u64> = (0..100).map(|_| settings.watch_duration(rng.next_fraction()).as_secs()).collect();
        assert!(times.iter().all(|time| bounds.contains(time)), "{times:?}");
        assert!(least == 1 || times.iter().any(|time| *time != times[0]));
    }
}

#[test]
fn every_failure_is_reported() {
    let mut bench = Bench::watching_from("10");
    let mut reported = 0;
    for failure in [answered(410), answered(429), answered(500), refused(), cut(), answered(403)] {
        for frame in [true, false] {
            bench.machine.phase = MachinePhase::Watching(Watch::new(bench.now, Duration::from_secs(300)));
            let input = match frame {
                true => Input::FailureFrame(Lane::Main, failure.clone()),
                false => Input::Failed(Lane::Main, failure.clone()),
            };
            reported += bench.step(input).iter().filter(|word| *word == "report").count();
        }
    }
    assert_eq!((reported, bench.machine.counters.errors), (12, 12));
}

#[test]
fn watches_that_close_at_once_though_they_deliver_are_opened_once_a_second() {
    let mut bench = Bench::watching_from("10");
    bench.bookmark("11", false);
    assert_eq!(bench.step(Input::Ended(Lane::Main)), ["watch 11"], "once may be chance");
    for version in 12..100 {
        bench.step(Input::Opened(Lane::Main));
        bench.bookmark(&version.to_string(), false);
        assert_eq!(bench.after(0.25).step(Input::Ended(Lane::Main)), ["report", "close"]);
        assert_eq!(bench.tick(), (0.75, vec![format!("watch {version}")]));
    }
    bench.step(Input::Opened(Lane::Main));
    bench.bookmark("100", false);
    assert_eq!(bench.after(1.0).step(Input::Ended(Lane::Main)), ["watch 100"]);
    assert_eq!(bench.relists().total(), 0);
}

#[test]
fn a_version_that_is_no_number_does_not_replace_one_that_is() {
    let mut bench = Bench::watching_from("10");
    for rubbish in ["x", "-1", "1e9", "99999999999999999999", "007", " 12"] {
        bench.bookmark(rubbish, false);
        bench.receive(Change::Modified, "a", rubbish);
        assert_eq!(bench.version(), "10", "{rubbish}");
    }
    bench.bookmark("12", false);
    assert_eq!(bench.version(), "12");
}
