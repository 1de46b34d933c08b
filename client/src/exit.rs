//! How `agentctl` ends: exit codes, faults that carry one, signals, and the last words on stderr.

use std::io::{self, IsTerminal as _, Write};

pub(crate) use agentd_protocol::exit_code::Exit;
use agentd_protocol::{
    exit_code::PromptExit,
    terminal_text::{Shown, harmless},
};

use crate::render::{colour_wanted, cut, one_line};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A reason to end, printed on stderr.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Fault {
    pub(crate) exit: Exit,
    /// The problem, and what to do about it.
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

impl From<Fault> for PromptExit {
    fn from(fault: Fault) -> Self {
        Self { exit: fault.exit, message: Some(fault.message).filter(|message| !message.is_empty()) }
    }
}

/// Writes a line to stderr, without characters that steer a terminal. A closed stderr has no reader.
pub(crate) fn print_stderr(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", harmless(message));
}

/// As [`print_stderr`]; where stderr is a terminal that wants colours, the text that has them.
pub(crate) fn print_stderr_coloured(plain: &str, coloured: &str) {
    if !io::stderr().is_terminal() || !colour_wanted() {
        return print_stderr(plain.trim_end());
    }
    // A stderr that cannot be written has no reader.
    let _ = writeln!(stderr(), "{}", coloured.trim_end());
}

/// The only way to stderr besides [`print_stderr`]: removes everything that steers a terminal, except colours.
pub(crate) fn stderr() -> CleanStderr {
    CleanStderr(Shown::default())
}

/// See [`stderr`]. A partial sequence is held back until it is complete, or until this is dropped.
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

/// The columns of the terminal behind stderr; 80 where it is none, or its width is unknown.
pub(crate) fn stderr_width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
    size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 1).unwrap_or(80)
}

/// The columns and rows of the terminal behind stderr; 80 and 24 where it is none, or does not tell.
pub(crate) fn stderr_size() -> (usize, usize) {
    let rows = rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| usize::from(size.ws_row));
    (stderr_width(), rows.filter(|rows| *rows > 1).unwrap_or(24))
}

/// Shows a text in the place of the line that the cursor is in, which has to be empty or one of these; for a stderr that is a terminal.
/// An empty text erases it. The text is cut to the width.
pub(crate) fn show_status_line(text: &str) {
    let line = cut(&one_line(text), stderr_width() - 1);
    // A stderr that cannot be written has no reader.
    let _ = io::stderr().write_all(format!("\r\x1b[K{line}").as_bytes());
}

/// Writes a text as it is, with what moves the cursor, to a stderr that is a terminal. Foreign texts in it have to be clean already.
///
/// # Errors
/// When stderr cannot be written.
pub(crate) fn draw(text: &str) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush())
}

/// Prints panics through [`print_stderr`]: their text may quote foreign input.
pub(crate) fn print_panics_cleaned() {
    std::panic::set_hook(Box::new(|info| {
        let backtrace = std::backtrace::Backtrace::capture();
        print_stderr(&info.to_string());
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            print_stderr(&backtrace.to_string());
        }
    }));
}

/// Prints the fault, unless it has no message. The end of a verb's `run`.
pub(crate) fn conclude(outcome: Result<Exit, Fault>) -> Exit {
    match outcome {
        Ok(exit) => exit,
        Err(fault) => {
            if !fault.message.is_empty() {
                print_stderr(&fault.message);
            }
            fault.exit
        }
    }
}

/// SIGINT, SIGTERM and SIGHUP.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    /// Takes over the signals: from here on they no longer end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal, and gives its exit.
    ///
    /// *Cancel safety*: no signal is lost.
    pub(crate) async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
            _ = self.hang_up.recv() => Exit::HungUp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_says_nothing() {
        assert_eq!(conclude(Err(Fault::new(Exit::Interrupted, ""))), Exit::Interrupted);
        assert_eq!(conclude(Ok(Exit::Answered)), Exit::Answered);
    }
}
