//! `kubectl-informer` with a real kubectl: as its plugin, and as its server.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::Error;
use crate::binaries::Binaries;
use crate::built::Built;
use crate::forms;

/// The built `kubectl-informer`, and a kubectl that finds it.
#[derive(Debug)]
pub(crate) struct Plugin {
    program: PathBuf,
    kubectl: PathBuf,
    path: OsString,
}

impl Plugin {
    pub(crate) fn new(built: &Built, binaries: &Binaries) -> Result<Self, Error> {
        let program = built.command.clone();
        let own = program.parent().map(Path::to_owned).into_iter();
        let path =
            std::env::join_paths(own.chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())))?;
        Ok(Self { program, kubectl: binaries.path("kubectl"), path })
    }

    /// Checks that `kubectl informer` prints the same as kubectl on the real server.
    pub(crate) async fn on_real(&self, kubeconfig: &Path) -> Result<String, Error> {
        let mut compared = 0;
        for kind in ["services", "apiservices", "flowschemas", "prioritylevelconfigurations", "priorityclasses"] {
            let theirs = sorted(&self.kubectl(kubeconfig, &["get", kind, "-A", "-o", "name"]).await?);
            let ours = [
                self.kubectl(kubeconfig, &["informer", "get", kind, "-A", "-o", "name"]).await?,
                self.kubectl(kubeconfig, &["informer", "watch", kind, "-A", "-o", "name", "--until", "synced"]).await?,
            ];
            for printed in &ours {
                if sorted(printed) != theirs {
                    return Err(format!("{kind}: kubectl prints {theirs:?}, kubectl-informer {printed:?}").into());
                }
            }
            compared += theirs.len();
        }
        Ok(format!("{compared} objects of five kinds, printed alike"))
    }

    /// Checks that `get` prints what kubectl prints, and that kubectl completes with the plugin.
    pub(crate) async fn forms(&self, kubeconfig: &Path) -> Result<String, Error> {
        let printed = forms::run(&self.kubectl, &self.program, kubeconfig).await?;
        self.completions(kubeconfig).await?;
        Ok(printed)
    }

    /// Checks that kubectl gets candidates from the plugin, as its completions in a shell do.
    async fn completions(&self, kubeconfig: &Path) -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("kubectl_complete-informer");
        tokio::fs::write(&file, self.kubectl(kubeconfig, &["informer", "completions", "--kubectl"]).await?).await?;
        tokio::fs::set_permissions(&file, Permissions::from_mode(0o755)).await?;
        let path =
            std::env::join_paths(std::iter::once(folder.path().to_owned()).chain(std::env::split_paths(&self.path)))?;
        for (words, expected) in [
            (&["informer", "get", "flowsch"][..], "flowschemas\n"),
            (&["informer", "get", "priorityclasses", "system-n"], "system-node-critical\n"),
            (&["informer", "watch", "pods", "--no-in"], "--no-initial\t"),
        ] {
            let completed = Command::new(&self.kubectl)
                .arg("__complete")
                .args(words)
                .env("KUBECONFIG", kubeconfig)
                .env("PATH", &path)
                .stdin(Stdio::null())
                .kill_on_drop(true)
                .output()
                .await?;
            let said = String::from_utf8(completed.stdout)?;
            expect(said.starts_with(expected), &format!("candidates for {words:?}: {said:?}"))?;
        }
        Ok(())
    }

    /// Checks that a real kubectl can read, write and delete on the simulated cluster of
    /// `kubectl-informer apiserver`.
    pub(crate) async fn as_server(&self) -> Result<String, Error> {
        let folder = tempfile::tempdir()?;
        let kubeconfig = folder.path().join("kubeconfig");
        let mut server = self.serve(&kubeconfig).await?;
        let kubectl = |arguments: &'static [&'static str]| self.kubectl(&kubeconfig, arguments);
        expect(sorted(&kubectl(&["get", "nodes", "-o", "name"]).await?).len() == 2, "two nodes")?;
        let pods = kubectl(&["get", "pods", "-A"]).await?;
        let head: Vec<&str> = pods.lines().next().unwrap_or_default().split_whitespace().collect();
        expect(head == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"], &format!("a table: {head:?}"))?;
        kubectl(&["create", "configmap", "a", "--from-literal", "k=v"]).await?;
        kubectl(&["label", "configmap", "a", "tier=gold"]).await?;
        let printed = kubectl(&["get", "cm", "-l", "tier=gold", "-o", "jsonpath={.items[*].data.k}"]).await?;
        expect(printed == "v", &format!("what was written: {printed:?}"))?;
        let printed = kubectl(&["informer", "get", "cm", "a", "--no-headers"]).await?;
        expect(printed.starts_with("a "), &format!("the plugin's table: {printed:?}"))?;
        kubectl(&["delete", "configmap", "a"]).await?;
        self.control(&kubeconfig).await?;
        if let Some(id) = server.id() {
            Command::new("kill").args(["-TERM", &id.to_string()]).status().await?;
        }
        let status = server.wait().await?;
        expect(status.success(), &format!("a clean exit: {status}"))?;
        Ok(format!("{} pods on two nodes, read and written by kubectl", pods.lines().count() - 1))
    }

    /// Checks that the simulated controllers react to kubectl, for a new deployment and for a
    /// simulated one.
    async fn control(&self, kubeconfig: &Path) -> Result<(), Error> {
        let kubectl = |words: String| async move {
            let words: Vec<&str> = words.split(' ').collect();
            self.kubectl(kubeconfig, &words).await
        };
        kubectl("create deployment mine --image nginx:1.27 --replicas 2 --port 80".to_owned()).await?;
        kubectl("expose deployment mine --port 80".to_owned()).await?;
        let all =
            kubectl("get deployments -A --no-headers -o custom-columns=:metadata.namespace,:metadata.name".to_owned())
                .await?;
        let others = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let other = others.into_iter().find(|key| !key.starts_with("default ")).ok_or("a simulated deployment")?;
        for key in ["default mine", &other] {
            let (namespace, name) = key.split_once(' ').ok_or("a namespace and a name")?;
            let on = |rest: &str| kubectl(format!("-n {namespace} {}", rest.replace("NAME", name)));
            let done = || on("rollout status deployment/NAME --timeout=60s");
            done().await?;
            on("set image deployment/NAME *=example.com/new:2").await?;
            done().await?;
            on("rollout undo deployment/NAME").await?;
            done().await?;
            on("scale deployment/NAME --replicas 3").await?;
            done().await?;
            on("wait deployment/NAME --for=jsonpath={.status.readyReplicas}=3 --timeout=60s").await?;
        }
        kubectl("delete deployment mine --cascade=foreground --timeout=60s".to_owned()).await?;
        let left = kubectl("get pods,replicasets -o name".to_owned()).await?;
        expect(left.is_empty(), &format!("nothing left: {left:?}"))
    }

    /// Starts the server, and waits until it reports that it serves.
    async fn serve(&self, kubeconfig: &Path) -> Result<Child, Error> {
        let mut server = Command::new(&self.program)
            .args(["apiserver", "--pretend", "--size", "2", "--write-kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut said = BufReader::new(server.stderr.take().ok_or("no standard error")?).lines();
        let first = said.next_line().await?.unwrap_or_default();
        expect(first.starts_with("serving on "), &format!("a server: {first:?}"))?;
        Ok(server)
    }

    async fn kubectl(&self, kubeconfig: &Path, arguments: &[&str]) -> Result<String, Error> {
        let output = Command::new(&self.kubectl)
            .args(arguments)
            .env("KUBECONFIG", kubeconfig)
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("kubectl {} failed: {said}", arguments.join(" ")).into());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

fn sorted(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn expect(holds: bool, what: &str) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(format!("expected {what}").into()) }
}
