//! What happens to the requests of the models.

use std::time::Duration;

use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;

/// What happens to one request.
pub(crate) struct RequestPlan {
    pub(crate) connect: Duration,
    pub(crate) arrives: Duration,
    pub(crate) returns: Duration,
    pub(crate) is_request_lost: bool,
    pub(crate) is_response_lost: bool,
}

impl RequestPlan {
    /// `loss` is how likely a request, and a response, is lost; without faults it is `None`, and
    /// nothing is slow either.
    pub(crate) fn new(rng: &mut Pcg64Mcg, loss: Option<f64>) -> Self {
        let mut wait = || {
            let longest = if loss.is_some() && rng.random_bool(0.05) { 20.0 } else { 0.05 };
            Duration::from_secs_f64(rng.random_range(0.0..longest))
        };
        let (connect, arrives, returns) = (wait(), wait(), wait());
        let mut is_lost = || loss.is_some_and(|loss| rng.random_bool(loss));
        Self { connect, arrives, returns, is_request_lost: is_lost(), is_response_lost: is_lost() }
    }
}
