//! The size of the terminal behind stdout.

use std::io;

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

/// The size that is taken where the terminal does not tell.
const USUAL_SIZE: TerminalSize = TerminalSize { columns: 80, rows: 24 };

/// The size of the terminal behind stdout, or 80 columns and 24 rows where it is none or does not tell.
pub(crate) fn stdout_size() -> TerminalSize {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    let size =
        size.map(|size| TerminalSize { columns: usize::from(size.ws_col), rows: usize::from(size.ws_row) });
    size.filter(|size| size.columns > 0 && size.rows > 0).unwrap_or(USUAL_SIZE)
}
