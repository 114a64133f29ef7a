//! Several managers in one process that divide the objects of a controller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_controller::leadership::Clock;
use kube_controller::{Context, Controller, Error, Manager, Outcome, Patch, ShardGroup};
use kube_embedded::Server;
use kube_informer::shard::ShardKey;
use kube_informer::{Factory, Obj};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::support::{client, deployment, pause, scale, server};

const SECOND: Duration = Duration::from_secs(1);

/// One attempt.
#[derive(Debug, Clone)]
struct Logged {
    member: usize,
    uid: String,
    began: Instant,
    ended: Option<Instant>,
}

type Log = Arc<Mutex<Vec<Logged>>>;

/// A process: a manager with a sharded controller.
struct Process {
    group: ShardGroup,
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Process {
    fn start(server: &Server, member: usize, key: ShardKey, log: &Log) -> Self {
        let client = client(server);
        let group = ShardGroup::builder(client.clone(), "default", "group").member(format!("m{member}")).key(key);
        let group = group.clock(Clock::tokio()).ranges(16).seed(member as u64).build().unwrap();
        let factory = Factory::new(client);
        let mut builder = Controller::builder::<Deployment>(&factory);
        builder.owns::<ConfigMap>();
        let log = Arc::clone(log);
        let controller = builder.reconcile(move |context, object| reconcile(context, object, member, Arc::clone(&log)));
        let manager = Manager::builder(&factory).controller(controller.sharded(&group)).build().unwrap();
        let stop = Arc::new(Notify::new());
        let stopped = Arc::clone(&stop);
        let task = tokio::spawn(async move { manager.run_until(stopped.notified()).await.unwrap() });
        Self { group, stop, task }
    }

    fn held(&self) -> usize {
        self.group.figures().ranges_held
    }

    async fn stop(self) {
        self.stop.notify_one();
        self.task.await.unwrap();
    }

    async fn crash(self) {
        self.task.abort();
        self.task.await.unwrap_err();
    }
}

async fn reconcile(ctx: Context, object: Obj<Deployment>, member: usize, log: Log) -> Result<Outcome, Error> {
    let (uid, generation) = (object.uid().unwrap().to_string(), object.generation().unwrap());
    let nth = {
        let mut log = log.lock();
        log.push(Logged { member, uid, began: Instant::now(), ended: None });
        log.len() - 1
    };
    sleep(Duration::from_millis(300)).await;
    let map = json!({
        "metadata": {"name": object.name()}, "data": {"generation": generation.to_string(), "member": member.to_string()},
    });
    ctx.apply::<ConfigMap>(&map).await?;
    sleep(Duration::from_millis(300)).await;
    log.lock()[nth].ended = Some(Instant::now());
    Ok(Outcome::Done)
}

/// No two members' attempts for a uid overlap: an attempt that was cancelled has no end, and has
/// ended when the next one begins.
fn assert_no_overlap(log: &Log) {
    let mut objects: BTreeMap<String, Vec<Logged>> = BTreeMap::new();
    for attempt in log.lock().iter() {
        objects.entry(attempt.uid.clone()).or_default().push(attempt.clone());
    }
    for (uid, attempts) in objects {
        for pair in attempts.windows(2) {
            let is_apart = pair[0].ended.is_none_or(|ended| ended <= pair[1].began);
            assert!(is_apart || pair[0].member == pair[1].member, "{uid}: {pair:?}");
        }
    }
}

async fn balanced(processes: &[Process]) {
    let least = 16 / processes.len();
    while processes.iter().map(Process::held).sum::<usize>() != 16 || processes.iter().any(|one| one.held() < least) {
        pause().await;
    }
}

async fn until_handled(server: &Server) {
    let (deployments, maps) =
        (server.objects("apps/v1", "Deployment").unwrap(), server.objects("v1", "ConfigMap").unwrap());
    let is_handled = || {
        deployments.list().iter().all(|deployment| {
            let map = maps.get(deployment["metadata"]["name"].as_str().unwrap());
            let generation = deployment["metadata"]["generation"].to_string();
            map.is_ok_and(|map| map["data"]["generation"] == *generation)
        })
    };
    while !is_handled() {
        sleep(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn processes_that_come_go_and_crash_under_writes_never_write_for_the_same_object() {
    let (server, log) = (server().await, Log::default());
    for nth in 0..40 {
        server.create(&deployment(&format!("d{nth}"))).unwrap();
    }
    let start = |member| Process::start(&server, member, ShardKey::Uid, &log);
    let writing = {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            for round in 2.. {
                for nth in 0..40 {
                    scale(&server, &format!("d{nth}"), round);
                    sleep(Duration::from_millis(70)).await;
                }
            }
        })
    };
    let mut processes: Vec<Process> = (0..3).map(start).collect();
    balanced(&processes).await;
    sleep(10 * SECOND).await;
    processes.extend((3..5).map(start));
    balanced(&processes).await;
    sleep(10 * SECOND).await;
    processes.remove(0).crash().await;
    balanced(&processes).await;
    for process in processes.split_off(2) {
        process.stop().await;
    }
    balanced(&processes).await;
    sleep(10 * SECOND).await;
    writing.abort();
    until_handled(&server).await;
    assert_no_overlap(&log);
    let members: std::collections::BTreeSet<usize> = log.lock().iter().map(|attempt| attempt.member).collect();
    assert_eq!(members.len(), 5, "all of them have worked");
    let figures: Vec<_> = processes.iter().map(|process| process.group.figures()).collect();
    assert!(figures.iter().any(|figures| figures.taken_over > 0), "{figures:?}");
    for process in processes {
        process.stop().await;
    }
    assert!(server.watches().is_empty());
}

#[tokio::test(start_paused = true)]
async fn objects_of_a_namespace_are_reconciled_by_one_process() {
    let (server, log) = (server().await, Log::default());
    for namespace in 0..12 {
        // FNV-1a puts names that differ only in their last characters into the same range.
        let namespace = format!("{namespace}-tenant");
        server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})).unwrap();
        for nth in 0..3 {
            let mut deployment = deployment(&format!("d{nth}"));
            deployment["metadata"]["namespace"] = namespace.as_str().into();
            server.create(&deployment).unwrap();
        }
    }
    let processes: Vec<Process> =
        (0..2).map(|member| Process::start(&server, member, ShardKey::Namespace, &log)).collect();
    balanced(&processes).await;
    sleep(60 * SECOND).await;
    let maps = server.objects("v1", "ConfigMap").unwrap().list();
    let mut members: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for map in maps.iter().filter(|map| map["data"]["member"].is_string()) {
        let of = members.entry(map["metadata"]["namespace"].to_string()).or_default();
        of.push(map["data"]["member"].to_string());
    }
    assert_eq!(members.values().map(Vec::len).sum::<usize>(), 36);
    assert!(members.values().all(|of| of.iter().all(|member| *member == of[0])), "{members:?}");
    assert!(members.values().any(|of| of[0] != members.values().next().unwrap()[0]), "both work");
    for process in processes {
        process.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn writes_to_an_object_by_uid_name_the_uid() {
    let server = server().await;
    server.create(&deployment("a")).unwrap();
    let group = ShardGroup::builder(client(&server), "default", "group").key(ShardKey::Uid).clock(Clock::tokio());
    let group = group.build().unwrap();
    let factory = Factory::new(client(&server));
    let outcomes = Arc::new(Mutex::new(Vec::new()));
    let (replaced, seen) = (Arc::clone(&server), Arc::clone(&outcomes));
    let controller =
        Controller::builder::<Deployment>(&factory).reconcile(move |ctx: Context, object: Obj<Deployment>| {
            let (server, outcomes) = (Arc::clone(&replaced), Arc::clone(&seen));
            async move {
                if outcomes.lock().is_empty() {
                    // Another object has the name now, and may belong to another process.
                    server.objects("apps/v1", "Deployment").unwrap().delete("a").unwrap();
                    server.create(&deployment("a")).unwrap();
                    for patch in [
                        Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}})),
                        Patch::Strategic(json!({"metadata": {"labels": {"x": "y"}}})),
                        Patch::Json(json!([{"op": "add", "path": "/metadata/labels", "value": {"x": "y"}}])),
                    ] {
                        let patched = ctx.patch::<Deployment>(object.key(), &patch).await;
                        outcomes.lock().push(patched.map(drop).map_err(|error| error.to_string()));
                    }
                    let applied =
                        ctx.apply::<Deployment>(&json!({"metadata": {"name": "a", "labels": {"x": "y"}}})).await;
                    outcomes.lock().push(applied.map(drop).map_err(|error| error.to_string()));
                }
                Ok::<_, Error>(Outcome::Done)
            }
        });
    let manager = Manager::builder(&factory).controller(controller.sharded(&group)).build().unwrap();
    let done = async {
        while outcomes.lock().len() < 4 {
            pause().await;
        }
    };
    manager.run_until(done).await.unwrap();
    assert!(outcomes.lock().iter().all(Result::is_err), "{outcomes:?}");
    let labels = &server.objects("apps/v1", "Deployment").unwrap().get("a").unwrap()["metadata"]["labels"];
    assert!(labels["x"].is_null(), "{labels}");
}
