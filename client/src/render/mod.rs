//! What a run looks like on stdout and stderr.

mod demo_note;
mod line;
mod screen;
mod text;
mod time;
mod tool_line;

pub(crate) use agentd_protocol::terminal_text::{harmless, steers};

pub(crate) use demo_note::DEMO_NOTE;
pub(crate) use line::{colour_wanted, coloured, one_line, shell_word};
pub(crate) use screen::{Screen, counted, cut, short_id};
pub(crate) use text::{Style, TextRenderer, ToolLines, prompt_line};
pub(crate) use time::{age, ago, clock, duration};
