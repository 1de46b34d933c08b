//! The verbs about the daemon itself, and the choice of the daemon for `prompt` and `rpc`.

use clap::Args;

/// Which daemon does the work. Without a flag: the user's where it runs, else one of our own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Args)]
pub(crate) struct DaemonChoice {
    /// Use the daemon that all clients share, and start it if it does not run; the session stays in its memory
    #[arg(long, conflicts_with = "private")]
    pub(crate) shared: bool,

    /// Use an agentd of its own, which ends with this command, even when the daemon runs
    #[arg(long)]
    pub(crate) private: bool,
}

/// The flags of `agentctl up`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl up
  agentctl up --json              where it is, for programs
  AGENTD_LOG=debug agentctl up    with a log that says more

Exit codes:
  0    it runs
  3    it is missing or did not start
  9    another one is ending and has not ended in time")]
pub(crate) struct UpOptions {
    /// Print where and what it is as JSON: as `agentctl status --json`, and whether it was started now
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl down`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl down                   work is finished first
  agentctl down --deadline 5      but not for longer than 5 s
  agentctl down --abort           at once; also while it is ending already

Exit codes:
  0    it has ended, or did not run
  1    it has not ended in time
  3    it does not answer")]
pub(crate) struct DownOptions {
    /// Stop work instead of letting it finish
    #[arg(long)]
    pub(crate) abort: bool,

    /// How long work has to finish before it is stopped
    #[arg(long, value_name = "SECONDS", conflicts_with = "abort", value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub(crate) deadline: Option<u64>,
}

/// The flags of `agentctl status`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl status
  agentctl status --json          with the path of the socket

Exit codes:
  0    it runs
  3    it does not run, or does not answer
  9    it is ending, and takes no new work")]
pub(crate) struct StatusOptions {
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl logs`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl logs -n 20             the last 20 lines
  agentctl logs --follow          and what is added

The log is logs/agentd.log in the agent directory. AGENTD_LOG at `agentctl up` sets what goes into it.

Exit codes:
  1    there is none")]
pub(crate) struct LogsOptions {
    /// Print new lines too, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// How many of the last lines to print first
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) lines: usize,
}
