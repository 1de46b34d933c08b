//! The abilities of stdout.

use std::{
    env,
    io::{self, IsTerminal},
};

use agentd_client_text::one_line;
#[cfg(test)]
use agentd_protocol::daemon::SessionInfo;

/// The abilities of stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Screen {
    /// The characters in a line; `None` where nothing limits them.
    pub(crate) width: Option<usize>,
    /// Whether colours are wanted.
    pub(crate) colour: bool,
    /// Whether stdout is a terminal, which foreign texts must not steer.
    pub(crate) is_terminal: bool,
}

impl Screen {
    /// The abilities of this process's stdout: colours only on a terminal, and without `NO_COLOR`.
    pub(crate) fn of_stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self { width: terminal_width(), colour: is_terminal && colour_wanted(), is_terminal }
    }

    /// The text in a colour (an SGR number), where colours are wanted.
    pub(crate) fn paint(self, colour: &str, text: &str) -> String {
        if self.colour { coloured(colour, text) } else { text.to_owned() }
    }
}

/// Whether a terminal gets colours: neither `NO_COLOR` nor `TERM=dumb` is set.
pub(crate) fn colour_wanted() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// The characters in a line of stdout; `None` where it is no terminal, or its width is unknown.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|width| *width > 0)
}

/// The text in a colour, by its SGR number.
pub(crate) fn coloured(colour: &str, text: &str) -> String {
    format!("\x1b[{colour}m{text}\x1b[0m")
}

/// A line of a unified diff, harmless to a terminal, in the colours of diffs.
pub(crate) fn paint_diff(line: &str, colour: bool) -> String {
    let text = one_line(line);
    let sgr = match line.as_bytes() {
        [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => "1",
        [b'-', ..] => "31",
        [b'+', ..] => "32",
        [b'@', b'@', ..] => "36",
        _ => return text,
    };
    if colour { coloured(sgr, &text) } else { text }
}

#[cfg(test)]
pub(crate) fn example_session(id: &str) -> SessionInfo {
    let time = "2026-11-21T14:04:00.000Z";
    SessionInfo {
        id: id.into(),
        path: None,
        cwd: "/home/u/project".into(),
        name: None,
        created: time.into(),
        modified: time.into(),
        message_count: 12,
        first_message: "What\nis this?".into(),
        turns: 3,
        cost: 0.0,
        model: None,
        parent_id: None,
        agent: None,
        agent_id: None,
        live: false,
        is_streaming: false,
        clients: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_where_it_is_wanted() {
        assert_eq!(Screen::default().paint("2", "x"), "x");
        assert_eq!(Screen { colour: true, ..Screen::default() }.paint("2", "x"), "\x1b[2mx\x1b[0m");
    }
}
