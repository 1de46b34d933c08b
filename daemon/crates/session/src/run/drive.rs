//! The run as a whole: checks, the loop, what comes after it.

use std::sync::Arc;

use agentd_agent::{Host, HostError, Start, queue::QueueKind};
use agentd_protocol::{
    Json,
    error::{ErrorCode, Failure},
    event::{AgentEnd, Event, MessageEnd, MessageStart, TurnEnd},
    message::{AssistantMessage, ContentBlock, ImageContent, Message, StopReason},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{host::RunHost, prepare};
use crate::{shared::Shared, step::Step};

/// What a run begins with.
#[derive(Debug)]
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) images: Vec<ImageContent>,
}

/// Runs a prompt until nothing more comes of it. Ends with [`Step::Refused`] or [`Step::Settled`].
pub(crate) async fn drive(
    shared: Arc<Shared>,
    steps: mpsc::Sender<Step>,
    prompt: Prompt,
    cancel: CancellationToken,
) {
    let mut host = RunHost::new(shared, steps, cancel.clone());
    // The checks may wait for a command that prints a key.
    let prepared = tokio::select! {
        prepared = prepare::prepare(&host, prompt) => prepared,
        () = cancel.cancelled() => {
            Err(Failure::new(ErrorCode::Aborted, "The prompt was aborted before its run began."))
        }
    };
    match prepared {
        Ok(start) => {
            host.send(Step::Accepted).await;
            run_on(&mut host, start, &cancel).await;
            host.send(Step::Settled).await;
        }
        Err(failure) => host.send(Step::Refused(failure)).await,
    }
}

/// Runs, and runs again while messages are queued. An aborted run leaves them for the next prompt.
async fn run_on(host: &mut RunHost, mut start: Start, cancel: &CancellationToken) {
    loop {
        match agentd_agent::run(host, start, cancel).await {
            Ok(_) => {}
            Err(HostError::NotStored(error)) => {
                tracing::error!(error, "a run ended because a message could not be stored");
                host.report_broken(error).await;
                return;
            }
            Err(HostError::Gone) => return,
        }
        if cancel.is_cancelled() {
            return;
        }
        let mut queued = host.next_queued(QueueKind::Steering).await.unwrap_or_default();
        if queued.is_empty() {
            queued = host.next_queued(QueueKind::FollowUp).await.unwrap_or_default();
        }
        if queued.is_empty() {
            return;
        }
        start = Start { messages: Vec::new(), queued };
    }
}

impl RunHost {
    /// Tells the listeners that the run broke off because the session file cannot be written.
    ///
    /// This is the one message that is published without being stored: it says why nothing can be.
    async fn report_broken(&mut self, error: String) {
        let (api, provider, model) = self.model_names().await;
        let answer = AssistantMessage {
            content: vec![ContentBlock::text("")],
            stop_reason: StopReason::Error,
            error_message: Some(error),
            ..AssistantMessage::pending(&api, &provider, &model, self.now_ms())
        };
        let Ok(message) = Json::new(Message::Assistant(answer)) else { return };
        let events = [
            Event::from(MessageStart { message: message.clone() }),
            MessageEnd { message: message.clone() }.into(),
            TurnEnd { message: message.clone(), tool_results: Vec::new() }.into(),
            AgentEnd { messages: vec![message], will_retry: false }.into(),
        ];
        for event in events {
            self.publish_unstored(&event).await;
        }
    }
}
