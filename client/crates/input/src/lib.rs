//! What a prompt from the command line is made of: piped stdin, files, words.
//!
//! Everything is read and checked before a session is asked for, so that a mistake costs nothing.

mod error;
mod files;
mod stdin;
mod words;

use agentd_protocol::command::PromptParams;

pub use self::{
    error::InputError,
    files::{Attachments, read_files},
    stdin::{Typing, read_piped, read_stdin},
    words::Words,
};

/// What was piped in, the files, the words, with nothing between: as the reference does it. For people there is
/// [`Words::compose`].
#[must_use]
pub fn assemble(stdin: &str, files: Attachments, words: &str) -> PromptParams {
    let message = [stdin, &files.text, words].concat();
    PromptParams { message, images: files.images, ..PromptParams::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_without_separator() {
        let files = Attachments { text: "<file>\n".into(), images: Vec::new() };
        assert_eq!(assemble("in", files, "words").message, "in<file>\nwords");
    }
}
