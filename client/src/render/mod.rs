//! Texts for stdout and stderr.

mod activity;
mod amounts;
mod answer;
mod checkpoints;
mod permissions;
mod screen;
mod style;
mod text;
mod time;
mod tool_line;
mod tool_lines;

pub(crate) use agentd_protocol::terminal_text::{harmless, steers};

pub(crate) use activity::{activity_text, short_time};
pub(crate) use amounts::{money, short_count};
pub(crate) use answer::{stdout_size, whole_text};

#[cfg(test)]
pub(crate) use activity::example_activity;
#[cfg(test)]
pub(crate) use screen::example_session;
pub(crate) use screen::{
    Screen, colour_wanted, coloured, columns, counted, cut, cut_begin, one_line, padded, paint_diff,
    session_title, shell_word, short_id,
};
pub(crate) use style::StreamStyle;
pub(crate) use text::{TextRenderer, prompt_line};
pub(crate) use time::{age, ago, clock, duration};
pub(crate) use tool_line::subject;
pub(crate) use tool_lines::ToolLines;
