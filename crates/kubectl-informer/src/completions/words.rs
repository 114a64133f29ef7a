//! The words of the command line that is being completed.

use std::ffi::OsString;
use std::sync::OnceLock;

use clap::{Args as _, CommandFactory as _, FromArgMatches as _};

use crate::args::Cli;
use crate::client::connection::Connection;

/// The words before the one to complete, and that word. Candidates are computed by functions
/// without arguments, so they read it from here.
static LINE: OnceLock<(Vec<String>, String)> = OnceLock::new();

/// Keeps the words, of which the one at `index` is to be completed.
pub(super) fn remember(words: &[OsString], index: usize) {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let current = words.get(index).cloned().unwrap_or_default();
    let before = words.into_iter().take(index).skip(1).collect();
    // A process completes one line.
    drop(LINE.set((before, current)));
}

/// The word to complete.
pub(super) fn current() -> &'static str {
    LINE.get().map_or("", |(_, current)| current)
}

/// The positional arguments after the subcommand.
pub(super) fn positionals() -> Vec<&'static str> {
    let cli = Cli::command();
    let mut command = &cli;
    let mut found = Vec::new();
    let mut words = before();
    while let Some(word) = words.next() {
        if word.starts_with('-') {
            if takes_value(command, word) {
                words.next();
            }
        } else if let Some(subcommand) = command.find_subcommand(word) {
            command = subcommand;
        } else {
            found.push(word);
        }
    }
    found
}

/// The connection that the flags so far describe; flags that are not whole are left out.
pub(super) fn connection() -> Connection {
    let flags = Connection::augment_args(clap::Command::new("flags").no_binary_name(true));
    let mut given = Vec::new();
    let mut words = before().peekable();
    while let Some(word) = words.next() {
        let name = word.split('=').next().unwrap_or(word);
        if !word.starts_with('-') || find(&flags, name).is_none() {
            continue;
        }
        given.push(word);
        if takes_value(&flags, word) {
            given.extend(words.next());
        }
    }
    let parsed = flags.try_get_matches_from(given).and_then(|matches| Connection::from_arg_matches(&matches));
    parsed.unwrap_or_default()
}

/// Whether the flag `--all-namespaces` is given.
pub(super) fn all_namespaces() -> bool {
    before().any(|word| matches!(word, "-A" | "--all-namespaces"))
}

fn before() -> impl Iterator<Item = &'static str> {
    LINE.get().into_iter().flat_map(|(before, _)| before.iter().map(String::as_str))
}

fn takes_value(command: &clap::Command, word: &str) -> bool {
    !word.contains('=') && find(command, word).is_some_and(|flag| flag.get_action().takes_values())
}

fn find<'c>(command: &'c clap::Command, name: &str) -> Option<&'c clap::Arg> {
    command.get_arguments().find(|flag| {
        flag.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long))
            || flag.get_short().is_some_and(|short| name.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])))
    })
}
