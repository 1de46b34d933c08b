//! The verbs about the daemon itself.

use clap::Args;

/// The flags of `agentctl down`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "Exit codes:\n  0    it has ended, or did not run\n  1    it has not ended in time\n  \
                        3    it does not answer"
)]
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
#[command(after_help = "Exit codes:\n  0    it runs\n  1    it does not run\n  3    it does not answer")]
pub(crate) struct StatusOptions {
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl logs`.
#[derive(Debug, Clone, Default, Args)]
#[command(
    after_help = "The log is logs/agentd.log in the agent directory. AGENTD_LOG at `agentctl up` sets what goes into it.\n\
                        Exit code 1: there is none."
)]
pub(crate) struct LogsOptions {
    /// Go on with what is added, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// So many lines of what is there already
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) lines: usize,
}
