//! Reads a command's output.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    net::unix::pipe,
};

use crate::{responder::Responder, scope::Scope, terminal::Terminal};

/// The reading end of what a command writes.
///
/// On a terminal, reading also answers the queries that programs send to their terminal.
#[derive(Debug)]
pub struct OutputPipe {
    source: Source,
    limit: Option<OutputLimit>,
}

/// How much a command may write. More is dropped, and the command is killed.
#[derive(Debug)]
pub(crate) struct OutputLimit {
    /// Bytes left, for all outputs of the command.
    pub(crate) left: Arc<AtomicU64>,
    pub(crate) scope: Weak<Scope>,
}

#[derive(Debug)]
enum Source {
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
        Self { source: Source::Pipe(receiver), limit: None }
    }

    pub(crate) fn of_terminal(terminal: Arc<Terminal>) -> Self {
        let responder = Responder::new(terminal.size());
        let output = TerminalOutput { terminal, responder, unsent: Vec::new() };
        Self { source: Source::Terminal(Box::new(output)), limit: None }
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
            if let Some(scope) = limit.scope.upgrade() {
                scope.stop_writing();
            }
            if granted == 0 {
                self.source = Source::Nothing;
            }
        }
        granted
    }

    /// Takes the source out, and leaves an output at its end. `None` if the source was taken before.
    pub(crate) fn take(&mut self) -> Option<Self> {
        match std::mem::replace(&mut self.source, Source::Nothing) {
            Source::Nothing => None,
            source => Some(Self { source, limit: self.limit.take() }),
        }
    }

    /// Reads what is available without waiting: 0 at the end, [`io::ErrorKind::WouldBlock`] when nothing is available.
    pub(crate) fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.source {
            // Reads the pipe directly: the runtime may not know yet that it is readable.
            Source::Pipe(receiver) => rustix::io::read(receiver, &mut *buffer)?,
            Source::Terminal(terminal) => {
                let count = terminal.terminal.try_read(buffer)?;
                terminal.answer(&buffer[..count]);
                count
            }
            Source::Nothing => 0,
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
            Source::Pipe(receiver) => ready!(Pin::new(receiver).poll_read(cx, buffer))?,
            Source::Terminal(terminal) => ready!(terminal.poll_read(cx, buffer))?,
            Source::Nothing => {}
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
