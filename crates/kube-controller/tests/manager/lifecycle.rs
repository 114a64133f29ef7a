//! Order of start and end, on paused time.

use std::future::pending;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret};
use kube::api::{Api, PostParams};
use kube_controller::manager::{InvalidManager, ManagerError};
use kube_controller::recorder::{NewEvent, Recorder};
use kube_controller::{Controller, Error, Manager, Outcome};
use kube_embedded::faults::{Fault, Rule};
use kube_embedded::{Server, Verb};
use kube_informer::Factory;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::{Journal, SECOND, alive_tasks, candidate, client, holder, server};

fn leases(fault: Fault) -> Rule {
    Rule::new(fault).resource("coordination.k8s.io", "leases")
}

#[tokio::test(start_paused = true)]
async fn caches_come_first_then_standby_tasks_then_leadership_then_tasks() {
    let server = server().await;
    let mut rival = candidate(&server, "rival");
    rival.acquire().await;
    server.faults().inject(Rule::new(Fault::Delay(5 * SECOND)).resource("", "configmaps").once());
    let factory = Factory::new(client(&server));
    let maps = factory.informer::<ConfigMap>();
    let journal = Journal::new();
    let (standby, leading) = (journal.clone(), journal.clone());
    let manager = Manager::builder(&factory)
        .task("leading", move |leadership, stop| async move {
            leading.note("leads");
            assert!(leadership.is_elected() && maps.is_synced());
            stop.requested().await;
            Ok(())
        })
        .standby_task("standby", move |stop| async move {
            standby.note("stands by");
            stop.requested().await;
            Ok(())
        })
        .leader_election(candidate(&server, "me"))
        .build()
        .unwrap();
    let others = async {
        tokio::select! {
            lost = rival.hold() => panic!("{lost}"),
            () = sleep(100 * SECOND) => {}
        }
        assert_eq!(server.watches().len(), 1, "the caches of a process that does not lead are full");
        rival.release().await.unwrap();
        sleep(10 * SECOND).await;
        assert_eq!(holder(&server), "me");
    };
    manager.run_until(others).await.unwrap();
    let lines = journal.lines();
    assert_eq!(lines[0], "5 stands by");
    assert!(lines[1].starts_with("10") && lines[1].ends_with("leads"), "{lines:?}");
    assert_eq!(lines.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn running_work_ends_first_then_events_then_the_lease_then_caches_and_nothing_is_left() {
    let server = server().await;
    let before = alive_tasks();
    {
        let factory = Factory::new(client(&server));
        let maps = factory.informer::<ConfigMap>();
        let recorder = Recorder::new("test");
        let (journal, events) = (Journal::new(), recorder.clone());
        let (noted, writes) = (journal.clone(), client(&server));
        let manager = Manager::builder(&factory)
            .task("slow", move |leadership, stop| async move {
                stop.requested().await;
                noted.note("asked to stop");
                // Longer than the lease is valid without a renewal.
                sleep(19 * SECOND).await;
                let api = Api::<ConfigMap>::default_namespaced(leadership.writer(&writes).client().clone());
                let mut map = ConfigMap::default();
                map.metadata.name = Some("last".to_owned());
                api.create(&PostParams::default(), &map).await?;
                let object = ObjectReference { name: Some("last".to_owned()), ..ObjectReference::default() };
                events.record(&object, NewEvent::normal("Done", "Write", "the last one"));
                noted.note("has written");
                Ok(())
            })
            .leader_election(candidate(&server, "me"))
            .recorder(&recorder)
            .build()
            .unwrap();
        manager.run_until(sleep(7 * SECOND)).await.unwrap();
        assert_eq!(journal.lines(), ["7 asked to stop", "26 has written"]);
        assert_eq!(maps.lister().len(), 1, "the cache had it before it was stopped");
    }
    let requests: Vec<_> = server.requests().into_iter().filter(|request| request.method != "GET").collect();
    let order: Vec<_> = requests.iter().rev().map(|request| request.path.rsplit('/').next().unwrap()).collect();
    assert_eq!(&order[..2], ["lease", "events"], "{order:?}");
    assert_eq!((holder(&server).as_str(), server.watches().len()), ("", 0));
    assert!(server.objects("events.k8s.io/v1", "Event").unwrap().len() == 1);
    settle().await;
    assert_eq!(alive_tasks(), before);
}

/// Dropped clients end their tasks at their next turn.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_end_in_time_is_cancelled_and_named() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let (journal, started) = (Journal::new(), Instant::now());
    let cancelled = journal.clone();
    let manager = Manager::builder(&factory)
        .task("stubborn", move |_, _| async move {
            let _end = cancelled.at_end("cancelled");
            pending().await
        })
        .task("good", |_, stop| async move {
            stop.requested().await;
            Ok(())
        })
        .leader_election(candidate(&server, "me"))
        .build()
        .unwrap();
    let error = manager.run_until(sleep(SECOND)).await.unwrap_err();
    assert_eq!(error.to_string(), "cancelled, because the shutdown took too long: stubborn");
    assert_eq!((journal.lines(), started.elapsed()), (vec!["21 cancelled".to_owned()], 21 * SECOND));
    assert_eq!(holder(&server), "", "nothing runs any more, so the lease is given up");
}

#[tokio::test(start_paused = true)]
async fn a_lost_leadership_cancels_everything_at_once_and_is_an_error() {
    let server = server().await;
    let before = alive_tasks();
    let factory = Factory::new(client(&server));
    let maps = factory.informer::<ConfigMap>();
    let journal = Journal::new();
    let cancelled = journal.clone();
    let manager = Manager::builder(&factory)
        .task("stubborn", move |_, stop| async move {
            let _end = cancelled.at_end("cancelled");
            stop.requested().await;
            pending().await
        })
        .leader_election(candidate(&server, "me"))
        .build()
        .unwrap();
    let outage = async {
        sleep(SECOND).await;
        server.faults().inject(leases(Fault::status(503)));
        pending::<()>().await;
    };
    let error = manager.run_until(outage).await.unwrap_err();
    assert!(matches!(error, ManagerError::LeadershipLost(_)), "{error:?}");
    assert_eq!(journal.lines(), ["10 cancelled"]);
    drop((maps, factory));
    settle().await;
    assert_eq!((alive_tasks(), server.watches().len()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn a_leadership_that_is_lost_during_the_shutdown_cancels_what_still_runs() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let started = Instant::now();
    let manager = Manager::builder(&factory)
        .task("slow", |_, _| pending())
        .leader_election(candidate(&server, "me"))
        .build()
        .unwrap();
    let outage = async {
        sleep(SECOND).await;
        server.faults().inject(leases(Fault::status(503)));
    };
    let error = manager.run_until(outage).await.unwrap_err();
    assert!(matches!(error, ManagerError::LeadershipLost(_)), "{error:?}");
    assert!(started.elapsed() < 20 * SECOND, "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_or_panics_ends_the_others_in_order() {
    let server = server().await;
    for (is_panic, expected) in
        [(false, "the task bad has failed: no luck"), (true, "the task bad has panicked: no luck")]
    {
        let factory = Factory::new(client(&server));
        let journal = Journal::new();
        let good = journal.clone();
        let manager = Manager::builder(&factory)
            .task("good", move |_, stop| async move {
                stop.requested().await;
                sleep(SECOND).await;
                good.note("ended");
                Ok(())
            })
            .task("bad", move |_, _| async move {
                sleep(5 * SECOND).await;
                assert!(!is_panic, "no luck");
                Err("no luck".into())
            })
            .leader_election(candidate(&server, "me"))
            .build()
            .unwrap();
        let error = manager.run_until(pending()).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!((journal.lines(), holder(&server)), (vec!["6 ended".to_owned()], String::new()));
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_that_has_done_its_work_ends_nothing() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let manager = Manager::builder(&factory).task("once", |_, _| async { Ok(()) }).build().unwrap();
    let started = Instant::now();
    manager.run_until(sleep(60 * SECOND)).await.unwrap();
    assert_eq!(started.elapsed(), 60 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_cache_that_cannot_be_filled_is_an_error_that_names_it() {
    let server = server().await;
    server.faults().inject(Rule::new(Fault::status(403)).resource("", "secrets"));
    let factory = Factory::new(client(&server));
    let (_maps, _secrets) = (factory.informer::<ConfigMap>(), factory.informer::<Secret>());
    let manager = Manager::builder(&factory).task("task", |_, _| async { panic!("started") }).build().unwrap();
    let error = manager.run_until(pending()).await.unwrap_err().to_string();
    assert!(error.contains("secrets") && !error.contains("configmaps"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_before_the_leadership_ends_at_once_and_releases_nothing() {
    let server = server().await;
    let mut rival = candidate(&server, "rival");
    rival.acquire().await;
    for delay in [Duration::ZERO, 100 * SECOND] {
        let lists = Rule::new(Fault::Delay(delay)).resource("", "configmaps").verbs([Verb::List, Verb::Watch]);
        let fault = server.faults().inject(lists);
        let factory = Factory::new(client(&server));
        let maps = factory.informer::<ConfigMap>();
        let builder = Manager::builder(&factory).task("task", |_, _| async { panic!("started") });
        let manager = builder.leader_election(candidate(&server, "me")).build().unwrap();
        let started = Instant::now();
        let stop = async {
            tokio::select! {
                lost = rival.hold() => panic!("{lost}"),
                () = sleep(10 * SECOND) => {}
            }
        };
        manager.run_until(stop).await.unwrap();
        assert_eq!((started.elapsed(), holder(&server).as_str()), (10 * SECOND, "rival"));
        fault.remove();
        drop(maps);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_a_manager_that_runs_ends_everything() {
    let server = server().await;
    let before = alive_tasks();
    let factory = Factory::new(client(&server));
    let journal = Journal::new();
    let cancelled = journal.clone();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let manager = Manager::builder(&factory)
        .task("task", move |leadership, _| async move {
            let _end = cancelled.at_end("cancelled");
            leadership.lost().await;
            pending().await
        })
        .leader_election(candidate(&server, "me"))
        .serve(listener)
        .build()
        .unwrap();
    assert!(timeout(30 * SECOND, manager.run_until(pending())).await.is_err());
    drop(factory);
    settle().await;
    assert_eq!((journal.lines(), alive_tasks()), (vec!["30 cancelled".to_owned()], before));
    assert_eq!(holder(&server), "me", "it expires");
}

#[tokio::test(start_paused = true)]
async fn names_are_unique() {
    let server = server().await;
    let factory = Factory::new(client(&server));
    let builder = Manager::builder(&factory).task("a", |_, _| async { Ok(()) });
    let refused = builder.standby_task("a", |_| async { Ok(()) }).build().map(drop);
    assert_eq!(refused, Err(InvalidManager::SameName("a".to_owned())));
}

fn add_map(server: &Server, name: &str) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}});
    server.create(&map).unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_controller_has_full_caches_before_it_leads_and_reconciles_nothing() {
    let server = server().await;
    for name in ["a", "b", "c"] {
        add_map(&server, name);
    }
    let mut rival = candidate(&server, "rival");
    rival.acquire().await;
    let factory = Factory::new(client(&server));
    let journal = Journal::new();
    let noted = journal.clone();
    let controller = Controller::builder::<ConfigMap>(&factory).reconcile(move |context, _| {
        noted.note(context.key().name());
        async { Ok::<_, Error>(Outcome::Done) }
    });
    let monitor = controller.monitor();
    let manager =
        Manager::builder(&factory).controller(controller).leader_election(candidate(&server, "me")).build().unwrap();
    let others = async {
        tokio::select! {
            lost = rival.hold() => panic!("{lost}"),
            () = sleep(100 * SECOND) => {}
        }
        assert_eq!((journal.lines().len(), server.watches().len()), (0, 1));
        server.forget_requests();
        rival.release().await.unwrap();
        sleep(10 * SECOND).await;
        let lists = server.requests().into_iter().filter(|request| request.path.ends_with("/configmaps"));
        assert_eq!(lists.count(), 0, "nothing is listed again");
    };
    manager.run_until(others).await.unwrap();
    let mut lines = journal.lines();
    lines.sort();
    assert!(lines.iter().zip(["a", "b", "c"]).all(|(line, name)| line.starts_with("10") && line.ends_with(name)));
    assert_eq!((lines.len(), monitor.figures().attempts.success), (3, 3));
}

#[tokio::test(start_paused = true)]
async fn a_running_attempt_ends_during_a_shutdown_and_the_next_one_does_not_begin() {
    let server = server().await;
    for name in ["a", "b"] {
        add_map(&server, name);
    }
    let factory = Factory::new(client(&server));
    let journal = Journal::new();
    let noted = journal.clone();
    let mut builder = Controller::builder::<ConfigMap>(&factory);
    builder.workers(1);
    let controller = builder.reconcile(move |_, _| {
        let noted = noted.clone();
        async move {
            noted.note("begins");
            sleep(8 * SECOND).await;
            noted.note("ends");
            Ok::<_, Error>(Outcome::Done)
        }
    });
    let manager =
        Manager::builder(&factory).controller(controller).leader_election(candidate(&server, "me")).build().unwrap();
    manager.run_until(sleep(3 * SECOND)).await.unwrap();
    assert_eq!(journal.lines(), ["0 begins", "8 ends"]);
    assert_eq!(holder(&server), "");
}

#[tokio::test(start_paused = true)]
async fn attempts_that_run_when_the_leadership_is_lost_write_nothing() {
    let server = server().await;
    for name in ["a", "b", "c"] {
        add_map(&server, name);
    }
    let factory = Factory::new(client(&server));
    let controller = Controller::builder::<ConfigMap>(&factory).reconcile(|context, map| async move {
        // Writes all the time.
        for nth in 0.. {
            let name = format!("{}-{nth}", map.name());
            context.apply::<Secret>(&json!({"metadata": {"name": name, "namespace": "default"}})).await?;
            sleep(Duration::from_millis(100)).await;
        }
        Ok::<_, Error>(Outcome::Done)
    });
    let manager =
        Manager::builder(&factory).controller(controller).leader_election(candidate(&server, "me")).build().unwrap();
    let outage = async {
        sleep(SECOND).await;
        server.faults().inject(leases(Fault::status(503)));
        pending::<()>().await;
    };
    let start = Instant::now();
    let error = manager.run_until(outage).await.unwrap_err();
    assert!(matches!(error, ManagerError::LeadershipLost(_)), "{error:?}");
    let writes = server.requests().into_iter().filter(|request| request.path.contains("/secrets/"));
    let last = writes.map(|request| request.at).max().unwrap();
    let lasted = last.duration_since(start);
    assert!(lasted > 9 * SECOND && lasted < 10 * SECOND, "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_controller_whose_cache_is_refused_is_named() {
    let server = server().await;
    server.faults().inject(Rule::new(Fault::status(403)).resource("", "secrets"));
    let factory = Factory::new(client(&server));
    let mut builder = Controller::builder::<ConfigMap>(&factory);
    builder.name("maps");
    let _secrets = builder.owns::<Secret>();
    let controller = builder.reconcile(|_, _| async { Ok::<_, Error>(Outcome::Done) });
    let manager = Manager::builder(&factory).controller(controller).build().unwrap();
    let error = manager.run_until(pending()).await.unwrap_err();
    assert!(matches!(error, ManagerError::Controller(_)), "{error:?}");
    assert!(error.to_string().starts_with("the controller maps cannot run: secrets"), "{error}");
}
