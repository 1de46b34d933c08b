//! One prompt after the other, and what is shown of what the session says.

use std::io;

use agentd_protocol::{
    command::{Accepted, Disposition, PromptParams},
    event::MessageEnd,
    exit_code::{PromptExit, PromptProgram, failure},
    frame::Response,
    lines::write_line,
    message::{AssistantMessage, ContentBlock, Message},
};
use serde::{Deserialize, Serialize};

use super::{plain, prompts::Prompts, shown_at};
use crate::{
    cli::OneShotFormat,
    complain,
    transport::{Output, in_process::InProcess},
};

/// Records of the wire that are not shown: answers to our own commands, and what only a client can use that has a user.
const NOT_SHOWN: [&str; 4] = ["response", "extension_ui_request", "ui_request_resolved", "extension_error"];

/// A client that sends prompts and writes to stdout.
pub(super) struct Conversation {
    client: InProcess,
    stdout: Output,
    format: OneShotFormat,
    /// The last answer to the prompt at hand.
    last: Option<AssistantMessage>,
}

/// How far a prompt has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It is not accepted yet, or its run goes on.
    Under,
    /// Nothing more comes of it.
    Over,
}

/// Why there is no use in going on.
enum Stop {
    /// With that outcome.
    With(PromptExit),
    /// Stdout takes no more.
    Broken,
}

impl Conversation {
    pub(super) fn new(client: InProcess, stdout: Output, format: OneShotFormat) -> Self {
        Self { client, stdout, format, last: None }
    }

    /// Sends the prompts, waits for each to be settled, and shows what the format shows; then ends the connection.
    pub(super) async fn hold(mut self, header: Option<Box<str>>, prompts: Prompts) -> PromptExit {
        let outcome = match self.all(header, prompts).await {
            Ok(outcome) | Err(Stop::With(outcome)) => Some(outcome),
            Err(Stop::Broken) => None,
        };
        self.client.hang_up();
        // What the end of the session says is not part of the answer.
        while self.client.next().await.is_some() {}
        let written = self.stdout.finish().await;
        match (outcome, written) {
            (Some(outcome), Ok(())) => outcome,
            (_, Err(error)) => PromptExit::failed(format!("Error: cannot write to stdout: {error}")),
            (None, Ok(())) => PromptExit::failed("Error: cannot write to stdout"),
        }
    }

    async fn all(&mut self, header: Option<Box<str>>, prompts: Prompts) -> Result<PromptExit, Stop> {
        if let Some(header) = header {
            let mut line = Vec::new();
            write_line(header.as_bytes(), &mut line);
            self.write(line).await?;
        }
        let count = prompts.len();
        for (index, prompt) in prompts.into_iter().enumerate() {
            self.last = None;
            self.prompt(index + 1, &prompt).await?;
            let failed = self.last.as_ref().and_then(failure).filter(|_| index + 1 < count);
            if let (OneShotFormat::Text, Some(why)) = (self.format, failed) {
                let warning = format!("Warning: message {} of {count} was not answered: {why}", index + 1);
                complain(&plain(&warning));
            }
        }
        let last = self.last.take();
        match self.format {
            OneShotFormat::Json => Ok(PromptProgram::AgentdEvents.after_run(last.as_ref())),
            OneShotFormat::Text => {
                let text = last.as_ref().map(answer_text).unwrap_or_default();
                if !text.is_empty() {
                    self.write(shown_at(&io::stdout(), text).into_bytes()).await?;
                }
                Ok(PromptProgram::AgentdText.after_run(last.as_ref()))
            }
        }
    }

    /// Sends a prompt and takes what comes until it is settled.
    async fn prompt(&mut self, number: usize, prompt: &PromptParams) -> Result<(), Stop> {
        let line = command(number, prompt).map_err(|error| Stop::With(unreadable(&error)))?;
        if !self.client.send(line).await {
            return Err(Stop::With(session_ended()));
        }
        loop {
            let batch = tokio::select! {
                batch = self.client.next() => batch,
                // Noticed when it happens: with nobody to read the answer, nobody needs it.
                () = self.stdout.broken() => return Err(Stop::Broken),
            };
            let batch = batch.ok_or_else(|| Stop::With(session_ended()))?;
            let mut shown = Vec::new();
            let mut progress = Progress::Under;
            for line in batch.split_inclusive(|byte| *byte == b'\n') {
                let kind = kind(line).map_err(|error| Stop::With(unreadable(&error)))?;
                if self.format == OneShotFormat::Json && !NOT_SHOWN.contains(&kind.as_str()) {
                    shown.extend_from_slice(line);
                }
                if self.take(&kind, line)? == Progress::Over {
                    progress = Progress::Over;
                }
            }
            if !shown.is_empty() {
                self.write(shown).await?;
            }
            if progress == Progress::Over {
                return Ok(());
            }
        }
    }

    /// What a record says of the prompt at hand.
    fn take(&mut self, kind: &str, line: &[u8]) -> Result<Progress, Stop> {
        let unreadable = |error: serde_json::Error| Stop::With(unreadable(&error));
        match kind {
            "response" => {
                let response: Response<Accepted> = serde_json::from_slice(line).map_err(unreadable)?;
                if let Some(failure) = response.failure.filter(|_| !response.success) {
                    return Err(Stop::With(PromptProgram::AgentdText.after_refused_prompt(
                        &failure.error,
                        failure.hint.as_deref(),
                        false,
                    )));
                }
                // Something else took it, and no run follows.
                let handled = response.data.is_some_and(|it| it.disposition == Disposition::Handled);
                Ok(if handled { Progress::Over } else { Progress::Under })
            }
            "message_end" => {
                let end: MessageEnd = serde_json::from_slice(line).map_err(unreadable)?;
                if let Some(Message::Assistant(answer)) = end.message.get() {
                    self.last = Some(answer.clone());
                }
                Ok(Progress::Under)
            }
            "agent_settled" => Ok(Progress::Over),
            _ => Ok(Progress::Under),
        }
    }

    async fn write(&mut self, bytes: Vec<u8>) -> Result<(), Stop> {
        if self.stdout.write(bytes).await { Ok(()) } else { Err(Stop::Broken) }
    }
}

/// The text of an answer for stdout: its text blocks, a line feed after each; nothing of a message that is no answer.
fn answer_text(answer: &AssistantMessage) -> String {
    if failure(answer).is_some() {
        return String::new();
    }
    answer.content.iter().filter_map(ContentBlock::as_text).map(|text| format!("{text}\n")).collect()
}

/// The end where the session ended while it was at work.
fn session_ended() -> PromptExit {
    PromptExit::failed("Error: the session ended before the answer was complete")
}

/// The line of a prompt.
fn command(number: usize, prompt: &PromptParams) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Line<'a> {
        id: String,
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(flatten)]
        prompt: &'a PromptParams,
    }
    serde_json::to_string(&Line { id: number.to_string(), kind: "prompt", prompt })
}

/// The `type` of a record.
fn kind(line: &[u8]) -> serde_json::Result<String> {
    #[derive(Deserialize)]
    struct Record {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_slice(line).map(|record: Record| record.kind)
}

/// A record of our own connection cannot be read: a bug, which is told and ends the conversation.
fn unreadable(error: &dyn std::fmt::Display) -> PromptExit {
    PromptExit::failed(format!("Error: a record of the session cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use agentd_protocol::message::StopReason;

    use super::*;

    #[test]
    fn stdout_gets_the_text_of_an_answer_and_nothing_of_a_failure() {
        for (stop_reason, expected) in [
            (StopReason::Stop, "a\nb\n"),
            (StopReason::Length, "a\nb\n"),
            (StopReason::Error, ""),
            (StopReason::Aborted, ""),
        ] {
            let content = vec![ContentBlock::text("a"), ContentBlock::text("b")];
            let answer =
                AssistantMessage { content, stop_reason, ..AssistantMessage::pending("a", "p", "m", 0) };
            assert_eq!(answer_text(&answer), expected, "{stop_reason:?}");
        }
    }
}
