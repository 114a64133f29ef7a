use super::*;

/// A machine that has completed an empty list, and watches.
fn listed() -> Bench {
    let settings =
        ReflectorSettings { streaming: Streaming::Never, max_watch_bytes: 100_000, ..ReflectorSettings::default() };
    let mut bench = Bench::new(settings);
    bench.step(Input::Start);
    assert_eq!(bench.step(page_end("10", None)).last().unwrap(), "watch 10");
    bench.step(Input::Held(1_000));
    bench.step(Input::Opened(Lane::Main));
    bench
}

/// An object of 10,000 bytes.
fn object_of(version: u64) -> Obj<Untyped> {
    let text = "x".repeat(10_000);
    Obj::from_json(format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}},"text":"{text}"}}"#)).unwrap()
}

fn large(version: u64) -> Input {
    Input::Frame(Lane::Main, Frame::Changed(Change::Modified, object_of(version)))
}

/// Receives objects until the store is to be measured; returns how many.
fn until_measured(bench: &mut Bench) -> u64 {
    let before = bench.measured;
    let received = |nth: &u64| {
        bench.step(large(10 + nth));
        bench.measured > before
    };
    (1..).find(received).unwrap()
}

#[test]
fn the_store_is_measured_after_each_list_and_each_time_half_of_the_limit_was_delivered() {
    let mut bench = Bench::paged();
    bench.step(Input::Start);
    bench.step(page_end("10", None));
    assert_eq!(bench.measured, 1);
    let mut bench = listed();
    assert_eq!(until_measured(&mut bench), 5);
    assert_eq!(until_measured(&mut bench), 5);
}

#[test]
fn objects_that_replace_others_may_come_without_end() {
    let mut bench = listed();
    for _ in 0..10 {
        until_measured(&mut bench);
        assert_eq!(bench.step(Input::Held(11_000)), [""; 0]);
    }
    assert_eq!((bench.relists().total(), bench.degraded_since()), (0, None));
}

#[test]
fn a_watch_that_adds_as_much_as_the_limit_goes_on() {
    let mut bench = listed();
    until_measured(&mut bench);
    assert_eq!(bench.step(Input::Held(100_000)), [""; 0]);
}

#[test]
fn a_watch_that_adds_more_than_the_limit_is_an_error_and_leads_to_a_list() {
    let mut bench = listed();
    until_measured(&mut bench);
    assert_eq!(bench.step(Input::Held(102_000)), ["report", "close"]);
    let (cause, _) = bench.machine.degraded().expect("it is not known what is missed meanwhile");
    assert_eq!(*cause.failure(), Failure::WatchTooLarge { limit: 100_000 });
    assert_eq!((bench.relists().grown, bench.tick().1), (1, vec!["list from 15".to_owned()]));
    for _ in 0..6 {
        bench.step(Input::Item(object_of(16)));
    }
    bench.step(page_end("20", None));
    bench.step(Input::Held(102_000));
    bench.step(Input::Opened(Lane::Main));
    until_measured(&mut bench);
    assert_eq!(bench.step(Input::Held(110_000)), [""; 0], "what a list contained was not added by the watch");
}

#[test]
fn what_a_list_has_not_contained_does_not_count_as_listed_though_it_is_still_held() {
    let mut bench = listed();
    until_measured(&mut bench);
    bench.step(Input::Held(102_000));
    bench.tick();
    bench.step(page_end("20", None));
    bench.step(Input::Held(102_000));
    bench.step(Input::Opened(Lane::Main));
    until_measured(&mut bench);
    assert_eq!(bench.step(Input::Held(102_000)), ["report", "close"]);
}

#[test]
fn what_a_streaming_list_replaces_is_not_added_by_the_watch() {
    let settings = ReflectorSettings { max_watch_bytes: 100_000, ..ReflectorSettings::default() };
    let mut bench = Bench::new(settings);
    bench.step(Input::Start);
    bench.step(Input::Opened(Lane::Main));
    bench.bookmark("10", true);
    assert_eq!(bench.step(Input::Held(220_000)), [""; 0], "it is measured before the list is applied");
}
