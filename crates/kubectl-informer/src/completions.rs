//! Shell completions, with kinds, objects, namespaces and contexts of the cluster.
//!
//! The shell calls the command with the words so far, through a script of `clap_complete` or as
//! kubectl calls plugins; both complete with the same engine.

mod candidates;
mod words;

use std::env;
use std::ffi::OsString;

use clap::CommandFactory as _;
use clap_complete::engine::complete;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate};

pub(crate) use self::candidates::{clusters, contexts, kinds, kinds_and_names, namespaces, objects, users};
use self::words::remember;
use crate::args::{Cli, Completions};
use crate::failure::Failure;
use crate::terminal::document::Document;
use crate::terminal::output::Output;
use crate::terminal::paint::When;
use crate::terminal::terminal_text::visible;

const NAME: &str = "kubectl-informer";
/// The variable with the name of the shell, by which its script asks for candidates.
const VARIABLE: &str = "KUBECTL_INFORMER_COMPLETE";
/// Script that kubectl runs with the words after `kubectl informer`; the last word is incomplete.
const KUBECTL: &str = "#!/bin/sh\n# Completions of `kubectl informer`. Put it on the PATH, executable.\nexec kubectl-informer completions --words \"$@\"\n";
/// Cobra's `ShellCompDirectiveNoFileComp`: no completion of file names.
const NO_FILES: &str = ":4";

/// Prints candidates if a shell's script asks for them. Returns whether it did.
pub(crate) fn answer_shell() -> Result<bool, Failure> {
    if env::var_os(VARIABLE).is_none() {
        return Ok(false);
    }
    let words: Vec<OsString> = env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let index = env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
    remember(&words, index.unwrap_or(words.len().saturating_sub(1)));
    let current = env::current_dir().ok();
    CompleteEnv::with_factory(Cli::command)
        .var(VARIABLE)
        .try_complete(env::args_os(), current.as_deref())
        .map_err(|error| Failure::Other(error.to_string()))
}

pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    let text = if let Some(words) = &args.words {
        for_kubectl(words)?
    } else if args.kubectl {
        KUBECTL.to_owned()
    } else if let Some(shell) = args.shell {
        registration(&shell.to_string())?
    } else {
        String::new()
    };
    let mut out = Output::new(When::Never);
    out.document(&Document::own(text))?;
    Ok(out.flush()?)
}

/// The script that makes a shell ask for candidates.
fn registration(shell: &str) -> Result<String, Failure> {
    let shells = Shells::builtins();
    let shell = shells.completer(shell).ok_or_else(|| Failure::Usage(format!("no completions for {shell}")))?;
    let program = env::current_exe()?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, NAME, NAME, &program.to_string_lossy(), &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Candidates for the last word, one per line with its description, as kubectl reads them.
fn for_kubectl(words: &[String]) -> Result<String, Failure> {
    let words: Vec<OsString> =
        std::iter::once(NAME).chain(words.iter().map(String::as_str)).map(OsString::from).collect();
    let index = words.len().saturating_sub(1).max(1);
    remember(&words, index);
    let mut words = words;
    words.resize(words.len().max(2), OsString::new());
    let found = complete(&mut Cli::command(), words, index, env::current_dir().ok().as_deref())?;
    let line = |candidate: &CompletionCandidate| {
        let value = candidate.get_value().to_string_lossy().into_owned();
        match candidate.get_help().and_then(|help| help.to_string().lines().next().map(str::to_owned)) {
            Some(help) if !help.is_empty() => format!("{}\t{}", visible(&value), visible(&help)),
            _ => visible(&value).into_owned(),
        }
    };
    let shown = found.iter().filter(|candidate| !candidate.is_hide_set());
    let lines: Vec<String> = shown.map(line).chain([NO_FILES.to_owned()]).collect();
    Ok(lines.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_options_are_completed_at_every_level() {
        let named = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let text = for_kubectl(&words).unwrap();
            text.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(named(&["d"]), ["demo", ":4"]);
        assert!(named(&["watch", "--no"]).contains(&"--no-initial".to_owned()));
        assert!(named(&["-n", "web", "get", "--sor"]).contains(&"--sort-by".to_owned()));
        assert!(named(&["get", "pods", "-o", "js"]).contains(&"json".to_owned()));
        assert_eq!(named(&["nonsense", "zz"]), [":4"]);
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
