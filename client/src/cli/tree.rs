//! The verbs about a session's branches.

use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::commands::complete;

const TREE_HELP: &str = "\
Examples:
  agentctl tree 0198c0de
  agentctl tree ./copy.jsonl      of a session file
  agentctl fork 0198c0de 5e000005 a conversation of its own from before that prompt

A line is an entry: its id, who said it, how it begins, and its label in brackets. What follows one entry stands
below it; where there are several, each begins a branch. > is where the session goes on. Tool results and changes of
the model are left out.

Exit codes:
  0    done
  1    no session has the id or several begin so, or a file cannot be read
  141  stdout was closed by its reader";

/// The flags of `agentctl tree`.
#[derive(Debug, Clone, Args)]
#[command(after_help = TREE_HELP)]
pub(crate) struct TreeOptions {
    /// The id of a session or its beginning, or the path of a session file
    #[arg(value_name = "ID|PATH", add = ArgValueCompleter::new(complete::sessions_or_files))]
    pub(crate) session: String,
}

const FORK_HELP: &str = "\
Examples:
  agentctl fork 0198c0de              all of its current branch
  agentctl fork 0198c0de 5e000005     what came before that prompt; agentctl tree has the ids
  agentctl fork --cwd ../other 0198c0de   all of it, to go on in another folder
  agentctl prompt --session $(agentctl fork 0198c0de) \"Try it without tax.\"

The id of the new session goes to stdout. The old one stays as it is, and at work if it was.

Exit codes:
  0    done
  1    no session has the id or several begin so, ENTRY is no prompt of it, or nothing comes before ENTRY
  2    DIR is no folder
  3    agentd is missing or broke down";

/// The flags of `agentctl fork`.
#[derive(Debug, Clone, Args)]
#[command(after_help = FORK_HELP)]
pub(crate) struct ForkOptions {
    /// The id of a session, or its beginning
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::sessions))]
    pub(crate) id: String,

    /// The id of a prompt: only what came before it
    #[arg(value_name = "ENTRY", conflicts_with = "cwd")]
    pub(crate) entry: Option<String>,

    /// The folder that the copy works in, in the place of the session's: also where that is gone
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}
