//! Creates a command's standard streams: one end for the daemon, the other for the command.

use std::{
    io,
    os::fd::OwnedFd,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use rustix::pipe::{PipeFlags, pipe_with};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::unix::pipe,
};

use crate::{
    command::CommandStreams, responder::Responder, supervisor::SupervisorHandle, terminal::Terminal,
};

/// The daemon's ends of a command's streams.
#[derive(Debug)]
pub(crate) struct StreamEnds {
    pub(crate) output: OutputPipe,
    pub(crate) errors: Option<OutputPipe>,
    pub(crate) input: Option<InputPipe>,
    pub(crate) terminal: Option<Arc<Terminal>>,
}

impl StreamEnds {
    /// Kills the command once it has written more than `bytes`.
    pub(crate) fn limit(&mut self, supervisor: &Arc<SupervisorHandle>, bytes: u64) {
        let left = Arc::new(AtomicU64::new(bytes));
        for output in [Some(&mut self.output), self.errors.as_mut()].into_iter().flatten() {
            output.limit(OutputLimit { left: Arc::clone(&left), supervisor: Arc::downgrade(supervisor) });
        }
    }
}

impl StreamEnds {
    /// Creates the streams. The second value has the command's ends, in the order in which the supervisor expects them:
    /// input, output, errors, as far as they exist; or the terminal.
    ///
    /// # Errors
    /// The system's. Needs a tokio runtime.
    pub(crate) fn open(streams: CommandStreams) -> io::Result<(Self, Vec<OwnedFd>)> {
        if let CommandStreams::Terminal(size) = streams {
            let (terminal, theirs) = Terminal::open(size)?;
            let ends = Self {
                output: OutputPipe::of_terminal(Arc::clone(&terminal)),
                errors: None,
                input: Some(InputPipe::of_terminal(Arc::clone(&terminal))),
                terminal: Some(terminal),
            };
            return Ok((ends, vec![theirs]));
        }
        let mut theirs = Vec::with_capacity(CommandStreams::MAX_FDS);
        let input = match streams {
            CommandStreams::InputOutput | CommandStreams::Separate => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                theirs.push(read);
                Some(InputPipe::of_pipe(pipe::Sender::from_owned_fd(write)?))
            }
            CommandStreams::Output | CommandStreams::Terminal(_) => None,
        };
        let output = output_pipe(&mut theirs)?;
        let errors = match streams {
            CommandStreams::Separate => Some(output_pipe(&mut theirs)?),
            CommandStreams::Output | CommandStreams::InputOutput | CommandStreams::Terminal(_) => None,
        };
        Ok((Self { output, errors, input, terminal: None }, theirs))
    }
}

fn output_pipe(theirs: &mut Vec<OwnedFd>) -> io::Result<OutputPipe> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    theirs.push(write);
    Ok(OutputPipe::of_pipe(pipe::Receiver::from_owned_fd(read)?))
}

/// The writing end of a command's input. A write waits while the command does not read.
///
/// `shutdown` ends the input. A pipe also ends when this is dropped; a terminal does not: its end is the character that
/// a user would type (Ctrl-D unless the command chose another), which a program may interpret as it likes.
///
/// Writing to a command that has closed its input or has ended fails with [`io::ErrorKind::BrokenPipe`].
#[derive(Debug)]
pub struct InputPipe(InputSink);

#[derive(Debug)]
enum InputSink {
    Pipe(pipe::Sender),
    Terminal(TerminalInput),
    /// After `shutdown`.
    Ended,
}

#[derive(Debug)]
struct TerminalInput {
    terminal: Arc<Terminal>,
    /// Whether the last byte written ended a line. In the middle of a line the first end character only submits the
    /// line.
    at_line_start: bool,
    /// The unwritten rest of the end.
    ending: Option<Vec<u8>>,
}

impl InputPipe {
    pub(crate) fn of_pipe(sender: pipe::Sender) -> Self {
        Self(InputSink::Pipe(sender))
    }

    pub(crate) fn of_terminal(terminal: Arc<Terminal>) -> Self {
        Self(InputSink::Terminal(TerminalInput { terminal, at_line_start: true, ending: None }))
    }
}

impl AsyncWrite for InputPipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            InputSink::Pipe(sender) => Pin::new(sender).poll_write(cx, bytes),
            InputSink::Terminal(input) => {
                let count = ready!(input.terminal.poll_write(cx, bytes))?;
                if let Some(last) = bytes[..count].last() {
                    input.at_line_start = matches!(last, b'\n' | b'\r');
                }
                Poll::Ready(Ok(count))
            }
            InputSink::Ended => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let InputSink::Terminal(input) = &mut self.0 {
            ready!(input.poll_end(cx))?;
        }
        self.0 = InputSink::Ended;
        Poll::Ready(Ok(()))
    }
}

impl TerminalInput {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let (terminal, at_line_start) = (&self.terminal, self.at_line_start);
        let ending = self.ending.get_or_insert_with(|| terminal.end_of_input(at_line_start));
        while !ending.is_empty() {
            let count = ready!(self.terminal.poll_write(cx, ending))?;
            ending.drain(..count);
        }
        Poll::Ready(Ok(()))
    }
}

/// The reading end of what a command writes.
///
/// On a terminal, reading also answers the queries that programs send to their terminal.
#[derive(Debug)]
pub struct OutputPipe {
    source: OutputSource,
    limit: Option<OutputLimit>,
}

/// How much a command may write. More is dropped, and the command is killed.
#[derive(Debug)]
pub(crate) struct OutputLimit {
    /// Bytes left, for all outputs of the command.
    pub(crate) left: Arc<AtomicU64>,
    pub(crate) supervisor: Weak<SupervisorHandle>,
}

#[derive(Debug)]
enum OutputSource {
    Pipe(pipe::Receiver),
    Terminal(Box<TerminalOutput>),
    /// [`OutputPipe::take`] took the source.
    Nothing,
}

#[derive(Debug)]
struct TerminalOutput {
    terminal: Arc<Terminal>,
    responder: Responder,
    /// Answers that did not fit into the terminal's input yet.
    unsent: Vec<u8>,
}

/// Answers kept for a program that does not read them, in bytes; more are dropped.
const MAX_UNSENT: usize = 4096;

impl OutputPipe {
    pub(crate) fn of_pipe(receiver: pipe::Receiver) -> Self {
        Self { source: OutputSource::Pipe(receiver), limit: None }
    }

    pub(crate) fn of_terminal(terminal: Arc<Terminal>) -> Self {
        let responder = Responder::new(terminal.size());
        let output = TerminalOutput { terminal, responder, unsent: Vec::new() };
        Self { source: OutputSource::Terminal(Box::new(output)), limit: None }
    }

    pub(crate) fn limit(&mut self, limit: OutputLimit) {
        self.limit = Some(limit);
    }

    /// Counts what was read. Returns how much of it is within the limit; when nothing is, the output ends.
    fn granted(&mut self, count: usize) -> usize {
        let Some(limit) = &self.limit else { return count };
        let take = |left: u64| Some(left.saturating_sub(count as u64));
        let (Ok(left) | Err(left)) = limit.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let granted = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        if granted < count {
            if let Some(supervisor) = limit.supervisor.upgrade() {
                supervisor.stop_writing();
            }
            if granted == 0 {
                self.source = OutputSource::Nothing;
            }
        }
        granted
    }

    /// Makes the pipe hold so many bytes. Returns whether it does; a terminal never does.
    pub(crate) fn enlarge(&self, bytes: usize) -> bool {
        match &self.source {
            // An error means that all pipes of the user hold as much as the system allows together.
            OutputSource::Pipe(receiver) => {
                rustix::pipe::fcntl_setpipe_size(receiver, bytes).is_ok_and(|size| size >= bytes)
            }
            OutputSource::Terminal(_) | OutputSource::Nothing => false,
        }
    }

    /// Takes the source out, and leaves an output at its end. `None` if the source was taken before.
    pub(crate) fn take(&mut self) -> Option<Self> {
        match std::mem::replace(&mut self.source, OutputSource::Nothing) {
            OutputSource::Nothing => None,
            source => Some(Self { source, limit: self.limit.take() }),
        }
    }

    /// Reads what is available without waiting: 0 at the end.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] when nothing is available; otherwise the system's.
    pub fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.source {
            // Reads the pipe directly: the runtime may not know yet that it is readable.
            OutputSource::Pipe(receiver) => rustix::io::read(receiver, &mut *buffer)?,
            OutputSource::Terminal(terminal) => {
                let count = terminal.terminal.try_read(buffer)?;
                terminal.answer(&buffer[..count]);
                count
            }
            OutputSource::Nothing => 0,
        };
        Ok(self.granted(count))
    }
}

impl AsyncRead for OutputPipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match &mut self.source {
            OutputSource::Pipe(receiver) => ready!(Pin::new(receiver).poll_read(cx, buffer))?,
            OutputSource::Terminal(terminal) => ready!(terminal.poll_read(cx, buffer))?,
            OutputSource::Nothing => {}
        }
        let granted = self.granted(buffer.filled().len() - before);
        buffer.set_filled(before + granted);
        Poll::Ready(Ok(()))
    }
}

impl TerminalOutput {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = ready!(self.terminal.poll_read(cx, buffer.initialize_unfilled()))?;
        self.answer(&buffer.initialize_unfilled()[..count]);
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }

    /// Answers the queries in `output` without waiting: a program that does not read loses later answers.
    fn answer(&mut self, output: &[u8]) {
        self.responder.resize(self.terminal.size());
        self.responder.push(output, &mut self.unsent);
        if self.unsent.is_empty() {
            return;
        }
        match self.terminal.try_write(&self.unsent) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // No program is left to read an answer.
            Err(_) => self.unsent.clear(),
        }
        if self.unsent.len() > MAX_UNSENT {
            self.unsent.clear();
        }
    }
}
