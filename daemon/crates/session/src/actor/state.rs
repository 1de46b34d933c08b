//! The commands that look at a session's state, its entries and its numbers, and those that change its modes and its name.

use std::sync::atomic::Ordering;

use agentd_agent::queue::QueueKind;
use agentd_extensions::EventKind;
use agentd_protocol::{
    command::{GetEntriesParams, InterruptModeParams, Levels, QueueModeParams, SetSessionNameParams},
    error::{ErrorCode, Failure},
    event::{Event, SessionInfoChanged},
    message::Message as TranscriptMessage,
    message_pages::GetMessagesPageParams,
    session::SessionState,
};
use serde_json::json;

use super::session_actor::Actor;
use crate::{message_pages::PagedContext, reply::Reply};

/// The length of an answer that takes about a millisecond to write.
pub(super) const LONG_ANSWER_BYTES: usize = 1 << 20;

impl Actor {
    /// The state of the session.
    pub(super) fn state(&self) -> SessionState {
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
            cwd: None,
            auto_compaction_enabled: self.context.auto_compaction.load(Ordering::Relaxed),
            message_count: self.journal.messages().len() as u64,
            pending_message_count: self.queues.len() as u64,
            queued_message_count: None,
            is_settled: None,
            has_pending_async_work: None,
            pending_tool_calls: None,
            has_streaming_message: None,
            error_message: None,
            budgets: None,
            permissions: None,
            project_untrusted: None,
            sandbox: None,
            undo: None,
            mode: self.mode_in_force(),
            todo_phases: self.context.todos.phases(),
        }
    }

    /// The state for a client that opens the session or attaches: with what counts for its user from the first moment.
    pub(super) fn state_at_joining(&self) -> SessionState {
        SessionState {
            cwd: self.cwd_text(),
            permissions: self.context.permissions.state(),
            project_untrusted: self.context.prompt.is_untrusted.then_some(true),
            sandbox: self.context.sandbox.as_ref().map(|sandbox| sandbox.state().clone()),
            ..self.state()
        }
    }

    fn cwd_text(&self) -> Option<String> {
        Some(self.context.cwd.display().to_string())
    }

    /// The state with the fields that pi's clients do not know.
    pub(super) fn detailed_state(&self) -> SessionState {
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
            queued_message_count: Some(self.queues.len() as u64),
            is_settled: Some(self.is_settled()),
            has_pending_async_work: Some(self.has_pending_async_work()),
            pending_tool_calls: Some(open.calls.iter().map(|call| call.id().to_owned()).collect()),
            has_streaming_message: Some(open.answer),
            error_message,
            cwd: self.cwd_text(),
            budgets: self.context.budget.state(),
            permissions: self.context.permissions.state(),
            project_untrusted: self.context.prompt.is_untrusted.then_some(true),
            sandbox: self.context.sandbox.as_ref().map(|sandbox| sandbox.state().clone()),
            undo: self.context.undo.as_ref().map(|undo| undo.state()),
            ..self.state()
        }
    }

    /// A page of the context's messages. It is bounded, so that it is written here.
    pub(super) fn get_messages_page(&self, params: &GetMessagesPageParams, reply: Reply) {
        if self.run.is_active() || self.compacting.is_active() {
            let text = "Cannot page messages while the session is changing";
            let failure = Failure::new(ErrorCode::SessionBusy, text);
            return reply.fail(&self.feed, failure.hint("get_messages gives all of them at any time."));
        }
        let context = PagedContext {
            session: &self.context.session_id,
            leaf: self.journal.tree().leaf_id(),
            messages: self.journal.messages(),
        };
        reply.result(&self.feed, context.page(params));
    }

    pub(super) fn get_entries(&self, params: &GetEntriesParams, reply: Reply) {
        let Some(list) = self.journal.entries(params.since.as_deref()) else {
            let since = params.since.as_deref().unwrap_or_default();
            let failure = Failure::new(ErrorCode::NotFound, format!("Entry not found: {since}"));
            return reply.fail(&self.feed, failure);
        };
        if list.bytes() > LONG_ANSWER_BYTES {
            reply.long(&self.feed, list.into_content());
        } else {
            reply.result(&self.feed, list.answer());
        }
    }

    pub(super) fn get_stats(&mut self, reply: Reply) {
        let window = self.chooser.current().model.context_window;
        reply.data(&self.feed, self.journal.stats(window));
    }

    pub(super) fn get_thinking_levels(&self, reply: Reply) {
        reply.data(&self.feed, Levels { levels: self.chooser.levels() });
    }

    /// The mode counts at once, also when it cannot be saved; that is then said.
    pub(super) async fn set_mode(&mut self, kind: QueueKind, params: QueueModeParams, reply: Reply) {
        self.queues.set_mode(kind, params.mode);
        let key: &'static [&'static str] = match kind {
            QueueKind::Steering => &["steeringMode"],
            QueueKind::FollowUp => &["followUpMode"],
        };
        let saved = self.context.save_setting(key, &params.mode).await;
        reply.outcome(&self.feed, saved);
    }

    /// The mode counts at once, also when it cannot be saved; that is then said.
    pub(super) async fn set_interrupt_mode(&mut self, params: &InterruptModeParams, reply: Reply) {
        self.interrupt_mode = params.mode;
        let saved = self.context.save_setting(&["interruptMode"], &params.mode).await;
        reply.outcome(&self.feed, saved);
    }

    /// The switch counts at once, also when it cannot be saved; that is then said.
    pub(super) async fn set_auto_retry(&mut self, enabled: bool, reply: Reply) {
        self.context.auto_retry.store(enabled, Ordering::Relaxed);
        let saved = self.context.save_setting(&["retry", "enabled"], &enabled).await;
        reply.outcome(&self.feed, saved);
    }

    pub(super) async fn set_name(&mut self, params: &SetSessionNameParams, reply: Reply) {
        let outcome = match checked_name(&params.name) {
            Ok(name) => self.use_name(name).await,
            Err(failure) => Err(failure),
        };
        reply.outcome(&self.feed, outcome);
    }

    /// Changes the name; on record first.
    pub(super) async fn use_name(&mut self, name: &str) -> Result<(), Failure> {
        self.journal.set_name(name).await?;
        self.show_summary();
        let name = self.journal.name();
        let event = json!({"type": "session_info_changed", "name": name});
        self.publish(&Event::from(SessionInfoChanged { name }));
        self.notify_extensions(EventKind::SessionInfoChanged, event);
        Ok(())
    }
}

/// A name as it is kept.
///
/// # Errors
/// When there is none.
pub(super) fn checked_name(name: &str) -> Result<&str, Failure> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Failure::new(ErrorCode::InvalidField, "Session name cannot be empty"));
    }
    Ok(name)
}
