//! The test harness: a client, unique names on the server, and the runner.

mod answer;
mod api;
mod case;
mod client;
mod documentation;
mod runner;
mod stream;
mod target;
mod template;
mod wire;

pub(crate) use answer::{Answer, failure, invalid_list_options};
pub(crate) use api::{Api, Definition, Namespace, Request, configmap};
pub(crate) use case::{Case, Pace, case};
pub(crate) use runner::run;
pub(crate) use stream::Stream;
pub(crate) use target::IMPERSONATOR_MAY;
pub(crate) use template::matches;
pub(crate) use wire::Message;
