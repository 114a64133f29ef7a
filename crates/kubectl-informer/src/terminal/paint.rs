//! When output is coloured, and how.

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

/// Whether lines are written with their colours.
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
    /// The row on which keys act.
    Selected,
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
}

impl Tone {
    /// The SGR parameter of its colour.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Added => "32",
            Self::Updated => "33",
            Self::Deleted => "31",
            Self::Quiet => "2",
            Self::Changed | Self::Selected => "7",
            Self::Strong => "1",
        }
    }
}
