//! The terminal of a list: keys come one by one, and the list is drawn below the line of the cursor.

use std::io::{self, ErrorKind};

use rustix::{
    fs::{Mode, OFlags, open},
    termios::{OptionalActions, Termios, tcgetattr, tcsetattr, ttyname},
};
use tokio::net::unix::pipe;

use super::state::{PickerState, Picture, ROWS};
use crate::{
    exit,
    render::{colour_wanted, coloured},
};

/// Bold.
const CHOSEN: &str = "1";

/// A terminal that sends each key at once, and shows none. Dropping it gives the terminal back as it was, without the list.
pub(super) struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    pub(super) fn enter() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }

    /// The keys, to be waited for. The terminal is opened once more for it: stdin belongs to other programs as well, and has to go on
    /// waiting in a read. Nothing is read before a key is there, so that the next reader of stdin gets every key. Has to be called in a
    /// runtime.
    pub(super) fn keyboard(&self) -> io::Result<pipe::Receiver> {
        let name = ttyname(io::stdin(), Vec::new())?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        pipe::Receiver::from_owned_fd_unchecked(open(name, flags, Mode::empty())?)
    }

    /// Draws the list over the one before it. The cursor stays in the line of the query.
    pub(super) fn draw(&self, state: &PickerState) -> io::Result<()> {
        let (width, height) = exit::stderr_size();
        // A line as wide as the screen would leave the cursor in an undefined place.
        let picture = state.picture(width.saturating_sub(1).max(2), height.saturating_sub(2).min(ROWS));
        exit::draw(&text(&picture, colour_wanted()))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs neither.
        let _ = exit::draw("\r\x1b[J");
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// The bytes of the keys that were pressed; `None` once the terminal is gone.
pub(super) fn pressed(keyboard: &pipe::Receiver) -> io::Result<Option<Vec<u8>>> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 256]);
    loop {
        match keyboard.try_read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Some(bytes)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn text(picture: &Picture, colour: bool) -> String {
    let mut text = format!("\r\x1b[J{}", picture.query);
    for (line, is_chosen) in &picture.lines {
        let line = if *is_chosen && colour { coloured(CHOSEN, line) } else { line.clone() };
        text.push_str(&format!("\r\n{line}"));
    }
    text.push_str(&format!("\x1b[{}A\r\x1b[{}C", picture.lines.len(), picture.cursor));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_comes_back_to_the_query() {
        let picture = Picture {
            query: "> a".into(),
            cursor: 3,
            lines: vec![("> one".into(), true), ("  two".into(), false)],
        };
        assert_eq!(text(&picture, true), "\r\x1b[J> a\r\n\x1b[1m> one\x1b[0m\r\n  two\x1b[2A\r\x1b[3C");
        assert_eq!(text(&picture, false), "\r\x1b[J> a\r\n> one\r\n  two\x1b[2A\r\x1b[3C");
    }
}
