//! The prompts that a user has sent, in one file for all sessions and all daemons of an agent directory.
//!
//! [`PromptRecorder::record`] takes a prompt and returns at once; a blocking thread appends it. [`HistoryFile`] is the file: one JSON
//! line for each prompt, appended under a lock, written anew from time to time with each text once. There is no index in memory: a
//! search reads the file. This crate knows nothing of sessions.

mod file;
mod locked;
mod recorder;
mod rows;

pub use file::{DeleteTarget, HistoryError, HistoryFile, HistoryQuery};
pub use recorder::PromptRecorder;
pub use rows::{MOST_PROMPT_BYTES, NewPrompt, normalized};
