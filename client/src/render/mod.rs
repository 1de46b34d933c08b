//! Texts for stdout and stderr.

mod activity;
mod answer;
mod screen;
mod style;
mod text;
mod tool_lines;

pub(crate) use agentd_client_text::{
    age, ago, clock, columns, counted, cut, cut_begin, duration, model_id, money, one_line, padded,
    session_title, shell_word, short_count, short_id, subject, title,
};
pub(crate) use agentd_protocol::terminal_text::{harmless, steers};

pub(crate) use activity::{activity_text, short_time};
pub(crate) use answer::whole_text;

#[cfg(test)]
pub(crate) use activity::example_activity;
#[cfg(test)]
pub(crate) use screen::example_session;
pub(crate) use screen::{Screen, colour_wanted, coloured, paint_diff};
pub(crate) use style::StreamStyle;
pub(crate) use text::{TextRenderer, prompt_line};
pub(crate) use tool_lines::ToolLines;
