use super::*;

/// A machine whose watch has been silent long enough to be probed.
fn doubted() -> Bench {
    let mut bench = Bench::watching_from("10");
    assert_eq!(bench.tick(), (70.0, vec!["ask revision".to_owned(), "beside watch 10".to_owned()]));
    bench
}

fn revision(bench: &mut Bench, version: &str) -> Vec<String> {
    bench.step(Input::Revision(Ok(server_at(version))))
}

fn beside(bench: &mut Bench, version: &str) -> Vec<String> {
    bench.step(Input::Frame(Lane::Second, Frame::Changed(Change::Modified, object("a", version))))
}

#[test]
fn any_byte_puts_the_doubt_off() {
    let mut bench = Bench::watching_from("10");
    bench.after(69.0).step(Input::Bytes(Lane::Main));
    assert!((bench.tick().0 - 70.0).abs() < 1e-9);
}

#[test]
fn a_server_that_went_back_is_listed_at_once_and_that_is_reported() {
    let mut bench = doubted();
    assert_eq!(revision(&mut bench, "9"), ["close beside", "list latest by 500"]);
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.step(page_end("9", None)), ["begun, went back", "ended @9", "watch 9"]);
    assert_eq!((bench.version(), bench.relists().went_back), ("9".to_owned(), 1));
}

#[test]
fn what_the_second_watch_brings_and_the_first_does_not_proves_it_stalled() {
    let mut bench = doubted();
    bench.step(Input::Opened(Lane::Second));
    revision(&mut bench, "30");
    assert_eq!(beside(&mut bench, "12"), ["hold beside"]);
    assert_eq!(bench.tick(), (5.0, vec!["switch".to_owned(), "changed a@12".to_owned()]));
    assert_eq!((bench.machine.counters.stalls, bench.version()), (1, "12".to_owned()));
    assert_eq!(bench.receive(Change::Modified, "a", "13"), ["changed a@13"], "the second is now the first");
    assert_eq!(bench.relists().total(), 0);
}

#[test]
fn what_the_second_watch_brought_is_forgotten_when_the_first_one_speaks() {
    let mut bench = doubted();
    bench.step(Input::Opened(Lane::Second));
    beside(&mut bench, "12");
    assert_eq!(bench.after(1.0).receive(Change::Modified, "a", "12"), ["close beside", "changed a@12"]);
    assert_eq!(bench.machine.counters.stalls, 0);
    assert!((bench.tick().0 - 70.0).abs() < 1e-9, "and all is as before");
}

#[test]
fn nothing_anywhere_doubles_the_patience_up_to_the_watchs_own_time() {
    let settings = ReflectorSettings {
        streaming: Streaming::Never,
        watch_overtime: Duration::from_secs(1_000_000),
        ..ReflectorSettings::default()
    };
    let mut bench = Bench::new(settings);
    bench.step(Input::Start);
    bench.step(page_end("10", None));
    bench.step(Input::Opened(Lane::Main));
    let MachinePhase::Watching(watch) = &bench.machine.phase else { panic!() };
    let longest = watch.timeout.as_secs_f64();
    let mut intervals = Vec::new();
    for _ in 0..5 {
        intervals.push(bench.tick().0);
        bench.step(Input::Opened(Lane::Second));
        revision(&mut bench, "30");
        assert_eq!(bench.tick(), (10.0, vec!["close beside".to_owned()]));
    }
    assert_eq!(intervals, [70.0, 140.0, 280.0, longest, longest]);
    bench.step(Input::Bytes(Lane::Main));
    assert!((bench.tick().0 - 70.0).abs() < 1e-9, "until something comes");
}

#[test]
fn a_bookmark_on_the_second_watch_proves_nothing() {
    let mut bench = doubted();
    bench.step(Input::Opened(Lane::Second));
    revision(&mut bench, "30");
    let frame = Frame::Bookmark { version: Version::new("30"), initial_events_end: false };
    assert!(bench.step(Input::Frame(Lane::Second, frame)).is_empty());
    assert_eq!(bench.tick().1, ["close beside"]);
    assert_eq!(bench.version(), "10");
}

#[test]
fn a_probe_that_fails_is_reported_and_repeated_sooner() {
    let mut bench = doubted();
    bench.step(Input::Opened(Lane::Second));
    assert_eq!(bench.step(Input::Revision(Err(refused()))), ["report"]);
    assert_eq!(bench.tick(), (10.0, vec!["close beside".to_owned()]));
    assert!((bench.tick().0 - 30.0).abs() < 1e-9);
    assert_eq!(bench.step(Input::Failed(Lane::Second, refused())), ["report", "close beside"]);
    assert!((bench.tick().0 - 30.0).abs() < 1e-9);
    assert_eq!(bench.tick(), (60.0, vec!["report".to_owned(), "close beside".to_owned()]), "no answer at all");
}

#[test]
fn a_second_watch_whose_version_expired_makes_a_new_list() {
    let mut bench = doubted();
    assert_eq!(bench.step(Input::FailureFrame(Lane::Second, answered(410))), ["report", "close beside", "close"]);
    assert_eq!(bench.tick().1, ["list from 10"]);
}

#[test]
fn a_second_watch_that_ends_proves_nothing() {
    let mut bench = doubted();
    bench.step(Input::Opened(Lane::Second));
    assert_eq!(bench.step(Input::Ended(Lane::Second)), ["close beside"]);
}

#[test]
fn opening_the_watch_again_is_not_progress() {
    let mut bench = Bench::watching_from("10");
    bench.after(40.0).step(Input::Ended(Lane::Main));
    bench.step(Input::Opened(Lane::Main));
    let (passed, words) = bench.tick();
    assert!((passed - 30.0).abs() < 1e-9);
    assert_eq!(words, ["ask revision", "beside watch 10"]);
}

#[test]
fn after_a_failure_the_server_is_asked_whether_it_went_back() {
    let mut bench = Bench::watching_from("10");
    bench.fail(cut());
    bench.tick();
    assert_eq!(bench.step(Input::Opened(Lane::Main)), ["ask revision"]);
    assert_eq!(bench.receive(Change::Modified, "a", "12"), ["changed a@12"], "what comes meanwhile ends no such doubt");
    assert_eq!(revision(&mut bench, "11"), Vec::<String>::new(), "it is held against the version of when it was asked");
    bench.fail(cut());
    bench.tick();
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(revision(&mut bench, "11"), ["close beside", "list latest by 500"]);
    assert_eq!(bench.relists().went_back, 1);
}

#[test]
fn after_too_many_requests_or_a_clean_close_nothing_is_asked() {
    let mut bench = Bench::watching_from("10");
    bench.step(Input::FailureFrame(Lane::Main, answered(429)));
    bench.tick();
    assert!(bench.step(Input::Opened(Lane::Main)).is_empty());
    bench.after(2.0).step(Input::Ended(Lane::Main));
    assert!(bench.step(Input::Opened(Lane::Main)).is_empty());
}

#[test]
fn a_watch_that_outlasts_its_time_is_ended_by_us() {
    let settings = ReflectorSettings {
        streaming: Streaming::Never,
        quiet_after: Duration::from_secs(1_000_000),
        ..ReflectorSettings::default()
    };
    let mut bench = Bench::new(settings);
    bench.step(Input::Start);
    bench.step(page_end("10", None));
    bench.step(Input::Opened(Lane::Main));
    let MachinePhase::Watching(watch) = &bench.machine.phase else { panic!() };
    let timeout = watch.timeout.as_secs_f64();
    assert_eq!(bench.tick(), (timeout + 30.0, vec!["watch 10".to_owned()]));
    assert_eq!(bench.machine.counters.stalls, 1);
}

#[test]
fn being_kept_waiting_downstream_is_no_silence_of_a_watch() {
    let mut bench = Bench::watching_from("10");
    bench.after(100.0).step(Input::Resumed);
    assert!((bench.tick().0 - 70.0).abs() < 1e-9);
}

#[test]
fn being_kept_waiting_downstream_ends_no_watch_and_no_doubt() {
    let mut bench = doubted();
    bench.step(Input::Opened(Lane::Second));
    revision(&mut bench, "30");
    beside(&mut bench, "12");
    bench.after(100_000.0).step(Input::Resumed);
    assert!(bench.step(Input::Tick).is_empty(), "the first watch may have brought it too: it was not looked at");
    assert_eq!(bench.tick(), (5.0, vec!["switch".to_owned(), "changed a@12".to_owned()]));

    let mut bench = Bench::watching_from("10");
    bench.after(100_000.0).step(Input::Resumed);
    assert!((bench.tick().0 - 30.0).abs() < 1e-9, "long over, but its end may still be read");
    assert_eq!(bench.machine.counters.stalls, 1);

    let mut bench = Bench::watching_from("10");
    bench.after(2.0).step(Input::Ended(Lane::Main));
    bench.after(100_000.0).step(Input::Resumed);
    assert_eq!(bench.tick(), (10.0, vec![]), "an answer is waited for from when it was really asked for");
    assert_eq!(bench.tick().0, 50.0);
}

#[test]
fn versions_without_an_order_never_pass_for_a_server_that_went_back() {
    let mut bench = Bench::watching_from("b");
    bench.tick();
    bench.step(Input::Opened(Lane::Second));
    assert!(revision(&mut bench, "a").is_empty());
}
