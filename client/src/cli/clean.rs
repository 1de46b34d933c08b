//! `agentctl clean`: long outputs that are old or too much.

use clap::Args;

/// The flags of `agentctl clean`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl clean                       as the settings say: storage.maxArtifactAgeDays, storage.maxArtifactBytes
  agentctl clean --dry-run             only count what would go
  agentctl clean --older-than 14
  agentctl clean --max-size 1000000000

Long outputs are the files that keep the whole of what a command wrote. Conversations are not touched: `agentctl rm`
deletes those.

Exit codes:
  0    done, also when there was nothing to remove
  1    the folder of sessions cannot be read
  3    agentd is missing or broke down")]
pub(crate) struct CleanOptions {
    /// Remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Remove those that were last changed more days ago
    #[arg(long, value_name = "DAYS")]
    pub(crate) older_than: Option<u64>,

    /// Remove the oldest until the rest takes no more
    #[arg(long, value_name = "BYTES")]
    pub(crate) max_size: Option<u64>,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
