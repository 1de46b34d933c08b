//! Describes a command to start, how it ended, and why it could not start.

use std::{ffi::OsString, fmt, io, path::PathBuf, sync::Arc};

use agentd_sandbox::{ConfineStep, SandboxPolicy};

use crate::terminal::TerminalSize;

/// A program to start.
#[derive(Clone, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program: a path, or a name to look for on the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// Its working directory, absolute.
    pub cwd: PathBuf,
    /// Its complete environment; nothing is inherited. The later of two entries with one name wins.
    pub env: Vec<(OsString, OsString)>,
    /// Its standard streams.
    pub streams: CommandStreams,
    /// What it may touch, with all that it starts; `None` confines nothing.
    pub sandbox: Option<Arc<SandboxPolicy>>,
}

/// Leaves out the arguments and the environment, which may hold secrets.
impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandSpec")
            .field("program", &self.program)
            .field("cwd", &self.cwd)
            .field("args", &self.args.len())
            .field("env", &self.env.len())
            .field("streams", &self.streams)
            .field("sandbox", &self.sandbox.is_some())
            .finish()
    }
}

/// The standard streams of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CommandStreams {
    /// No input; output and errors in one pipe, so that they arrive in the order in which they were written.
    #[default]
    Output,
    /// A pipe for input; output and errors in one pipe.
    InputOutput,
    /// A pipe each for input, output and errors. Both output and errors must be read: a full pipe stops the command.
    Separate,
    /// A terminal of this size, which controls the command's process session. Output arrives as a terminal gets it: LF
    /// as CR LF, and with input echoed.
    Terminal(TerminalSize),
}

impl CommandStreams {
    /// The most descriptors that a command's streams need.
    pub(crate) const MAX_FDS: usize = 3;
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitStatus {
    /// The exit code; 128 + n when signal n ended the process, as shells report it.
    pub code: i32,
    /// The signal that ended the process.
    pub signal: Option<i32>,
}

impl ExitStatus {
    /// A process that ended by itself with `code`.
    #[must_use]
    pub const fn exited(code: i32) -> Self {
        Self { code, signal: None }
    }

    /// A process that `signal` ended.
    #[must_use]
    pub const fn signaled(signal: i32) -> Self {
        Self { code: 128 + signal, signal: Some(signal) }
    }

    /// Whether the process ended by itself with code 0.
    #[must_use]
    pub const fn success(self) -> bool {
        self.code == 0
    }
}

/// Why a process could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The working directory cannot be entered.
    #[error("cannot enter the working directory {}: {source}", path.display())]
    WorkingDirectory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program cannot be executed: it is missing, not executable, or its arguments are too long.
    #[error("cannot execute {}: {source}", program.display())]
    Program {
        /// The program as asked for.
        program: OsString,
        /// The system's error.
        source: io::Error,
    },
    /// The command could not be confined to its sandbox, so it did not run.
    #[error("the command did not run, because its sandbox could not be set up: {} failed: {source}", step.text())]
    Sandbox {
        /// The step that failed.
        step: ConfineStep,
        /// The system's error.
        source: io::Error,
    },
    /// An argument, a variable or the directory contains a NUL byte, which cannot be passed to a process.
    #[error("the {part} of a command contains a NUL byte: remove it")]
    NulByte {
        /// The part with the NUL byte: `program`, `arguments`, `environment` or `working directory`.
        part: &'static str,
    },
    /// The guard could not be started or reached; see [`crate::run_guard`].
    #[error("cannot start the process guard {}: {source}", program.display())]
    Guard {
        /// The guard's program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused what a new process needs: a pipe, a terminal, a socket pair, or a fork.
    #[error("cannot prepare a new process: {0}")]
    Resources(#[source] io::Error),
    /// The supervisor was killed while the command was starting. Whether the command ran is unknown; its processes were
    /// killed.
    #[error("the process guard was killed while the command was starting; the command may have run in part")]
    GuardLost,
    /// As many commands run as are allowed, in all sessions together.
    #[error(
        "{limit} commands of all sessions run already, as many as the setting daemon.maxCommands allows: wait until some \
         have ended"
    )]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// [`crate::ProcessGroup::terminate`] closed the group.
    #[error("the session is closed: it starts no more processes")]
    Closed,
}
