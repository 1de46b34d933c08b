//! The verb about prompts that were sent.

use clap::Args;

const HISTORY_HELP: &str = "\
Examples:
  agentctl history                     the last 20 prompts, of every session
  agentctl history parser test         those with both words, or parts of words
  agentctl history --here              those of this folder
  agentctl history --delete af63dc4c8601ec8c
  agentctl history --delete-all        all of them; conversations keep theirs

On a terminal a prompt is one line, cut to the width. In a pipe a line has the id, the time, how often it was sent, the folder, the
session and the prompt with its line ends as \\n, with tabs between them and no header.

A prompt that begins with a blank is not kept, nor one of a session without a file (--no-session). The setting promptHistory.enabled
switches it off (docs/prompt-history.md).

Exit codes:
  0    there are such prompts
  1    no prompt fits";

/// The flags of `agentctl history`.
#[derive(Debug, Clone, Args)]
#[command(after_help = HISTORY_HELP)]
pub(crate) struct HistoryOptions {
    /// Only prompts with all of these words, or parts of words
    #[arg(value_name = "WORD", conflicts_with_all = ["delete", "delete_all"])]
    pub(crate) words: Vec<String>,

    /// Only those last sent in the current folder
    #[arg(long, conflicts_with_all = ["delete", "delete_all"])]
    pub(crate) here: bool,

    /// How many at most
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Delete the prompt with this id (see --json, or the output in a pipe)
    #[arg(long, value_name = "ID")]
    pub(crate) delete: Option<String>,

    /// Delete all prompts; asks first
    #[arg(long, conflicts_with = "delete")]
    pub(crate) delete_all: bool,

    /// Delete without asking
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,
}
