//! Lines of stdin, each with the time at which it came.

use std::{
    io::{self, BufRead, IsTerminal},
    time::Instant,
};

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::mpsc;

/// How many typed lines wait until they are handled.
const TYPED: usize = 16;

/// A line that was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedLine {
    pub(crate) text: String,
    /// When it came: a line from before a question is no answer to it.
    pub(crate) at: Instant,
}

/// Reads stdin line by line, until its end. The reading thread may block forever.
pub(crate) fn typed_lines() -> mpsc::Receiver<TypedLine> {
    let (lines, receiver) = mpsc::channel(TYPED);
    std::thread::spawn(move || {
        for text in io::stdin().lock().lines().map_while(Result::ok) {
            if lines.blocking_send(TypedLine { text, at: Instant::now() }).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Drops what the terminal holds already: keys that were typed while nothing was asked answer nothing.
pub(crate) fn drop_typed_ahead() {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        // A terminal that is gone has nothing to drop; reading from it says so.
        let _ = tcflush(&stdin, QueueSelector::IFlush);
    }
}
