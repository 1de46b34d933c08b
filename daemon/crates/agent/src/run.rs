//! The loop: turns while there are tool calls or steering messages, then follow-ups.

use agentd_images::Images;
use agentd_protocol::{
    Json,
    event::{AgentEnd, AgentStart, MessageEnd, MessageStart, TurnEnd, TurnStart},
    message::{AssistantMessage, ContentBlock, Message, MessageContent, StopReason, ToolCall, UserMessage},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Host, HostError, TurnSetupError, execute,
    execute::CallBatch,
    images, nothing_in_flight,
    queue::{QueueKind, QueuedMessage},
    serve_in_flight_queries,
    turn::{self, Answer},
};

/// The messages with which a run begins.
#[derive(Debug, Default)]
pub struct RunStart {
    /// Messages that are new with this run: a system message where the prompt changed, and the prompt.
    pub messages: Vec<Json<Message>>,
    /// Queued messages that begin the run instead of a prompt.
    pub queued: Vec<QueuedMessage>,
}

/// The outcome of a run.
#[derive(Debug)]
pub struct RunOutcome {
    /// The last answer, if there was one.
    pub last: Option<AssistantMessage>,
    /// The answer of [`Host::will_retry`] about it.
    pub will_retry: bool,
}

/// Runs from `agent_start` to `agent_end`.
///
/// When `cancel` fires, the model's stream and the running tools end, every call gets its result, nothing more is taken
/// from the queues, and the run ends with an aborted answer.
///
/// # Errors
/// As [`Host::emit`]; `agent_end` was not emitted then.
pub async fn run<H: Host>(
    host: &mut H,
    start: RunStart,
    cancel: &CancellationToken,
) -> Result<RunOutcome, HostError> {
    let mut run =
        Run { host, cancel, messages: Vec::new(), last: None, will_retry: false, interjected: None };
    run.host.emit(AgentStart {}.into()).await?;
    run.host.emit(TurnStart {}.into()).await?;
    let is_told = !start.messages.is_empty();
    for message in start.messages {
        run.add(message).await?;
    }
    // A run that begins with queued messages does not read the queue again before its first answer.
    let steering =
        if start.queued.is_empty() { run.next_queued(QueueKind::Steering).await? } else { start.queued };
    run.turns(steering, is_told).await?;
    let Run { host, messages, last, will_retry, .. } = run;
    host.emit(AgentEnd { messages, will_retry }.into()).await?;
    Ok(RunOutcome { last, will_retry })
}

struct Run<'a, H> {
    host: &'a mut H,
    cancel: &'a CancellationToken,
    messages: Vec<Json<Message>>,
    last: Option<AssistantMessage>,
    will_retry: bool,
    /// The message with which the next turn begins, after an answer that was interrupted.
    interjected: Option<Json<Message>>,
}

/// Whether the run goes on after a turn.
#[derive(PartialEq, Eq)]
enum After {
    /// The model waits for the results of its calls.
    Tools,
    /// The model is done.
    Done,
    /// The answer failed or was aborted.
    Failed,
}

impl<H: Host> Run<'_, H> {
    /// `is_told`: the transcript already describes the prompt and the tools of the first turn.
    async fn turns(&mut self, mut pending: Vec<QueuedMessage>, mut is_told: bool) -> Result<(), HostError> {
        let mut first = true;
        loop {
            let mut after = After::Tools;
            while after == After::Tools || !pending.is_empty() {
                if !first {
                    self.host.between_turns().await?;
                    if pending.is_empty() {
                        pending = self.next_queued(QueueKind::Steering).await?;
                    }
                    self.host.emit(TurnStart {}.into()).await?;
                }
                first = false;
                if !std::mem::take(&mut is_told)
                    && let Some(message) = self.host.turn_begins().await?
                {
                    self.add(message).await?;
                }
                if let Some(message) = self.interjected.take() {
                    self.add(message).await?;
                }
                self.deliver(std::mem::take(&mut pending)).await?;
                after = self.turn().await?;
                if after == After::Failed {
                    return Ok(());
                }
                pending = self.next_queued(QueueKind::Steering).await?;
            }
            pending = self.next_queued(QueueKind::FollowUp).await?;
            if pending.is_empty() {
                return Ok(());
            }
        }
    }

    /// One answer and its tool calls.
    async fn turn(&mut self) -> Result<After, HostError> {
        let setup = match self.host.setup().await {
            Ok(setup) => setup,
            Err(TurnSetupError::Host(error)) => return Err(error),
            Err(TurnSetupError::Refused { message, api, provider, model }) => {
                let names = (api.as_str(), provider.as_str(), model.as_str());
                let failed = turn::failed_answer(names, self.host.now_ms(), StopReason::Error, message);
                let answer = turn::fail(self.host, failed).await?;
                return self.end_failed(answer).await;
            }
        };
        let answer = turn::ask(self.host, &setup, self.cancel).await?;
        if matches!(answer.message.stop_reason, StopReason::Error | StopReason::Aborted) {
            if answer.message.stop_reason == StopReason::Aborted
                && !self.cancel.is_cancelled()
                && let Some(message) = self.host.goes_on_after(&answer.message).await?
            {
                self.interjected = Some(message);
                self.end_turn(answer, Vec::new()).await?;
                return Ok(After::Tools);
            }
            return self.end_failed(answer).await;
        }
        let calls: Vec<ToolCall> = answer.message.tool_calls().cloned().collect();
        let CallBatch { results, terminate } = if calls.is_empty() {
            CallBatch { results: Vec::new(), terminate: true }
        } else if answer.message.stop_reason == StopReason::Length {
            execute::refuse_all(self.host, &calls, cut_off).await?
        } else {
            execute::execute(self.host, &setup, &calls, self.cancel).await?
        };
        self.end_turn(answer, results).await?;
        if self.host.ends_here() {
            return Ok(After::Done);
        }
        let goes_on = self.host.goes_on() && !self.cancel.is_cancelled();
        Ok(if terminate && !goes_on { After::Done } else { After::Tools })
    }

    async fn end_failed(&mut self, answer: Answer) -> Result<After, HostError> {
        self.will_retry = self.host.will_retry(&answer.message, answer.failure.as_ref()).await;
        self.end_turn(answer, Vec::new()).await.map(|()| After::Failed)
    }

    async fn end_turn(&mut self, answer: Answer, results: Vec<Json<Message>>) -> Result<(), HostError> {
        self.messages.push(answer.json.clone());
        self.messages.extend(results.iter().cloned());
        self.last = Some(answer.message);
        self.host.emit(TurnEnd { message: answer.json, tool_results: results }.into()).await
    }

    /// The next messages of a queue; none after an abort, so that they stay queued for the next run.
    async fn next_queued(&mut self, kind: QueueKind) -> Result<Vec<QueuedMessage>, HostError> {
        if self.cancel.is_cancelled() {
            return Ok(Vec::new());
        }
        self.host.next_queued(kind).await
    }

    async fn deliver(&mut self, queued: Vec<QueuedMessage>) -> Result<(), HostError> {
        for message in queued {
            if self.cancel.is_cancelled() || !self.host.deliver(message.ticket).await? {
                continue;
            }
            if let Some(custom) = message.custom {
                let message = Message::Custom(*custom);
                let message = Json::new(message).map_err(|error| HostError::NotStored(error.to_string()))?;
                self.add(message).await?;
                continue;
            }
            let images = self.host.images();
            let message = user_message(message.text, message.images, self.host.now_ms(), &images);
            let message = serve_in_flight_queries(self.host, message, nothing_in_flight).await??;
            self.add(message).await?;
        }
        Ok(())
    }

    async fn add(&mut self, message: Json<Message>) -> Result<(), HostError> {
        self.host.emit(MessageStart { message: message.clone() }.into()).await?;
        self.host.emit(MessageEnd { message: message.clone() }.into()).await?;
        self.messages.push(message);
        Ok(())
    }
}

/// A prompt as the transcript holds it: a text block, then the images. Notes about changed and omitted images follow the text after a blank
/// line.
///
/// # Errors
/// [`HostError::NotStored`] when it cannot be serialised. Cancel safety: nothing happens but the work on the images, which
/// ends soon.
pub async fn user_message(
    mut text: String,
    given: Vec<agentd_protocol::message::ImageContent>,
    timestamp: i64,
    images: &Images,
) -> Result<Json<Message>, HostError> {
    let images::PromptImages { blocks, notes } = images::of_prompt(given, images).await;
    if !notes.is_empty() {
        text.push_str("\n\n");
        text.push_str(&notes.join("\n"));
    }
    let mut content = vec![ContentBlock::text(text)];
    content.extend(blocks);
    let message = Message::User(UserMessage { content: MessageContent::Blocks(content), timestamp });
    Json::new(message).map_err(|error| HostError::NotStored(error.to_string()))
}

/// The result of a call in an answer that hit the output limit (the text is pi's).
fn cut_off(call: &ToolCall) -> String {
    format!(
        "Tool call \"{}\" was not executed: the response hit the output token limit, so its arguments may be \
         truncated. Re-issue the tool call with complete arguments.",
        call.name
    )
}
