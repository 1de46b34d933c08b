//! `agentctl models`: what can be asked.

use std::path::PathBuf;

use clap::Args;

const MODELS_HELP: &str = "\
Examples:
  agentctl models                 those that can be used now
  agentctl models sonnet          every model with this in its id or name
  agentctl models 'openai/gpt-*'  a glob over provider/id; * does not cross a /
  agentctl models --all --json    everything, for programs
  agentctl models --update models.json     a newer catalogue in the place of the built-in one
  curl -sS https://example.com/models.json | agentctl models --update -
  agentctl models --reset-catalogue        back to the built-in one

A catalogue is a JSON file: {source, date, defaults: {PROVIDER: MODEL ID}, models: [...]}. It is checked as a whole,
and counts for all sessions that are opened from then on, those of a running daemon included. What models.json in
the agent directory says lies over it.

Prices are US dollars per million tokens.

Exit codes:
  0    there are models
  1    nothing to list, or the catalogue was not taken";

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

    /// Use this catalogue of models in the place of the built-in one; - reads it from stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pattern", "all", "reset_catalogue"])]
    pub(crate) update: Option<PathBuf>,

    /// Go back to the built-in catalogue
    #[arg(long, conflicts_with_all = ["pattern", "all"])]
    pub(crate) reset_catalogue: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
