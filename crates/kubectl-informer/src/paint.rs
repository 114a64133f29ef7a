//! Coloured output.

use std::env;
use std::io::IsTerminal;

use clap::ValueEnum;

/// When output is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

/// Colours text, or returns it unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Coloured,
}

/// Meaning of a piece of text, which selects its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Added,
    Updated,
    Deleted,
    Quiet,
    Changed,
    Strong,
}

impl Paint {
    pub(crate) fn new(when: When, out: &impl IsTerminal) -> Self {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        match when {
            When::Always => Self::Coloured,
            When::Never => Self::Plain,
            When::Auto if out.is_terminal() && !set("NO_COLOR") && !dumb => Self::Coloured,
            When::Auto => Self::Plain,
        }
    }

    pub(crate) fn text(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Added => "32",
            Tone::Updated => "33",
            Tone::Deleted => "31",
            Tone::Quiet => "2",
            Tone::Changed => "7",
            Tone::Strong => "1",
        };
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}
