//! Checks that an interrupted or failed run leaves nothing behind.

use std::collections::BTreeMap;
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

const TIMEOUT: Duration = Duration::from_secs(120);

/// Starts control planes as separate processes and ends them by interruption and by failure; also
/// interrupts a running test.
pub(crate) async fn run(release: Release) -> Result<String, Error> {
    let interrupted = Serving::start(release).await?;
    signal(interrupted.process()?, "INT").await?;
    interrupted.left_nothing("interrupted").await?;
    let failed = Serving::start(release).await?;
    for process in processes_of(&failed.folder, "kube-apiserver").await? {
        signal(process, "KILL").await?;
    }
    failed.left_nothing("kube-apiserver has ended").await?;
    interrupted_while_judging(release).await?;
    Ok("interrupted by Ctrl-C while serving and while judging, and failed because kube-apiserver was killed: no process and no file \
        left"
        .to_owned())
}

/// Interrupts a run while the conformance suite, another process, is running.
async fn interrupted_while_judging(release: Release) -> Result<(), Error> {
    // All its descendants inherit its environment, by which they are found even if their parent has
    // ended.
    let folder = tempfile::TempDir::with_prefix("kube-e2e-judging-")?;
    let mut command = e2e(release)?;
    command.arg("conformance/real").env("TMPDIR", folder.path()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.kill_on_drop(true).spawn()?;
    let process = child.id().ok_or("the run has ended by itself")?;
    let suite_runs = async {
        while !heirs_of(folder.path()).await?.iter().any(|line| line.contains("/conformance-")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok::<_, Error>(())
    };
    timeout(TIMEOUT, suite_runs).await.map_err(|_| "the suite does not begin")??;
    signal(process, "INT").await?;
    let output = timeout(TIMEOUT, child.wait_with_output()).await??;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(1) || !said.contains("interrupted") {
        return Err(format!("a run that judges ended with {}, saying {said:?}", output.status).into());
    }
    let left = heirs_of(folder.path()).await?;
    if !left.is_empty() {
        return Err(format!("a run that judges left {left:?}").into());
    }
    match fs::read_dir(folder.path()).await?.next_entry().await? {
        Some(entry) => Err(format!("a run that judges left {}", entry.path().display()).into()),
        None => Ok(()),
    }
}

/// A command that runs this program.
fn e2e(release: Release) -> Result<Command, Error> {
    let mut command = Command::new(std::env::current_exe()?);
    if release == Release::Old {
        command.arg("--old");
    }
    Ok(command)
}

/// Checks that without Go a run fails with a message that explains what is missing and how to
/// install it.
pub(crate) async fn without_go(release: Release) -> Result<String, Error> {
    let nowhere = tempfile::TempDir::with_prefix("kube-e2e-")?;
    let output = e2e(release)?.arg("differential/real").env("PATH", nowhere.path()).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    let explains = ["Go is missing", "https://go.dev/dl", "KUBECONFIG"].iter().all(|part| said.contains(part));
    if output.status.code() != Some(1) || !explains {
        return Err(format!("it ended with {}, saying {said:?}", output.status).into());
    }
    Ok("fails, and says how to get it".to_owned())
}

/// A run with the command `serve`.
struct Serving {
    child: Child,
    /// Its data folder.
    folder: PathBuf,
    said: Lines<BufReader<ChildStdout>>,
}

impl Serving {
    async fn start(release: Release) -> Result<Self, Error> {
        let mut command = e2e(release)?;
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
        let folder = timeout(TIMEOUT, found).await??.ok_or("the control plane did not come up")?;
        if processes_of(&folder, "etcd").await?.is_empty() || processes_of(&folder, "kube-apiserver").await?.is_empty()
        {
            return Err("a control plane that runs cannot be seen: is there no /proc?".into());
        }
        Ok(Self { child, folder, said })
    }

    fn process(&self) -> Result<u32, Error> {
        self.child.id().ok_or_else(|| "the run has ended by itself".into())
    }

    /// Waits for the process to fail with this reason, and checks that nothing is left.
    async fn left_nothing(mut self, why: &str) -> Result<(), Error> {
        while self.said.next_line().await?.is_some() {}
        let output = timeout(TIMEOUT, self.child.wait_with_output()).await??;
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

/// The processes with this name whose command line contains this folder.
async fn processes_of(folder: &Path, name: &str) -> Result<Vec<u32>, Error> {
    let folder = folder.display().to_string();
    let is_own = |(line, _): &(String, String)| {
        line.contains(&folder) && line.split('\0').next().unwrap_or_default().ends_with(name)
    };
    Ok(processes().await?.into_iter().filter(|(_, process)| is_own(process)).map(|(process, _)| process).collect())
}

/// The command lines of processes that inherited this folder as their temporary folder.
async fn heirs_of(folder: &Path) -> Result<Vec<String>, Error> {
    let variable = format!("TMPDIR={}", folder.display());
    let inherited = |(_, environment): &(String, String)| environment.split('\0').any(|set| set == variable);
    Ok(processes().await?.into_values().filter(inherited).map(|(line, _)| line.replace('\0', " ")).collect())
}

/// The command line and the environment of every accessible process.
async fn processes() -> Result<BTreeMap<u32, (String, String)>, Error> {
    let mut found = BTreeMap::new();
    let mut all = fs::read_dir("/proc").await.map_err(|error| format!("reading /proc: {error}"))?;
    while let Some(entry) = all.next_entry().await? {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // The process may have ended, or belong to another user.
        let Ok(line) = fs::read(entry.path().join("cmdline")).await else { continue };
        let environment = fs::read(entry.path().join("environ")).await.unwrap_or_default();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        found.insert(process, (text(&line), text(&environment)));
    }
    Ok(found)
}
