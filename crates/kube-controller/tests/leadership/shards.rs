//! Shard groups on the embedded server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube_controller::leadership::{Clock, LossCause};
use kube_controller::sharding::{Change, InvalidShardGroup, Participant, ShardGroup, Tenure};
use kube_embedded::Server;
use kube_embedded::faults::{Fault, Rule};
use kube_informer::shard::ShardKey;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::support::{client, server};

const SECOND: Duration = Duration::from_secs(1);

fn group(server: &Server, member: &str) -> ShardGroup {
    let builder = ShardGroup::builder(client(server), "default", "group").member(member).clock(Clock::tokio());
    builder.ranges(16).seed(1).build().unwrap()
}

/// A member that runs until it is stopped.
struct Running {
    group: ShardGroup,
    stop: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(server: &Server, member: &str) -> Self {
        let (group, stop) = (group(server, member), Arc::new(Notify::new()));
        let (running, stopped) = (group.clone(), Arc::clone(&stop));
        let task = tokio::spawn(async move { running.run(stopped.notified()).await });
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

async fn until(mut test: impl FnMut() -> bool) {
    while !test() {
        sleep(Duration::from_millis(10)).await;
    }
}

fn leases(server: &Server) -> Vec<Value> {
    server.objects("coordination.k8s.io/v1", "Lease").unwrap().list()
}

fn record(server: &Server) -> Value {
    let lease = server.objects("coordination.k8s.io/v1", "Lease").unwrap().get("group").unwrap();
    serde_json::from_str(lease["metadata"]["annotations"]["kube-controller/ranges"].as_str().unwrap()).unwrap()
}

async fn gained(participant: &mut Participant) -> Tenure {
    match timeout(60 * SECOND, participant.next()).await.unwrap() {
        Change::Gained(tenure) => tenure,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn members_divide_all_ranges_evenly_when_their_number_changes() {
    let server = server().await;
    let mut members: Vec<Running> = ["a", "b", "c"].map(|name| Running::start(&server, name)).into();
    until(|| members.iter().map(Running::held).sum::<usize>() == 16 && members.iter().all(|one| one.held() >= 5)).await;
    members.extend(["d", "e"].map(|name| Running::start(&server, name)));
    until(|| members.iter().map(Running::held).sum::<usize>() == 16 && members.iter().all(|one| one.held() >= 3)).await;
    for member in members.split_off(2) {
        member.stop().await;
    }
    until(|| members.iter().all(|one| one.held() == 8)).await;
    let figures = members[0].group.figures();
    assert_eq!((figures.taken_over, figures.lost), (0, 0), "{figures:?}");
    assert!(figures.longest_without_owner < 3 * SECOND, "{figures:?}");
    let holders = record(&server)["ranges"].as_array().unwrap().clone();
    let holders: BTreeSet<_> = holders.iter().map(|range| range["holder"].as_str().unwrap().to_owned()).collect();
    assert_eq!(holders.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_crashes_is_replaced_when_its_lease_has_expired() {
    let server = server().await;
    let (a, b) = (Running::start(&server, "a"), Running::start(&server, "b"));
    until(|| a.held() == 8 && b.held() == 8).await;
    a.crash().await;
    let crashed = Instant::now();
    until(|| b.held() == 16).await;
    let took = crashed.elapsed();
    assert!(took >= 12 * SECOND && took <= 23 * SECOND, "{took:?}");
    let figures = b.group.figures();
    assert_eq!(figures.taken_over, 8);
    assert!(
        figures.longest_without_owner >= 15 * SECOND && figures.longest_without_owner <= 23 * SECOND,
        "{figures:?}"
    );
    // Its lease is deleted when no range names it any more.
    until(|| leases(&server).len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_leaves_releases_its_ranges_and_its_lease() {
    let server = server().await;
    let (a, b) = (Running::start(&server, "a"), Running::start(&server, "b"));
    until(|| a.held() == 8 && b.held() == 8).await;
    let left = Instant::now();
    a.stop().await;
    assert_eq!(left.elapsed(), Duration::ZERO);
    until(|| b.held() == 16).await;
    assert!(left.elapsed() <= 3 * SECOND, "{:?}", left.elapsed());
    b.stop().await;
    let left: Vec<_> = leases(&server).iter().map(|lease| lease["metadata"]["name"].clone()).collect();
    assert_eq!(left, ["group"], "the record remains");
    assert!(record(&server)["ranges"].as_array().unwrap().iter().all(|range| range["holder"].is_null()));
}

#[tokio::test(start_paused = true)]
async fn after_the_end_no_task_is_left() {
    let server = server().await;
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let group =
        ShardGroup::builder(client(&server), "default", "group").member("a").clock(Clock::tokio()).build().unwrap();
    let mut participant = group.participate();
    group
        .run(async {
            let tenure = gained(&mut participant).await;
            drop((tenure.leadership().writer(&kube::Client::new(server.service(), "default")), participant));
        })
        .await;
    drop(group);
    sleep(SECOND).await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn a_range_is_released_when_every_participant_has_ended_with_the_latest_versions() {
    let server = server().await;
    let group = group(&server, "a");
    let (mut one, mut other) = (group.participate(), group.participate());
    let stop = Arc::new(Notify::new());
    let (running, stopped) = (group.clone(), Arc::clone(&stop));
    let run = tokio::spawn(async move { running.run(stopped.notified()).await });
    let tenures: Vec<Tenure> = {
        let mut all = Vec::new();
        for _ in 0..16 {
            all.push(gained(&mut one).await);
            gained(&mut other).await;
        }
        all
    };
    stop.notify_one();
    assert!(matches!(one.next().await, Change::Draining(_)));
    let versions = |maps: u64, pods: Option<u64>| {
        let all = [("configmaps", Some(maps)), ("pods", pods)];
        Some(all.into_iter().filter_map(|(of, version)| Some((of.to_owned(), version?.into()))).collect())
    };
    for tenure in &tenures {
        one.ended(tenure, versions(7, Some(3)));
    }
    sleep(SECOND).await;
    assert!(tenures.iter().all(|tenure| tenure.leadership().check().is_ok()), "the other one may work still");
    for tenure in &tenures[..15] {
        other.ended(tenure, versions(9, None));
    }
    sleep(SECOND).await;
    assert_eq!(tenures[0].leadership().check().unwrap_err().cause(), &LossCause::Released);
    assert!(tenures[15].leadership().check().is_ok());
    let ended = record(&server)["ranges"][0].clone();
    assert_eq!(ended, json!({"epoch": 1, "versions": {"configmaps": "9", "pods": "3"}}));
    // One that ends without saying what it has seen.
    drop(other);
    run.await.unwrap();
    let ranges = record(&server)["ranges"].as_array().unwrap().clone();
    let unknown: Vec<_> = ranges.iter().filter(|range| range["versions"].is_null()).collect();
    assert_eq!(unknown, [&json!({"epoch": 1})]);
}

#[tokio::test(start_paused = true)]
async fn the_next_holder_is_given_the_versions_of_the_last_one() {
    let server = server().await;
    let stop = Notify::new();
    let first = group(&server, "a");
    let mut participant = first.participate();
    let work = async {
        let mut ranges = 0;
        loop {
            match participant.next().await {
                Change::Gained(_) => {
                    ranges += 1;
                    if ranges == 16 {
                        stop.notify_one();
                    }
                }
                Change::Draining(tenure) => participant.ended(&tenure, Some([("pods".to_owned(), 5.into())].into())),
                _ => {}
            }
        }
    };
    tokio::select! {
        () = first.run(stop.notified()) => {}
        () = work => {}
    }
    let second = group(&server, "b");
    let mut participant = second.participate();
    second
        .run(async {
            let tenure = gained(&mut participant).await;
            assert_eq!(tenure.epoch(), 2);
            assert_eq!(tenure.versions(), Some(&[("pods".to_owned(), 5.into())].into()));
            drop(participant);
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn attempts_that_do_not_end_are_cut_off_at_the_drain_deadline() {
    let server = server().await;
    let group = group(&server, "a");
    let mut participant = group.participate();
    let stopped = Instant::now();
    let (mut tenures, mut draining) = (Vec::new(), 0);
    let work = async {
        loop {
            match participant.next().await {
                Change::Gained(tenure) => tenures.push(tenure),
                Change::Draining(_) => draining += 1,
                _ => {}
            }
        }
    };
    tokio::select! {
        () = group.run(sleep(5 * SECOND)) => {}
        () = work => {}
    }
    assert_eq!((tenures.len(), draining), (16, 16));
    assert!(stopped.elapsed() >= 25 * SECOND, "{:?}", stopped.elapsed());
    assert!(record(&server)["ranges"].as_array().unwrap().iter().all(|range| range["holder"].is_null()));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_cannot_renew_loses_its_ranges_and_claims_them_anew() {
    let server = server().await;
    let group = group(&server, "a");
    let mut participant = group.participate();
    let running = group.clone();
    let run = tokio::spawn(async move { running.run(std::future::pending()).await });
    let first = gained(&mut participant).await;
    until(|| group.figures().ranges_held == 16).await;
    let fault = server.faults().inject(Rule::new(Fault::status(500)).resource("coordination.k8s.io", "leases"));
    let lost = first.leadership().lost().await;
    assert_eq!(lost.cause(), &LossCause::Expired(10 * SECOND));
    assert_eq!(lost.lease(), "default/group[0]");
    fault.remove();
    until(|| group.figures().lost == 16 && group.figures().ranges_held == 16).await;
    assert!(first.leadership().check().is_err(), "what was lost remains lost");
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_not_understood_is_left_alone() {
    let server = server().await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "group", "namespace": "default", "labels": {"kube-controller/shard-group": "group"},
            "annotations": {"kube-controller/ranges": r#"{"key":"uid","ranges":[{"epoch":0}]}"#},
        },
    });
    server.create(&lease).unwrap();
    let member = Running::start(&server, "a");
    sleep(60 * SECOND).await;
    assert_eq!(member.held(), 0);
    assert_eq!(record(&server), json!({"key": "uid", "ranges": [{"epoch": 0}]}));
    member.stop().await;
}

#[tokio::test(start_paused = true)]
async fn settings_of_a_group_are_checked() {
    let server = server().await;
    let builder = || ShardGroup::builder(client(&server), "default", "group").key(ShardKey::Uid);
    let (one, other) = (builder().build().unwrap(), builder().build().unwrap());
    assert_ne!(one.member(), other.member());
    assert_eq!((one.name(), one.key()), ("group", ShardKey::Uid));
    let refused = |built: Result<ShardGroup, InvalidShardGroup>| built.map(drop).unwrap_err().to_string();
    assert_eq!(
        refused(builder().ranges(12).build()),
        "a group can have a power of two of ranges up to 256, and not 12"
    );
    assert!(refused(builder().ranges(512).build()).ends_with("and not 512"));
    assert!(refused(builder().member("A").build()).starts_with("no member can be named \"A\""));
    let long = ShardGroup::builder(client(&server), "default", "g".repeat(64)).build();
    assert!(refused(long).starts_with("no group can be named"));
}
