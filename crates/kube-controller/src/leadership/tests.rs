//! The decisions of a candidate, without requests.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::jiff::Timestamp;

use super::candidate::{Candidate, Now, Purpose, Request, Response, Step, Verdict};
use super::timing::LeaseTiming;

fn candidate(identity: &str) -> Candidate {
    Candidate::new("lease".into(), identity.into(), LeaseTiming::default())
}

fn at(seconds: u64) -> Now {
    Now { clock: Duration::from_secs(seconds), wall: Timestamp::UNIX_EPOCH }
}

/// A lease as another candidate wrote it.
fn lease_of(holder: &str, version: &str) -> Lease {
    let spec = LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(15),
        lease_transitions: Some(3),
        preferred_holder: Some("someone".to_owned()),
        ..LeaseSpec::default()
    };
    let mut lease = Lease { spec: Some(spec), ..Lease::default() };
    lease.metadata.resource_version = Some(version.to_owned());
    lease
}

fn acquire(candidate: &mut Candidate, response: Response, now: Now) -> Step {
    candidate.proceed(Purpose::Acquire, &Request::Get, response, now)
}

fn replaced(step: Step) -> LeaseSpec {
    let Step::Send(Request::Replace(lease) | Request::Create(lease)) = step else { panic!("{step:?}") };
    lease.spec.unwrap()
}

#[test]
fn a_lease_is_taken_over_when_it_was_seen_unchanged_for_its_duration() {
    let mut b = candidate("b");
    let held = |step: &Step| matches!(step, Step::Done(Verdict::HeldBy(holder)) if holder == "a");
    assert!(held(&acquire(&mut b, Response::Lease(lease_of("a", "1")), at(100))));
    assert!(held(&acquire(&mut b, Response::Lease(lease_of("a", "1")), at(114))));
    // Renewed: only the version has changed, because the holder's wall clock stands still.
    assert!(held(&acquire(&mut b, Response::Lease(lease_of("a", "2")), at(115))));
    assert!(held(&acquire(&mut b, Response::Lease(lease_of("a", "2")), at(129))));
    let spec = replaced(acquire(&mut b, Response::Lease(lease_of("a", "2")), at(130)));
    assert_eq!(spec.holder_identity.as_deref(), Some("b"));
    assert_eq!(spec.lease_transitions, Some(4));
    assert_eq!(spec.preferred_holder.as_deref(), Some("someone"), "a field of others is kept");
}

#[test]
fn a_lease_that_was_given_up_is_taken_over_at_once() {
    let spec = replaced(acquire(&mut candidate("b"), Response::Lease(lease_of("", "1")), at(0)));
    assert_eq!(spec.holder_identity.as_deref(), Some("b"));
}

#[test]
fn a_lease_that_is_not_there_is_created_but_not_before_the_seen_one_would_expire() {
    let spec = replaced(acquire(&mut candidate("b"), Response::NotFound, at(0)));
    assert_eq!((spec.lease_transitions, spec.lease_duration_seconds), (Some(0), Some(15)));
    let mut c = candidate("c");
    acquire(&mut c, Response::Lease(lease_of("a", "1")), at(0));
    assert!(matches!(acquire(&mut c, Response::NotFound, at(14)), Step::Done(Verdict::HeldBy(_))));
    assert!(matches!(acquire(&mut c, Response::NotFound, at(15)), Step::Send(Request::Create(_))));
}

#[test]
fn a_holder_renews_without_reading_and_reads_if_that_fails() {
    let mut a = candidate("a");
    let get = a.begin(Purpose::Acquire, at(0));
    assert!(matches!(get, Request::Get));
    let Step::Send(create) = a.proceed(Purpose::Acquire, &get, Response::NotFound, at(0)) else { panic!() };
    let mut written = lease_of("a", "1");
    assert!(matches!(
        a.proceed(Purpose::Acquire, &create, Response::Lease(written.clone()), at(0)),
        Step::Done(Verdict::Held)
    ));
    let unread = a.begin(Purpose::Renew, at(2));
    assert!(
        matches!(&unread, Request::ReplaceUnread(lease) if lease.metadata.resource_version.as_deref() == Some("1"))
    );
    let Step::Send(get @ Request::Get) = a.proceed(Purpose::Renew, &unread, Response::Failed, at(2)) else { panic!() };
    // Someone has added an annotation.
    written.metadata.resource_version = Some("2".to_owned());
    let step = a.proceed(Purpose::Renew, &get, Response::Lease(written), at(2));
    assert_eq!(replaced(step).lease_transitions, Some(3), "no transition");
}

#[test]
fn a_holder_that_reads_another_one_has_lost_also_if_that_lease_has_expired() {
    let mut a = candidate("a");
    acquire(&mut a, Response::Lease(lease_of("a", "1")), at(0));
    for holder in ["b", ""] {
        let read = Response::Lease(lease_of(holder, "2"));
        let step = a.proceed(Purpose::Renew, &Request::Get, read, at(1_000));
        assert!(matches!(step, Step::Done(Verdict::HeldBy(other)) if other == holder));
    }
}

#[test]
fn a_holder_notices_another_process_with_its_identity() {
    let mut a = candidate("a");
    acquire(&mut a, Response::Lease(lease_of("a", "1")), at(0));
    let mut other = lease_of("a", "2");
    let acquired = Timestamp::UNIX_EPOCH;
    other.spec.as_mut().unwrap().acquire_time =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(acquired));
    let step = a.proceed(Purpose::Renew, &Request::Get, Response::Lease(other), at(1));
    assert!(matches!(step, Step::Done(Verdict::HeldBy(holder)) if holder == "a"));
}

#[test]
fn a_released_lease_has_no_holder_and_a_second_to_live() {
    let a = candidate("a");
    let released = a.released(lease_of("a", "1"), at(0)).unwrap().spec.unwrap();
    assert_eq!((released.holder_identity.as_deref(), released.lease_duration_seconds), (Some(""), Some(1)));
    assert!(a.released(lease_of("b", "1"), at(0)).is_none());
}
