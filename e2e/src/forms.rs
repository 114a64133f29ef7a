//! `kubectl-informer get` beside `kubectl get`, on the same server at the same time, in every form
//! that both have.

use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use crate::Error;
use crate::kubectl::is_age;

/// The commands.
const SCRIPT: &str = include_str!("forms.txt");
/// The objects that they print.
const OBJECTS: &str = include_str!("forms.yaml");
const NAMESPACE: &str = "command-forms";

/// What a command printed, and whether it succeeded.
#[derive(Debug, PartialEq, Eq)]
struct Printed {
    text: String,
    is_success: bool,
}

/// Runs every command with both programs. Returns how many agreed.
pub(crate) async fn run(kubectl: &Path, command: &Path, kubeconfig: &Path) -> Result<String, Error> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("objects.yaml");
    tokio::fs::write(&file, OBJECTS).await?;
    let file = file.display().to_string();
    for arguments in [&["create", "namespace", NAMESPACE][..], &["create", "-f", &file]] {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let made = run_one(kubectl, kubeconfig, &arguments).await?;
        if !made.is_success {
            return Err(format!("kubectl {}: {}", arguments.join(" "), made.text).into());
        }
    }
    let (mut count, mut differences) = (0, Vec::new());
    for line in SCRIPT.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let words = line.split(' ').map(|word| word.replace("NS", NAMESPACE).replace('_', " "));
        let arguments: Vec<String> = words.collect();
        let (theirs, ours) =
            tokio::try_join!(run_one(kubectl, kubeconfig, &arguments), run_one(command, kubeconfig, &arguments))?;
        count += 1;
        if !is_same(&arguments, &theirs, &ours)? {
            differences.push(format!("{line}\n--- kubectl\n{}\n--- kubectl-informer\n{}", theirs.text, ours.text));
        }
    }
    match differences.as_slice() {
        [] => Ok(format!("{count} commands printed alike")),
        _ => Err(format!("{} of {count} commands differ:\n\n{}", differences.len(), differences.join("\n\n")).into()),
    }
}

fn is_same(arguments: &[String], theirs: &Printed, ours: &Printed) -> Result<bool, Error> {
    let is_yaml = arguments.iter().any(|argument| argument == "yaml") && theirs.is_success && ours.is_success;
    if is_yaml {
        // Where long lines are folded and which keys are quoted does not change what is said.
        let value =
            |printed: &Printed| serde_saphyr::from_str::<Value>(&printed.text).map_err(|error| error.to_string());
        return Ok(value(theirs)? == value(ours)?);
    }
    Ok(theirs == ours || (masked(&theirs.text) == masked(&ours.text) && theirs.is_success == ours.is_success))
}

/// The text without ages, which decide the widths of their columns.
fn masked(text: &str) -> Vec<String> {
    let word = |word: &str| if is_age(word) { "AGE".to_owned() } else { word.to_owned() };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect()
}

async fn run_one(program: &Path, kubeconfig: &Path, arguments: &[String]) -> Result<Printed, Error> {
    let output =
        Command::new(program).args(arguments).env("KUBECONFIG", kubeconfig).kill_on_drop(true).output().await?;
    // Messages are each program's own.
    Ok(Printed { text: String::from_utf8(output.stdout)?, is_success: output.status.success() })
}
