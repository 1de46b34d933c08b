//! The state of one run, and its questions to the session.

use std::sync::Arc;

use agentd_agent::{HostError, ToolSet};
use agentd_protocol::{
    event::Event,
    message::{AssistantMessage, StopReason},
    model::ModelName,
};
use tokio::sync::oneshot;

use super::{
    channels::RunChannels,
    intents::RunIntents,
    message::{ContextFill, ModelInputs, RunMessage},
    rule_watch::RunRules,
    turn_boundary::TurnBoundary,
};
use crate::{
    compaction::{CompactionWorker, OverflowRetryGuard},
    context::SessionContext,
    extensions::MemoryWatch,
    message_sender::MessageSender,
    models::{Retries, Substitute},
    reply::encode,
    transcript::FailedAnswer,
};

/// The other models of one run.
#[derive(Debug, Default)]
pub(super) struct Fallbacks {
    /// The models that failed in this run: none of them is asked again.
    pub(super) tried: Vec<ModelName>,
    pub(super) planned: Option<Substitute>,
    /// Why the model was not asked at all, if that is why the answer failed.
    pub(super) unasked: Option<Unasked>,
}

/// Why a model was not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unasked {
    /// There is no key for it, or its API is not spoken.
    Model,
    /// The session's surroundings are not there, for whichever model.
    Surroundings,
}

impl Fallbacks {
    /// The model that was decided on.
    pub(super) fn take_planned(&mut self) -> Option<Substitute> {
        self.planned.take()
    }
}

/// The surroundings of one run.
pub(crate) struct RunHost {
    pub(super) context: Arc<SessionContext>,
    pub(super) channels: RunChannels,
    pub(super) retries: Retries,
    pub(super) guard: OverflowRetryGuard,
    pub(super) fallbacks: Fallbacks,
    /// The model call that the observer was shown, until it is shown the answer.
    pub(super) observed_call: Option<u64>,
    /// The intent log.
    pub(super) intents: RunIntents,
    /// The tools that the transcript declares; `None` before any were declared.
    pub(super) tools: Option<Arc<ToolSet>>,
    /// The turns of the run so far, as extensions count them.
    pub(super) turn_index: u64,
    /// The answer that failed and is asked for again: routers are told of it.
    pub(super) failed_answer: Option<Box<AssistantMessage>>,
    pub(super) memory: MemoryWatch,
    pub(super) boundary: TurnBoundary,
    /// How the last answer ended.
    pub(super) last_stop: Option<StopReason>,
    /// The rules on the stream.
    pub(super) rules: RunRules,
}

impl RunHost {
    pub(super) fn new(context: Arc<SessionContext>, channels: RunChannels, goes_on: bool) -> Self {
        let intents = RunIntents::new(channels.intent_log.clone(), context.crash_flush, goes_on);
        Self {
            context,
            channels,
            intents,
            retries: Retries::default(),
            guard: OverflowRetryGuard::default(),
            fallbacks: Fallbacks::default(),
            observed_call: None,
            tools: None,
            turn_index: 0,
            failed_answer: None,
            memory: MemoryWatch::default(),
            boundary: TurnBoundary::default(),
            last_stop: None,
            rules: RunRules::default(),
        }
    }

    /// The run begins with a message that declares these tools.
    pub(super) fn declare(&mut self, tools: &Arc<ToolSet>) {
        self.tools = Some(Arc::clone(tools));
    }

    /// Sends a step that needs no answer. A session that is gone needs none either.
    pub(super) async fn send(&self, message: RunMessage) {
        let _ = self.channels.to_actor.send(message).await;
    }

    /// Sends a step and waits for its answer.
    pub(super) async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> RunMessage,
    ) -> Result<T, HostError> {
        let (reply, answer) = oneshot::channel();
        self.channels.to_actor.send(message(reply)).await.map_err(|_| HostError::Gone)?;
        answer.await.map_err(|_| HostError::Gone)
    }

    /// The context and the model as they stand now.
    pub(super) async fn snapshot(&self) -> Result<ModelInputs, HostError> {
        self.ask(|reply| RunMessage::Context { reply }).await
    }

    /// API, provider and id of the current model.
    pub(super) async fn model_names(&self) -> (String, String, String) {
        match self.snapshot().await {
            Ok(snapshot) => {
                let model = snapshot.choice.model;
                (model.api.clone(), model.provider.clone(), model.id.clone())
            }
            Err(_) => Default::default(),
        }
    }

    /// Leaves the failed answer at the end of the context out of it.
    pub(super) async fn omit_failed(&self, which: FailedAnswer) -> Result<(), HostError> {
        self.ask(|omitted| RunMessage::OmitFailed { which, omitted }).await?
    }

    /// The fill of the context.
    pub(super) async fn fullness(&self) -> Result<ContextFill, HostError> {
        self.ask(|reply| RunMessage::Fullness { reply }).await
    }

    /// Compacts for the run, and stops with it.
    pub(super) fn worker(&self) -> CompactionWorker {
        let session = MessageSender::new(&self.channels.to_actor, RunMessage::Compaction);
        CompactionWorker { context: Arc::clone(&self.context), session, cancel: self.channels.cancel.clone() }
    }

    /// Whether the run is to stop.
    pub(super) fn is_cancelled(&self) -> bool {
        self.channels.cancel.is_cancelled()
    }

    /// Publishes an event that tells of nothing to be stored.
    pub(super) async fn tell(&self, event: &Event) {
        self.context.observe(event);
        match encode(event) {
            Ok(line) if matches!(event, Event::AgentEnd(_)) => self.send(RunMessage::Ended(line)).await,
            Ok(line) if matches!(event, Event::CompactionStart(_)) => {
                self.send(RunMessage::CompactionStarted(line)).await;
            }
            Ok(line) if matches!(event, Event::CompactionEnd(_)) => {
                self.send(RunMessage::CompactionEnded(line)).await;
            }
            Ok(line) => self.send(RunMessage::Publish(line)).await,
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }
}
