//! `agentctl config`: what configures a session, and what is wrong with it.

use clap::{Args, Subcommand};

/// What to look at.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Config {
    /// Where a setting's value comes from: which file and line, and what the others say
    Explain(ExplainOptions),
    /// What is wrong with the files that a session in this folder is made from
    Check(CheckOptions),
}

/// The flags of `agentctl config explain`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  agentctl config explain defaultModel
  agentctl config explain compaction.enabled --json

Members of objects stand after a dot. Settings are those of a session that would start now, in this folder.

Exit codes:
  0    the setting is explained
  1    there is no such setting")]
pub(crate) struct ExplainOptions {
    /// The setting
    #[arg(value_name = "KEY")]
    pub(crate) key: String,

    /// As if this folder were trusted
    #[arg(long, short)]
    pub(crate) approve: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl config check`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  agentctl config check
  agentctl config check --approve      what would be wrong if this folder were trusted
  agentctl config check --json

Looks at settings, models.json, trust, skills, prompt templates and instructions. `agentctl doctor` looks at keys, folders
and servers too.

Exit codes:
  0    nothing is wrong
  1    something is not used, or not as it stands there")]
pub(crate) struct CheckOptions {
    /// As if this folder were trusted
    #[arg(long, short)]
    pub(crate) approve: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
