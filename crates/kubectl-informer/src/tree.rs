//! stub
use crate::args::Tree;
use crate::failure::Failure;
pub(crate) async fn run(_args: Tree) -> Result<(), Failure> { Ok(()) }
