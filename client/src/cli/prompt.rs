//! `agentctl prompt` and `agentctl rpc`.

use std::path::PathBuf;

use agentd_protocol::model::ThinkingLevel;
use clap::{Args, builder::PossibleValuesParser};
use clap_complete::ArgValueCompleter;

use super::{DaemonChoice, GuardRailOptions};
use crate::commands::complete::candidates;

const PROMPT_HELP: &str = "\
Examples:
  agentctl prompt --demo \"What is in this folder?\"
  agentctl prompt \"Explain this code.\" @src/main.rs
  git diff | agentctl prompt \"Review this change.\"
  git diff | agentctl prompt \"This change:\" - \"Is it safe?\"
  agentctl prompt --continue \"And the tests?\"
  agentctl prompt \"Say it in a line.\" > answer.txt

On a terminal stdout gets every answer as it comes; a pipe or a file gets the last answer alone, when the work is done.

What is piped in comes first, between <stdin> and </stdin> where words stand beside it, then the files, then the words of
MESSAGE. A - among the words is the place of what is piped in; at a terminal it is read to its end (Ctrl-D). The title of
the session is the words.

The built-in demo model answers only with --demo, or at a terminal where nothing is configured. Without a usable
model the exit code is 1.

Where the daemon runs (agentctl up), the session is one of its sessions: agentctl attach joins it. Else an agentd of its
own does the work and ends with it.

In a session that the daemon has open, --model, --thinking, --tools and --name count from now on, for all its clients, and the
environment for what this prompt starts. What only counts when a session is opened (--system-prompt, --ssh, --session-dir,
--fallback-models, --api-key and the like) is refused where it differs.

Exit codes:
  0    the model answered
  1    the model or the run failed, the answer was cut off at the model's output limit, or agentd
       refused to start (no usable model, an unknown session, a session at work for another client),
       or the model gave no answer that fits --output-schema
  2    the command line cannot be used (an unknown flag, a missing file, no message, a flag that an
       open session cannot be given)
  3    agentd is missing, broke down, or was killed, or no daemon answers
  4    the model refused, and no other model took over
  5    a budget ended the run, or was used up before it (--max-cost and the like, the setting budgets)
  6    the model answered, but a call of it was denied by the permissions, or since nobody answered the question
  9    the daemon is ending and takes no new work
  129, 130, 143    stopped by SIGHUP, Ctrl-C, SIGTERM; a second Ctrl-C does not wait for the run to stop
  141  stdout was closed by its reader";

/// The flags of `agentctl prompt`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = PROMPT_HELP)]
pub(crate) struct PromptOptions {
    /// The message (its words are joined by spaces, - is stdin), and files to send along as @PATH
    #[arg(value_name = "MESSAGE|@FILE")]
    pub(crate) words: Vec<String>,

    /// Words of the message that are taken as they are, even when they begin with - or @
    #[arg(last = true, value_name = "TEXT")]
    pub(crate) literal: Vec<String>,

    /// Print JSON Lines to stdout, and nothing else: the session, its events, and the result (docs/prompt.md)
    #[arg(long)]
    pub(crate) json: bool,

    /// Print the text of every answer as it comes, as on a terminal; else a pipe or a file gets the last answer alone
    #[arg(long, conflicts_with = "json")]
    pub(crate) all: bool,

    /// Write the last answer to a file, too, when the work is done; one that is there is replaced
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Have the answer as JSON that fits the JSON Schema of a file; exit code 1 when the model gives none
    #[arg(long, value_name = "FILE")]
    pub(crate) output_schema: Option<PathBuf>,

    /// The model: provider/id, an id or a part of one; with an optional :THINKING
    #[arg(long, value_name = "PATTERN", add = ArgValueCompleter::new(candidates::models))]
    pub(crate) model: Option<String>,

    /// The provider that --model is looked up in
    #[arg(long, value_name = "NAME", requires = "model")]
    pub(crate) provider: Option<String>,

    /// Let the built-in demo model answer, which needs no key: --model demo/demo
    #[arg(long, conflicts_with_all = ["model", "provider", "replay"])]
    pub(crate) demo: bool,

    /// How hard the model thinks
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(ThinkingLevel::ALL.map(ThinkingLevel::as_str)))]
    pub(crate) thinking: Option<String>,

    /// On a terminal, show all of the model's thinking, not a line about it
    #[arg(long, conflicts_with = "json")]
    pub(crate) show_thinking: bool,

    /// The models that are asked when the chosen one fails for good (names with commas between)
    #[arg(long, value_name = "LIST")]
    pub(crate) fallback_models: Option<String>,

    /// The key for the chosen model's provider, instead of any other; visible in lists of processes
    #[arg(long, value_name = "KEY", requires = "model")]
    pub(crate) api_key: Option<String>,

    /// Go on with the last session of this terminal in the folder, else with the most recent one of the folder
    #[arg(short, long = "continue")]
    pub(crate) continue_last: bool,

    /// Pick the session to go on with from a list of those of the folder
    #[arg(short, long, conflicts_with_all = ["continue_last", "session", "no_session"])]
    pub(crate) resume: bool,

    /// Name the session
    #[arg(short, long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Go on with this session: a session file, or the id of a session or its beginning
    #[arg(long, value_name = "PATH|ID", add = ArgValueCompleter::new(candidates::sessions_or_files))]
    pub(crate) session: Option<String>,

    /// The folder of session files
    #[arg(long, value_name = "DIR")]
    pub(crate) session_dir: Option<String>,

    /// Do not save the session
    #[arg(long)]
    pub(crate) no_session: bool,

    #[command(flatten)]
    pub(crate) choice: DaemonChoice,

    /// Record the exchanges with the model's provider in files of this folder (docs/recording.md); implies --private
    #[arg(long, value_name = "DIR", conflicts_with_all = ["shared", "replay", "follow_up"])]
    pub(crate) record: Option<String>,

    /// Take the model's answers from recordings, and ask no provider; implies --private
    #[arg(long, value_name = "DIR|FILE", conflicts_with_all = ["shared", "follow_up"])]
    pub(crate) replay: Option<String>,

    /// If the session is at work for another client, wait for the end of that work first
    #[arg(long, conflicts_with = "private")]
    pub(crate) follow_up: bool,

    /// The folder to work in, instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// The tools that the model may call (names with commas between), or changes of the default (+NAME, -NAME)
    #[arg(long, short, value_name = "LIST", allow_hyphen_values = true)]
    pub(crate) tools: Option<String>,

    /// Have a plan made, and nothing changed before you have approved it (docs/plan-mode.md)
    #[arg(long, visible_alias = "plan-mode")]
    pub(crate) plan: bool,

    /// Trust the project for this session: its own settings, hooks, servers, extensions, prompts and skills count (docs/resources.md)
    #[arg(long, conflicts_with = "no_approve")]
    pub(crate) approve: bool,

    /// Do not trust the project in this session, and do not ask
    #[arg(long)]
    pub(crate) no_approve: bool,

    /// Have no MCP servers in the session (docs/mcp.md)
    #[arg(long)]
    pub(crate) no_mcp: bool,

    /// A package for this session alone: npm:NAME, git:HOST/PATH, a URL or a path; repeatable (docs/packages.md)
    #[arg(long, short, value_name = "SOURCE")]
    pub(crate) extension: Vec<String>,

    /// Have no extensions but those of --extension
    #[arg(long)]
    pub(crate) no_extensions: bool,

    /// Let tools and commands work on another host, in its home or in DIR (with the user's own ssh)
    #[arg(long, value_name = "HOST[:DIR]")]
    pub(crate) ssh: Option<String>,

    /// Replace the built-in system prompt: a text, or a file that holds it
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) system_prompt: Option<String>,

    /// Append to the system prompt: a text, or a file that holds it; repeatable
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) append_system_prompt: Vec<String>,

    #[command(flatten)]
    pub(crate) guard_rails: GuardRailOptions,
}

const RPC_HELP: &str = "\
Examples:
  printf '%s\\n' '{\"id\":1,\"type\":\"get_state\"}' | agentctl rpc
  printf '%s\\n' '{\"type\":\"prompt\",\"message\":\"Hi\"}' | agentctl rpc -- --model anthropic/claude-sonnet-4-5
  agentctl rpc --private -- --no-session < commands.jsonl > events.jsonl
  printf '%s\\n' '{\"id\":1,\"type\":\"list_sessions\"}' | agentctl rpc --daemon
  printf '%s\\n' '{\"type\":\"message\",\"content\":\"Hi\"}' | agentctl rpc --simple

Each line of stdin is a command, each line of stdout an answer or an event (docs/protocol.md). What comes after -- are
flags of `agentd --stdio`, which `agentd --help` lists. At the end of stdin the work that was asked for is finished and
printed first; `-- --on-eof abort` stops it instead, or leaves it to the daemon that all clients share.

With --simple the lines of stdin are messages, which are answered one after the other, and interrupts, which stop the work
and forget the messages that wait; stdout has the events, and {\"type\":\"interrupted\"} for each interrupt (docs/daemon.md).

Exit codes:
  0    everything was answered; whether commands failed is in the answers
  1    agentd refused to start or to open the session, or stdout cannot be written; with --simple, a message was not
       answered or a line was of no use
  2    the command line cannot be used
  3    agentd is missing, does not run (with --daemon), or was lost on the way
  129, 130, 143    stopped by SIGHUP, Ctrl-C, SIGTERM; a session of the shared daemon goes on
  141  stdout was closed by its reader (1 where agentd is our own)";

/// The flags of `agentctl rpc`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = RPC_HELP)]
pub(crate) struct RpcOptions {
    #[command(flatten)]
    pub(crate) choice: DaemonChoice,

    /// Open no session: speak to the daemon itself (list_sessions, watch_sessions, open_session, ...)
    #[arg(long, conflicts_with = "private")]
    pub(crate) daemon: bool,

    /// Take messages and interrupts, and print events alone
    #[arg(long, conflicts_with = "daemon")]
    pub(crate) simple: bool,

    /// Flags of `agentd --stdio`: which session, which model, which tools
    #[arg(last = true, value_name = "AGENTD_FLAGS", conflicts_with = "daemon")]
    pub(crate) args: Vec<String>,
}
