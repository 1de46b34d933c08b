//! What the prompt is made of: piped stdin, files, words.

mod files;
mod image;
mod stdin;

pub(crate) use files::{Attachments, read_files};
pub(crate) use stdin::read_stdin;
