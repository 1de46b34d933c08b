//! The verbs about running sessions: their events, their work, their processes, their tools.

use agentd_protocol::command::AbortScope;
use clap::{Args, ValueEnum};
use clap_complete::ArgValueCompleter;

use crate::commands::complete::candidates;

const WATCH_HELP: &str = "\
Examples:
  agentctl watch
  agentctl watch --json | jq .session.id

First comes what is in the daemon's memory now, then a line for each change. With --json come the events as the
daemon sends them, and nothing before.

Exit codes:
  0    Ctrl-C
  3    agentd is not running, or has ended
  141  stdout was closed by its reader";

/// The flags of `agentctl watch`.
#[derive(Debug, Clone, Args)]
#[command(after_help = WATCH_HELP)]
pub(crate) struct WatchOptions {
    /// Print the daemon's events as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
}

const STEER_HELP: &str = "\
Examples:
  agentctl steer \"Leave the tests alone.\"              the only session at work
  agentctl steer 0198c0de \"Leave the tests alone.\"
  agentctl steer 0198c0de --follow-up \"Then run the tests.\"
  agentctl steer 0198c0de < remarks.txt

What is piped in comes first, in a <stdin> block, then the words of MESSAGE; a - among them is the place of
what is piped in. A session that is idle has nothing to steer:
`agentctl prompt --session ID` goes on with it.

A single argument with blanks in it is the message; then the session is the only one at work, in this folder if several are. So
it is with a - or with words after --. Anything else begins with an ID.

Exit codes:
  0    it is queued
  1    the session is idle or there is none, several ids begin with it, or several are at work
  2    there is no message
  3    agentd is not running";

/// The flags of `agentctl steer`.
#[derive(Debug, Clone, Args)]
#[command(after_help = STEER_HELP)]
pub(crate) struct SteerOptions {
    /// The id of a session, its beginning, or the id of a subagent (default: the only one at work), then the message; its words are joined by
    /// spaces, and - is stdin
    #[arg(value_name = "[ID] MESSAGE", add = ArgValueCompleter::new(candidates::live_sessions))]
    pub(crate) words: Vec<String>,

    /// Words of the message that are taken as they are, even when they begin with -
    #[arg(last = true, value_name = "TEXT")]
    pub(crate) literal: Vec<String>,

    /// Deliver it when the run would end, not before the next call of the model
    #[arg(long)]
    pub(crate) follow_up: bool,
}

const ABORT_HELP: &str = "\
Examples:
  agentctl abort                  the only session at work
  agentctl abort 0198c0de
  agentctl abort 0198c0de --scope all

What was produced is kept, and so are queued messages. With several sessions at work, it is the one of this folder; where
several are of this folder, ID has to say which.

Exit codes:
  0    it has stopped, or nothing was at work
  1    no session has the id, several ids begin with it, or several are at work
  3    agentd does not answer";

/// The flags of `agentctl abort`.
#[derive(Debug, Clone, Args)]
#[command(after_help = ABORT_HELP)]
pub(crate) struct AbortOptions {
    /// The id of a session, or its beginning; default the only one at work
    #[arg(value_name = "ID", add = ArgValueCompleter::new(candidates::live_sessions))]
    pub(crate) id: Option<String>,

    /// What to stop; default turn
    #[arg(long, value_name = "SCOPE", value_enum)]
    pub(crate) scope: Option<Scope>,

    /// Print the receipt as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The work that `agentctl abort` stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// The run: its answer and its tool calls
    Turn,
    /// The tool calls of the current answer; the run goes on
    Tools,
    /// The run, the user's shell commands, and what was left in the background
    All,
}

impl From<Scope> for AbortScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Turn => Self::Turn,
            Scope::Tools => Self::Tools,
            Scope::All => Self::All,
        }
    }
}

const PS_HELP: &str = "\
Examples:
  agentctl ps
  agentctl ps 0198c0de            of one session
  agentctl ps --json | jq '.processes[].pid'

KIND is what a process works for: a tool call, a bash command of the user, or background, once the command that
started it has ended.

Exit codes:
  0    done, also when there is no process
  1    no live session has the id, or several ids begin with it
  3    agentd is not running";

/// The flags of `agentctl ps`.
#[derive(Debug, Clone, Args)]
#[command(after_help = PS_HELP)]
pub(crate) struct PsOptions {
    /// The id of a live session, or its beginning
    #[arg(value_name = "ID", add = ArgValueCompleter::new(candidates::live_sessions))]
    pub(crate) id: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const TOOLS_HELP: &str = "\
Examples:
  agentctl tools                              those of a new session in this folder
  agentctl tools 0198c0de
  agentctl tools 0198c0de --activate grep,find
  agentctl tools 0198c0de --deactivate bash --json
  agentctl tools --activate grep              of the last session of this folder

A line is a tool: * before its name when the model can call it, who provides it, and what it does. What is changed
counts from the next turn on, also in a run that is under way, and stays with the session.

Exit codes:
  0    done
  1    no session has the id, several ids begin with it, or no tool has the name
  3    agentd is missing or broke down";

/// The flags of `agentctl tools`.
#[derive(Debug, Clone, Args)]
#[command(after_help = TOOLS_HELP)]
pub(crate) struct ToolsOptions {
    /// The id of a session, or its beginning; where something is changed, the default is the last session of this folder
    #[arg(value_name = "ID", add = ArgValueCompleter::new(candidates::sessions))]
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
