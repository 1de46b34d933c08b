//! The host of the agent loop: turns the loop's events and questions into run messages for the actor.

use std::sync::{Arc, atomic::Ordering};

use agentd_agent::{
    Host, HostError, StoppedCall, StreamInterrupt, TurnSetup, TurnSetupError, nothing_in_flight,
    observer::CallPurpose,
    queue::{QueueKind, QueuedMessage, Ticket},
    serve_in_flight_queries,
};
use agentd_ai::{AnswerPiece, Credentials, Request, Stall, failure::Failure};
use agentd_files::fail_point::{self, Point};
use agentd_images::Images;
use agentd_protocol::{
    Json,
    daemon::InFlight,
    error::ErrorCode,
    event::{AutoRetryEnd, Event},
    message::{AssistantMessage, Message, StopReason, ToolCall, ToolResultMessage},
    model::{Model, ThinkingLevel},
    tool_list::ToolExecution,
};
use tokio_util::sync::CancellationToken;

use super::{
    host::{RunHost, Unasked},
    message::{ModelInputs, RunMessage},
    prepare::tools_message,
    turn_boundary::TurnRole,
};
use crate::{
    extensions::provider_hooks,
    models::{credential_renewer, stall_event},
    reply::encode,
};

/// The role of a message that is part of a turn.
fn end_role(message: &Json<Message>) -> Option<TurnRole> {
    match message.get()? {
        Message::Assistant(_) => Some(TurnRole::Answer),
        Message::ToolResult(_) => Some(TurnRole::Result),
        _ => None,
    }
}

/// Whether an answer came about.
fn is_answer(answer: &AssistantMessage) -> bool {
    !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted)
}

impl Host for RunHost {
    async fn emit(&mut self, event: Event) -> Result<(), HostError> {
        // On the heap where it is needed: every future that emits events would have room for it.
        let event = match self.context.extensions {
            Some(_) => Box::pin(self.seen_by_extensions(event)).await?,
            None => event,
        };
        if !matches!(event, Event::MessageUpdate(_)) {
            self.take_from_extensions().await;
        }
        let line = encode(&event).map_err(|error| HostError::NotStored(error.to_string()))?;
        self.channels.open_events.event(&event);
        match event {
            Event::MessageEnd(end) => {
                let answered =
                    matches!(end.message.get(), Some(Message::Assistant(answer)) if is_answer(answer));
                end.message.get().inspect(|message| self.guard.see(message));
                if answered && let Some(Message::Assistant(answer)) = end.message.get() {
                    self.context.observe_answer(self.observed_call.take(), answer, None);
                }
                let role = end_role(&end.message);
                let is_assistant = matches!(end.message.get(), Some(Message::Assistant(_)));
                if let Some(Message::Assistant(answer)) = end.message.get() {
                    self.last_stop = Some(answer.stop_reason);
                }
                // Calls that are asked about first begin later, or never.
                let is_free = self.context.gate.is_open();
                let tools = self.tools.as_deref().filter(|_| is_free);
                let intents = Box::new(self.intents.with(&end.message, tools));
                let message = end.message;
                let entry =
                    self.ask(|stored| RunMessage::Store { message, event: line, intents, stored }).await??;
                self.channels.open_events.message_ended(&entry);
                let is_result = matches!(role, Some(TurnRole::Result));
                self.boundary.stored(role, &entry);
                self.intents.stored(is_assistant, &entry);
                if answered && let Some(attempt) = self.retries.end() {
                    self.tell(&AutoRetryEnd { success: true, attempt, final_error: None }.into()).await;
                }
                self.rules_after(is_result, answered).await
            }
            Event::AgentStart(_) => {
                self.channels.to_actor.send(RunMessage::Started(line)).await.map_err(|_| HostError::Gone)
            }
            Event::AgentEnd(_) => {
                self.context.nested().clear();
                self.channels.to_actor.send(RunMessage::Ended(line)).await.map_err(|_| HostError::Gone)
            }
            // The last deltas of a stopped answer need not wait for slow subscribers: the whole answer follows, and
            // the provider's connection has to be closed now.
            Event::MessageUpdate(update) => {
                fail_point::hit(Point::RunDelta);
                self.intents.delta();
                tokio::select! {
                    biased;
                    sent = self.channels.to_actor.send(RunMessage::Publish(line)) => sent.map_err(|_| HostError::Gone),
                    () = self.channels.cancel.cancelled() => Ok(()),
                }?;
                if self.rules.is_watching() {
                    Box::pin(self.match_rules(&update.assistant_message_event)).await;
                }
                Ok(())
            }
            event => {
                self.context.observe(&event);
                self.channels.to_actor.send(RunMessage::Publish(line)).await.map_err(|_| HostError::Gone)
            }
        }
    }

    async fn next_queued(&mut self, kind: QueueKind) -> Result<Vec<QueuedMessage>, HostError> {
        self.ask(|reply| RunMessage::Next { kind, reply }).await
    }

    async fn deliver(&mut self, ticket: Ticket) -> Result<bool, HostError> {
        self.ask(|reply| RunMessage::Deliver { ticket, reply }).await
    }

    async fn between_turns(&mut self) -> Result<(), HostError> {
        self.compact_between_turns().await
    }

    async fn turn_begins(&mut self) -> Result<Option<Json<Message>>, HostError> {
        let tools = self.ask(|reply| RunMessage::Tools { reply }).await?;
        if self.tools.as_ref().is_some_and(|declared| Arc::ptr_eq(declared, &tools)) {
            return Ok(None);
        }
        self.declare(&tools);
        let (context, transcript) = (Arc::clone(&self.context), self.snapshot().await?.messages);
        let cancel = self.channels.cancel.clone();
        let change = cancel.run_until_cancelled(tools_message(&context, transcript, tools));
        // A run that is aborted asks no model: nobody needs to be told.
        let made = serve_in_flight_queries(self, change, nothing_in_flight).await?.unwrap_or(Ok(None));
        made.map_err(|failure| HostError::NotStored(failure.error))
    }

    async fn setup(&mut self) -> Result<TurnSetup, TurnSetupError> {
        let ModelInputs { messages, choice, leaf, tools, context, route_state, .. } = self.snapshot().await?;
        // The declared tools, which may have changed since: a change counts from the next turn.
        let tools = self.tools.clone().unwrap_or(tools);
        let messages = Box::pin(self.context_of_extensions(messages)).await?;
        let chosen = Arc::clone(&choice.model);
        let routed = Box::pin(self.routed(&context, choice, route_state, &messages)).await?;
        let choice = routed.map_err(|message| TurnSetupError::Refused {
            message,
            api: chosen.api.clone(),
            provider: chosen.provider.clone(),
            model: chosen.id.clone(),
        })?;
        let model = Arc::clone(&choice.model);
        let refused = |message: String| TurnSetupError::Refused {
            message,
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
        };
        self.fallbacks.unasked = Some(Unasked::Model);
        let provider = context
            .metered_provider(&model, CallPurpose::Answer)
            .map_err(|failure| refused(failure.error))?;
        // Resolved for each request, so that a renewed key is used at once. That may take a while; a run that is
        // aborted meanwhile needs no key.
        let cancel = self.channels.cancel.clone();
        let found = async {
            tokio::select! {
                found = context.credentials(&model) => found,
                () = cancel.cancelled() => Ok((Credentials::default(), Arc::clone(&model))),
            }
        };
        let found = serve_in_flight_queries(self, found, nothing_in_flight).await?;
        let there = cancel.run_until_cancelled(context.directory()).await;
        let (credentials, addressed) = found.map_err(|failure| refused(failure.error))?;
        self.fallbacks.unasked = Some(Unasked::Surroundings);
        // A run that is aborted calls no tools.
        let cwd =
            there.unwrap_or_else(|| Ok(context.cwd.clone())).map_err(|failure| refused(failure.error))?;
        self.fallbacks.unasked = None;
        self.watch_answer();
        self.intents.asking(&choice, leaf.as_deref()).await?;
        fail_point::hit(Point::RunModelAsked);
        let forced_tool = context.subagents.own().and_then(|own| own.state.forced_tool(&tools));
        // Some APIs let no model that thinks be told which tool to call.
        let thinking_level = match forced_tool {
            Some(_) => model.clamp_thinking(Some(ThinkingLevel::Off)),
            None => choice.level,
        };
        let request = Request {
            thinking_level,
            forced_tool,
            session_id: context.session_id.clone(),
            credentials,
            idle_timeout: context.idle_timeout,
            deadlines: context.deadlines,
            network: Some(Arc::clone(&context.network)),
            block_images: context.block_images,
            cache_retention: context.cache_retention,
            thinking_budgets: context.thinking_budgets,
            retries: context.http_retries,
            renew: Some(credential_renewer(&context.auth, &model)),
            hooks: provider_hooks(context.extensions.as_ref(), CallPurpose::Answer),
            model: addressed,
            messages,
        };
        self.observed_call = context.observe_call(&request, CallPurpose::Answer);
        Ok(TurnSetup {
            provider,
            request,
            tools,
            gate: context.gate.clone(),
            sequential_tools: context.settings.tool_execution == Some(ToolExecution::Sequential),
            cwd,
            session_env: context.session_env(&model, choice.level),
            environment: self.channels.environment.clone(),
        })
    }

    async fn will_retry(&mut self, answer: &AssistantMessage, failure: Option<&Failure>) -> bool {
        self.context.observe_answer(self.observed_call.take(), answer, failure);
        if answer.code == Some(ErrorCode::LimitReached) {
            self.report_budget().await;
            return false;
        }
        let policy = self.context.auto_retry.load(Ordering::Relaxed).then_some(&self.context.retry);
        let window = self.fullness().await.map_or(0, |fullness| fullness.choice.model.context_window);
        if self.channels.cancel.is_cancelled() {
            return false;
        }
        // A session that is gone needs nothing more.
        let goes_on = self.retries.plan(policy, answer, failure, window)
            || self.plan_fallback(answer, failure).await.unwrap_or(false);
        if goes_on && self.context.extensions.is_some() {
            self.failed_answer = Some(Box::new(answer.clone()));
        }
        goes_on
    }

    fn interruption(&mut self) -> Option<Failure> {
        self.rule_interruption()
    }

    async fn goes_on_after(&mut self, answer: &AssistantMessage) -> Result<Option<Json<Message>>, HostError> {
        self.answer_interruption(answer).await
    }

    async fn in_flight_query(&mut self) {
        // The session holds the other end for as long as there is a run; without a session nobody asks.
        if self.channels.questions.recv().await.is_none() {
            std::future::pending().await
        }
    }

    fn has_in_flight_query(&self) -> bool {
        !self.channels.questions.is_empty()
    }

    async fn answer_in_flight_query(&mut self, in_flight: InFlight) -> Result<(), HostError> {
        // A run that is stopped must not wait here. Its end answers the question, too.
        tokio::select! {
            biased;
            sent = self.channels.to_actor.send(RunMessage::InFlight(in_flight)) => sent.map_err(|_| HostError::Gone),
            () = self.channels.cancel.cancelled() => Ok(()),
        }
    }

    async fn calls_begin(&mut self, calls: &[&ToolCall]) -> Result<(), HostError> {
        self.intents.calling(calls).await?;
        fail_point::hit(Point::RunToolStarted);
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        self.boundary.take_goes_on()
    }

    fn ends_here(&mut self) -> bool {
        self.context.hooks.as_ref().is_some_and(|hooks| hooks.stopped().is_some())
    }

    fn complete_result(&mut self, mut message: ToolResultMessage) -> ToolResultMessage {
        if let Some((calls, usage)) = self.context.nested().take(&message.tool_call_id) {
            message.nested_calls = calls;
            if let Some(usage) = usage {
                message.usage.get_or_insert_default().add(&usage);
            }
        }
        self.remind_with(message)
    }

    async fn call_ended(&mut self, result: ToolResultMessage) {
        self.intents.ended(result).await;
    }

    async fn interrupted(&mut self) -> StreamInterrupt {
        let Self { channels, intents, .. } = self;
        tokio::select! {
            asked = channels.questions.recv() => match asked {
                Some(()) => StreamInterrupt::InFlightQuery,
                None => {
                    // Without a session there are no questions.
                    intents.due().await;
                    StreamInterrupt::SaveDue
                }
            },
            () = intents.due() => StreamInterrupt::SaveDue,
        }
    }

    fn is_save_due(&self) -> bool {
        self.intents.is_due()
    }

    async fn save_streamed(&mut self, pieces: Vec<AnswerPiece>) {
        self.intents.keep(pieces).await;
    }

    fn tools_begin(&mut self, stop: CancellationToken) {
        self.channels.abort.arm_tools(stop);
    }

    async fn tools_end(&mut self, stopped: Vec<StoppedCall>) -> Result<(), HostError> {
        if self.channels.abort.disarm_tools() {
            self.channels
                .to_actor
                .send(RunMessage::ToolsStopped(stopped))
                .await
                .map_err(|_| HostError::Gone)?;
        }
        Ok(())
    }

    async fn admit_call(&mut self, _call: &ToolCall) -> Result<(), String> {
        let admitted = self.context.budget.begin_tool_call().await;
        admitted.map_err(|denied| format!("The call was not made. {}", denied.failure().error))
    }

    fn stopped_by(&self) -> Option<Failure> {
        self.stopped_by_budget()
    }

    fn call_survives(&mut self, call: &ToolCall, over: CancellationToken) {
        self.channels.survivors.add(call, over);
    }

    async fn stalled(&mut self, model: &Model, stall: Stall) -> Result<(), HostError> {
        let policy = self.context.auto_retry.load(Ordering::Relaxed).then_some(&self.context.retry);
        let event = stall_event(model, stall, self.retries.is_left(policy));
        self.context.observe(&event);
        match encode(&event) {
            Ok(line) => {
                self.channels.to_actor.send(RunMessage::Tell(line)).await.map_err(|_| HostError::Gone)
            }
            Err(error) => {
                tracing::error!(%error, "cannot write an event");
                Ok(())
            }
        }
    }

    fn images(&self) -> Images {
        self.context.images.clone()
    }

    fn now_ms(&self) -> i64 {
        crate::clock::now_ms()
    }
}
