//! The flags of `agentctl rpc`, and the choice of the daemon that it shares with `prompt`.

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

const RPC_HELP: &str = "\
Examples:
  printf '%s\\n' '{\"id\":1,\"type\":\"get_state\"}' | agentctl rpc
  printf '%s\\n' '{\"type\":\"prompt\",\"message\":\"Hi\"}' | agentctl rpc -- --model anthropic/claude-sonnet-4-5
  agentctl rpc --private -- --no-session < commands.jsonl > events.jsonl
  printf '%s\\n' '{\"id\":1,\"type\":\"list_sessions\"}' | agentctl rpc --daemon

Each line of stdin is a command, each line of stdout an answer or an event (docs/protocol.md). What comes after -- are
flags of `agentd --stdio`, which `agentd --help` lists. At the end of stdin the work that was asked for is finished and
printed first; `-- --on-eof abort` stops it instead, or leaves it to the daemon that all clients share.

Exit codes:
  0    everything was answered; whether commands failed is in the answers
  1    agentd refused to start or to open the session, or stdout cannot be written
  2    the command line cannot be used
  3    agentd is missing, does not run (with --daemon), or was lost on the way
  129, 130, 143    stopped by SIGHUP, Ctrl-C, SIGTERM; a session of the shared daemon goes on
  141  stdout was closed by its reader (1 where agentd is our own)";

/// The flags of `agentctl rpc`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = RPC_HELP)]
pub(crate) struct RpcOptions {
    #[command(flatten)]
    pub(crate) choice: DaemonChoice,

    /// Open no session: speak to the daemon itself (list_sessions, watch_sessions, open_session, ...)
    #[arg(long, conflicts_with = "private")]
    pub(crate) daemon: bool,

    /// Flags of `agentd --stdio`: which session, which model, which tools
    #[arg(last = true, value_name = "AGENTD_FLAGS", conflicts_with = "daemon")]
    pub(crate) args: Vec<String>,
}
