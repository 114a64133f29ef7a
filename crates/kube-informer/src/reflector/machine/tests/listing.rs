use super::*;

fn streaming() -> Bench {
    let mut bench = Bench::new(ReflectorSettings::default());
    assert_eq!(bench.step(Input::Start), ["stream"]);
    bench
}

fn paging(page_size: Option<u32>) -> Bench {
    let settings = ReflectorSettings { streaming: Streaming::Never, page_size, ..ReflectorSettings::default() };
    Bench::new(settings)
}

// Streaming lists.

#[test]
fn a_streaming_list_becomes_the_watch_at_its_end_mark() {
    let mut bench = streaming();
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.receive(Change::Added, "a", "3"), ["begun", "listed a@3"]);
    assert_eq!(bench.receive(Change::Modified, "a", "6"), ["listed a@6"]);
    assert_eq!(bench.receive(Change::Deleted, "a", "7"), ["deleted a@7"]);
    assert!(bench.bookmark("8", false).is_empty(), "a bookmark without the mark ends nothing");
    assert_eq!(bench.version(), "", "nothing is reached before the end");
    assert_eq!(bench.bookmark("9", true), ["ended @9"]);
    assert_eq!((bench.version(), bench.machine.synced), ("9".to_owned(), Synced::Yes));
    assert_eq!(bench.receive(Change::Modified, "b", "10"), ["changed b@10"]);
}

#[test]
fn an_empty_streaming_list_is_a_list_too() {
    let mut bench = streaming();
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.bookmark("9", true), ["begun", "ended @9"]);
}

#[test]
fn a_streaming_list_without_an_end_is_given_up_for_list_and_that_is_remembered() {
    let mut bench = streaming();
    bench.step(Input::Opened(Lane::Main));
    bench.receive(Change::Added, "a", "3");
    bench.after(29.0).receive(Change::Added, "b", "4");
    bench.after(29.0).receive(Change::Modified, "b", "5");
    let (passed, words) = bench.tick();
    assert!((passed - 1.0).abs() < 1e-9, "only new objects put the deadline off");
    assert_eq!(words, ["report", "abandoned", "list any by 500"]);
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.step(page_end("9", None)), ["begun", "ended @9", "watch 9"]);
    bench.step(Input::Opened(Lane::Main));
    bench.step(Input::FailureFrame(Lane::Main, answered(410)));
    assert_eq!(bench.tick().1, ["list from 9"], "not streamed any more");
}

#[test]
fn a_server_that_cannot_stream_is_listed_at_once_and_that_is_remembered() {
    for code in [400, 405, 422] {
        let mut bench = streaming();
        assert_eq!(bench.fail(answered(code)), ["report", "list any by 500"]);
        bench.step(Input::Opened(Lane::Main));
        bench.step(page_end("9", None));
        bench.fail(answered(410));
        assert_eq!(bench.tick().1, ["list from 9"]);
    }
}

#[test]
fn that_streaming_failed_is_not_remembered_where_list_failed_too() {
    let mut bench = streaming();
    bench.fail(answered(422));
    assert_eq!(bench.fail(refused()), ["report", "close"]);
    assert_eq!(bench.tick().1, ["stream"]);
}

#[test]
fn a_failure_of_another_kind_is_listed_at_once_and_not_remembered() {
    for failure in [answered(403), answered(500), cut()] {
        let mut bench = streaming();
        assert_eq!(bench.fail(failure), ["report", "list any by 500"]);
        bench.step(page_end("9", None));
        bench.fail(answered(410));
        assert_eq!(bench.tick().1, ["stream from 9"]);
    }
}

#[test]
fn a_refused_connection_or_too_many_requests_only_make_a_streaming_list_wait() {
    for failure in [refused(), answered(429), answered(401)] {
        let mut bench = streaming();
        assert_eq!(bench.fail(failure.clone()), ["report", "close"]);
        assert_eq!(bench.tick(), (0.8, vec!["stream".to_owned()]));
        bench.fail(failure);
        assert_eq!(bench.tick(), (1.6, vec!["stream".to_owned()]));
    }
}

#[test]
fn a_streaming_list_that_ends_early_is_tried_again_and_then_given_up() {
    let mut bench = streaming();
    bench.step(Input::Opened(Lane::Main));
    bench.receive(Change::Added, "a", "3");
    assert_eq!(bench.after(5.0).step(Input::Ended(Lane::Main)), ["report", "abandoned", "close"]);
    assert_eq!(bench.tick().1, ["stream"]);
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.after(5.0).step(Input::Ended(Lane::Main)), ["report", "list any by 500"]);
}

#[test]
fn how_many_streaming_lists_may_end_early_can_be_set() {
    let mut bench = Bench::new(ReflectorSettings { streaming_tries: 1, ..ReflectorSettings::default() });
    bench.step(Input::Start);
    bench.step(Input::Opened(Lane::Main));
    bench.receive(Change::Added, "a", "3");
    let words = bench.after(5.0).step(Input::Ended(Lane::Main));
    assert_eq!(words.last().map(String::as_str), Some("list any by 500"));
}

#[test]
fn a_streaming_list_that_is_closed_at_once_is_listed_without_delay() {
    let mut bench = streaming();
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.step(Input::Ended(Lane::Main)), ["report", "list any by 500"]);
}

#[test]
fn an_expired_streaming_list_asks_for_the_newest_at_once_and_then_waits() {
    let mut bench = Bench::new(ReflectorSettings::default());
    bench.machine.version = Some(Version::new("7"));
    assert_eq!(bench.step(Input::Start), ["stream from 7"]);
    assert_eq!(bench.fail(answered(410)), ["report", "stream"]);
    assert_eq!(bench.fail(answered(410)), ["report", "close"], "no loop without delay");
    assert_eq!(bench.tick(), (0.8, vec!["stream".to_owned()]));
    bench.step(Input::Opened(Lane::Main));
    bench.bookmark("9", true);
    bench.step(Input::FailureFrame(Lane::Main, answered(410)));
    assert_eq!(bench.tick().1, ["stream from 9"], "a list that worked is a place to begin from");
}

#[test]
fn a_streaming_list_that_gets_no_answer_is_given_up() {
    let mut bench = streaming();
    assert_eq!(bench.tick(), (60.0, vec!["report".to_owned(), "list any by 500".to_owned()]));
}

#[test]
fn an_unreadable_streaming_list_is_listed_instead() {
    let mut bench = streaming();
    bench.step(Input::Opened(Lane::Main));
    bench.receive(Change::Added, "a", "3");
    let words = bench.step(broken_frame());
    assert_eq!(words, ["report", "abandoned", "list any by 500"]);
    assert_eq!(bench.machine.counters.decode_errors, 1);
}

// Pagination and versions.

#[test]
fn the_first_list_takes_any_version_and_later_ones_none_older_than_ours() {
    let mut bench = paging(None);
    assert_eq!(bench.step(Input::Start), ["list any by 500"]);
    assert_eq!(bench.step(Input::Item(object("a", "3"))), ["begun", "listed a@3"]);
    assert_eq!(bench.step(page_end("10", None)), ["ended @10", "watch 10"]);
    bench.fail(answered(410));
    assert_eq!(bench.tick().1, ["list from 10"], "and all at once");
}

#[test]
fn pages_are_asked_for_until_there_are_no_more_and_the_first_ones_version_counts() {
    let mut bench = paging(Some(4));
    assert_eq!(bench.step(Input::Start), ["list any by 4"]);
    assert_eq!(bench.step(Input::Item(object("a", "3"))), ["begun", "listed a@3"]);
    assert_eq!(bench.step(page_end("10", Some("x"))), ["list after x by 4"]);
    assert_eq!(bench.step(Input::Item(object("b", "4"))), ["listed b@4"]);
    assert_eq!(bench.step(page_end("11", Some("y"))), ["list after y by 4"]);
    assert_eq!(bench.step(page_end("12", None)), ["ended @10", "watch 10"]);
    bench.fail(answered(410));
    assert_eq!(bench.tick().1, ["list from 10 by 4"], "what was set is used for every list");
}

#[test]
fn a_server_that_pages_even_its_cache_is_asked_for_pages_from_then_on() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    bench.step(page_end("10", Some("x")));
    bench.step(page_end("10", None));
    bench.fail(answered(410));
    assert_eq!(bench.tick().1, ["list from 10 by 500"]);
}

#[test]
fn only_a_list_of_any_version_says_that_the_cache_is_paged() {
    let mut bench = paging(None);
    bench.machine.version = Some(Version::new("7"));
    bench.machine.list_start = ListStart::Latest;
    assert_eq!(bench.step(Input::Start), ["list latest by 500"]);
    bench.step(page_end("10", Some("x")));
    bench.step(page_end("10", None));
    bench.fail(answered(410));
    assert_eq!(bench.tick().1, ["list from 10"]);
}

#[test]
fn a_list_whose_version_expired_asks_for_the_newest_at_once_and_only_once() {
    let mut bench = paging(None);
    bench.machine.version = Some(Version::new("7"));
    assert_eq!(bench.step(Input::Start), ["list from 7"]);
    assert_eq!(bench.fail(answered(410)), ["report", "list latest by 500"]);
    assert_eq!(bench.fail(answered(410)), ["report", "close"]);
    assert_eq!(bench.tick(), (0.8, vec!["list latest by 500".to_owned()]));
    bench.step(page_end("10", None));
    bench.fail(answered(410));
    assert_eq!(bench.tick().1, ["list from 10"]);
}

#[test]
fn a_continue_token_that_expired_makes_one_list_without_pages() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    bench.step(Input::Item(object("a", "3")));
    bench.step(page_end("10", Some("x")));
    assert_eq!(bench.fail(answered(410)), ["report", "abandoned", "list any"]);
    assert_eq!(bench.step(Input::Item(object("a", "3"))), ["begun", "listed a@3"]);
    bench.step(page_end("11", Some("y")));
    let words = bench.fail(answered(410));
    assert_eq!(words, ["report", "abandoned", "close"], "the second time it waits");
}

#[test]
fn a_version_too_large_leads_to_the_question_whether_the_server_went_back() {
    for (revision, begun) in [("8", "begun"), ("7", "begun"), ("6", "begun, went back")] {
        for streaming in [Streaming::Preferred, Streaming::Never] {
            let mut bench = Bench::new(ReflectorSettings { streaming, ..ReflectorSettings::default() });
            bench.machine.version = Some(Version::new("7"));
            bench.step(Input::Start);
            assert_eq!(bench.fail(answered(504)), ["report", "close", "ask revision"]);
            let words = bench.step(Input::Revision(Ok(server_at(revision))));
            assert_eq!(words, [if streaming == Streaming::Never { "list latest by 500" } else { "stream" }]);
            bench.step(Input::Opened(Lane::Main));
            let ended = match streaming {
                Streaming::Never => bench.step(page_end(revision, None)),
                Streaming::Preferred => bench.bookmark(revision, true),
            };
            assert_eq!(ended[..2], [begun.to_owned(), format!("ended @{revision}")]);
            assert_eq!(bench.version(), revision);
            assert_eq!(bench.relists().total(), 1);
        }
    }
}

#[test]
fn a_question_that_fails_is_asked_again_after_a_wait() {
    let mut bench = paging(None);
    bench.machine.version = Some(Version::new("7"));
    bench.step(Input::Start);
    bench.fail(answered(504));
    assert_eq!(bench.step(Input::Revision(Err(refused()))), ["report", "close beside", "close"]);
    assert_eq!(bench.tick(), (0.8, vec!["close".to_owned(), "ask revision".to_owned()]));
    let (passed, words) = bench.tick();
    assert_eq!((passed, words[0].as_str()), (60.0, "report"), "no answer is a failure too");
}

#[test]
fn a_list_that_turns_out_older_than_ours_is_begun_anew_as_what_it_is() {
    let mut bench = paging(None);
    bench.machine.version = Some(Version::new("7"));
    bench.machine.list_start = ListStart::Latest;
    bench.step(Input::Start);
    bench.step(Input::Item(object("a", "3")));
    assert_eq!(bench.step(page_end("6", None)), ["abandoned", "list latest by 500"]);
    assert_eq!(bench.step(Input::Item(object("a", "3"))), ["begun, went back", "listed a@3"]);
    assert_eq!(bench.step(page_end("6", None)), ["ended @6", "watch 6"]);
    assert_eq!((bench.version(), bench.relists().went_back), ("6".to_owned(), 1));
}

#[test]
fn failures_of_a_list_make_waits_that_grow() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    let waits: Vec<f64> = [answered(500), answered(403), refused(), cut(), answered(502), answered(429), answered(503)]
        .into_iter()
        .map(|failure| {
            assert_eq!(bench.fail(failure), ["report", "close"]);
            let (wait, words) = bench.tick();
            assert_eq!(words, ["list any by 500"]);
            wait
        })
        .collect();
    assert_eq!(waits, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0]);
}

#[test]
fn what_the_server_asks_to_wait_is_waited_within_reason() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    bench.fail(later(429, 7));
    assert!((bench.tick().0 - 7.0).abs() < 1e-9);
    bench.fail(later(503, 1));
    assert!((bench.tick().0 - 1.6).abs() < 1e-9, "never less than the backoff");
    bench.fail(later(429, 1_000_000));
    assert!((bench.tick().0 - 120.0).abs() < 1e-9);
}

#[test]
fn a_list_that_stops_in_the_middle_is_given_up() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    bench.step(Input::Opened(Lane::Main));
    bench.after(20.0).step(Input::Bytes(Lane::Main));
    bench.step(Input::Item(object("a", "3")));
    assert_eq!(bench.tick(), (30.0, ["report", "abandoned", "close"].map(str::to_owned).to_vec()));
}

#[test]
fn being_kept_waiting_downstream_is_not_the_servers_silence() {
    for mut bench in [paging(None), Bench::new(ReflectorSettings::default())] {
        bench.step(Input::Start);
        bench.step(Input::Opened(Lane::Main));
        bench.after(3_600.0).step(Input::Resumed);
        assert!(bench.step(Input::Tick).is_empty());
        assert_eq!(bench.tick().0, 30.0);
    }
}

#[test]
fn a_list_with_an_object_that_cannot_be_read_fails_and_is_tried_again() {
    let item = Input::Item(object("a", "3"));
    let event = Input::Frame(Lane::Main, Frame::Changed(Change::Added, object("a", "3")));
    let streaming = Bench::new(ReflectorSettings::default());
    for (mut bench, item, request) in [(paging(None), item, "list any by 500"), (streaming, event, "stream")] {
        bench.step(Input::Start);
        bench.step(Input::Opened(Lane::Main));
        assert_eq!(bench.step(item), ["begun", "listed a@3"]);
        assert_eq!(bench.step(bad_object()), ["report", "abandoned", "close"]);
        assert_eq!(bench.tick(), (0.8, vec![request.to_owned()]), "LIST would find the same object");
        assert_eq!(bench.machine.counters.decode_errors, 1);
    }
}

#[test]
fn a_table_is_no_list_and_a_list_without_a_version_is_of_no_use() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    let table = ListEnd { kind: Some("Table".to_owned()), ..ListEnd::default() };
    assert_eq!(bench.step(Input::PageEnded(table)), ["report", "close"]);
    bench.tick();
    assert_eq!(bench.step(page_end("", None)), ["report", "close"]);
    let ReflectorState::Waiting { cause, .. } = bench.machine.state(Instant::now()) else { panic!() };
    assert!(matches!(cause.failure(), Failure::NoVersion));
}

#[test]
fn progress_of_a_list_can_be_seen() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    bench.step(Input::Item(object("a", "3")));
    let version = Some(Version::new("9"));
    let continue_token = Some("x".to_owned());
    bench.step(Input::PageEnded(ListEnd { version, continue_token, remaining: Some(5), ..ListEnd::default() }));
    bench.step(Input::Item(object("b", "3")));
    let state = bench.machine.state(Instant::now());
    assert!(matches!(state, ReflectorState::Listing { objects: 2, remaining: Some(4) }), "{state:?}");
}

#[test]
fn what_an_aborted_list_delivered_counts_when_the_next_one_is_older() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    bench.step(Input::Item(object("a", "9")));
    assert_eq!(bench.fail(cut()), ["report", "abandoned", "close"]);
    bench.tick();
    bench.step(Input::Item(object("a", "5")));
    assert_eq!(bench.step(page_end("6", None)), ["abandoned", "list latest by 500"]);
    assert_eq!(bench.step(page_end("6", None)), ["begun, went back", "ended @6", "watch 6"]);
}

#[test]
fn objects_newer_than_their_list_do_not_pass_for_a_server_that_went_back() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    bench.step(Input::Item(object("a", "9")));
    assert_eq!(bench.step(page_end("6", None)), ["ended @6", "watch 6"]);
}

// Lists without an end.

/// A machine whose lists may contain two of the objects that [`object`] makes.
fn two_objects_at_most(streaming: Streaming) -> Bench {
    let max_list_bytes = 2 * object("a", "1").weight() as u64;
    let mut bench = Bench::new(ReflectorSettings { max_list_bytes, streaming, ..ReflectorSettings::default() });
    bench.step(Input::Start);
    bench.step(Input::Opened(Lane::Main));
    bench
}

#[test]
fn a_list_with_more_bytes_than_its_limit_fails_and_takes_back_what_it_brought() {
    for (streaming, request) in [(Streaming::Never, "list any by 500"), (Streaming::Preferred, "stream")] {
        let mut bench = two_objects_at_most(streaming);
        let receive = |bench: &mut Bench, key: &str| match streaming {
            Streaming::Never => bench.step(Input::Item(object(key, "1"))),
            Streaming::Preferred => bench.receive(Change::Added, key, "1"),
        };
        receive(&mut bench, "a");
        assert_eq!(receive(&mut bench, "b"), ["listed b@1"]);
        assert_eq!(receive(&mut bench, "c"), ["report", "dropped", "close"]);
        let MachinePhase::Waiting { cause, .. } = &bench.machine.phase else { panic!("{:?}", bench.machine.phase) };
        assert!(cause.to_string().contains("ReflectorSettings::max_list_bytes"), "{cause}");
        assert_eq!(bench.tick(), (0.8, vec![request.to_owned()]), "LIST would be as large");
        bench.step(Input::Opened(Lane::Main));
        assert_eq!(receive(&mut bench, "a"), ["begun", "listed a@1"], "each list has the whole limit");
    }
}

#[test]
fn lists_that_break_off_deliver_no_more_than_one_list_may_contain() {
    let mut bench = two_objects_at_most(Streaming::Never);
    let break_off_with = |bench: &mut Bench, keys: &[&str]| {
        for key in keys {
            bench.step(Input::Item(object(key, "1")));
        }
        let words = bench.fail(cut());
        bench.tick();
        bench.step(Input::Opened(Lane::Main));
        words
    };
    assert_eq!(break_off_with(&mut bench, &["a"]), ["report", "abandoned", "close"]);
    assert_eq!(break_off_with(&mut bench, &["b", "c"]), ["report", "dropped", "close"]);
    assert_eq!(break_off_with(&mut bench, &["d"]), ["report", "abandoned", "close"]);
    assert_eq!(break_off_with(&mut bench, &["e"]), ["report", "dropped", "close"]);
    bench.step(Input::Item(object("a", "1")));
    assert_eq!(bench.step(page_end("9", None)), ["ended @9", "watch 9"]);
    bench.fail(answered(410));
    bench.tick();
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(break_off_with(&mut bench, &["f"]), ["report", "abandoned", "close"], "a complete list starts anew");
}

#[test]
fn a_page_that_ends_with_its_own_continue_token_fails_the_list() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    for token in ["a", "b"] {
        bench.step(Input::Opened(Lane::Main));
        assert!(!bench.step(page_end("9", Some(token))).contains(&"report".to_owned()));
    }
    bench.step(Input::Opened(Lane::Main));
    assert_eq!(bench.step(page_end("9", Some("b"))), ["report", "close"]);
    assert_eq!(bench.tick(), (0.8, vec!["list any by 500".to_owned()]));
}

#[test]
fn a_page_that_arrives_for_ever_is_given_up() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    bench.step(Input::Opened(Lane::Main));
    let mut words = Vec::new();
    while words.is_empty() {
        assert!(bench.now <= Duration::from_secs(600), "{:?}", bench.now);
        let due = bench.machine.due().unwrap();
        bench.now = due.min(bench.now + Duration::from_secs(29));
        words = if bench.now == due { bench.step(Input::Tick) } else { bench.step(Input::Bytes(Lane::Main)) };
    }
    assert_eq!((bench.now.as_secs(), words), (600, vec!["report".to_owned(), "close".to_owned()]));
    let MachinePhase::Waiting { cause, .. } = &bench.machine.phase else { panic!("{:?}", bench.machine.phase) };
    assert!(cause.to_string().contains("ReflectorSettings::list_timeout"), "{cause}");
}

#[test]
fn a_streaming_list_that_goes_on_for_ever_is_given_up_for_list() {
    let mut bench = streaming();
    bench.step(Input::Opened(Lane::Main));
    for nth in 0..599 {
        bench.after(1.0).receive(Change::Added, &format!("m{nth}"), "3");
    }
    assert_eq!(bench.tick(), (1.0, ["report", "abandoned", "list any by 500"].map(ToOwned::to_owned).to_vec()));
}

#[test]
fn a_version_that_no_server_takes_is_given_up_for_the_latest() {
    for refusal in [answered(400), error(Failure::Request("too long".into()))] {
        let mut bench = Bench::watching_from("rubbish");
        bench.step(Input::Ended(Lane::Main));
        bench.tick();
        assert_eq!(bench.fail(refusal.clone()), ["report", "close"]);
        assert_eq!(bench.tick().1, ["list from rubbish"]);
        assert_eq!(bench.fail(refusal.clone()), ["report", "list latest by 500"]);
        assert_eq!(bench.fail(refusal), ["report", "close"], "and no more often than with backoff");
    }
}

#[test]
fn empty_pages_without_end_are_given_up() {
    let mut bench = paging(None);
    bench.step(Input::Start);
    let mut words = Vec::new();
    for nth in 0.. {
        bench.after(1.0).step(Input::Opened(Lane::Main));
        words = bench.step(page_end("9", Some(&nth.to_string())));
        if bench.machine.due().unwrap() <= bench.now {
            break;
        }
        assert!(nth < 600);
    }
    assert_eq!((bench.now.as_secs(), words), (600, vec!["list after 599 by 500".to_owned()]));
    assert_eq!(bench.tick(), (0.0, vec!["report".to_owned(), "close".to_owned()]));
}
