//! The verbs about sessions: listing, joining and deleting them, and their branches.

use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCompleter;

use crate::commands::complete::candidates;

const SESSIONS_HELP: &str = "\
Examples:
  agentctl sessions               the last 20, of every folder
  agentctl sessions --here        those of this folder
  agentctl sessions --all         all of them
  agentctl sessions zebra         those that say zebra anywhere
  agentctl resume zebra           go on with one
  agentctl sessions | cut -f1,2   ids and titles, for a script

On a terminal it is a table, cut to the width. In a pipe a line has the whole id, title, model, turns, cost in dollars, time of the
last change, folder and state (working, loaded, unloaded), with tabs between them and no header.

Exit codes:
  0    there are sessions
  1    no session fits";

/// The flags of `agentctl sessions`.
#[derive(Debug, Clone, Args)]
#[command(after_help = SESSIONS_HELP)]
pub(crate) struct SessionsOptions {
    /// Only those with this text in their id, name, folder or messages
    #[arg(value_name = "TEXT")]
    pub(crate) search: Option<String>,

    /// Only those of the current folder
    #[arg(long)]
    pub(crate) here: bool,

    /// Only those in the memory of the daemon
    #[arg(long)]
    pub(crate) live: bool,

    /// All of them, not only the last 20
    #[arg(long, conflicts_with_all = ["limit", "cursor"])]
    pub(crate) all: bool,

    /// How many at most
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,

    /// The cursor that the list before ended with
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,

    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const ATTACH_HELP: &str = "\
Examples:
  agentctl attach                 the last session of this folder
  agentctl attach 0198c0de        the beginning of an id is enough
  agentctl attach --observe 0198c0de
  agentctl attach --plain 0198c0de        line by line, as in a pipe

On a terminal the session gets the whole screen (docs/chat.md). With --plain, --observe and in pipes, lines are printed as things
happen, and a line that is typed is a prompt, or steers the work that is under way. Ctrl-D and Ctrl-C leave the session
alone. A session that is not in the daemon's memory is loaded from its file.

Exit codes:
  0    it was left with Ctrl-D, or it was closed
  1    no session has the id, or several begin with it
  3    agentd is not running, or has ended
  130  it was left with Ctrl-C";

/// The flags of `agentctl attach`.
#[derive(Debug, Clone, Args)]
#[command(after_help = ATTACH_HELP)]
pub(crate) struct AttachOptions {
    /// The id of a session, or its beginning; default the last one of this folder
    #[arg(value_name = "ID", add = ArgValueCompleter::new(candidates::sessions))]
    pub(crate) id: Option<String>,

    /// Only watch: nothing can be typed
    #[arg(long)]
    pub(crate) observe: bool,

    /// Line by line, as in a pipe, also where the whole terminal could be used
    #[arg(long)]
    pub(crate) plain: bool,

    /// Do not show the last messages first
    #[arg(long)]
    pub(crate) no_history: bool,

    /// On a terminal, show all of the model's thinking, not a line about it
    #[arg(long)]
    pub(crate) show_thinking: bool,
}

impl AttachOptions {
    /// Those of `agentctl attach ID`.
    pub(crate) fn to(id: String) -> Self {
        Self { id: Some(id), observe: false, plain: false, no_history: false, show_thinking: false }
    }
}

const RESUME_HELP: &str = "\
Examples:
  agentctl resume                 pick one of this folder
  agentctl resume --all           pick one of any folder
  agentctl resume parser tests    the one that fits these words; a list where several do
  agentctl resume 0198c0de

In the list, letters filter (they have to come in order, and may leave some out), the arrow keys choose, Enter opens, Esc leaves.
The session is opened as by `agentctl attach`. Where the daemon does not run it is started. Without a terminal,
`agentctl prompt --session ID` goes on with a session.

Exit codes:
  0    it was left, or it was closed
  1    no session fits, or none was picked
  2    there is no terminal
  3    agentd is missing, does not start, or has ended
  130  Ctrl-C";

/// The flags of `agentctl resume`.
#[derive(Debug, Clone, Args)]
#[command(after_help = RESUME_HELP)]
pub(crate) struct ResumeOptions {
    /// Words of its title or folder, or the beginning of its id
    #[arg(value_name = "QUERY", add = ArgValueCompleter::new(candidates::sessions))]
    pub(crate) query: Vec<String>,

    /// Sessions of every folder, not only those of this one
    #[arg(long)]
    pub(crate) all: bool,

    /// Show the session line by line, not on the whole screen
    #[arg(long)]
    pub(crate) plain: bool,
}

const NAME_HELP: &str = "\
Examples:
  agentctl name \"Parser for dates\"            the last session of this folder
  agentctl name 0198c0de \"Parser for dates\"

The name stands in `agentctl sessions`, `agentctl resume` and exports. It is part of the session file; a session that is at work
is named without a break. `agentctl prompt --name` names a session as it begins.

Exit codes:
  0    it has the name
  1    no session has the id, several ids begin with it, or the session cannot be opened
  2    there is no name
  3    agentd is missing or broke down";

/// The flags of `agentctl name`.
#[derive(Debug, Clone, Args)]
#[command(after_help = NAME_HELP)]
pub(crate) struct NameOptions {
    /// The id of a session or its beginning (default: the last session of this folder), then its name
    #[arg(value_name = "[ID] TEXT", required = true, num_args = 1..=2, add = ArgValueCompleter::new(candidates::sessions))]
    pub(crate) words: Vec<String>,
}

const REMOVE_HELP: &str = "\
Examples:
  agentctl rm 0198c0de            asks first
  agentctl rm --yes 0198c0de 0198c0df

Where nobody can be asked, whole ids are needed, or --yes. Nothing is deleted when one of the ids is wrong.

Exit codes:
  0    they are gone
  1    there is no such session, several ids begin with it, it is in use, or you said no
  2    nobody can be asked";

/// The flags of `agentctl rm`.
#[derive(Debug, Clone, Args)]
#[command(after_help = REMOVE_HELP)]
pub(crate) struct RemoveOptions {
    /// The ids of sessions, or their beginnings
    #[arg(value_name = "ID", required = true, add = ArgValueCompleter::new(candidates::sessions))]
    pub(crate) ids: Vec<String>,

    /// Delete without asking
    #[arg(long, short)]
    pub(crate) yes: bool,
}

const TREE_HELP: &str = "\
Examples:
  agentctl tree                   of the last session of this folder
  agentctl tree 0198c0de
  agentctl tree ./copy.jsonl      of a session file
  agentctl fork 0198c0de 5e000005 a conversation of its own from before that prompt

A line is an entry: its id, who said it, how it begins, and its label in brackets. What follows one entry stands
below it; where there are several, each begins a branch. > is where the session goes on. Tool results and changes of
the model are left out.

Exit codes:
  0    done
  1    no session has the id or several ids begin with it, or a file cannot be read
  141  stdout was closed by its reader";

/// The flags of `agentctl tree`.
#[derive(Debug, Clone, Args)]
#[command(after_help = TREE_HELP)]
pub(crate) struct TreeOptions {
    /// The id of a session or its beginning, or the path of a session file; default the last session of this folder
    #[arg(value_name = "ID|PATH", add = ArgValueCompleter::new(candidates::sessions_or_files))]
    pub(crate) session: Option<String>,
}

const FORK_HELP: &str = "\
Examples:
  agentctl fork                       the last session of this folder
  agentctl fork 0198c0de              all of its current branch
  agentctl fork 0198c0de 5e000005     what came before that prompt; agentctl tree has the ids
  agentctl fork --cwd ../other 0198c0de   all of it, to go on in another folder
  agentctl prompt --session $(agentctl fork 0198c0de) \"Try it without tax.\"

The id of the new session goes to stdout. The old one stays as it is, and at work if it was.

Exit codes:
  0    done
  1    no session has the id or several ids begin with it, ENTRY is no prompt of it, or nothing comes before ENTRY
  2    DIR is no folder
  3    agentd is missing or broke down";

/// The flags of `agentctl fork`.
#[derive(Debug, Clone, Args)]
#[command(after_help = FORK_HELP)]
pub(crate) struct ForkOptions {
    /// The id of a session, or its beginning; default the last one of this folder
    #[arg(value_name = "ID", add = ArgValueCompleter::new(candidates::sessions))]
    pub(crate) id: Option<String>,

    /// The id of a prompt: only what came before it
    #[arg(value_name = "ENTRY", conflicts_with = "cwd")]
    pub(crate) entry: Option<String>,

    /// The folder that the copy works in, instead of the session's; also when that is gone
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}
