//! The terminal while a table is on it: raw mode, the other screen, and lines that are rewritten where they differ.

use std::{
    io::{self, Write},
    mem,
};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use rustix::process::{Signal, getpid, kill_process};

/// The other screen, cleared, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";

/// The screen that was there before, with the cursor.
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// A terminal that shows a table. Dropping it gives the terminal back as it was.
pub(super) struct TableTerminal {
    /// The lines that are shown.
    shown: Vec<String>,
    is_entered: bool,
}

impl TableTerminal {
    /// Takes the terminal.
    ///
    /// # Errors
    /// When stdout cannot be written, or there is no terminal to read keys from.
    pub(super) fn enter() -> io::Result<Self> {
        let mut terminal = Self { shown: Vec::new(), is_entered: false };
        terminal.take()?;
        Ok(terminal)
    }

    fn take(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        self.is_entered = true;
        write_all(ENTER)
    }

    fn give_back(&mut self) -> io::Result<()> {
        if !mem::take(&mut self.is_entered) {
            return Ok(());
        }
        self.shown.clear();
        let left = write_all(LEAVE);
        disable_raw_mode().and(left)
    }

    /// Shows lines from the top; those that are shown already are not written again.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub(super) fn draw(&mut self, lines: Vec<String>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            if self.shown.get(at) != Some(line) {
                bytes.extend_from_slice(format!("\x1b[{};1H{line}\x1b[K", at + 1).as_bytes());
            }
        }
        for at in lines.len()..self.shown.len() {
            bytes.extend_from_slice(format!("\x1b[{};1H\x1b[K", at + 1).as_bytes());
        }
        self.shown = lines;
        if bytes.is_empty() { Ok(()) } else { write_all(&bytes) }
    }

    /// Forgets what is shown: the terminal has another size.
    ///
    /// # Errors
    /// When stdout cannot be written.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.shown.clear();
        write_all(b"\x1b[2J")
    }

    /// Gives the terminal to the shell, and takes it again when the shell lets us go on.
    ///
    /// # Errors
    /// When the terminal cannot be changed.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.give_back()?;
        kill_process(getpid(), Signal::TSTP)?;
        self.take()
    }
}

impl Drop for TableTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = self.give_back();
    }
}

fn write_all(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}
