//! What a run looks like on stdout and stderr.

mod demo_note;
mod line;
mod text;
mod tool_line;

pub(crate) use demo_note::DEMO_NOTE;
pub(crate) use line::{colour_wanted, coloured, one_line, shell_word, terminal_width};
pub(crate) use text::{Style, TextRenderer};
