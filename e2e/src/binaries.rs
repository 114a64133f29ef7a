//! The programs of the real control plane, built once and cached.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::fs;
use tokio::process::Command;

use crate::Error;
use crate::choice::Release;

/// The built programs.
#[derive(Debug)]
pub(crate) struct Binaries {
    folder: PathBuf,
    /// The version they report.
    pub(crate) version: String,
}

impl Binaries {
    /// Builds what is missing. Cached programs are identified by a hash of the module's files.
    pub(crate) async fn ensure(workspace: &Path, release: Release) -> Result<Self, Error> {
        let module = workspace.join(release.module());
        let version = kubernetes_version(&module).await?;
        let folder = folder_of(workspace, &module, &["go.mod", "go.sum", "etcd/main.go"]).await?;
        let stamp = stamp(&version);
        let binaries = Self { folder, version };
        for (name, package) in [
            ("etcd", "./etcd"),
            ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
            ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
        ] {
            if !fs::try_exists(binaries.path(name)).await? {
                build(&module, name, package, &binaries.path(name), &stamp).await?;
            }
        }
        println!("e2e: kube-apiserver {} is built", binaries.version);
        Ok(binaries)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Builds client-go's informer program, which prints its events, unless it is cached.
pub(crate) async fn client_go_informer(workspace: &Path) -> Result<PathBuf, Error> {
    let module = workspace.join("e2e/client-go");
    let program = folder_of(workspace, &module, &["go.mod", "go.sum", "main.go"]).await?.join("client-go-informer");
    if !fs::try_exists(&program).await? {
        build(&module, "client-go-informer", ".", &program, "-s -w").await?;
    }
    Ok(program)
}

/// Third-party programs, and one built on a third-party library.
#[derive(Debug)]
pub(crate) struct Programs {
    /// client-go's sample controller.
    pub(crate) sample_controller: PathBuf,
    /// The examples of the sample controller.
    pub(crate) samples: PathBuf,
    /// A manager built with controller-runtime.
    pub(crate) manager: PathBuf,
}

/// Builds these programs, unless they are cached.
pub(crate) async fn programs(workspace: &Path) -> Result<Programs, Error> {
    // Two steps need them concurrently.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_AT_A_TIME.lock().await;
    let module = workspace.join("e2e/programs");
    let folder = folder_of(workspace, &module, &["go.mod", "go.sum", "manager/main.go", "manager/site.go"]).await?;
    for (name, package) in [("sample-controller", "k8s.io/sample-controller"), ("manager", "./manager")] {
        if !fs::try_exists(folder.join(name)).await? {
            build(&module, name, package, &folder.join(name), "-s -w").await?;
        }
    }
    let listed = go(&module)
        .args(["list", "-m", "-f", "{{.Dir}}", "k8s.io/sample-controller"])
        .stderr(Stdio::inherit())
        .output()
        .await?;
    let source = PathBuf::from(String::from_utf8(listed.stdout)?.trim());
    Ok(Programs {
        sample_controller: folder.join("sample-controller"),
        samples: source.join("artifacts/examples"),
        manager: folder.join("manager"),
    })
}

/// The cache folder of programs built from the current files of a module.
async fn folder_of(workspace: &Path, module: &Path, files: &[&str]) -> Result<PathBuf, Error> {
    let folder = workspace.join("target/e2e").join(fingerprint(module, files).await?);
    fs::create_dir_all(&folder).await?;
    Ok(folder)
}

/// A hash of the contents of the module's files.
async fn fingerprint(module: &Path, files: &[&str]) -> Result<String, Error> {
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    for file in files {
        let path = module.join(file);
        hash.update(&fs::read(&path).await.map_err(|error| format!("reading {}: {error}", path.display()))?);
    }
    let mut name = String::new();
    for byte in &hash.finish().as_ref()[..8] {
        write!(name, "{byte:02x}")?;
    }
    Ok(name)
}

async fn kubernetes_version(module: &Path) -> Result<String, Error> {
    let output = go(module)
        .args(["list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes"])
        .stderr(Stdio::inherit())
        .output()
        .await
        .map_err(|error| {
            format!(
                "Go is missing ({error}): the real control plane is built from Go modules. Install Go 1.26 or newer, from \
                 your distribution or from https://go.dev/dl, and see that `go` is in the PATH; or set KUBECONFIG to use a \
                 cluster that is already there"
            )
        })?;
    if !output.status.success() {
        return Err(format!("go cannot read {}: see above", module.display()).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The linker flags that embed the version into the programs.
fn stamp(version: &str) -> String {
    let minor = version.split('.').nth(1).unwrap_or_default();
    let package = "k8s.io/component-base/version";
    // Omitting symbols and debug information halves the link time.
    format!("-s -w -X {package}.gitVersion={version} -X {package}.gitMajor=1 -X {package}.gitMinor={minor}")
}

async fn build(module: &Path, name: &str, package: &str, to: &Path, stamp: &str) -> Result<(), Error> {
    let began = Instant::now();
    let partial = to.with_extension("partial");
    let mut child = go(module)
        .args(["build", "-ldflags", stamp, "-o"])
        .args([partial.as_os_str(), package.as_ref()])
        .kill_on_drop(true)
        .spawn()?;
    loop {
        tokio::select! {
            status = child.wait() => {
                if !status?.success() {
                    return Err(format!("go could not build {name}: see above").into());
                }
                fs::rename(&partial, to).await?;
                println!("e2e: built {name} in {:.0} s", began.elapsed().as_secs_f64());
                return Ok(());
            }
            () = tokio::time::sleep(Duration::from_secs(15)) => {
                println!("e2e: building {name}, {:.0} s so far", began.elapsed().as_secs_f64());
            }
        }
    }
}

fn go(module: &Path) -> Command {
    let mut command = Command::new("go");
    command.current_dir(module).env("CGO_ENABLED", "0");
    command
}
