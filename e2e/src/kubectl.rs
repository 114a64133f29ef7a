//! An unmodified kubectl against the real and the embedded server: its output must be the same.

use std::path::Path;
use std::time::Duration;

use kube_embedded::Server;
use kube_embedded::access::{Access, User};
use tempfile::TempDir;
use tokio::fs;
use tokio::process::Command;

use crate::Error;
use crate::binaries::Binaries;
use crate::control_plane::ControlPlane;

/// The commands, with known differences of their outputs.
const SCRIPT: &str = include_str!("kubectl.txt");

/// The namespace of all objects.
const NAMESPACE: &str = "kubectl-e2e";

/// Timeout of a command.
const TIMEOUT: Duration = Duration::from_secs(60);

const TOKEN: &str = "kubectl-admin";

/// Runs every command against both. Returns how many agreed.
pub(crate) async fn run(binaries: &Binaries, control_plane: &ControlPlane) -> Result<String, Error> {
    let script = Script::parse(SCRIPT);
    let folder = TempDir::with_prefix("kube-e2e-kubectl-")?;
    for (name, content) in &script.files {
        fs::write(folder.path().join(name), content).await?;
    }
    let access = Access::closed().token(TOKEN, User::new("admin").uid("1").group("system:masters"));
    let server = Server::builder().tls().access(access).start().await?;
    let embedded = folder.path().join("embedded.yaml");
    fs::write(&embedded, server.kubeconfig_for(TOKEN)).await?;
    let real = control_plane.kubeconfig();
    let mut differences = Vec::new();
    for step in &script.steps {
        let (real, embedded) = tokio::try_join!(
            kubectl(binaries, folder.path(), &real, "real", &step.arguments),
            kubectl(binaries, folder.path(), &embedded, "embedded", &step.arguments),
        )?;
        let command = step.arguments.join(" ");
        match (real == embedded, &step.differs) {
            (true, None) | (false, Some(_)) => {}
            (true, Some(reason)) => differences.push(format!("kubectl {command}\nagrees, though listed: {reason}")),
            (false, None) => {
                differences.push(format!("kubectl {command}\n--- real\n{real}\n--- embedded\n{embedded}"));
            }
        }
    }
    server.shutdown().await;
    if !differences.is_empty() {
        let count = differences.len();
        return Err(format!("{count} commands differ:\n\n{}", differences.join("\n\n")).into());
    }
    let listed = script.steps.iter().filter(|step| step.differs.is_some()).count();
    Ok(format!("{} commands, {listed} differ as listed", script.steps.len()))
}

/// The files and commands of the script.
#[derive(Debug, Default)]
struct Script {
    files: Vec<(String, String)>,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    arguments: Vec<String>,
    /// Why the outputs differ.
    differs: Option<String>,
}

impl Script {
    fn parse(text: &str) -> Self {
        let mut script = Self::default();
        let mut differs = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("file ") {
                script.files.push((name.to_owned(), String::new()));
            } else if let (Some(content), Some((_, file))) = (line.strip_prefix("  "), script.files.last_mut()) {
                file.push_str(content);
                file.push('\n');
            } else if let Some(reason) = line.strip_prefix("differs ") {
                differs = Some(reason.to_owned());
            } else if let Some(command) = line.strip_prefix("$ ") {
                let words = command.split(' ').map(|word| word.replace("NS", NAMESPACE));
                // A schedule is one argument that contains spaces.
                let arguments =
                    words.map(|word| if word.contains("--schedule=") { word.replace('_', " ") } else { word });
                script.steps.push(Step { arguments: arguments.collect(), differs: differs.take() });
            }
        }
        script
    }
}

/// Runs a command. Returns its masked output and exit status.
async fn kubectl(
    binaries: &Binaries,
    folder: &Path,
    kubeconfig: &Path,
    whose: &str,
    arguments: &[String],
) -> Result<String, Error> {
    // Separate home folders, so that kubectl's discovery caches of the two servers do not mix.
    let home = folder.join(whose);
    fs::create_dir_all(&home).await?;
    let running = Command::new(binaries.path("kubectl"))
        .args(arguments)
        .current_dir(folder)
        .env("KUBECONFIG", kubeconfig)
        .env("HOME", &home)
        .env("KUBECACHEDIR", home.join("cache"))
        .env("KUBE_EDITOR", "sed -i s/nginx/edited/")
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(TIMEOUT, running)
        .await
        .map_err(|_| format!("kubectl {} takes longer than {TIMEOUT:?}", arguments.join(" ")))??;
    let code = output.status.code().unwrap_or(-1);
    let (said, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Ok(format!("{}{}exit code {code}", masked(&said), masked(&failed)))
}

/// Replaces the parts of a text that differ between runs.
fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    for line in text.lines() {
        // The width of a column depends on its longest cell.
        let words: Vec<String> = line.split(' ').filter(|word| !word.is_empty()).map(mask).collect();
        let indent = line.len() - line.trim_start().len();
        masked.push_str(&" ".repeat(indent));
        masked.push_str(&words.join(" "));
        masked.push('\n');
    }
    masked
}

/// A word, or its type if it varies.
fn mask(word: &str) -> String {
    let bare = word.trim_matches(|c: char| "\"',:;()[]{}".contains(c));
    let masked = match bare {
        _ if is_uid(bare) => "UID",
        _ if is_time(bare) => "TIME",
        _ if is_age(bare) => "AGE",
        _ if bare.starts_with("/tmp/") || bare.starts_with("10.96.") => "SOMEWHERE",
        // A resource version, or a number of several digits, which may be one.
        _ if (bare.len() > 1 || word.contains('"')) && bare.parse::<u64>().is_ok() => "NUMBER",
        _ => return word.to_owned(),
    };
    word.replace(bare, masked)
}

fn is_uid(word: &str) -> bool {
    word.len() == 36 && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// `2026-01-01T00:00:00Z`, `2026-01-01`, `15:04:05.123`
fn is_time(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    digits >= 6
        && word.bytes().all(|byte| byte.is_ascii_digit() || b"-:.TZ".contains(&byte))
        && word.contains(['-', ':'])
}

/// `12s`, `3m20s`, `2y12d`
pub(crate) fn is_age(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.ends_with(['s', 'm', 'h', 'd', 'y'])
        && word.bytes().all(|byte| byte.is_ascii_digit() || b"smhdy".contains(&byte))
}
