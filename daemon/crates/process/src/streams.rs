//! Creates a command's standard streams: one end for the daemon, the other for the command.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, atomic::AtomicU64},
};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;

use crate::{
    input::InputPipe,
    output::{OutputLimit, OutputPipe},
    scope::Scope,
    terminal::{Terminal, TerminalSize},
};

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

/// The daemon's ends of a command's streams.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) output: OutputPipe,
    pub(crate) errors: Option<OutputPipe>,
    pub(crate) input: Option<InputPipe>,
    pub(crate) terminal: Option<Arc<Terminal>>,
}

impl Ends {
    /// Kills the command once it has written more than `bytes`.
    pub(crate) fn limit(&mut self, scope: &Arc<Scope>, bytes: u64) {
        let left = Arc::new(AtomicU64::new(bytes));
        for output in [Some(&mut self.output), self.errors.as_mut()].into_iter().flatten() {
            output.limit(OutputLimit { left: Arc::clone(&left), scope: Arc::downgrade(scope) });
        }
    }
}

impl CommandStreams {
    /// The most descriptors that a command's streams need.
    pub(crate) const MAX_FDS: usize = 3;

    /// Creates the streams. The second value has the command's ends, in the order in which the supervisor expects them:
    /// input, output, errors, as far as they exist; or the terminal.
    ///
    /// # Errors
    /// The system's. Needs a tokio runtime.
    pub(crate) fn open(self) -> io::Result<(Ends, Vec<OwnedFd>)> {
        if let Self::Terminal(size) = self {
            let (terminal, theirs) = Terminal::open(size)?;
            let ends = Ends {
                output: OutputPipe::of_terminal(Arc::clone(&terminal)),
                errors: None,
                input: Some(InputPipe::of_terminal(Arc::clone(&terminal))),
                terminal: Some(terminal),
            };
            return Ok((ends, vec![theirs]));
        }
        let mut theirs = Vec::with_capacity(Self::MAX_FDS);
        let input = match self {
            Self::InputOutput | Self::Separate => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                theirs.push(read);
                Some(InputPipe::of_pipe(pipe::Sender::from_owned_fd(write)?))
            }
            Self::Output | Self::Terminal(_) => None,
        };
        let output = output_pipe(&mut theirs)?;
        let errors = match self {
            Self::Separate => Some(output_pipe(&mut theirs)?),
            Self::Output | Self::InputOutput | Self::Terminal(_) => None,
        };
        Ok((Ends { output, errors, input, terminal: None }, theirs))
    }
}

fn output_pipe(theirs: &mut Vec<OwnedFd>) -> io::Result<OutputPipe> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    theirs.push(write);
    Ok(OutputPipe::of_pipe(pipe::Receiver::from_owned_fd(read)?))
}
