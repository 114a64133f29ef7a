use super::Api;
use std::future::Future;
use std::pin::Pin;

/// One fact and the function that checks it.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) fact: &'static str,
    pub(crate) pace: Pace,
    pub(crate) check: fn(Api) -> Pin<Box<dyn Future<Output = ()> + Send>>,
}

/// The normal duration of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Quick,
    /// Waits a few seconds of real time; started before the others.
    Slow,
    /// Waits a minute; skipped without `--include-ignored`.
    Minute,
}

/// `case!(function, "the fact")`, or `case!(Slow function, "the fact")`.
macro_rules! case {
    ($check:ident, $fact:literal) => {
        case!(Quick $check, $fact)
    };
    ($pace:ident $check:ident, $fact:literal) => {
        $crate::harness::Case {
            name: concat!(module_path!(), "::", stringify!($check)),
            fact: $fact,
            pace: $crate::harness::Pace::$pace,
            check: |api| Box::pin($check(api)),
        }
    };
}
pub(crate) use case;
