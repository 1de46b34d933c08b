//! The wire APIs, a folder each.

pub(crate) mod openai_completions;
pub(crate) mod scripted;
