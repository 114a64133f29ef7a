//! Probes and metrics, over sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube_controller::Manager;
use kube_controller::manager::{InformerMetrics, RequestMetrics};
use kube_controller::recorder::Recorder;
use kube_embedded::faults::{Fault, Rule};
use kube_informer::Factory;
use kube_informer::informer::WhenRefused;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::{candidate, client, server};

async fn ask(address: SocketAddr, method: &str, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Asks on a connection that is kept alive, and reads the response.
async fn ask_again(stream: &mut TcpStream) {
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
    let (mut response, mut bytes) = (Vec::new(), [0; 1024]);
    while !response.ends_with(b"check passed\n") {
        let read = stream.read(&mut bytes).await.unwrap();
        assert_ne!(read, 0, "the connection is closed");
        response.extend_from_slice(&bytes[..read]);
    }
}

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    ask(address, "GET", path).await
}

/// Asks again until a probe answers so.
async fn until(address: SocketAddr, path: &str, code: u16) -> String {
    loop {
        let (answered, body) = get(address, path).await;
        if answered == code {
            return body;
        }
        tokio::task::yield_now().await;
    }
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[tokio::test]
async fn readiness_names_what_is_missing_until_the_caches_are_full_and_again_at_the_end() {
    let server = server().await;
    let refused = server.faults().inject(Rule::new(Fault::status(403)).resource("", "configmaps"));
    let factory =
        Factory::builder(client(&server)).defaults(|all| all.when_refused(WhenRefused::Wait)).build().unwrap();
    let _maps = factory.informer::<ConfigMap>();
    let (listener, address) = listener().await;
    let is_open = Arc::new(AtomicBool::new(false));
    let (door, (asked, is_asked), (go, going)) = (Arc::clone(&is_open), oneshot::channel(), oneshot::channel());
    let manager = Manager::builder(&factory)
        .task("slow", |_, stop| async move {
            stop.requested().await;
            asked.send(()).ok();
            going.await?;
            Ok(())
        })
        .ready_check("door", move || if door.load(Ordering::Relaxed) { Ok(()) } else { Err("closed".to_owned()) })
        .serve(listener)
        .build()
        .unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run_until(async { stopped.await.unwrap_or_default() }));
    let body = until(address, "/readyz", 503).await;
    assert!(body.contains("[-]manager failed: starting\n[-]cache failed: configmaps: "), "{body}");
    assert!(body.ends_with("[-]door failed: closed\ncheck failed\n"), "{body}");
    assert_eq!(get(address, "/healthz").await, (200, "[+]ping ok\ncheck passed\n".to_owned()));
    refused.remove();
    is_open.store(true, Ordering::Relaxed);
    assert_eq!(until(address, "/readyz", 200).await, "[+]manager ok\n[+]door ok\ncheck passed\n");
    stop.send(()).unwrap();
    is_asked.await.unwrap();
    let (code, body) = get(address, "/readyz").await;
    assert_eq!((code, body.lines().next()), (503, Some("[-]manager failed: shutting down")));
    go.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn the_lease_counts_as_held_while_the_manager_stops() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let (listener, address) = listener().await;
    let ((asked, is_asked), (go, going)) = (oneshot::channel(), oneshot::channel());
    let manager = Manager::builder(&factory)
        .task("slow", |_, stop| async move {
            stop.requested().await;
            asked.send(()).ok();
            going.await?;
            Ok(())
        })
        .leader_election(candidate(&server, "me"))
        .serve(listener)
        .build()
        .unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run_until(async { stopped.await.unwrap_or_default() }));
    let held = r#"leader_election_master_status{name="lease"} 1"#;
    while !get(address, "/metrics").await.1.contains(held) {
        tokio::task::yield_now().await;
    }
    stop.send(()).unwrap();
    is_asked.await.unwrap();
    let page = get(address, "/metrics").await.1;
    assert!(page.contains(held), "{page}");
    go.send(()).unwrap();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn metrics_have_the_names_that_dashboards_expect() {
    let server = server().await;
    let metrics = InformerMetrics::default();
    let collected = metrics.clone();
    let requests = RequestMetrics::default();
    let counted = requests.counted(client(&server));
    let factory = Factory::builder(counted).defaults(|all| all.metrics(collected)).build().unwrap();
    let _maps = factory.informer::<ConfigMap>();
    let (listener, address) = listener().await;
    let (leads, is_leading) = oneshot::channel();
    let manager = Manager::builder(&factory)
        .task("task", |_, stop| async move {
            leads.send(()).ok();
            stop.requested().await;
            Ok(())
        })
        .leader_election(candidate(&server, "me"))
        .recorder(&Recorder::new("test"))
        .informer_metrics(&metrics)
        .request_metrics(&requests)
        .extra_metrics(|| "# TYPE mine counter\nmine 1\n".to_owned())
        .serve(listener)
        .build()
        .unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run_until(async { stopped.await.unwrap_or_default() }));
    is_leading.await.unwrap();
    let (code, page) = get(address, "/metrics").await;
    assert_eq!(code, 200);
    for line in [
        r#"leader_election_master_status{name="lease"} 1"#,
        r#"kube_controller_events_recorded_total{controller="test"} 0"#,
        "# TYPE controller_runtime_reconcile_total counter",
        "# TYPE controller_runtime_reconcile_time_seconds histogram",
        "# TYPE workqueue_depth gauge",
        r#"rest_client_requests_total{code="200",method="GET"} 1"#,
        "mine 1",
    ] {
        assert!(page.lines().any(|other| other == line), "{line} is not in:\n{page}");
    }
    assert!(page.contains(r#"resource="configmaps""#), "{page}");
    check_format(&page);
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}

/// Each metric is declared once, before its samples, which end in a number.
pub(crate) fn check_format(page: &str) {
    let mut declared = std::collections::BTreeSet::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(declared.insert(name.to_owned()), "twice: {line}");
        } else if !line.starts_with('#') {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
            let name = sample.split('{').next().unwrap();
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            assert!(declared.contains(name) || declared.contains(base), "not declared: {line}");
        }
    }
}

#[tokio::test]
async fn other_requests_are_refused_and_connections_are_limited() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let (listener, address) = listener().await;
    let manager = Manager::builder(&factory).serve(listener).build().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(manager.run_until(async { stopped.await.unwrap_or_default() }));
    assert_eq!(get(address, "/").await, (404, "there are /healthz, /readyz and /metrics\n".to_owned()));
    assert_eq!(ask(address, "POST", "/metrics").await.0, 405);
    assert_eq!(ask(address, "HEAD", "/healthz").await, (200, String::new()));
    let long = format!("/healthz?{}", "a".repeat(40_000));
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("GET {long} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes()).await.unwrap();
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await.ok();
    assert!(!String::from_utf8_lossy(&response).starts_with("HTTP/1.1 200"));
    // 64 that are kept alive, and one that has to wait for one of them to go.
    let mut open = Vec::new();
    for _ in 0..64 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        ask_again(&mut stream).await;
        open.push(stream);
    }
    let code = tokio::spawn(async move { get(address, "/healthz").await.0 });
    for stream in &mut open {
        ask_again(stream).await;
    }
    assert!(!code.is_finished());
    drop(open.pop());
    assert_eq!(code.await.unwrap(), 200);
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
}
