//! The abilities of stdout and stderr together, for what goes to both.

use std::io::{self, IsTerminal};

use super::{colour_wanted, coloured};

/// The abilities of the two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct StreamStyle {
    /// Whether notices on stderr are coloured.
    pub(crate) colour: bool,
    /// Whether stdout is a terminal, which a model's text must not steer.
    pub(crate) plain_out: bool,
    /// Whether a line below everything shows what is going on, so that lines only tell what has happened.
    pub(crate) live: bool,
}

impl StreamStyle {
    /// The style of this process: colours only on a terminal, and without `NO_COLOR`.
    pub(crate) fn detect() -> Self {
        Self {
            colour: colour_wanted() && io::stderr().is_terminal(),
            plain_out: io::stdout().is_terminal(),
            live: false,
        }
    }

    /// The style of this process where a line below everything can show what is going on: on a terminal that can rewrite a line.
    pub(crate) fn detect_live() -> Self {
        let can_rewrite = std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { live: can_rewrite && io::stderr().is_terminal(), ..Self::detect() }
    }
}

const DIM: &str = "2";

impl StreamStyle {
    /// Text in a faint colour.
    pub(crate) fn dim(self, text: &str) -> String {
        self.coloured(DIM, text)
    }

    pub(super) fn coloured(self, colour: &str, text: &str) -> String {
        if self.colour { coloured(colour, text) } else { text.to_owned() }
    }
}
