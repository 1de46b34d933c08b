//! The verbs about sessions: listing, joining and deleting them.

use clap::Args;

const SESSIONS_HELP: &str = "\
Examples:
  agentctl sessions               the last 20, of every folder
  agentctl sessions --here        those of this folder
  agentctl sessions zebra         those that say zebra anywhere
  agentctl prompt --session ID    go on with one

Exit code 1: no session fits.";

/// The flags of `agentctl sessions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SESSIONS_HELP)]
pub(crate) struct SessionsOptions {
    /// Only those with this text in their id, name, folder or messages
    #[arg(value_name = "TEXT")]
    pub(crate) search: Option<String>,

    /// Only those of the current folder
    #[arg(long)]
    pub(crate) here: bool,

    /// Only those in the memory of the daemon
    #[arg(long)]
    pub(crate) live: bool,

    /// At most so many
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,

    /// Where the list before ended
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl attach`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "What is typed is a prompt, or steers the work that is under way. Ctrl-D and Ctrl-C leave the session alone."
)]
pub(crate) struct AttachOptions {
    /// The id of a live session, or its beginning
    #[arg(value_name = "ID")]
    pub(crate) id: String,

    /// Only look
    #[arg(long)]
    pub(crate) observe: bool,
}

/// The flags of `agentctl rm`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Exit code 1: there is no such session, or it is in use.")]
pub(crate) struct RemoveOptions {
    /// The whole ids of sessions (agentctl sessions --json has them)
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
}
