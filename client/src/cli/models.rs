//! The verbs about models, and about the keys of their providers.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;

use crate::commands::complete::candidates;

const MODELS_HELP: &str = "\
Examples:
  agentctl models                 those that can be used now
  agentctl models sonnet          every model with this in its id or name
  agentctl models 'openai/gpt-*'  a glob over provider/id; * does not cross a /
  agentctl models --all --json    everything, for programs
  agentctl models --update models.json     a newer catalogue instead of the built-in one
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

    /// Use this catalogue of models instead of the built-in one; - reads it from stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pattern", "all", "reset_catalogue"])]
    pub(crate) update: Option<PathBuf>,

    /// Go back to the built-in catalogue
    #[arg(long, conflicts_with_all = ["pattern", "all"])]
    pub(crate) reset_catalogue: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const LOGIN_HELP: &str = "\
Examples:
  agentctl login anthropic                 asks for the key
  agentctl login openai < key.txt          takes it from a file
  pass show openai | agentctl login openai
  agentctl login cloudflare-workers-ai --env CLOUDFLARE_ACCOUNT_ID=0123
  agentctl login openrouter --oauth        logs in with an account, in a browser
  agentctl login github-copilot --device   the same by a code that is typed in anywhere

Without --oauth, --device or --no-browser it asks for a key, unless only an extension of this folder
can know the provider: then that asks for what it needs. A login with most other providers needs a
client id of yours in models.json (docs/credentials.md).

The key or login goes into auth.json of the agent directory, which only you can read, and counts at once. It
comes before keys of the environment and of models.json.

Exit codes:
  0    it is stored
  1    the provider is not known, auth.json cannot be used or written, or the login failed
  2    there is no key";

/// The flags of `agentctl login`.
#[derive(Debug, Clone, Args)]
#[command(after_help = LOGIN_HELP)]
pub(crate) struct LoginOptions {
    /// The provider, such as anthropic or openai (agentctl models --all lists them)
    #[arg(value_name = "PROVIDER", add = ArgValueCompleter::new(candidates::providers))]
    pub(crate) provider: String,

    /// A key by mistake: taken so that it can be refused without being repeated
    #[arg(hide = true, num_args = 0.., allow_hyphen_values = true)]
    pub(crate) key: Vec<String>,

    /// Log in with an account instead of a key, as is usual with the provider
    #[arg(long, conflicts_with = "env")]
    pub(crate) oauth: bool,

    /// Log in with an account, by a code that is typed into a browser on any device
    #[arg(long, conflicts_with = "env")]
    pub(crate) device: bool,

    /// Log in with an account, and only print the address instead of opening a browser
    #[arg(long, conflicts_with = "env")]
    pub(crate) no_browser: bool,

    /// A variable that belongs to the key, such as an account; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,

    /// Store it even for an unknown provider, and replace another kind of login
    #[arg(long)]
    pub(crate) force: bool,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The flags of `agentctl logout`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  agentctl logout anthropic

Exit codes:
  0    it is removed
  1    nothing is stored for it, or auth.json cannot be used or written")]
pub(crate) struct LogoutOptions {
    /// The provider
    #[arg(value_name = "PROVIDER", add = ArgValueCompleter::new(candidates::providers))]
    pub(crate) provider: String,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The verbs below `agentctl auth`.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Auth {
    /// Show where the key of each provider comes from; keys themselves are never shown
    Status(AuthStatusOptions),
}

/// The flags of `agentctl auth status`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  agentctl auth status            of all providers
  agentctl auth status openai

Exit codes:
  0    there is a key
  1    no provider has a key that can be used, or not the one that was asked for")]
pub(crate) struct AuthStatusOptions {
    /// Only this provider
    #[arg(value_name = "PROVIDER", add = ArgValueCompleter::new(candidates::providers))]
    pub(crate) provider: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
