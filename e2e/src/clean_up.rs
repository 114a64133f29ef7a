//! Nothing is left of a run that was interrupted, nor of one that failed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::fs;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::Error;
use crate::choice::Release;
use crate::program::signal;

const PATIENCE: Duration = Duration::from_secs(120);

/// Runs control planes as processes of their own, and ends them in both ways.
pub(crate) async fn run(release: Release) -> Result<String, Error> {
    let interrupted = Serving::start(release).await?;
    signal(interrupted.process()?, "INT").await?;
    interrupted.left_nothing("interrupted").await?;
    let failed = Serving::start(release).await?;
    for process in processes_of(&failed.folder, "kube-apiserver").await? {
        signal(process, "KILL").await?;
    }
    failed.left_nothing("kube-apiserver has ended").await?;
    Ok("interrupted by Ctrl-C, and failed because kube-apiserver was killed: no process and no file left".to_owned())
}

/// A run that only serves.
struct Serving {
    child: Child,
    /// Where it keeps everything.
    folder: PathBuf,
    said: Lines<BufReader<ChildStdout>>,
}

impl Serving {
    async fn start(release: Release) -> Result<Self, Error> {
        let mut command = Command::new(std::env::current_exe()?);
        if release == Release::Old {
            command.arg("--old");
        }
        let mut child =
            command.arg("serve").stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut said = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
        let found = async {
            while let Some(line) = said.next_line().await? {
                if let Some(kubeconfig) = line.strip_prefix("export KUBECONFIG=") {
                    return Ok(Path::new(kubeconfig).parent().map(Path::to_owned));
                }
            }
            Ok::<_, Error>(None)
        };
        let folder = timeout(PATIENCE, found).await??.ok_or("the control plane did not come up")?;
        if processes_of(&folder, "etcd").await?.is_empty() || processes_of(&folder, "kube-apiserver").await?.is_empty()
        {
            return Err("a control plane that runs cannot be seen: is there no /proc?".into());
        }
        Ok(Self { child, folder, said })
    }

    fn process(&self) -> Result<u32, Error> {
        self.child.id().ok_or_else(|| "the run has ended by itself".into())
    }

    /// Waits for the end, which must be a failure that says why, and looks for what is left.
    async fn left_nothing(mut self, why: &str) -> Result<(), Error> {
        while self.said.next_line().await?.is_some() {}
        let output = timeout(PATIENCE, self.child.wait_with_output()).await??;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.code() != Some(1) || !said.contains(why) {
            return Err(format!("it ended with {}, saying {said:?}", output.status).into());
        }
        if fs::try_exists(&self.folder).await? {
            return Err(format!("{} is left", self.folder.display()).into());
        }
        let left = processes_of(&self.folder, "").await?;
        if left.is_empty() { Ok(()) } else { Err(format!("processes {left:?} are left").into()) }
    }
}

/// The processes of this name that were told of this folder.
async fn processes_of(folder: &Path, name: &str) -> Result<Vec<u32>, Error> {
    let folder = folder.display().to_string();
    let mut found = Vec::new();
    let mut all = fs::read_dir("/proc").await.map_err(|error| format!("reading /proc: {error}"))?;
    while let Some(entry) = all.next_entry().await? {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // It may have ended meanwhile.
        let Ok(line) = fs::read(entry.path().join("cmdline")).await else { continue };
        let line = String::from_utf8_lossy(&line);
        let program = line.split('\0').next().unwrap_or_default();
        if line.contains(&folder) && program.ends_with(name) {
            found.push(process);
        }
    }
    Ok(found)
}
