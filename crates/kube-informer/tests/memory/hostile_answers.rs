//! Answers that no server should send: other formats, silence, rubbish, errors without end.

use std::time::Duration;

use kube_informer::Factory;
use tokio::net::TcpListener;

use crate::held;
use crate::hostile_server::{Exchange, HostileServer, list};
use crate::trial::{ONE_OBJECT, SMALL, TOO_LONG, Trial, client, next, on_lists, on_watches, run, settings};

#[test]
fn an_answer_of_another_type_is_an_error_that_names_it() {
    for content_type in ["text/html", "application/octet-stream", "image/png"] {
        on_lists(settings(), content_type, SMALL, move |mut exchange| async move {
            exchange.begin(&format!("Content-Type: {content_type}")).await?;
            exchange.repeat(vec![b'a'; 1 << 16]).await
        });
    }
    on_lists(settings(), "gzip", SMALL, |mut exchange| async move {
        exchange.begin("Content-Type: application/json\r\nContent-Encoding: br").await?;
        exchange.repeat(vec![b'a'; 1 << 16]).await
    });
}

#[test]
fn a_redirect_is_an_error_and_not_followed() {
    run(async {
        let elsewhere = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = elsewhere.local_addr().unwrap();
        let trial = Trial::begin(settings(), move |mut exchange| async move {
            let head = format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://{address}/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            exchange.raw(head).await
        })
        .await;
        trial.reports("307").await;
        trial.recovers(SMALL).await;
        let followed = tokio::time::timeout(Duration::ZERO, elsewhere.accept()).await;
        assert!(followed.is_err(), "{followed:?}");
    });
}

#[test]
fn a_response_head_without_end_is_an_error() {
    on_lists(settings(), "no connection", SMALL, |mut exchange| async move {
        exchange.raw("HTTP/1.1 200 OK\r\n").await?;
        loop {
            exchange.raw("Header: value\r\n").await?;
        }
    });
}

#[test]
fn a_connection_without_an_answer_is_given_up() {
    on_lists(settings(), "nothing came for", SMALL, Exchange::hang);
}

#[test]
fn a_list_that_stops_in_the_middle_is_given_up() {
    on_lists(settings(), "nothing came for", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(r#"{"items":["#).await?;
        exchange.hang().await
    });
}

#[test]
fn undecodable_frames_are_reported_and_corrected_by_the_next_list() {
    const RUBBISH: [&[u8]; 16] = [
        br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"rubbish"}}}"#,
        br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"99999999999999999999"}}}"#,
        br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":""}}}"#,
        br#"{"type":"BOOKMARK","object":{}}"#,
        br#"{"type":"ADDED","object":{}}"#,
        br#"{"type":"ADDED","object":{"metadata":null}}"#,
        br#"{"type":"ADDED","object":{"metadata":{"name":7}}}"#,
        br#"{"type":"ADDED","object":{"metadata":{"name":"no-version","namespace":"default"}}}"#,
        br#"{"type":"ADDED","type":"DELETED","object":{"metadata":{"name":"a"}},"object":{"metadata":{"name":"b"}}}"#,
        br#"{"type":"DELETED","object":{"metadata":{"name":"a","name":"b","resourceVersion":"1","resourceVersion":"x"}}}"#,
        br#"{"type":"ADDED"}"#,
        br#"{"type":"UNKNOWN","object":{}}"#,
        br#"{"type":"ERROR","object":"text"}"#,
        b"{}",
        b"[null]",
        b"\xff\xfe",
    ];
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            let rubbish = RUBBISH[next() as usize % RUBBISH.len()];
            exchange.send([rubbish, b"\n"].concat()).await?;
            exchange.end().await
        })
        .await;
        trial.reports("cannot be read").await;
        let watches = || trial.server.queries().iter().filter(|query| query.contains("watch=true")).count();
        while watches() < 3 * RUBBISH.len() {
            trial.server.attacked(trial.server.queries().len() + 1).await;
        }
        let queries = trial.server.queries();
        assert!(queries.iter().all(|query| !query.contains("rubbish")), "{queries:?}");
        trial.recovers(SMALL).await;
    });
}

#[test]
fn a_list_version_that_no_server_accepts_is_given_up() {
    for version in ["rubbish".to_owned(), "9".repeat(100_000)] {
        run(async {
            let trial = Trial::begin(settings(), move |mut exchange| {
                let version = version.clone();
                async move {
                    let is_first = !exchange.query().contains("resourceVersion=r") && !exchange.query().contains("=99");
                    if is_first && !exchange.is_watch() {
                        exchange.json().await?;
                        exchange.send(list(&version, "", "")).await?;
                        return exchange.end().await;
                    }
                    exchange.raw("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await
                }
            })
            .await;
            trial.maps.synced().await.unwrap();
            trial.server.attacked(3).await;
            trial.recovers(SMALL).await;
        });
    }
}

#[test]
fn errors_as_long_as_an_object_are_shortened() {
    on_lists(settings(), "500", SMALL, |mut exchange| async move {
        exchange.raw("HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n").await?;
        exchange.repeat(vec![b'a'; 1 << 16]).await
    });
    run(async {
        let trial = on_watches(|mut exchange| async move {
            let long = "a".repeat(1 << 20);
            exchange.json().await?;
            let status = format!(r#"{{"kind":"Status","code":500,"reason":"{long}","message":"{long}"}}"#);
            exchange.send(format!("{{\"type\":\"ERROR\",\"object\":{status}}}\n")).await?;
            exchange.end().await
        })
        .await;
        trial.reports("aaa…").await;
        trial.recovers(2 * SMALL).await;
    });
}

#[test]
fn a_discovery_document_without_end_is_an_error_that_names_the_limit() {
    run(async {
        let server = HostileServer::start(held, |mut exchange| async move {
            exchange.json().await?;
            exchange.repeat(vec![b' '; 1 << 16]).await
        })
        .await;
        let before = held();
        let error = Factory::new(client(&server)).resources().await.unwrap_err();
        assert!(error.to_string().contains(TOO_LONG), "{error}");
        assert!(server.peak() - before < ONE_OBJECT);
    });
}
