//! The commands of a session: one line each here, one function each in the module of their family.

use std::sync::atomic::Ordering;

use agentd_agent::queue::QueueKind;
use agentd_protocol::{
    command::{
        BashParams, GetEntriesParams, InterruptModeParams, Levels, PromptParams, QueueModeParams,
        QueueParams, SessionCommand, SetSessionNameParams,
    },
    error::{ErrorCode, Failure},
    event::{Event, SessionInfoChanged},
    message::Message as TranscriptMessage,
    session::SessionState,
};

use serde::Serialize;

use crate::{
    actor::Actor,
    queues::queue_of,
    reply::Reply,
    requests::{CommandKind, PendingRequest},
    run::Prompt,
};

/// What takes about a millisecond to write.
const LONG_ANSWER_BYTES: usize = 1 << 20;

impl Actor {
    /// Does a command, or starts what will answer it.
    pub(crate) async fn on_command(&mut self, command: SessionCommand, reply: Reply) {
        // To go elsewhere, too: what is due belongs here.
        if command.spec().begins_work || matches!(command, SessionCommand::NavigateTree(_)) {
            self.retry_failed_writes().await;
        }
        match command {
            SessionCommand::Prompt(params) => self.prompt(params, reply).await,
            SessionCommand::AbortAndPrompt(params) => self.abort_and_prompt(params, reply).await,
            SessionCommand::Continue(_) => self.continue_run(reply),
            SessionCommand::Steer(params) => self.queue(QueueKind::Steering, params, reply).await,
            SessionCommand::FollowUp(params) => self.queue(QueueKind::FollowUp, params, reply).await,
            SessionCommand::Abort(params) => self.abort(params, reply),
            SessionCommand::ClearQueue(_) => self.clear_queue(reply).await,
            SessionCommand::GetCommands(_) => self.get_commands(reply).await,
            SessionCommand::GetState(params) if params.introduced => {
                reply.data(&self.feed, self.detailed_state())
            }
            SessionCommand::GetState(_) => reply.data(&self.feed, self.state()),
            SessionCommand::GetMessages(params) => self.get_messages(params, reply).await,
            SessionCommand::GetEntries(params) => self.get_entries(&params, reply).await,
            SessionCommand::GetTree(_) => self.get_tree(reply).await,
            SessionCommand::GetForkMessages(_) | SessionCommand::GetBranchMessages(_) => {
                self.get_fork_messages(reply).await
            }
            SessionCommand::NavigateTree(params) => self.navigate_tree(params, reply),
            SessionCommand::SetLabel(params) => self.set_label(params, reply).await,
            SessionCommand::GetLastAssistantText(_) => reply.data(&self.feed, self.journal.last_text()),
            SessionCommand::GetSessionStats(_) => self.get_stats(reply),
            SessionCommand::SetModel(params) => self.set_model(params, reply).await,
            SessionCommand::CycleModel(_) => self.cycle_model(reply).await,
            SessionCommand::GetAvailableModels(_) => self.get_available_models(reply).await,
            SessionCommand::SetFallbackModels(params) => self.set_fallback_models(params, reply).await,
            SessionCommand::GetFallbackModels(_) => self.get_fallback_models(reply).await,
            SessionCommand::SetThinkingLevel(params) => self.set_thinking_level(&params, reply).await,
            SessionCommand::CycleThinkingLevel(_) => self.cycle_thinking_level(reply).await,
            SessionCommand::GetAvailableThinkingLevels(_) => self.get_thinking_levels(reply),
            SessionCommand::SetSteeringMode(params) => {
                self.set_mode(QueueKind::Steering, params, reply).await
            }
            SessionCommand::SetFollowUpMode(params) => {
                self.set_mode(QueueKind::FollowUp, params, reply).await
            }
            SessionCommand::SetInterruptMode(params) => self.set_interrupt_mode(&params, reply).await,
            SessionCommand::SetAutoRetry(params) => self.set_auto_retry(params.enabled, reply).await,
            SessionCommand::AbortRetry(_) => {
                self.run.abort_retry();
                reply.done(&self.feed);
            }
            SessionCommand::Compact(params) => self.compact(params, reply),
            SessionCommand::SetAutoCompaction(params) => {
                self.set_auto_compaction(params.enabled, reply).await
            }
            SessionCommand::Bash(params) => self.bash(params, reply),
            SessionCommand::AbortBash(_) => self.abort_bash(reply),
            SessionCommand::GetTools(_) => self.get_tools(reply),
            SessionCommand::SetActiveTools(params) => self.set_active_tools(params, reply).await,
            SessionCommand::GetArtifact(params) => self.get_artifact(params, reply).await,
            SessionCommand::ListArtifacts(_) => self.list_artifacts(reply).await,
            SessionCommand::GetDiagnostics(_) => self.get_diagnostics(reply),
            SessionCommand::ExplainSetting(params) => self.explain_setting(params, reply),
            SessionCommand::SetSessionName(params) => self.set_name(&params, reply).await,
            SessionCommand::ExportHtml(params) => self.export_html(params, reply).await,
        }
    }

    async fn prompt(&mut self, mut params: PromptParams, reply: Reply) {
        let Some(request) = self.first(params.request_key.take(), CommandKind::Message, reply) else {
            return;
        };
        if let Err(failure) = self.check_message(&params.message, &params.images) {
            return self.refuse(request, failure);
        }
        match self.expand(&mut params.message).await {
            Ok(()) => self.take_prompt(params, request).await,
            Err(failure) => self.refuse(request, failure),
        }
    }

    /// Stops the run and takes its place: a prompt that waits for the same is refused, so that this one comes next.
    async fn abort_and_prompt(&mut self, mut params: PromptParams, reply: Reply) {
        let Some(request) = self.first(params.request_key.take(), CommandKind::Message, reply) else {
            return;
        };
        if let Err(failure) = self.check_message(&params.message, &params.images) {
            return self.refuse(request, failure);
        }
        if let Err(failure) = self.expand(&mut params.message).await {
            return self.refuse(request, failure);
        }
        params.streaming_behavior = None;
        self.run.cancel();
        for (_, waiting) in self.run.take_waiting() {
            let text = "Another prompt took the place of this one before its run began.";
            self.refuse(waiting, Failure::new(ErrorCode::Aborted, text));
        }
        self.give_up_compactions();
        let waits = self.run.wait(params, request);
        if let Some((params, request)) =
            waits.and_then(|(params, request)| self.compacting.replace(params, request))
        {
            self.take_prompt(params, request).await;
        }
    }

    /// Starts a run, queues the message, or says why neither.
    pub(crate) async fn take_prompt(&mut self, params: PromptParams, request: PendingRequest) {
        if self.closing {
            return self.refuse(request, shutting_down());
        }
        if self.compacting.is_asked_for() {
            let text = "Cannot submit a prompt while compaction is in progress. Wait for compaction to finish and retry.";
            let hint = "steer and follow_up are taken, for the next run.";
            return self.refuse(request, Failure::new(ErrorCode::Busy, text).hint(hint));
        }
        // A message for the running work need not wait for its end, which a retry or a compaction puts off.
        let is_held = self.run.is_pausing() || self.compacting.is_active();
        let queues = is_held && params.streaming_behavior.is_some();
        if self.run.is_ending() && !queues {
            if let Err(failure) = self.check_waiting(&params.message, &params.images) {
                return self.refuse(request, failure);
            }
            if let Some((params, request)) = self.run.wait(params, request) {
                self.start_run(prompt(params), request);
            }
            return;
        }
        if !self.run.is_active() {
            self.refresh_models().await;
            return self.start_run(prompt(params), request);
        }
        let Some(to) = params.streaming_behavior else {
            let text = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue \
                        the message.";
            return self.refuse(request, Failure::new(ErrorCode::Busy, text));
        };
        self.take_queued(queue_of(to), params.message, params.images, request).await;
    }

    async fn queue(&mut self, kind: QueueKind, params: QueueParams, reply: Reply) {
        let QueueParams { mut message, images, request_key } = params;
        let Some(request) = self.first(request_key, CommandKind::Message, reply) else { return };
        if let Err(failure) = self.check_message(&message, &images) {
            return self.refuse(request, failure);
        }
        match self.expand(&mut message).await {
            Ok(()) => self.take_queued(kind, message, images, request).await,
            Err(failure) => self.refuse(request, failure),
        }
    }

    /// What the session is doing.
    pub(crate) fn state(&self) -> SessionState {
        let choice = self.chooser.current();
        let (steering_mode, follow_up_mode) = self.queues.modes();
        SessionState {
            model: (*choice.model).clone(),
            thinking_level: choice.level,
            is_streaming: self.run.is_active(),
            is_compacting: self.compacting.is_active(),
            steering_mode,
            follow_up_mode,
            interrupt_mode: self.interrupt_mode,
            fallback_models: self.context.fallbacks.names().to_vec(),
            fallback_model: self.chooser.substituted().map(|choice| choice.model.name()),
            session_file: self.journal.file().map(|path| path.display().to_string()),
            session_id: self.context.session_id.clone(),
            session_name: self.journal.name(),
            auto_compaction_enabled: self.context.auto_compaction.load(Ordering::Relaxed),
            message_count: self.journal.messages().len() as u64,
            pending_message_count: self.queues.len() as u64,
            pending_tool_calls: None,
            has_streaming_message: None,
            error_message: None,
        }
    }

    /// The same, for those who know more than the reference's clients.
    fn detailed_state(&self) -> SessionState {
        let open = self.open_events.snapshot();
        let messages = self.journal.messages().iter().rev().filter_map(|message| message.get());
        let last = messages
            .into_iter()
            .find(|message| matches!(message, TranscriptMessage::Assistant(_) | TranscriptMessage::User(_)));
        let error_message = match last {
            Some(TranscriptMessage::Assistant(answer)) => answer.error_message.clone(),
            _ => None,
        };
        SessionState {
            pending_tool_calls: Some(open.calls),
            has_streaming_message: Some(open.answer),
            error_message,
            ..self.state()
        }
    }

    async fn get_entries(&self, params: &GetEntriesParams, reply: Reply) {
        let Some(list) = self.journal.entries(params.since.as_deref()) else {
            let since = params.since.as_deref().unwrap_or_default();
            let failure = Failure::new(ErrorCode::NotFound, format!("Entry not found: {since}"));
            return reply.fail(&self.feed, failure);
        };
        self.answer_list(list.bytes(), reply, move || list.answer()).await;
    }

    /// Writes the answer here, or, with a list so long that it would keep a thread of the runtime busy, on a blocking
    /// thread. The session waits for it either way: long answers come one at a time.
    pub(crate) async fn answer_list<T: Serialize>(
        &self,
        bytes: usize,
        reply: Reply,
        list: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) {
        let feed = self.feed.clone();
        let answer = move || reply.result(&feed, list());
        if bytes <= LONG_ANSWER_BYTES {
            answer();
        } else if let Err(error) = tokio::task::spawn_blocking(answer).await {
            tracing::error!(%error, "a long answer could not be written");
        }
    }

    fn get_stats(&mut self, reply: Reply) {
        let window = self.chooser.current().model.context_window;
        reply.data(&self.feed, self.journal.stats(window));
    }

    fn get_thinking_levels(&self, reply: Reply) {
        reply.data(&self.feed, Levels { levels: self.chooser.levels() });
    }

    /// The mode counts at once, also when it cannot be saved; that is then said.
    async fn set_mode(&mut self, kind: QueueKind, params: QueueModeParams, reply: Reply) {
        self.queues.set_mode(kind, params.mode);
        let key: &'static [&'static str] = match kind {
            QueueKind::Steering => &["steeringMode"],
            QueueKind::FollowUp => &["followUpMode"],
        };
        let saved = self.context.save_setting(key, &params.mode).await;
        reply.outcome(&self.feed, saved);
    }

    /// The mode counts at once, also when it cannot be saved; that is then said.
    async fn set_interrupt_mode(&mut self, params: &InterruptModeParams, reply: Reply) {
        self.interrupt_mode = params.mode;
        let saved = self.context.save_setting(&["interruptMode"], &params.mode).await;
        reply.outcome(&self.feed, saved);
    }

    /// The switch counts at once, also when it cannot be saved; that is then said.
    async fn set_auto_retry(&mut self, enabled: bool, reply: Reply) {
        self.context.auto_retry.store(enabled, Ordering::Relaxed);
        let saved = self.context.save_setting(&["retry", "enabled"], &enabled).await;
        reply.outcome(&self.feed, saved);
    }

    async fn set_name(&mut self, params: &SetSessionNameParams, reply: Reply) {
        let outcome = match checked_name(&params.name) {
            Ok(name) => self.use_name(name).await,
            Err(failure) => Err(failure),
        };
        reply.outcome(&self.feed, outcome);
    }

    /// Changes the name; on record first.
    pub(crate) async fn use_name(&mut self, name: &str) -> Result<(), Failure> {
        self.journal.set_name(name).await?;
        self.show_summary();
        self.publish(&Event::from(SessionInfoChanged { name: self.journal.name() }));
        Ok(())
    }

    fn bash(&mut self, mut params: BashParams, reply: Reply) {
        let Some(request) = self.first(params.request_key.take(), CommandKind::Bash, reply) else { return };
        if self.closing {
            return self.refuse(request, shutting_down());
        }
        self.start_bash(params, request);
    }

    fn abort_bash(&mut self, reply: Reply) {
        self.user_bash.abort_all();
        reply.done(&self.feed);
    }
}

/// A name as it is kept.
///
/// # Errors
/// When there is none.
pub(crate) fn checked_name(name: &str) -> Result<&str, Failure> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Failure::new(ErrorCode::InvalidField, "Session name cannot be empty"));
    }
    Ok(name)
}

fn prompt(params: PromptParams) -> Prompt {
    Prompt { text: params.message, images: params.images.into_iter().map(Into::into).collect() }
}

pub(crate) fn shutting_down() -> Failure {
    Failure::new(ErrorCode::ShuttingDown, "The session is closing and takes no new work.")
}
