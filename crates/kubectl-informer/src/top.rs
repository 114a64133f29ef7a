//! stub
use crate::args::Top;
use crate::failure::Failure;
pub(crate) async fn run(_args: Top) -> Result<(), Failure> { Ok(()) }
