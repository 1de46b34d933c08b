//! `agentctl top`.

use clap::{Args, ValueEnum};

const TOP_HELP: &str = "\
Examples:
  agentctl top
  agentctl top --sort cost
  agentctl top --once             one table; works in a pipe
  agentctl top --once --json | jq '.sessions[].activity.state'
  agentctl top --json             the whole table first, then an object for each change

Keys: up and down select a session, Enter attaches to it, a stops its work (and asks first), s sorts by the next column, q ends.
The daemon tells of changes, at most once a second for each session; nothing is asked while nothing changes. Where stdout is no
terminal, one table is printed.

Exit codes:
  0    q, Ctrl-C, or the table is printed
  3    agentd is not running, or has ended
  141  stdout was closed by its reader";

/// The flags of `agentctl top`.
#[derive(Debug, Clone, Args)]
#[command(after_help = TOP_HELP)]
pub(crate) struct TopOptions {
    /// Print one table, and end
    #[arg(long)]
    pub(crate) once: bool,

    /// Print JSON: the whole table, then without --once a line for each change
    #[arg(long)]
    pub(crate) json: bool,

    /// The column to sort by
    #[arg(long, value_enum, default_value_t)]
    pub(crate) sort: TopSort,
}

/// An order of the sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum TopSort {
    /// Those at work first, then the last used
    #[default]
    State,
    /// The fastest answer first
    Rate,
    /// The fullest context window first
    Context,
    /// The most tokens first
    Tokens,
    /// The dearest first
    Cost,
    /// By folder, then title
    Title,
}

impl TopSort {
    /// The order after this one.
    pub(crate) fn next(self) -> Self {
        let all = Self::value_variants();
        let at = all.iter().position(|sort| *sort == self).unwrap_or_default();
        all[(at + 1) % all.len()]
    }

    /// Its name, as `--sort` takes it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Rate => "rate",
            Self::Context => "context",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Title => "title",
        }
    }
}
