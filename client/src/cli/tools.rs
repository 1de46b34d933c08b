//! `agentctl tools`: what can be asked.

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::commands::complete;

const TOOLS_HELP: &str = "\
Examples:
  agentctl tools                              those of a new session in this folder
  agentctl tools 0198c0de
  agentctl tools 0198c0de --activate grep,find
  agentctl tools 0198c0de --deactivate bash --json

A line is a tool: * before its name when the model can call it, who provides it, and what it does. What is changed
counts from the next turn on, also in a run that is under way, and stays with the session.

Exit codes:
  0    done
  1    no session has the id, several begin so, or no tool has the name
  2    something is to be changed, and there is no ID
  3    agentd is missing or broke down";

/// The flags of `agentctl tools`.
#[derive(Debug, Clone, Args)]
#[command(after_help = TOOLS_HELP)]
pub(crate) struct ToolsOptions {
    /// The id of a session, or its beginning
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::sessions))]
    pub(crate) id: Option<String>,

    /// Let the model call these tools too; names, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) activate: Vec<String>,

    /// Keep these tools from the model
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) deactivate: Vec<String>,

    /// Print the tools as JSON, with their descriptions and schemas
    #[arg(long)]
    pub(crate) json: bool,
}
