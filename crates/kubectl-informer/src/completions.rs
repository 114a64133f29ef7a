//! Shell completions.

use clap::CommandFactory as _;

use crate::args::{Cli, Completions};
use crate::terminal::document::Document;
use crate::failure::Failure;
use crate::terminal::output::Output;
use crate::terminal::paint::When;
use crate::terminal::terminal_text::visible;

/// Script that kubectl runs with the words after `kubectl informer`; the last word is incomplete.
const KUBECTL: &str = "#!/bin/sh\n# Completions of `kubectl informer`. Put it on the PATH, executable.\nexec kubectl-informer completions --words \"$@\"\n";

pub(crate) fn run(args: &Completions) -> Result<(), Failure> {
    let mut text = Vec::new();
    if let Some(words) = &args.words {
        let mut lines = candidates(words);
        // Cobra's `ShellCompDirectiveNoFileComp`: no file name completion.
        lines.push(":4\n".to_owned());
        text.extend_from_slice(lines.join("\n").as_bytes());
    } else if args.kubectl {
        text.extend_from_slice(KUBECTL.as_bytes());
    } else if let Some(shell) = args.shell {
        clap_complete::generate(shell, &mut Cli::command(), "kubectl-informer", &mut text);
    }
    let mut out = Output::new(When::Never);
    out.document(&Document::own(String::from_utf8_lossy(&text).into_owned()))?;
    Ok(out.flush()?)
}

/// Completes the command name first, then the options of that command.
fn candidates(words: &[String]) -> Vec<String> {
    let root = Cli::command();
    let (last, before) = words.split_last().map_or(("", [].as_slice()), |(last, before)| (last.as_str(), before));
    let all: Vec<(String, String)> = match before.first().and_then(|name| root.find_subcommand(name)) {
        None => root.get_subcommands().map(|each| (each.get_name().to_owned(), about(each.get_about()))).collect(),
        Some(command) => command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
            .filter_map(|argument| Some((format!("--{}", argument.get_long()?), about(argument.get_help()))))
            .collect(),
    };
    let fits = all.into_iter().filter(|(name, _)| name.starts_with(last));
    fits.map(|(name, about)| {
        if about.is_empty() { visible(&name).into_owned() } else { format!("{}\t{}", visible(&name), visible(&about)) }
    })
    .collect()
}

fn about(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(|text| text.to_string().lines().next().unwrap_or_default().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_first_and_then_their_options() {
        let named = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            candidates(&words)
                .iter()
                .map(|each| each.split('\t').next().unwrap_or_default().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(named(&["d"]), ["demo"]);
        assert!(named(&["watch", "--no"]).contains(&"--no-initial".to_owned()));
        assert_eq!(named(&["nonsense", "zz"]), Vec::<String>::new());
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
