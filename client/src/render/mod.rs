//! Texts for stdout and stderr.

mod checkpoints;
mod permissions;
mod screen;
mod text;
mod time;
mod tool_line;

pub(crate) use agentd_protocol::terminal_text::{harmless, steers};

#[cfg(test)]
pub(crate) use screen::example_session;
pub(crate) use screen::{
    Screen, colour_wanted, coloured, columns, counted, cut, cut_begin, one_line, padded, paint_diff,
    session_title, shell_word, short_id,
};
pub(crate) use text::{StreamStyle, TextRenderer, ToolLines, prompt_line};
pub(crate) use time::{age, ago, clock, duration};
