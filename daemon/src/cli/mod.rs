//! The command line of `agentd`: flags in, options out. The same parser reads the session flags that a client sends.

mod checks;
mod empty;
mod flags;
mod help;
mod known;
mod mode;
mod open_session;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use agentd_config::Environment;
use agentd_session::SessionOptions;

use self::{
    flags::Flags,
    mode::{Mode, ModeFlag},
};
pub use self::{help::HELP, open_session::field_of};

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// Serve one session on stdin and stdout.
    Stdio(Box<StdioOptions>),
    /// Answer the prompts of the command line and end.
    OneShot(Box<OneShotOptions>),
    /// Serve one session of the user's daemon on stdin and stdout.
    Bridge(Box<BridgeOptions>),
    /// Serve many sessions and clients on a local socket.
    Serve(Box<ServeOptions>),
    /// Print the version and end.
    Version {
        /// Only the version of the wire, as the reference prints it.
        bare: bool,
    },
    /// Print the models that can be used and end.
    ListModels {
        /// Only those that hold this text.
        search: Option<String>,
        /// Whether the reference's own directories come first.
        compat: bool,
    },
    /// Write a session file as a page and end.
    Export {
        /// The session file; `-` is stdin.
        input: String,
        /// The page; `-` is stdout. `None`: a name made of the session file's, in the working directory.
        output: Option<String>,
    },
    /// Take the user's secrets out of a report: stdin to stdout.
    BugReport {
        /// Whether the reference's own directories come first.
        compat: bool,
    },
    /// Look at session files: what to look at on stdin, what was found on stdout.
    Fsck {
        /// Whether the reference's own directories come first.
        compat: bool,
    },
    /// Print the help and end.
    Help,
}

/// How to serve stdin and stdout.
#[derive(Debug)]
pub struct StdioOptions {
    /// The session to open.
    pub session: SessionOptions,
    /// What the end of the input means for work that is not done.
    pub on_eof: OnEof,
    /// Whether the first line is to be `ready`.
    pub ready: bool,
    /// Whether updates carry the answer so far, as before 0.84 of the reference.
    pub cumulative: bool,
    /// What to tell the user on stderr before anything else.
    pub warnings: Vec<String>,
}

/// How to answer the prompts of the command line.
#[derive(Debug)]
pub struct OneShotOptions {
    /// The session to open.
    pub session: SessionOptions,
    /// What is written to stdout.
    pub format: OneShotFormat,
    /// The files to send along with the first prompt: paths as they were given, `~` included.
    pub files: Vec<String>,
    /// The prompts, one run each, in order.
    pub messages: Vec<String>,
    /// Whether updates carry the answer so far, as before 0.84 of the reference.
    pub cumulative: bool,
    /// What to tell the user on stderr before anything else.
    pub warnings: Vec<String>,
}

/// What prompts of the command line write to stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneShotFormat {
    /// The text of the last answer.
    Text,
    /// The session's header and its events, as JSON Lines.
    Json,
}

/// How to serve stdin and stdout with a session of the user's daemon.
pub struct BridgeOptions {
    /// The arguments as they were given: the daemon reads the flags of the session from them.
    pub args: Vec<String>,
    /// The folder to work in.
    pub cwd: PathBuf,
    /// Whether the reference's own directories come first.
    pub compat: bool,
    /// Whether the first line is to be `ready`.
    pub ready: bool,
    /// What to tell the user on stderr before anything else.
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

/// How to serve a local socket.
#[derive(Debug)]
pub struct ServeOptions {
    /// What sessions are opened with where a client does not say.
    pub base: SessionOptions,
    /// The agent directory, absolute.
    pub agent_dir: PathBuf,
    /// The path of the socket, absolute.
    pub socket: PathBuf,
    /// Whether to leave the session and terminal of whoever started us (`--detached`, as `agentctl up` starts us).
    pub detached: bool,
}

/// What the end of the input means for work that is not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnEof {
    /// It is stopped.
    #[default]
    Abort,
    /// It is finished first.
    Drain,
}

/// Reads the command line.
///
/// `program` is the name under which we were started: `pi` means `--compat pi`. `cwd` is the process's working
/// directory.
///
/// # Errors
/// A sentence for stderr; the exit code is 1.
pub fn parse(
    program: &str,
    args: &[String],
    cwd: &Path,
    environment: Environment,
) -> Result<Invocation, String> {
    let mut flags = Flags::of_program(program);
    let serve = args.first().is_some_and(|first| first == "serve");
    flags.read(&args[usize::from(serve)..])?;
    if flags.help {
        return Ok(Invocation::Help);
    }
    if flags.version {
        return Ok(Invocation::Version { bare: flags.compat });
    }
    if let Some(search) = flags.list_models {
        let search = Some(search).filter(|search| !search.is_empty());
        return Ok(Invocation::ListModels { search, compat: flags.compat });
    }
    if let Some((input, output)) = flags.export {
        return Ok(Invocation::Export { input, output });
    }
    if flags.bug_report {
        return Ok(Invocation::BugReport { compat: flags.compat });
    }
    if flags.fsck {
        return Ok(Invocation::Fsck { compat: flags.compat });
    }
    let mode = flags.mode(serve)?;
    if flags.shared && mode == Mode::Serve {
        return Err("Error: --shared is for --stdio: `agentd --stdio --shared` serves stdin and stdout with a session \
                    of the daemon."
            .into());
    }
    match mode {
        Mode::Serve => {
            return flags.into_serve(cwd, environment).map(|options| Invocation::Serve(Box::new(options)));
        }
        Mode::OneShot(format) => {
            let options = flags.into_one_shot(format, cwd, environment)?;
            return Ok(Invocation::OneShot(Box::new(options)));
        }
        Mode::Stdio => {}
    }
    if flags.shared {
        flags.check_own_process()?;
        let compat = flags.compat;
        // What is wrong with the flags is found here, before there is a daemon.
        let StdioOptions { ready, warnings, .. } = flags.into_stdio(cwd, environment)?;
        let (args, cwd) = (args.to_vec(), cwd.to_owned());
        return Ok(Invocation::Bridge(Box::new(BridgeOptions { args, cwd, compat, ready, warnings })));
    }
    flags.into_stdio(cwd, environment).map(|options| Invocation::Stdio(Box::new(options)))
}

/// Reads the flags of a session that a client sends, as those of `agentd --stdio` in that folder and environment.
///
/// # Errors
/// A sentence, as of [`parse`].
pub fn parse_session(args: &[String], cwd: &Path, environment: Environment) -> Result<StdioOptions, String> {
    let mut flags = Flags::of_program("agentd");
    flags.read(args)?;
    if flags.help
        || flags.version
        || flags.list_models.is_some()
        || flags.export.is_some()
        || flags.bug_report
        || flags.fsck
    {
        return Err(
            "Error: --help, --version, --list-models, --export, --bug-report and --fsck are no flags of a session."
                .into(),
        );
    }
    flags.check_own_process()?;
    let is_one_shot = match flags.mode {
        Some(mode) => mode != ModeFlag::Rpc,
        None => flags.print,
    };
    if is_one_shot {
        return Err(
            "Error: -p and --mode text or json are no flags of a session: prompts come as commands.".into()
        );
    }
    flags.into_stdio(cwd, environment)
}

#[cfg(test)]
mod every_flag;
#[cfg(test)]
mod tests;
