//! `agentctl models`: what can be asked.

use clap::Args;

const MODELS_HELP: &str = "\
Examples:
  agentctl models                 those that can be used now
  agentctl models sonnet          every model with this in its id or name
  agentctl models 'openai/gpt-*'  a glob over provider/id; * does not cross a /
  agentctl models --all --json    everything, for programs

Prices are US dollars per million tokens.

Exit codes:
  0    there are models
  1    nothing to list";

/// The flags of `agentctl models`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = MODELS_HELP)]
pub(crate) struct ModelsOptions {
    /// Only models whose provider/id or name holds this text, or matches this glob; also those without a key
    #[arg(value_name = "PATTERN")]
    pub(crate) pattern: Option<String>,

    /// List models without a key too
    #[arg(long)]
    pub(crate) all: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
