//! The reflector: lists, watches and failures, on scripted sources and on the embedded server.

mod faults;
mod list_watch;
mod rig;
mod server;
mod simulation;
mod source;
