//! Shell completions, with kinds, objects, namespaces, contexts and columns of the cluster.
//!
//! The shell calls the command with the words so far, through a script of `clap_complete` or as
//! kubectl calls plugins; both complete with the same engine.

mod candidates;
mod columns;
mod words;

use std::env;
use std::ffi::OsString;

use clap::CommandFactory as _;
use clap_complete::engine::complete;
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, CompletionCandidate};

pub(crate) use self::candidates::{clusters, contexts, kinds, kinds_and_names, namespaces, users};
pub(crate) use self::columns::{by, formats, label_keys, sort_paths};
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
/// The script for bash, with a placeholder for the path of the program.
const BASH: &str = include_str!("completions/bash.sh");
/// What stands between candidates for it: the vertical tab, which no name has.
const BASH_SEPARATOR: &str = "\u{b}";
/// Script that kubectl runs with the words after `kubectl informer`; the last word is incomplete.
const KUBECTL: &str = "#!/bin/sh\n# Completions of `kubectl informer`. Put it on the PATH, executable.\nexec kubectl-informer completions --words \"$@\"\n";
/// Cobra's `ShellCompDirectiveNoFileComp`: no completion of file names.
const NO_FILES: &str = ":4";
/// With `ShellCompDirectiveNoSpace`: more is to be typed after the word.
const NO_FILES_NO_SPACE: &str = ":6";

/// Prints candidates if a shell's script asks for them. Returns whether it did.
pub(crate) fn answer_shell() -> Result<bool, Failure> {
    if env::var_os(VARIABLE).is_none() {
        return Ok(false);
    }
    let words: Vec<OsString> = env::args_os().skip_while(|word| word != "--").skip(1).collect();
    let index = env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
    let index = index.unwrap_or(words.len().saturating_sub(1));
    if env::var_os(VARIABLE).is_some_and(|shell| shell == "bash") && !words.is_empty() {
        let found = candidates_for(words, index)?;
        let texts: Vec<String> =
            found.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect();
        let mut out = Output::new(When::Never);
        out.document(&Document::own(texts.join(BASH_SEPARATOR)))?;
        out.flush()?;
        return Ok(true);
    }
    remember(&words, index);
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
    let program = env::current_exe()?;
    if shell == "bash" {
        let quoted = format!("'{}'", program.to_string_lossy().replace('\'', r"'\''"));
        return Ok(BASH.replace("COMPLETER", &quoted));
    }
    let shells = Shells::builtins();
    let shell = shells.completer(shell).ok_or_else(|| Failure::Usage(format!("no completions for {shell}")))?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, NAME, NAME, &program.to_string_lossy(), &mut script)?;
    Ok(String::from_utf8_lossy(&script).into_owned())
}

/// Candidates for the last word, one per line with its description, as kubectl reads them.
fn for_kubectl(words: &[String]) -> Result<String, Failure> {
    let words: Vec<OsString> =
        std::iter::once(NAME).chain(words.iter().map(String::as_str)).map(OsString::from).collect();
    let index = words.len().saturating_sub(1).max(1);
    let found = candidates_for(words, index)?;
    let line = |candidate: &CompletionCandidate| {
        let value = candidate.get_value().to_string_lossy().into_owned();
        match candidate.get_help().and_then(|help| help.to_string().lines().next().map(str::to_owned)) {
            Some(help) if !help.is_empty() => format!("{}\t{}", visible(&value), visible(&help)),
            _ => visible(&value).into_owned(),
        }
    };
    let is_open = matches!(found.as_slice(), [only] if only.get_value().to_string_lossy().ends_with(['=', ':', '/']));
    let directive = if is_open { NO_FILES_NO_SPACE } else { NO_FILES };
    let lines: Vec<String> = found.iter().map(line).chain([directive.to_owned()]).collect();
    Ok(lines.join("\n") + "\n")
}

/// Candidates for the word at `index`. As with kubectl, flags are candidates after a dash only.
fn candidates_for(mut words: Vec<OsString>, index: usize) -> Result<Vec<CompletionCandidate>, Failure> {
    remember(&words, index);
    words.resize(words.len().max(index + 1), OsString::new());
    let is_flag = words.get(index).is_some_and(|word| word.to_string_lossy().starts_with('-'));
    let mut found = complete(&mut Cli::command(), words, index, env::current_dir().ok().as_deref())?;
    found.retain(|candidate| {
        !candidate.is_hide_set() && (is_flag || !candidate.get_value().to_string_lossy().starts_with('-'))
    });
    Ok(found)
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
