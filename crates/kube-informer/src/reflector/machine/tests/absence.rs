use super::*;
use crate::reflector::definition_watch::DefinitionState;

/// A machine whose list was answered with 404.
fn unknown_to_the_server() -> Bench {
    let mut bench = Bench::paged();
    bench.step(Input::Start);
    assert_eq!(bench.fail(answered(404)), ["report", "close", "look out"]);
    bench
}

#[test]
fn a_resource_that_is_not_there_is_asked_for_again_and_again_and_looked_out_for_once() {
    let mut bench = unknown_to_the_server();
    for wait in [0.8, 1.6, 3.2] {
        let (passed, words) = bench.tick();
        assert!((passed - wait).abs() < 1e-9 && words == ["list any by 500"], "{passed} {words:?}");
        assert_eq!(bench.fail(answered(404)), ["report", "close"]);
    }
}

#[test]
fn a_streaming_list_of_a_resource_that_is_not_there_is_not_tried_again_as_a_list() {
    let mut bench = Bench::new(ReflectorSettings::default());
    bench.step(Input::Start);
    assert_eq!(bench.fail(answered(404)), ["report", "close", "look out"]);
}

#[test]
fn a_definition_that_is_seen_ends_the_wait_and_the_next_waits_are_short_again() {
    let mut bench = unknown_to_the_server();
    for _ in 0..5 {
        bench.tick();
        bench.fail(answered(404));
    }
    assert_eq!(bench.step(Input::Definition(DefinitionState::Present)), ["list any by 500"]);
    assert_eq!(bench.step(Input::Definition(DefinitionState::Present)), [""; 0], "it is being asked for");
    bench.fail(answered(404));
    assert!((bench.tick().0 - 0.8).abs() < 1e-9);
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.step(page_end("7", None)), ["begun", "ended @7", "look away", "watch 7"]);
}

#[test]
fn a_resource_that_has_come_and_is_not_ready_is_soon_asked_for_again() {
    let mut bench = unknown_to_the_server();
    for _ in 0..8 {
        bench.tick();
        bench.fail(answered(404));
    }
    bench.tick();
    bench.fail(later(429, 1));
    assert!((bench.tick().0 - 1.0).abs() < 1e-9, "as the server wishes");
    bench.fail(later(429, 1));
    assert!((bench.tick().0 - 1.6).abs() < 1e-9, "only the first time");
    // The definition appears while a list is in progress.
    for _ in 0..8 {
        bench.fail(answered(404));
        bench.tick();
    }
    bench.step(Input::Definition(DefinitionState::Present));
    bench.fail(answered(404));
    assert!((bench.tick().0 - 0.8).abs() < 1e-9);
}

#[test]
fn without_a_definition_it_rests() {
    let mut bench = unknown_to_the_server();
    assert_eq!(bench.step(Input::Definition(DefinitionState::Absent)), [""; 0]);
    for _ in 0..2 {
        let (passed, words) = bench.tick();
        assert!((passed - 300.0).abs() < 1e-9 && words == ["list any by 500"], "{passed} {words:?}");
        bench.fail(answered(404));
    }
    // The definition watch no longer knows.
    bench.step(Input::Definition(DefinitionState::Unknown));
    assert!((bench.tick().0 - 30.0).abs() < 1e-9);
}

#[test]
fn when_a_definition_is_gone_so_are_its_objects_and_that_is_reported_once() {
    let mut bench = Bench::watching_from("10");
    bench.receive(Change::Added, "a", "11");
    bench.after(60.0).step(Input::Ended(Lane::Main));
    assert_eq!(bench.fail(answered(404)), ["report", "close", "look out"]);
    assert_eq!(bench.step(Input::Definition(DefinitionState::Absent)), ["begun", "ended @11"]);
    bench.tick();
    assert_eq!(bench.fail(answered(404)), ["report", "close"]);
    assert_eq!(bench.step(Input::Definition(DefinitionState::Present)), ["list from 11"]);
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.step(page_end("20", None)), ["begun", "ended @20", "look away", "watch 20"]);
    bench.step(Input::Opened(Lane::Main));
    bench.after(60.0).step(Input::Ended(Lane::Main));
    bench.fail(answered(404));
    assert_eq!(bench.step(Input::Definition(DefinitionState::Absent)), ["begun", "ended @20"], "another time");
}

#[test]
fn what_is_seen_while_the_server_is_away_ends_no_wait_for_it() {
    let mut bench = unknown_to_the_server();
    bench.tick();
    bench.fail(error(Failure::ConnectionRefused));
    assert_eq!(bench.step(Input::Definition(DefinitionState::Present)), [""; 0]);
    assert_eq!(bench.step(Input::Definition(DefinitionState::Absent)), [""; 0]);
}
