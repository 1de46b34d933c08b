//! `agentctl chat`.

use std::path::PathBuf;

use agentd_protocol::{model::ThinkingLevel, settings::PermissionPreset};
use clap::{Args, builder::PossibleValuesParser};
use clap_complete::engine::ArgValueCompleter;

use crate::commands::complete::candidates;

const CHAT_HELP: &str = "\
Examples:
  agentctl                                 the same as agentctl chat
  agentctl chat -c                         goes on with the last session here
  agentctl chat --model sonnet:high        with this model, and a thinking level
  agentctl chat --permissions ask          asks before every command and change

The session is one of the daemon, which is started where none runs: leaving stops nothing, and other clients see the same
(agentctl attach). Enter sends, Ctrl-J begins a new line, Esc stops the work, /help shows keys and commands, Ctrl-D
leaves (docs/chat.md).

Exit codes:
  0    it was left
  1    agentd refused to start or to open the session
  2    stdin or stdout is no terminal, or a dumb one, or the command line cannot be used
  3    agentd is missing or broke down
  9    the daemon is ending and takes no new work
  129, 130, 143    ended by SIGHUP, SIGINT, SIGTERM";

/// The flags of `agentctl chat`.
#[derive(Debug, Clone, Default, Args)]
#[command(after_help = CHAT_HELP)]
pub(crate) struct ChatOptions {
    /// What stands in the input at first; Enter sends it
    #[arg(value_name = "TEXT")]
    pub(crate) words: Vec<String>,

    /// The model: provider/id, an id or a part of one; with an optional :THINKING
    #[arg(long, value_name = "PATTERN", add = ArgValueCompleter::new(candidates::models))]
    pub(crate) model: Option<String>,

    /// Let the built-in demo model answer, which needs no key: --model demo/demo
    #[arg(long, conflicts_with = "model")]
    pub(crate) demo: bool,

    /// How hard the model thinks
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(ThinkingLevel::ALL.map(ThinkingLevel::as_str)))]
    pub(crate) thinking: Option<String>,

    /// Go on with the last session of this terminal in the folder, else with the most recent one of the folder
    #[arg(short, long = "continue", conflicts_with = "session")]
    pub(crate) continue_last: bool,

    /// Go on with this session: a session file, or the id of a session or its beginning
    #[arg(long, value_name = "PATH|ID", add = ArgValueCompleter::new(candidates::sessions_or_files))]
    pub(crate) session: Option<String>,

    /// Name the session
    #[arg(short, long, value_name = "NAME")]
    pub(crate) name: Option<String>,

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

    /// What tools may do where no rule says so (docs/permissions.md)
    #[arg(long, value_name = "PRESET", value_parser = PossibleValuesParser::new(PermissionPreset::ALL.map(PermissionPreset::as_str)))]
    pub(crate) permissions: Option<String>,

    /// What commands and file tools may write (docs/sandbox.md)
    #[arg(long, value_name = "MODE", value_parser = PossibleValuesParser::new(["off", "workspace-write", "read-only"]))]
    pub(crate) sandbox: Option<String>,

    /// Whether changes of files can be undone (docs/undo.md)
    #[arg(long, value_name = "on|off", value_parser = PossibleValuesParser::new(["on", "off"]))]
    pub(crate) undo: Option<String>,

    /// Append to the system prompt: a text, or a file that holds it; repeatable
    #[arg(long, value_name = "TEXT|FILE")]
    pub(crate) append_system_prompt: Vec<String>,
}
