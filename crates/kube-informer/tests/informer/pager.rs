//! Paginated lists.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::time::Duration;

use crate::support::{client, put, server};
use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::faults::{Fault, Rule};
use kube_embedded::{Server, Verb};
use kube_informer::client::{ApiListWatch, Failure, ListVersion};
use kube_informer::one_shot::Pager;

async fn server_with(maps: usize) -> Server {
    let server = server().await;
    for nth in 0..maps {
        put(&server, "default", &format!("map-{nth:02}"), "1");
    }
    server.forget_requests();
    server
}

fn pager(server: &Server) -> Pager<ConfigMap> {
    Pager::new(ApiListWatch::of::<ConfigMap>(client(server)))
}

fn queries(server: &Server) -> Vec<String> {
    let without_token = |query: String| {
        let parts = query.split('&').map(|part| if part.starts_with("continue=") { "continue" } else { part });
        parts.collect::<Vec<_>>().join("&")
    };
    server.requests().into_iter().map(|seen| without_token(seen.query)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_comes_page_by_page_and_is_of_one_version() {
    let server = server_with(7).await;
    let list = pager(&server).page_size(3).list().await.unwrap();
    let names: Vec<&str> = list.objects.iter().map(kube_informer::Obj::name).collect();
    assert_eq!(names, ["map-00", "map-01", "map-02", "map-03", "map-04", "map-05", "map-06"]);
    assert_eq!(list.version.number(), Some(server.revision()));
    assert_eq!(queries(&server), ["limit=3", "limit=3&continue", "limit=3&continue"]);
}

#[tokio::test(start_paused = true)]
async fn five_hundred_objects_of_the_newest_version_make_a_page_by_default() {
    let server = server_with(2).await;
    pager(&server).list().await.unwrap();
    pager(&server).version(ListVersion::Any).list().await.unwrap();
    assert_eq!(queries(&server), ["limit=500", "limit=500&resourceVersion=0"]);
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_pages_expire_is_asked_for_at_once_and_has_nothing_twice() {
    let server = server_with(7).await;
    server.faults().inject(Rule::new(Fault::GoneAtOpen).verb(Verb::List).query_given("continue").after(1).once());
    let list = pager(&server).page_size(3).list().await.unwrap();
    assert_eq!(list.objects.len(), 7);
    assert_eq!(queries(&server), ["limit=3", "limit=3&continue", "limit=3&continue", ""]);
}

#[tokio::test(start_paused = true)]
async fn a_first_page_that_expired_is_an_error_and_not_asked_for_again() {
    let server = server_with(7).await;
    server.faults().inject(Rule::new(Fault::GoneAtOpen).verb(Verb::List));
    let error = pager(&server).page_size(3).list().await.unwrap_err();
    assert!(error.is_expired());
    assert_eq!(server.request_count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_asks_for_a_page_only_when_the_one_before_is_taken() {
    let server = server_with(7).await;
    let mut objects = pager(&server).page_size(3).stream();
    assert_eq!(server.request_count(), 0);
    for taken in 1..=7_u64 {
        objects.try_next().await.unwrap().unwrap();
        assert_eq!(server.request_count(), taken.div_ceil(3));
    }
    assert!(objects.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_stream_whose_pages_expire_ends_with_that_error() {
    let server = server_with(7).await;
    server.faults().inject(Rule::new(Fault::GoneAtOpen).verb(Verb::List).query_given("continue"));
    let objects: Vec<_> = pager(&server).page_size(3).stream().collect().await;
    assert_eq!(objects.len(), 4);
    assert!(objects[..3].iter().all(Result::is_ok));
    assert!(objects[3].as_ref().unwrap_err().is_expired());
}

#[tokio::test(start_paused = true)]
async fn reading_ahead_fetches_up_to_its_bound_and_no_further() {
    let server = server_with(10).await;
    let mut objects = pager(&server).page_size(2).read_ahead(3).stream();
    let first = objects.try_next().await.unwrap().unwrap();
    assert_eq!(first.name(), "map-00");
    // One object is taken, three are buffered and one waits for space: the third page.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(server.request_count(), 3);
    let rest: Vec<_> = objects.try_collect().await.unwrap();
    assert_eq!(rest.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_dropped_fetches_no_more() {
    let server = server_with(10).await;
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    let mut objects = pager(&server).page_size(2).read_ahead(3).stream();
    objects.try_next().await.unwrap();
    drop(objects);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(tasks.num_alive_tasks(), before);
    assert!(server.request_count() < 5);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_not_waited_for_for_ever() {
    let server = server_with(3).await;
    server.faults().inject(Rule::new(Fault::StallAfterBytes(700)).verb(Verb::List));
    let error = pager(&server).list().await.unwrap_err();
    assert!(matches!(error.failure(), Failure::TimedOut { .. }), "{error}");
    assert_eq!(error.to_string(), "listing ConfigMap: nothing came for 30s");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_returned_with_the_servers_message() {
    let server = server_with(3).await;
    server.faults().inject(Rule::new(Fault::status(403)).verb(Verb::List));
    assert!(pager(&server).list().await.unwrap_err().is_forbidden());
    let streamed: Vec<_> = pager(&server).stream().collect().await;
    assert!(streamed[0].as_ref().unwrap_err().is_forbidden());
    assert_eq!(streamed.len(), 1);
}
