//! What the exit code means, and errors that carry one.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use agentd_protocol::terminal_text::Shown;

use crate::render::harmless;

/// How `agentctl` ends. Scripts rely on the numbers: they never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0: the model answered.
    Answered,
    /// 1: the model or the run failed, or the daemon refused to start.
    Failed,
    /// 2: the command line cannot be used.
    Usage,
    /// 3: `agentd` is missing, broke down, or was killed, or no daemon answers.
    NoDaemon,
    /// 4: the model refused to answer.
    Refused,
    /// 9: the daemon is ending, and takes no new work.
    Ending,
    /// 129: the terminal went away.
    HungUp,
    /// 130: Ctrl-C.
    Interrupted,
    /// 141: whoever read stdout stopped reading.
    OutputClosed,
    /// 143: SIGTERM.
    Terminated,
}

impl Exit {
    /// The number that the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Answered => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoDaemon => 3,
            Self::Refused => 4,
            Self::Ending => 9,
            Self::HungUp => 129,
            Self::Interrupted => 130,
            Self::OutputClosed => 141,
            Self::Terminated => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// A reason to end, told on stderr.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Fault {
    /// How to end.
    pub(crate) exit: Exit,
    /// What happened to which thing, and what to do.
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }
}

/// Writes a line to stderr, without what could steer a terminal. A closed stderr leaves nobody to tell.
pub(crate) fn tell(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(message));
}

/// The one way to stderr besides [`tell`]: nothing that passes steers a terminal, but for colours.
pub(crate) fn stderr() -> CleanStderr {
    CleanStderr(Shown::default())
}

/// See [`stderr`]. What is held back, since it may be a part of something, is written when this is dropped.
pub(crate) struct CleanStderr(Shown);

impl Write for CleanStderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(&self.0.clean(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl Drop for CleanStderr {
    fn drop(&mut self) {
        // A stderr that cannot be written has no reader.
        let _ = io::stderr().write_all(&self.0.finish());
    }
}

/// Has a panic told like everything else: its text may quote what others wrote.
pub(crate) fn tell_panics() {
    std::panic::set_hook(Box::new(|info| {
        let backtrace = std::backtrace::Backtrace::capture();
        tell(&info.to_string());
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            tell(&backtrace.to_string());
        }
    }));
}
