//! Sends one prompt after the other, and shows the answers or the events.

use std::io::{self, IsTerminal};

use agentd_process::OutputCleaner;
use agentd_protocol::{
    command::{Accepted, Disposition, PromptParams},
    event::{MessageEnd, PermissionDecision},
    exit_code::{DeniedCalls, PromptExit, PromptProgram, failure},
    frame::Response,
    lines::write_line,
    message::{AssistantMessage, ContentBlock, Message},
    terminal_text::steers,
};
use serde::{Deserialize, Serialize};

use crate::{
    cli::OneShotFormat,
    logging::complain,
    transport::{InProcessClient, Output},
};

/// Lines of the protocol that are not shown: answers to our own commands, and events for clients that have a user.
const NOT_SHOWN: [&str; 4] = ["response", "extension_ui_request", "ui_request_resolved", "extension_error"];

/// A client that sends prompts and writes to stdout.
pub(super) struct Conversation {
    client: InProcessClient,
    stdout: Output,
    format: OneShotFormat,
    /// The last answer to the current prompt.
    last: Option<AssistantMessage>,
    denied: DeniedCalls,
}

/// The progress of the current prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PromptProgress {
    /// It is not accepted yet, or its run goes on.
    Running,
    /// It is settled.
    Settled,
}

/// Why the conversation ends early.
enum EarlyEnd {
    /// With that outcome.
    With(PromptExit),
    /// Stdout is closed.
    StdoutClosed,
}

impl Conversation {
    pub(super) fn new(client: InProcessClient, stdout: Output, format: OneShotFormat) -> Self {
        Self { client, stdout, format, last: None, denied: DeniedCalls::default() }
    }

    /// Sends the prompts, waits until each is settled, and writes the output of the format; then ends the connection.
    pub(super) async fn hold(mut self, header: Option<Box<str>>, prompts: Vec<PromptParams>) -> PromptExit {
        let outcome = match self.all(header, prompts).await {
            Ok(outcome) | Err(EarlyEnd::With(outcome)) => Some(outcome),
            Err(EarlyEnd::StdoutClosed) => None,
        };
        self.client.hang_up();
        // Events of the session's end are not part of the answer.
        while self.client.next().await.is_some() {}
        let written = self.stdout.finish().await;
        match (outcome, written) {
            (Some(outcome), Ok(())) => outcome,
            (_, Err(error)) => PromptExit::failed(format!("Error: cannot write to stdout: {error}")),
            (None, Ok(())) => PromptExit::failed("Error: cannot write to stdout"),
        }
    }

    async fn all(
        &mut self,
        header: Option<Box<str>>,
        prompts: Vec<PromptParams>,
    ) -> Result<PromptExit, EarlyEnd> {
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
            OneShotFormat::Json => {
                Ok(PromptProgram::AgentdEvents.after_run(last.as_ref()).unless_denied(&self.denied))
            }
            OneShotFormat::Text => {
                let text = last.as_ref().map(answer_text).unwrap_or_default();
                if !text.is_empty() {
                    self.write(shown_at(&io::stdout(), text).into_bytes()).await?;
                }
                Ok(PromptProgram::AgentdText.after_run(last.as_ref()).unless_denied(&self.denied))
            }
        }
    }

    /// Sends a prompt and handles lines until it is settled.
    async fn prompt(&mut self, number: usize, prompt: &PromptParams) -> Result<(), EarlyEnd> {
        let line = command(number, prompt).map_err(|error| EarlyEnd::With(unreadable(&error)))?;
        if !self.client.send(line).await {
            return Err(EarlyEnd::With(session_ended()));
        }
        loop {
            let batch = tokio::select! {
                batch = self.client.next() => batch,
                // Noticed at once: without a reader the answer is of no use.
                () = self.stdout.broken() => return Err(EarlyEnd::StdoutClosed),
            };
            let batch = batch.ok_or_else(|| EarlyEnd::With(session_ended()))?;
            let mut shown = Vec::new();
            let mut progress = PromptProgress::Running;
            for line in batch.split_inclusive(|byte| *byte == b'\n') {
                let kind = kind(line).map_err(|error| EarlyEnd::With(unreadable(&error)))?;
                if self.format == OneShotFormat::Json && !NOT_SHOWN.contains(&kind.as_str()) {
                    shown.extend_from_slice(line);
                }
                if self.take(&kind, line)? == PromptProgress::Settled {
                    progress = PromptProgress::Settled;
                }
            }
            if !shown.is_empty() {
                self.write(shown).await?;
            }
            if progress == PromptProgress::Settled {
                return Ok(());
            }
        }
    }

    /// Handles one line, and gives the progress that it tells.
    fn take(&mut self, kind: &str, line: &[u8]) -> Result<PromptProgress, EarlyEnd> {
        let unreadable = |error: serde_json::Error| EarlyEnd::With(unreadable(&error));
        match kind {
            "response" => {
                let response: Response<Accepted> = serde_json::from_slice(line).map_err(unreadable)?;
                if let Some(failure) = response.failure.filter(|_| !response.success) {
                    return Err(EarlyEnd::With(PromptProgram::AgentdText.after_refused_prompt(
                        &failure.error,
                        failure.hint.as_deref(),
                        Some(failure.code),
                    )));
                }
                // A handled prompt starts no run.
                let handled = response.data.is_some_and(|it| it.disposition == Disposition::Handled);
                Ok(if handled { PromptProgress::Settled } else { PromptProgress::Running })
            }
            "message_end" => {
                let end: MessageEnd = serde_json::from_slice(line).map_err(unreadable)?;
                if let Some(Message::Assistant(answer)) = end.message.get() {
                    self.last = Some(answer.clone());
                }
                Ok(PromptProgress::Running)
            }
            "permission_decision" => {
                let decision: PermissionDecision = serde_json::from_slice(line).map_err(unreadable)?;
                self.denied.take(&decision);
                Ok(PromptProgress::Running)
            }
            "agent_settled" => Ok(PromptProgress::Settled),
            _ => Ok(PromptProgress::Running),
        }
    }

    async fn write(&mut self, bytes: Vec<u8>) -> Result<(), EarlyEnd> {
        if self.stdout.write(bytes).await { Ok(()) } else { Err(EarlyEnd::StdoutClosed) }
    }
}

/// The text of an answer for stdout: its text blocks, a line feed after each; nothing of a message that is no answer.
fn answer_text(answer: &AssistantMessage) -> String {
    if failure(answer).is_some() {
        return String::new();
    }
    answer.content.iter().filter_map(ContentBlock::as_text).map(|text| format!("{text}\n")).collect()
}

/// The outcome when the session ended before the answer was complete.
fn session_ended() -> PromptExit {
    PromptExit::failed("Error: the session ended before the answer was complete")
}

/// The command line of a prompt.
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

/// The `type` of a line.
fn kind(line: &[u8]) -> serde_json::Result<String> {
    #[derive(Deserialize)]
    struct Record {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_slice(line).map(|record: Record| record.kind)
}

/// The outcome when a line of our own connection cannot be read, which is a bug.
fn unreadable(error: &dyn std::fmt::Display) -> PromptExit {
    PromptExit::failed(format!("Error: a record of the session cannot be read: {error}"))
}

/// A model's text for an output: without control sequences for a terminal, unchanged for a file or a pipe.
fn shown_at(output: &impl IsTerminal, text: String) -> String {
    if output.is_terminal() { plain(&text) } else { text }
}

/// The text without escape sequences and direction marks.
pub(super) fn plain(text: &str) -> String {
    let mut text = OutputCleaner::new().clean(text);
    text.retain(|c| !steers(c));
    text
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
