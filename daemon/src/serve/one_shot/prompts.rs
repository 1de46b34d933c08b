//! The prompts of a command line: what is piped in, the files, the words.

use std::path::PathBuf;

use agentd_input::{Attachments, InputError, read_files, read_stdin};
use agentd_protocol::command::PromptParams;

use crate::{cli::OneShotOptions, complain};

/// Prompts in order, at least one.
pub(super) type Prompts = Vec<PromptParams>;

const NO_MESSAGE: &str = "\
Error: there is no message. Give one or more, name a file, or pipe something in:
  agentd -p \"What is in this folder?\"
  agentd -p @src/main.rs \"Explain this code.\"
  git diff | agentd -p \"Review this change.\"
For a program that sends prompts itself there is --mode rpc; `agentd serve` is the daemon.";

/// Reads the files and stdin. Blocks until stdin has ended, unless it is a terminal.
///
/// # Errors
/// A sentence: no message, or a file that cannot be sent.
pub(super) fn read(options: &OneShotOptions) -> Result<Prompts, String> {
    let paths: Vec<&str> = options.files.iter().map(String::as_str).collect();
    let home = options.session.environment.non_empty("HOME").map(PathBuf::from);
    let files =
        read_files(&paths, &options.session.cwd, home.as_deref()).map_err(|error| describe(&error))?;
    let waiting = || {
        complain("agentd: reading the start of the prompt from stdin; if nothing is to come, add </dev/null")
    };
    let stdin = read_stdin(waiting).map_err(|error| describe(&error))?;
    let mut messages = options.messages.iter().map(String::as_str);
    let mut prompts = vec![assemble(&stdin, files, messages.next().unwrap_or_default())];
    prompts
        .extend(messages.map(|message| PromptParams { message: message.into(), ..PromptParams::default() }));
    prompts.retain(|prompt| !prompt.message.trim().is_empty() || !prompt.images.is_empty());
    if prompts.is_empty() {
        return Err(NO_MESSAGE.into());
    }
    Ok(prompts)
}

/// One message of what is piped in, the files and the words, with nothing in between, as in pi.
fn assemble(stdin: &str, files: Attachments, words: &str) -> PromptParams {
    let message = [stdin, &files.text, words].concat();
    PromptParams { message, images: files.images, ..PromptParams::default() }
}

fn describe(error: &InputError) -> String {
    match error {
        InputError::NotFound(_) => {
            format!("Error: {error}\nText that begins with @ goes after `--`: agentd -p -- \"@...\"")
        }
        _ => format!("Error: {error}"),
    }
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
