//! What a hostile server can do to memory and time: under each row of `docs/hostile-server.md` the
//! heap stays below its bound, and the informer recovers once the server behaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::{ObjectKey, Version};

use crate::hostile_server::{bookmark, list};
use crate::trial::{
    ONE_OBJECT, SMALL, TOO_LONG, Trial, gzip, hasty, new_map, next, on_lists, on_watches, run, settings,
};

#[test]
fn an_endless_frame_is_cut_off_at_the_longest_object() {
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            exchange.send(r#"{"type":"ADDED","object":{"metadata":{"name":""#).await?;
            exchange.repeat(vec![b'a'; 1 << 16]).await
        })
        .await;
        trial.reports(TOO_LONG).await;
        trial.recovers(ONE_OBJECT).await;
    });
}

#[test]
fn an_endless_list_item_is_cut_off_at_the_longest_object() {
    on_lists(settings(), TOO_LONG, ONE_OBJECT, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(r#"{"items":[{"metadata":{"name":""#).await?;
        exchange.repeat(vec![b'a'; 1 << 16]).await
    });
}

#[test]
fn a_gzip_bomb_is_cut_off_at_the_longest_object() {
    let bomb = Arc::new(gzip(&[b'a'; 8 << 20]));
    on_lists(settings(), TOO_LONG, ONE_OBJECT, move |mut exchange| {
        let bomb = Arc::clone(&bomb);
        async move {
            exchange.begin("Content-Type: application/json\r\nContent-Encoding: gzip").await?;
            exchange.send(gzip(br#"{"items":[{"metadata":{"name":""#)).await?;
            exchange.repeat(&bomb[..]).await
        }
    });
}

#[test]
fn lists_of_ever_new_objects_end_at_the_limit_of_a_list_however_often() {
    for streaming in [Streaming::Never, Streaming::Preferred] {
        run(async {
            let trial = Trial::begin(ReflectorSettings { streaming, ..settings() }, |mut exchange| async move {
                exchange.json().await?;
                if exchange.is_streaming_list() {
                    let frame = || format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", new_map());
                    return exchange.generate(|_| (0..20).map(|_| frame()).collect::<String>().into_bytes()).await;
                }
                exchange.send(r#"{"kind":"ConfigMapList","apiVersion":"v1","items":["#).await?;
                exchange.generate(|_| (0..20).map(|_| new_map() + ",").collect::<String>().into_bytes()).await
            })
            .await;
            trial.reports("ReflectorSettings::max_list_bytes").await;
            trial.server.attacked(12).await;
            trial.recovers(2 * SMALL).await;
        });
    }
}

#[test]
fn watches_that_add_objects_without_end_end_at_their_limit_however_often() {
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            let frame = || format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", new_map());
            exchange.generate(|_| (0..20).map(|_| frame()).collect::<String>().into_bytes()).await
        })
        .await;
        trial.reports("ReflectorSettings::max_watch_bytes").await;
        trial.server.attacked(40).await;
        trial.recovers(2 * SMALL).await;
    });
}

#[test]
fn pages_without_end_end_at_the_limit_of_a_list() {
    on_lists(settings(), "ReflectorSettings::max_list_bytes", 2 * SMALL, |mut exchange| async move {
        let items: Vec<String> = (0..200).map(|_| new_map()).collect();
        exchange.json().await?;
        exchange.send(list("10", &format!(r#","continue":"{}""#, next()), &items.join(","))).await?;
        exchange.end().await
    });
}

#[test]
fn a_page_that_repeats_its_continue_token_ends_the_list() {
    on_lists(settings(), "continue token", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(list("10", r#","continue":"again""#, &new_map())).await?;
        exchange.end().await
    });
}

#[test]
fn empty_pages_without_end_end_at_the_time_limit_of_a_list() {
    on_lists(hasty(), "ReflectorSettings::list_timeout", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(list("10", &format!(r#","continue":"{}""#, next()), "")).await?;
        exchange.end().await
    });
}

#[test]
fn a_body_without_end_ends_at_the_time_limit_of_a_list() {
    for beginning in ["", r#"{"unknown":""#] {
        on_lists(hasty(), "ReflectorSettings::list_timeout", SMALL, move |mut exchange| async move {
            exchange.json().await?;
            exchange.send(beginning.to_owned() + " ").await?;
            exchange.repeat(vec![b' '; 1 << 16]).await
        });
    }
}

#[test]
fn a_gzip_bomb_of_nothing_ends_at_the_time_limit_of_a_list() {
    let bomb = Arc::new(gzip(&[b' '; 8 << 20]));
    on_lists(hasty(), "ReflectorSettings::list_timeout", SMALL, move |mut exchange| {
        let bomb = Arc::clone(&bomb);
        async move {
            exchange.begin("Content-Type: application/json\r\nContent-Encoding: gzip").await?;
            exchange.repeat(&bomb[..]).await
        }
    });
}

#[test]
fn a_list_byte_by_byte_ends_at_its_time_limit() {
    on_lists(hasty(), "ReflectorSettings::list_timeout", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(r#"{"items":[{"metadata":{"name":""#).await?;
        exchange.repeat("a").await
    });
}

#[test]
fn a_watch_byte_by_byte_ends_at_its_time_limit() {
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            exchange.repeat(" ").await
        })
        .await;
        let watches = || trial.server.queries().iter().filter(|query| query.contains("watch=true")).count();
        while watches() < 3 {
            trial.server.attacked(trial.server.queries().len() + 1).await;
        }
        trial.recovers(SMALL).await;
    });
}

#[test]
fn nesting_without_end_is_refused() {
    on_lists(settings(), "nested too deep", SMALL, |mut exchange| async move {
        exchange.json().await?;
        exchange.send(r#"{"items":[{"metadata":{"name":"deep"},"data":"#).await?;
        exchange.repeat(vec![b'['; 1 << 16]).await
    });
    run(async {
        let trial = on_watches(|mut exchange| async move {
            let deep = "[".repeat(1 << 20);
            exchange.json().await?;
            exchange.send(format!("{{\"type\":\"ADDED\",\"object\":{{\"data\":{deep}}}}}\n")).await?;
            exchange.hang().await
        })
        .await;
        trial.reports("cannot be read").await;
        trial.recovers(SMALL).await;
    });
}

#[test]
fn nesting_that_is_just_allowed_fails_only_the_reader_of_that_object() {
    run(async {
        let trial = Trial::begin(settings(), |mut exchange| async move {
            exchange.json().await?;
            if exchange.is_watch() {
                return exchange.hang().await;
            }
            let nested = "[".repeat(9_000) + &"]".repeat(9_000);
            let deep = format!(
                r#"{{"metadata":{{"name":"deep","namespace":"default","resourceVersion":"9"}},"data":{nested}}}"#
            );
            exchange.send(list("10", "", &deep)).await?;
            exchange.end().await
        })
        .await;
        trial.maps.synced().await.unwrap();
        let deep = trial.maps.lister().get(&ObjectKey::namespaced("default", "deep")).unwrap();
        assert!(deep.get().is_err());
        trial.recovers(SMALL).await;
    });
}

/// How many label sets, owners, namespaces and names come and go; a million by hand.
fn many() -> u64 {
    std::env::var("KUBE_INFORMER_MANY").ok().and_then(|many| many.parse().ok()).unwrap_or(20_000)
}

/// Sends frames, a hundred at a time, until the informer has received [`many`].
fn receives_many(frame: impl Fn(u64) -> String + Copy + Send + Sync + 'static) {
    run(async {
        let sent = Arc::new(AtomicU64::new(0));
        let trial = on_watches(move |mut exchange| {
            let sent = Arc::clone(&sent);
            async move {
                exchange.json().await?;
                let frames = |_| (0..100).map(|_| frame(sent.fetch_add(1, Ordering::Relaxed))).collect::<String>();
                exchange.generate(|nth| frames(nth).into_bytes()).await
            }
        })
        .await;
        trial.maps.wait_for(Version::from(2_000 + many())).await.unwrap();
        trial.recovers(2 * SMALL).await;
    });
}

#[test]
fn label_sets_and_owners_without_end_are_forgotten() {
    receives_many(|nth| {
        let (name, version) = (nth % 100, 2_000 + nth);
        let labels = format!(r#""labels":{{"key-{nth}":"value-{nth}"}}"#);
        let owners = format!(r#""ownerReferences":[{{"apiVersion":"v1","kind":"Pod","name":"p{nth}","uid":"{nth}"}}]"#);
        let metadata = format!(
            r#""name":"m{name}","namespace":"default","uid":"{name}","resourceVersion":"{version}",{labels},{owners}"#
        );
        format!(
            "{{\"type\":\"MODIFIED\",\"object\":{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{{metadata}}}}}}}\n"
        )
    });
}

#[test]
fn namespaces_and_names_that_come_and_go_without_end_are_forgotten() {
    receives_many(|nth| {
        let (change, object, version) = (["ADDED", "DELETED"][nth as usize % 2], nth / 2, 2_000 + nth);
        let metadata =
            format!(r#""name":"m{object}","namespace":"n{object}","uid":"{object}","resourceVersion":"{version}""#);
        format!(
            "{{\"type\":\"{change}\",\"object\":{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{{metadata}}}}}}}\n"
        )
    });
}

#[test]
fn a_watch_that_is_silent_although_the_server_has_changed_is_replaced() {
    run(async {
        let trial = on_watches(|mut exchange| async move {
            exchange.json().await?;
            exchange.hang().await
        })
        .await;
        trial.maps.synced().await.unwrap();
        trial.server.attacked(3).await;
        trial.recovers(SMALL).await;
    });
}

#[test]
fn watches_that_close_at_once_are_opened_seldom_whether_they_deliver_or_not() {
    for delivers in [true, false] {
        run(async {
            let begun = Instant::now();
            let trial = on_watches(move |mut exchange| async move {
                exchange.json().await?;
                if delivers {
                    exchange.send(bookmark(&next().to_string(), "")).await?;
                }
                exchange.end().await
            })
            .await;
            trial.reports("closed at once").await;
            trial.server.attacked(20).await;
            let watches = trial.server.queries().iter().filter(|query| query.contains("watch=true")).count();
            let least = if delivers { settings().short_watch } else { Duration::ZERO };
            assert!(begun.elapsed() >= least * u32::try_from(watches - 3).unwrap(), "{watches} watches");
            trial.recovers(SMALL).await;
        });
    }
}

#[test]
fn the_same_object_without_end_is_one_object_and_ends_at_the_limit_of_a_list() {
    on_lists(settings(), "ReflectorSettings::max_list_bytes", SMALL, |mut exchange| async move {
        let map = new_map() + ",";
        exchange.json().await?;
        exchange.send(r#"{"kind":"ConfigMapList","apiVersion":"v1","items":["#).await?;
        exchange.repeat(map.repeat(20)).await
    });
}
