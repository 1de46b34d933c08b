//! The end of a prompt: the answer's file, the last record or the last answer on stdout, the last words on stderr.

use std::path::Path;

use agentd_protocol::{exit_code::PromptExit, prompt_records::PromptRecord};

use super::{
    conversation::{Conversation, output_failed},
    request::{PromptRequest, StdoutContent},
};
use crate::{
    exit::{Exit, Fault},
    output::OutputChunk,
    output_file::{self, Present},
};

/// The mode of a new file for the answer, less the umask: as of a shell's redirection.
const FILE_MODE: u32 = 0o666;

/// Writes what is left, and gives the exit code. A signal or a closed stdout ends it early, with an exit code of its own.
///
/// # Errors
/// When stdout cannot be written.
pub(super) async fn finish(
    conversation: Conversation,
    request: &PromptRequest,
    end: PromptExit,
) -> Result<Exit, Fault> {
    let Conversation { mut signals, output, chunks, totals } = conversation;
    let writing = async {
        let answer = totals.answer().map(ended_line).filter(|answer| !answer.is_empty());
        let end = match (&request.answer_file, &answer) {
            (Some(file), Some(answer)) => keep(file, answer, end).await,
            _ => end,
        };
        let last = match (request.stdout, answer) {
            (StdoutContent::Records, _) => Some(line(&PromptRecord::Result(Box::new(totals.result(&end))))?),
            (StdoutContent::LastAnswer, Some(answer)) => Some(OutputChunk::Out(answer.into_bytes())),
            (StdoutContent::LastAnswer, None) | (StdoutContent::AllAnswers, _) => None,
        };
        let summary = totals.summary(!request.ephemeral).filter(|_| request.style.live);
        let summary = summary.map(|line| request.style.dim(&line));
        let words = summary.into_iter().chain(end.message);
        let words = words.map(|line| OutputChunk::Err(format!("{line}\n").into_bytes()));
        let no_status = OutputChunk::Status(String::new());
        for chunk in [no_status].into_iter().chain(last).chain(words) {
            // Fails when the writer is gone, which `finish` reports.
            let _ = chunks.send(chunk).await;
        }
        drop(chunks);
        match output.finish().await {
            Ok(()) => Ok(end.exit),
            Err(error) => output_failed(&error),
        }
    };
    tokio::select! {
        written = writing => written,
        exit = signals.next() => Ok(exit),
    }
}

/// A record as a line of stdout.
///
/// # Errors
/// When it cannot be written as JSON.
pub(super) fn line(record: &PromptRecord) -> Result<OutputChunk, Fault> {
    let text = serde_json::to_string(record).map_err(|error| {
        Fault::new(Exit::Failed, format!("agentctl: a record cannot be written as JSON: {error}"))
    })?;
    Ok(OutputChunk::Out((text + "\n").into_bytes()))
}

fn ended_line(text: String) -> String {
    if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
}

/// Writes the answer to the file that the user named. A failure is one of the prompt, unless that failed already.
async fn keep(file: &Path, answer: &str, end: PromptExit) -> PromptExit {
    let (target, answer) = (file.to_owned(), answer.to_owned());
    // A named pipe may have to wait for its reader.
    let written = tokio::task::spawn_blocking(move || {
        output_file::write(&target, Present::Replace, FILE_MODE, |out| out.write_all(answer.as_bytes()))
    });
    let written = written.await.unwrap_or_else(|error| Err(error.into()));
    let Err(error) = written else { return end };
    let told = format!("agentctl: cannot write {}: {error}", file.display());
    match end {
        PromptExit { exit: Exit::Answered, .. } => PromptExit::failed(told),
        PromptExit { exit, message } => PromptExit {
            exit,
            message: Some(message.map_or(told.clone(), |message| format!("{message}\n{told}"))),
        },
    }
}
