//! Reading what a command writes.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    net::unix::pipe,
};

use crate::{responder::Responder, terminal::Terminal};

/// The reading end of what a command writes.
///
/// On a terminal, reading is also what answers the questions that programs ask their terminal.
#[derive(Debug)]
pub struct OutputPipe(Source);

#[derive(Debug)]
enum Source {
    Pipe(pipe::Receiver),
    Terminal(Box<TerminalOutput>),
    /// Taken by [`OutputPipe::take`].
    Nothing,
}

#[derive(Debug)]
struct TerminalOutput {
    terminal: Arc<Terminal>,
    responder: Responder,
    /// Answers that the terminal had no room for yet.
    unsent: Vec<u8>,
}

/// Answers that wait for a program that does not read them; more are dropped.
const MAX_UNSENT: usize = 4096;

impl OutputPipe {
    pub(crate) fn of_pipe(receiver: pipe::Receiver) -> Self {
        Self(Source::Pipe(receiver))
    }

    pub(crate) fn of_terminal(terminal: Arc<Terminal>) -> Self {
        let responder = Responder::new(terminal.size());
        Self(Source::Terminal(Box::new(TerminalOutput { terminal, responder, unsent: Vec::new() })))
    }

    /// Takes the source out; what is left is at its end. `None` if that was done before.
    pub(crate) fn take(&mut self) -> Option<Self> {
        match std::mem::replace(&mut self.0, Source::Nothing) {
            Source::Nothing => None,
            source => Some(Self(source)),
        }
    }

    /// Reads what is there without waiting: 0 at the end, [`io::ErrorKind::WouldBlock`] when there is nothing now.
    pub(crate) fn try_read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            // Asks the pipe itself: the runtime may not yet know that there is something to read.
            Source::Pipe(receiver) => Ok(rustix::io::read(receiver, buffer)?),
            Source::Terminal(terminal) => {
                let count = terminal.terminal.try_read(buffer)?;
                terminal.answer(&buffer[..count]);
                Ok(count)
            }
            Source::Nothing => Ok(0),
        }
    }
}

impl AsyncRead for OutputPipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.0 {
            Source::Pipe(receiver) => Pin::new(receiver).poll_read(cx, buffer),
            Source::Terminal(terminal) => terminal.poll_read(cx, buffer),
            Source::Nothing => Poll::Ready(Ok(())),
        }
    }
}

impl TerminalOutput {
    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = ready!(self.terminal.poll_read(cx, buffer.initialize_unfilled()))?;
        self.answer(&buffer.initialize_unfilled()[..count]);
        buffer.advance(count);
        Poll::Ready(Ok(()))
    }

    /// Answers the questions in `output`, without waiting: whoever asks and does not read gets no more answers.
    fn answer(&mut self, output: &[u8]) {
        self.responder.resize(self.terminal.size());
        self.responder.push(output, &mut self.unsent);
        if self.unsent.is_empty() {
            return;
        }
        match self.terminal.try_write(&self.unsent) {
            Ok(count) => drop(self.unsent.drain(..count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            // Nobody is left to read an answer.
            Err(_) => self.unsent.clear(),
        }
        if self.unsent.len() > MAX_UNSENT {
            self.unsent.clear();
        }
    }
}
