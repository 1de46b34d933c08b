//! The abilities of stdout and stderr together, for what goes to both.

use std::{
    env,
    io::{self, IsTerminal},
};

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
    /// Whether answers are laid out for a terminal, which can redraw rows. Else their text is written as it comes.
    pub(crate) markdown: bool,
    /// Whether answers have colours.
    pub(crate) out_colour: bool,
    /// Whether the terminal makes hyperlinks of addresses that are not on the screen.
    pub(crate) hyperlinks: bool,
    /// Whether all of the model's thinking is shown.
    pub(crate) show_thinking: bool,
}

impl StreamStyle {
    /// The style of this process: colours only on a terminal, and without `NO_COLOR`.
    pub(crate) fn detect() -> Self {
        Self {
            colour: colour_wanted() && io::stderr().is_terminal(),
            plain_out: io::stdout().is_terminal(),
            markdown: io::stdout().is_terminal() && can_rewrite(),
            out_colour: colour_wanted() && io::stdout().is_terminal(),
            hyperlinks: has_hyperlinks(|name| env::var(name).ok()),
            ..Self::default()
        }
    }

    /// The style of this process where a line below everything can show what is going on: on a terminal that can rewrite a line.
    pub(crate) fn detect_live() -> Self {
        Self { live: can_rewrite() && io::stderr().is_terminal(), ..Self::detect() }
    }
}

/// Whether the terminal can write over what it shows.
fn can_rewrite() -> bool {
    env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Whether the terminal is known to make hyperlinks of OSC 8. Others would hide the addresses.
fn has_hyperlinks(variable: impl Fn(&str) -> Option<String>) -> bool {
    let is = |name: &str, known: &[&str]| {
        variable(name).is_some_and(|value| known.iter().any(|known| value.starts_with(known)))
    };
    // A multiplexer stands between, which may not pass them on.
    if is("TERM", &["screen", "tmux"]) {
        return false;
    }
    let vte = variable("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
    vte.is_some_and(|version| version >= 5000)
        || is("TERM", &["xterm-kitty", "alacritty", "foot", "xterm-ghostty", "contour"])
        || is("TERM_PROGRAM", &["iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby"])
        || ["KITTY_WINDOW_ID", "WT_SESSION", "KONSOLE_VERSION", "DOMTERM"]
            .iter()
            .any(|name| variable(name).is_some())
}

const DIM: &str = "2";

impl StreamStyle {
    /// Text in a faint colour.
    pub(crate) fn dim(self, text: &str) -> String {
        self.coloured(DIM, text)
    }

    /// Text for stdout in a faint colour.
    pub(super) fn faint_on_stdout(self, text: &str) -> String {
        if self.out_colour { coloured(DIM, text) } else { text.to_owned() }
    }

    pub(super) fn coloured(self, colour: &str, text: &str) -> String {
        if self.colour { coloured(colour, text) } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyperlinks_only_where_they_are_known_to_work() {
        for (variables, expected) in [
            (&[("TERM", "xterm-256color")][..], false),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "7600")], true),
            (&[("TERM", "xterm-256color"), ("VTE_VERSION", "4000")], false),
            (&[("TERM", "xterm-kitty")], true),
            (&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")], false),
            (&[("TERM_PROGRAM", "vscode")], true),
            (&[], false),
        ] {
            let variable = |name: &str| {
                variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(has_hyperlinks(variable), expected, "{variables:?}");
        }
    }
}
