//! Writes a command's standard input.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{io::AsyncWrite, net::unix::pipe};

use crate::terminal::Terminal;

/// The writing end of a command's input. A write waits while the command does not read.
///
/// `shutdown` ends the input. A pipe also ends when this is dropped; a terminal does not: its end is the character that
/// a user would type (Ctrl-D unless the command chose another), which a program may interpret as it likes.
///
/// Writing to a command that has closed its input or has ended fails with [`io::ErrorKind::BrokenPipe`].
#[derive(Debug)]
pub struct InputPipe(Sink);

#[derive(Debug)]
enum Sink {
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
        Self(Sink::Pipe(sender))
    }

    pub(crate) fn of_terminal(terminal: Arc<Terminal>) -> Self {
        Self(Sink::Terminal(TerminalInput { terminal, at_line_start: true, ending: None }))
    }
}

impl AsyncWrite for InputPipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.0 {
            Sink::Pipe(sender) => Pin::new(sender).poll_write(cx, bytes),
            Sink::Terminal(input) => {
                let count = ready!(input.terminal.poll_write(cx, bytes))?;
                if let Some(last) = bytes[..count].last() {
                    input.at_line_start = matches!(last, b'\n' | b'\r');
                }
                Poll::Ready(Ok(count))
            }
            Sink::Ended => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Sink::Terminal(input) = &mut self.0 {
            ready!(input.poll_end(cx))?;
        }
        self.0 = Sink::Ended;
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
