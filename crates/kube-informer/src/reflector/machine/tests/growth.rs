use super::*;

/// A machine that has listed a store of 1,000 bytes, and watches.
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

fn large(version: u64) -> Input {
    let text = "x".repeat(10_000);
    let json = format!(r#"{{"metadata":{{"name":"a","resourceVersion":"{version}"}},"text":"{text}"}}"#);
    Input::Frame(Lane::Main, Frame::Changed(Change::Modified, Obj::from_json(json).unwrap()))
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
fn the_store_is_measured_after_each_list_and_after_half_of_the_limit() {
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
fn a_watch_that_adds_more_than_the_limit_is_an_error_and_leads_to_a_list() {
    let mut bench = listed();
    until_measured(&mut bench);
    assert_eq!(bench.step(Input::Held(52_000)), ["report", "close"]);
    let (cause, _) = bench.machine.degraded().expect("it is not known what is missed meanwhile");
    assert_eq!(*cause.failure(), Failure::WatchTooLarge { limit: 100_000 });
    assert_eq!((bench.relists().grown, bench.tick().1), (1, vec!["list from 15".to_owned()]));
    bench.step(page_end("20", None));
    bench.step(Input::Held(52_000));
    bench.step(Input::Opened(Lane::Main));
    until_measured(&mut bench);
    assert_eq!(bench.step(Input::Held(60_000)), [""; 0], "what a list contained was not added by the watch");
}
