//! Handlers that panic, and objects that run code of the user when they are dropped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube_informer::pipeline::Backlog;
use kube_informer::{Informer, Kind};
use tokio::sync::Notify;
use tracing::Level;

use crate::handlers::informer;
use crate::support::logs::Logs;
use crate::support::{client, key, put, remove, server};

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_handler_is_logged_with_the_kind_and_the_key() {
    let logs = Logs::record();
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = informer(&server);
    let sync = maps.on_event(|event| panic!("this test panics at {}", event.key()));
    let asynchronous = maps.handler().on_event_async(async |event| panic!("this test panics at {}", event.key()));
    let filtered = maps.handler().filter(|map| panic!("this test panics at {}", map.key())).on_event(drop);
    maps.start();
    sync.synced().await.unwrap();
    asynchronous.synced().await.unwrap();
    filtered.synced().await.unwrap();
    let mut lines = logs.take(Level::ERROR);
    lines.sort();
    let object = r#"kind="ConfigMap" key=default/a"#;
    let handler = format!("ERROR message=a handler panicked; it goes on with the next event {object}");
    let filter = format!("ERROR message=the filter of a handler panicked {object}");
    assert_eq!(lines, [handler.clone(), handler, filter]);
}

/// Called when a [`Nosy`] is dropped.
static PEEK: OnceLock<Box<dyn Fn() + Send + Sync>> = OnceLock::new();

/// A type of the user that runs code when it is dropped.
#[derive(serde::Deserialize)]
struct Nosy {}

impl Drop for Nosy {
    fn drop(&mut self) {
        if let Some(peek) = PEEK.get() {
            peek();
        }
    }
}

impl Kind for Nosy {
    fn resource() -> kube::core::ApiResource {
        ConfigMap::resource()
    }
}

#[test]
fn an_object_that_is_dropped_may_use_the_handler_whose_queue_dropped_it() {
    let (done, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let server = server().await;
            put(&server, "default", "a", "1");
            let maps = Informer::<Nosy>::builder(client(&server)).build();
            let gate = Arc::new(Notify::new());
            let opens = Arc::clone(&gate);
            let handler = maps.handler().backlog(Backlog::Latest).on_event_async(move |event| {
                let gate = Arc::clone(&gate);
                event.object().get().unwrap();
                async move {
                    gate.notified().await;
                    drop(event);
                }
            });
            let handler = Arc::new(handler);
            let (peeks, peeked) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&handler));
            let count = Arc::clone(&peeks);
            PEEK.get_or_init(|| {
                Box::new(move || {
                    let _backlog = peeked.backlog();
                    count.fetch_add(1, Ordering::Relaxed);
                })
            });
            maps.start();
            maps.synced().await.unwrap();
            for value in 2..20 {
                maps.wait_for(put(&server, "default", "a", &value.to_string())).await.unwrap();
            }
            remove(&server, "default", "a");
            maps.wait_until(key("default", "a"), |map| map.is_none()).await.unwrap();
            // The first state, which only the queue holds as the last one delivered.
            assert_eq!(peeks.load(Ordering::Relaxed), 0);
            opens.notify_one();
            while peeks.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            done.send(()).unwrap();
        });
    });
    waits.recv_timeout(Duration::from_secs(120)).expect("neither a deadlock nor a panic");
}
