//! A controller that is started again whenever it has ended.

use std::path::Path;

use tempfile::TempDir;

use crate::Error;
use crate::informer::eventually;
use crate::program::Program;

/// A controller in a process of its own. When it ends by itself it is started again, as a
/// Deployment does.
pub(super) struct Supervised {
    program: Program,
    /// How often it was started again, for any reason.
    pub(super) restarts: usize,
    _folder: TempDir,
}

impl Supervised {
    pub(super) fn start(name: &'static str, path: &Path, arguments: Vec<String>) -> Result<Self, Error> {
        let folder = TempDir::with_prefix("kube-e2e-controllers-")?;
        let mut program = Program::new(name, path.to_owned(), folder.path(), arguments);
        program.start()?;
        Ok(Self { program, restarts: 0, _folder: folder })
    }

    /// Kills it, lets something happen meanwhile, and starts it again.
    pub(super) async fn killed_during(
        &mut self,
        meanwhile: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        self.program.kill().await?;
        meanwhile.await?;
        self.restarts += 1;
        self.program.start()
    }

    /// Waits until a check succeeds.
    pub(super) async fn until(
        &mut self,
        what: &str,
        mut check: impl AsyncFnMut() -> Result<(), String>,
    ) -> Result<(), Error> {
        let Self { program, restarts, .. } = self;
        let checked = eventually(what, async || {
            if program.ended().map_err(|error| error.to_string())?.is_some() {
                *restarts += 1;
                program.start().map_err(|error| error.to_string())?;
            }
            check().await
        });
        match checked.await {
            Ok(()) => Ok(()),
            Err(error) => Err(format!("{error}\n{}", self.program.last_lines().await).into()),
        }
    }

    /// Terminates it.
    pub(super) async fn stop(mut self) -> Result<(), Error> {
        match self.program.stop().await? {
            Some(status) if !status.success() => {
                Err(format!("it ended with {status}\n{}", self.program.last_lines().await).into())
            }
            _ => Ok(()),
        }
    }
}
