//! The examples of kube-controller as processes on the real server, which are killed, as the server
//! is: `foo` beside client-go's sample-controller, `website` beside a run without disturbances.
//! What both leave must be the same objects.

mod foo;
mod objects;
mod supervised;
mod website;

pub(crate) use self::foo::run as foo;
pub(crate) use self::website::run as website;

use crate::Error;
use crate::control_plane::ControlPlane;

/// Kills the server, and starts it again.
async fn restart_server(control_plane: &mut ControlPlane) -> Result<(), Error> {
    control_plane.apiserver.kill().await?;
    control_plane.apiserver.start()?;
    control_plane.ready().await?;
    Ok(())
}
