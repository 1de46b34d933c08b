//! The result of reading a command line: what the program is to do, with all options.

use std::{fmt, path::PathBuf};

use agentd_session::SessionOptions;

/// The task of the program.
#[derive(Debug)]
pub enum Invocation {
    /// Serve one session on stdin and stdout.
    Stdio(Box<StdioOptions>),
    /// Answer the prompts of the command line and end.
    OneShot(Box<OneShotOptions>),
    /// Serve one session of the user's daemon on stdin and stdout.
    Bridge(Box<BridgeOptions>),
    /// Serve a host on stdin and stdout by a protocol of others.
    Host(HostProtocol, Box<HostOptions>),
    /// Log the user in at this terminal, for an editor (`agentd acp login`).
    LogIn {
        /// The provider and flags of `agentctl login`; empty: asks for them.
        words: Vec<String>,
    },
    /// Serve many sessions and clients on a local socket.
    Serve(Box<ServeOptions>),
    /// Print the version and end.
    Version {
        /// Only the version of pi's protocol, as pi prints it.
        bare: bool,
    },
    /// Print the models that can be used and end.
    ListModels {
        /// Only those that hold this text.
        search: Option<String>,
        /// Whether pi's directories come first.
        compat: bool,
    },
    /// Write a session file as a page and end.
    Export {
        /// The session file; `-` is stdin.
        input: String,
        /// The page; `-` is stdout. `None`: a name made of the session file's, in the working directory.
        output: Option<String>,
    },
    /// Remove the user's secrets from a report: stdin to stdout.
    BugReport {
        /// Whether pi's directories come first.
        compat: bool,
    },
    /// Check session files: requests on stdin, results on stdout.
    Fsck {
        /// Whether pi's directories come first.
        compat: bool,
    },
    /// Judge calls by the permissions: requests on stdin, verdicts on stdout.
    PolicyCheck {
        /// Whether pi's directories come first.
        compat: bool,
    },
    /// Change an entry of mcp.json: a request on stdin, the result on stdout.
    McpEdit {
        /// Whether pi's directories come first.
        compat: bool,
    },
    /// Manage packages: a request on stdin, lines of the answer on stdout.
    Packages {
        /// Whether pi's directories come first.
        compat: bool,
    },
    /// Sum up what sessions spent: a request on stdin, the report on stdout.
    Usage {
        /// Whether pi's directories come first.
        compat: bool,
    },
    /// Print the help and end.
    Help,
}

/// The options of `--stdio`.
#[derive(Debug)]
pub struct StdioOptions {
    /// The session to open.
    pub session: SessionOptions,
    /// The treatment of unfinished work at the end of the input.
    pub on_eof: OnEof,
    /// Whether the first line is a `ready` event.
    pub ready: bool,
    /// Whether updates carry the answer so far, as in pi before 0.84.
    pub cumulative: bool,
    /// Warnings for stderr, printed first.
    pub warnings: Vec<String>,
}

/// The options of `-p` and `--mode json`.
#[derive(Debug)]
pub struct OneShotOptions {
    /// The session to open.
    pub session: SessionOptions,
    /// The output on stdout.
    pub format: OneShotFormat,
    /// The files to send along with the first prompt: paths as they were given, `~` included.
    pub files: Vec<String>,
    /// The prompts, one run each, in order.
    pub messages: Vec<String>,
    /// Whether updates carry the answer so far, as in pi before 0.84.
    pub cumulative: bool,
    /// Warnings for stderr, printed first.
    pub warnings: Vec<String>,
}

/// The output of prompts of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneShotFormat {
    /// The text of the last answer.
    Text,
    /// The session's header and its events, as JSON Lines.
    Json,
}

/// The options of `--stdio --shared`.
pub struct BridgeOptions {
    /// The arguments as they were given: the daemon reads the flags of the session from them.
    pub args: Vec<String>,
    /// The folder to work in.
    pub cwd: PathBuf,
    /// Whether pi's directories come first.
    pub compat: bool,
    /// Whether the first line is a `ready` event.
    pub ready: bool,
    /// Warnings for stderr, printed first.
    pub warnings: Vec<String>,
}

/// Without the arguments: a key can be among them.
impl fmt::Debug for BridgeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { args: _, cwd, compat, ready, warnings } = self;
        let mut shown = f.debug_struct("BridgeOptions");
        shown.field("cwd", cwd).field("compat", compat).field("ready", ready);
        shown.field("warnings", warnings).finish_non_exhaustive()
    }
}

/// A protocol of others that hosts speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostProtocol {
    /// The Agent Client Protocol of editors (`agentd acp`, `--mode acp`).
    Acp,
    /// The Model Context Protocol: agentd is the server (`agentd mcp serve`).
    Mcp,
}

/// The options of `agentd acp` (`--mode acp`) and `agentd mcp serve`.
pub struct HostOptions {
    /// The options of sessions where their flags and the host do not say otherwise.
    pub base: SessionOptions,
    /// The flags of the command line for each session.
    pub session_args: Vec<String>,
    /// Whether the sessions are those of the user's daemon.
    pub shared: bool,
    /// Warnings for stderr, printed first.
    pub warnings: Vec<String>,
}

/// Without the arguments: a key can be among them.
impl fmt::Debug for HostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { base, session_args: _, shared, warnings } = self;
        let mut shown = f.debug_struct("HostOptions");
        shown.field("base", base).field("shared", shared).field("warnings", warnings).finish_non_exhaustive()
    }
}

/// The options of `agentd serve`.
#[derive(Debug)]
pub struct ServeOptions {
    /// The options of sessions where a client does not give any.
    pub base: SessionOptions,
    /// The agent directory, absolute.
    pub agent_dir: PathBuf,
    /// The path of the socket, absolute.
    pub socket: PathBuf,
    /// Whether to leave the terminal session of the process that started this one (`--detached`, given by `agentctl up`).
    pub detached: bool,
}

/// The treatment of unfinished work at the end of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnEof {
    /// It is aborted.
    #[default]
    Abort,
    /// It is finished first.
    Drain,
}

/// A mode of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Many sessions and clients on a socket.
    Serve,
    /// One session on stdin and stdout.
    Stdio,
    /// The sessions of a host that speaks a protocol of others, on stdin and stdout.
    Host(HostProtocol),
    /// The prompts of the command line; then the program ends.
    OneShot(OneShotFormat),
}
