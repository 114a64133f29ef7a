//! Attempts: results, retries, timeouts, panics and their history.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube_controller::reconcile::AttemptResult;
use kube_controller::{Error, Outcome};
use kube_informer::workqueue::RateLimit;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::support::{Reports, Running, builder, client, deployment, key, scale, server};

#[tokio::test(start_paused = true)]
async fn each_result_leads_to_its_retry_and_is_counted() {
    let (server, reports) = (server().await, Reports::new());
    for name in ["done", "after", "fails", "terminal", "panics", "hangs", "requeue"] {
        server.create(&deployment(name)).unwrap();
    }
    let (factory, mut builder) = builder(client(&server));
    builder
        .timeout(Duration::from_secs(3))
        .rate_limit(RateLimit::exponential(Duration::from_secs(10), Duration::from_secs(10)));
    let reporter = reports.clone();
    let running = Running::start(builder.reconcile(move |context, _| {
        let reporter = reporter.clone();
        async move {
            reporter.report(context.key().name());
            match context.key().name() {
                "after" => Ok(Outcome::After(Duration::from_secs(7))),
                "requeue" => Ok(Outcome::Requeue),
                "fails" => Err(Error::new("no luck")),
                "terminal" => Err(Error::terminal("hopeless")),
                "panics" => panic!("oh no"),
                "hangs" => std::future::pending().await,
                _ => Ok(Outcome::Done),
            }
        }
    }));
    let mut counts = HashMap::<String, usize>::new();
    for name in reports.within(Duration::from_secs(19)).await {
        *counts.entry(name).or_default() += 1;
    }
    let expected =
        [("done", 1), ("after", 3), ("fails", 2), ("terminal", 1), ("panics", 2), ("hangs", 2), ("requeue", 2)];
    assert_eq!(counts, expected.map(|(name, count)| (name.to_owned(), count)).into());

    let figures = running.monitor.figures();
    assert_eq!((figures.attempts.success, figures.attempts.requeue_after, figures.attempts.requeue), (1, 3, 2));
    assert_eq!((figures.attempts.error, figures.terminal_errors, figures.panics, figures.timeouts), (7, 1, 2, 2));
    assert_eq!((figures.active, figures.durations.count()), (0, 13));

    let results =
        |name| running.monitor.history(&key(name)).into_iter().map(|attempt| attempt.result).collect::<Vec<_>>();
    assert_eq!(results("fails"), [AttemptResult::Failed("no luck".into()), AttemptResult::Failed("no luck".into())]);
    assert_eq!(results("terminal"), [AttemptResult::Terminal("hopeless".into())]);
    assert_eq!(results("panics")[0], AttemptResult::Panicked("oh no".into()));
    assert_eq!(results("hangs")[0], AttemptResult::TimedOut);
    assert_eq!(running.monitor.history(&key("hangs"))[0].took, Duration::from_secs(3));

    // A change of the object helps where backoff does not.
    scale(&server, "terminal", 2);
    assert!(reports.within(Duration::from_secs(1)).await.contains(&"terminal".to_owned()));
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_has_one_worker_at_a_time_and_objects_have_many() {
    let server = server().await;
    for name in ["a", "b"] {
        server.create(&deployment(name)).unwrap();
    }
    let (factory, mut builder) = builder(client(&server));
    builder.workers(8);
    let active = Arc::new(Mutex::new((HashMap::<String, usize>::new(), 0)));
    let running = Running::start({
        let active = Arc::clone(&active);
        builder.reconcile(move |context, _| {
            let active = Arc::clone(&active);
            async move {
                let name = context.key().name().to_owned();
                {
                    let (now, most) = &mut *active.lock();
                    let of_key = now.entry(name.clone()).or_default();
                    *of_key += 1;
                    assert_eq!(*of_key, 1);
                    *most = (*most).max(now.values().sum::<usize>());
                }
                sleep(Duration::from_secs(1)).await;
                *active.lock().0.get_mut(&name).unwrap() -= 1;
                Ok::<_, Error>(Outcome::Done)
            }
        })
    });
    for replicas in 2..20 {
        scale(&server, "a", replicas);
        sleep(Duration::from_millis(300)).await;
    }
    running.until(|figures| figures.active == 0 && figures.queue.depth == 0).await;
    assert_eq!(running.monitor.figures().panics, 0);
    assert_eq!(active.lock().1, 2);
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn only_its_own_failures_advance_the_backoff_of_an_object() {
    let (server, reports) = (server().await, Reports::new());
    for name in ["bad", "good"] {
        server.create(&deployment(name)).unwrap();
    }
    let (factory, mut builder) = builder(client(&server));
    builder.rate_limit(RateLimit::exponential(Duration::from_secs(1), Duration::from_secs(1000)));
    let (reporter, start) = (reports.clone(), Instant::now());
    let running = Running::start(builder.reconcile(move |context, _| {
        let is_bad = context.key().name() == "bad";
        if is_bad {
            reporter.report(start.elapsed().as_secs());
        }
        std::future::ready(if is_bad { Err(Error::new("bad")) } else { Ok(Outcome::Done) })
    }));
    for replicas in 2..60 {
        scale(&server, "good", replicas);
        sleep(Duration::from_secs(1)).await;
    }
    let times: Vec<u64> =
        reports.within(Duration::from_secs(10)).await.iter().map(|time| time.parse().unwrap()).collect();
    assert_eq!(times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>(), [1, 2, 4, 8, 16, 32]);
    running.stop().await;
    factory.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_is_delivered_once_with_its_last_known_state() {
    let (server, reports) = (server().await, Reports::new());
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    let reporter = reports.clone();
    builder.gone(move |_, last| {
        let replicas = last.get().unwrap().spec.replicas.unwrap();
        reporter.report(format!("gone with {replicas}"));
        std::future::ready(if replicas == 7 { Ok(Outcome::Done) } else { Err(Error::terminal("odd")) })
    });
    let reporter = reports.clone();
    let running = Running::start(builder.reconcile(move |_, _| {
        reporter.report("reconciled");
        std::future::ready(Ok::<_, Error>(Outcome::Done))
    }));
    assert_eq!(reports.next().await, "reconciled");
    scale(&server, "a", 7);
    assert_eq!(reports.next().await, "reconciled");
    server.objects("apps/v1", "Deployment").unwrap().delete("a").unwrap();
    assert_eq!(reports.within(Duration::from_secs(60)).await, ["gone with 7"]);

    // Deleted and created again at once: both are delivered.
    server.create(&deployment("a")).unwrap();
    assert_eq!(reports.next().await, "reconciled");
    server.objects("apps/v1", "Deployment").unwrap().delete("a").unwrap();
    server.create(&deployment("a")).unwrap();
    assert_eq!(reports.within(Duration::from_secs(60)).await, ["gone with 1", "reconciled"]);
    running.stop().await;
    factory.shutdown().await;
}

/// What is logged, by this and by all clones.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(text)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_attempt_logs_is_in_a_span_with_the_controller_and_the_object() {
    let (server, reports, log) = (server().await, Reports::new(), Log::default());
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    server.create(&deployment("a")).unwrap();
    let (factory, mut builder) = builder(client(&server));
    builder.name("sites");
    let reporter = reports.clone();
    let running = Running::start(builder.reconcile(move |_, _| {
        tracing::info!("looking");
        reporter.report("done");
        std::future::ready(Ok::<_, Error>(Outcome::Done))
    }));
    reports.next().await;
    // A test on another thread, which has no subscriber, may have registered the span as disabled.
    tracing::callsite::rebuild_interest_cache();
    scale(&server, "a", 2);
    reports.next().await;
    let text = String::from_utf8(log.0.lock().clone()).unwrap();
    let line = text.lines().rfind(|line| line.ends_with("looking")).unwrap();
    assert!(line.contains(r#"reconcile{controller="sites" object=default/a}"#), "{line}");
    running.stop().await;
    factory.shutdown().await;
}
