//! Elections between a few candidates on the embedded server.

use std::time::Duration;

use kube_controller::leadership::{InvalidElection, LeaderElection, LossCause};
use kube_embedded::faults::{Fault, Rule};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{candidate, client, server};

const SECOND: Duration = Duration::from_secs(1);

fn lease(server: &kube_embedded::Server) -> Value {
    server.objects("coordination.k8s.io/v1", "Lease").unwrap().get("lease").unwrap()["spec"].clone()
}

#[tokio::test(start_paused = true)]
async fn while_one_renews_no_other_leads() {
    let server = server().await;
    let (mut a, mut b) = (candidate(&server, "a"), candidate(&server, "b"));
    let leadership = a.acquire().await;
    tokio::select! {
        lost = a.hold() => panic!("{lost}"),
        _ = b.acquire() => panic!("two leaders"),
        () = sleep(3600 * SECOND) => {}
    }
    leadership.check().unwrap();
    assert_eq!((b.holder(), b.identity()), (Some("a"), "b"));
    // A renewal is one request: nothing is read.
    let reads = server.requests().iter().filter(|request| request.method == "GET").count();
    assert!(reads < 1_900, "{reads} of a candidate every 2 to 4.4 seconds");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_renewed_is_taken_over_after_its_duration() {
    let server = server().await;
    let (mut a, mut b) = (candidate(&server, "a"), candidate(&server, "b"));
    let lost = a.acquire().await;
    let started = Instant::now();
    let leadership = b.acquire().await;
    let waited = started.elapsed();
    assert!(waited >= 15 * SECOND && waited <= 20 * SECOND, "{waited:?}");
    assert!(lost.check().is_err() && leadership.check().is_ok());
    assert_eq!(lease(&server)["leaseTransitions"], 1);
    // It is noticed by reading, too.
    let again = a.hold().await;
    assert_eq!(again.cause(), &LossCause::Expired(10 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_released_is_taken_over_at_the_next_attempt() {
    let server = server().await;
    let (mut a, mut b) = (candidate(&server, "a"), candidate(&server, "b"));
    let first = a.acquire().await;
    a.release().await.unwrap();
    assert_eq!(first.check().unwrap_err().cause(), &LossCause::Released);
    let spec = lease(&server);
    assert_eq!((&spec["holderIdentity"], &spec["leaseDurationSeconds"]), (&json!(""), &json!(1)));
    let started = Instant::now();
    b.acquire().await;
    assert_eq!(started.elapsed(), Duration::ZERO);
    // What is not held is not released.
    a.release().await.unwrap();
    assert_eq!(lease(&server)["holderIdentity"], "b");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_loses_before_the_lease_expires() {
    let server = server().await;
    let mut a = candidate(&server, "a");
    let leadership = a.acquire().await;
    let started = Instant::now();
    let leases = || Rule::new(Fault::status(500)).resource("coordination.k8s.io", "leases");
    server.faults().inject(leases());
    let (lost, same) = tokio::join!(a.hold(), leadership.lost());
    assert_eq!(started.elapsed(), 10 * SECOND);
    assert_eq!(lost, same);
    assert_eq!(lost.to_string(), "the leadership by lease default/lease is lost: it could not be renewed within 10s");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_once_or_hangs_once_is_repeated() {
    let server = server().await;
    let mut a = candidate(&server, "a");
    let leadership = a.acquire().await;
    for fault in [Fault::status(503), Fault::Disconnect, Fault::Delay(60 * SECOND), Fault::TooManyRequests] {
        let injected = server.faults().inject(Rule::new(fault).resource("coordination.k8s.io", "leases").once());
        assert!(timeout(30 * SECOND, a.hold()).await.is_err());
        assert_eq!(injected.count(), 1);
        leadership.check().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_by_force_loses_at_the_next_renewal() {
    let server = server().await;
    let mut a = candidate(&server, "a");
    a.acquire().await;
    let leases = server.objects("coordination.k8s.io/v1", "Lease").unwrap();
    leases.patch("lease", &json!({"spec": {"holderIdentity": "someone\u{1b}[2J"}})).unwrap();
    let started = Instant::now();
    let lost = a.hold().await;
    assert_eq!(started.elapsed(), 2 * SECOND);
    assert_eq!(lost.to_string(), r#"the leadership by lease default/lease is lost: it is held by "someone\u{1b}[2J""#);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_is_created_again_by_its_holder_and_not_by_who_has_seen_it() {
    let server = server().await;
    let (mut a, mut b) = (candidate(&server, "a"), candidate(&server, "b"));
    let leadership = a.acquire().await;
    tokio::select! {
        lost = a.hold() => panic!("{lost}"),
        _ = b.acquire() => panic!("two leaders"),
        () = async {
            for _ in 0..100 {
                sleep(7 * SECOND).await;
                server.objects("coordination.k8s.io/v1", "Lease").unwrap().delete("lease").unwrap();
            }
        } => {}
    }
    leadership.check().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_election_ends_its_leadership_without_a_request() {
    let server = server().await;
    let mut a = candidate(&server, "a");
    let leadership = a.acquire().await;
    let requests = server.request_count();
    drop(a);
    assert_eq!(leadership.lost().await.cause(), &LossCause::Released);
    assert_eq!(server.request_count(), requests);
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_whose_response_was_lost_is_released() {
    let server = server().await;
    let mut a = candidate(&server, "a");
    // The response arrives after the request was given up.
    server.faults().inject(Rule::new(Fault::CutAfterBytes(0)).verb(kube_embedded::Verb::Create).once());
    assert!(timeout(SECOND, a.acquire()).await.is_err());
    assert_eq!(lease(&server)["holderIdentity"], "a");
    a.release().await.unwrap();
    assert_eq!(lease(&server)["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn identities_are_unique_by_default_and_settings_are_checked() {
    let server = server().await;
    let builder = || LeaderElection::builder(client(&server), "default", "lease");
    let (one, other) = (builder().build().unwrap(), builder().build().unwrap());
    assert_ne!(one.identity(), other.identity());
    let refused = |built: Result<LeaderElection, InvalidElection>| built.map(drop).unwrap_err().to_string();
    assert_eq!(refused(builder().identity("").build()), "the identity of a candidate must not be empty");
    assert_eq!(
        refused(builder().lease_duration(10 * SECOND).build()),
        "the lease duration (10s) must be longer than the renew deadline (10s)"
    );
    assert_eq!(
        refused(builder().renew_deadline(Duration::from_millis(2_400)).build()),
        "the renew deadline (2.4s) must be longer than 1.2 times the retry period (2s)"
    );
    assert!(builder().lease_duration(Duration::from_millis(15_500)).build().is_err());
    assert!(builder().retry_period(Duration::ZERO).build().is_err());
    assert!(LeaderElection::builder(client(&server), "De fault", "lease").build().is_err());
    assert!(LeaderElection::builder(client(&server), "default", "").build().is_err());
}
