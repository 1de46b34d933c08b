//! Events of sessions as updates. What streams is told while a prompt of the editor is worked on; in sessions of a shared daemon always,
//! since other clients have runs there.

use std::borrow::Cow;

use agentd_protocol::{
    agent_mode::ModeChanged,
    budget::BudgetReached,
    command::NoParams,
    daemon::{AttachSessionParams, AttachedSession},
    entry::{EntryBody, SessionEntry},
    event::{
        AgentSettled, AutoRetryStart, CompactionEnd, EntryAppended, MessageEnd, MessageStart, ModelFallback,
        QueueUpdate, SessionInfoChanged, ThinkingLevelChanged, ToolExecutionEnd, ToolExecutionStart,
        ToolExecutionUpdate,
    },
    mcp::McpServersChange,
    message::{AssistantMessage, Message, StopReason},
    permissions::PermissionsChanged,
    todo::{TODO_ENTRY, phases_of},
    tool_list::ToolsChanged,
    ui::{ExtensionUiRequest, UiRequestResolved},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::{
    calls::{Answer, data, tell},
    state::{Agent, AnswerEnd, DaemonCall, Effects},
};
use crate::plan::plan;
use crate::server_tools::ServerTools;
use crate::updates::{CompactionStatus, Content, Severity, Update, write_chunk};

/// An addition to an answer, with its text as it stands in the line.
#[derive(Deserialize)]
pub(super) struct Addition<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(rename = "contentIndex", default)]
    pub(super) index: usize,
    #[serde(borrow, default)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(rename = "toolName", default)]
    pub(super) tool: Option<String>,
    #[serde(rename = "toolCall", borrow, default)]
    pub(super) call: Option<&'a RawValue>,
}

impl Agent {
    /// Takes an event of a session. Events that have no update are left out.
    pub(super) fn event(&mut self, id: &str, kind: &str, seq: u64, line: &str, effects: &mut Effects) {
        if !self.sessions.contains_key(id) {
            return;
        }
        let streams = self.follows_stream(id);
        match kind {
            "message_update" if streams => self.answer_grew(id, line, effects),
            "message_start" if streams => self.message_began(id, seq, line),
            "message_end" => {
                self.others_message(id, seq, line, effects);
                self.message_ended(id, line, effects);
            }
            "tool_execution_start" if streams => {
                with(line, |event: ToolExecutionStart| self.call_began(id, event, effects));
            }
            "tool_execution_update" if streams => {
                with(line, |event: ToolExecutionUpdate| self.call_went_on(id, &event, effects));
            }
            "tool_execution_end" if streams => {
                with(line, |event: ToolExecutionEnd| self.call_ended(id, &event, effects));
            }
            "agent_settled" => with(line, |event: AgentSettled| self.settled(id, event.aborted, effects)),
            "extension_ui_request" => {
                with(line, |event: ExtensionUiRequest| self.asked_by_daemon(id, event, effects));
            }
            "ui_request_resolved" => {
                with(line, |event: UiRequestResolved| self.resolved(id, &event.id, effects));
            }
            "session_info_changed" => with(line, |event: SessionInfoChanged| {
                tell(id, &Update::SessionInfoUpdate { title: event.name, updated_at: None }, effects);
            }),
            "thinking_level_changed" => {
                with(line, |event: ThinkingLevelChanged| self.level_changed(id, event.level, effects));
            }
            "mcp_servers_change" => {
                with(line, |event: McpServersChange| self.servers_changed(id, &event, effects));
            }
            "tools_changed" => {
                with(line, |event: ToolsChanged| {
                    if let Some(session) = self.sessions.get_mut(id) {
                        session.server_tools = ServerTools::of_states(event.tools);
                    }
                });
            }
            "permissions_changed" => {
                with(line, |event: PermissionsChanged| {
                    self.permissions_changed(id, &event.permissions, effects)
                });
            }
            "mode_changed" => with(line, |event: ModeChanged| self.plan_changed(id, event.mode, effects)),
            "queue_update" => with(line, |event: QueueUpdate| self.queue_changed(id, event)),
            "entry_appended" => with(line, |event: EntryAppended| self.entry_appended(id, &event, effects)),
            "compaction_start" => self.compaction_began(id, seq, effects),
            "compaction_end" => with(line, |event: CompactionEnd| self.compaction_ended(id, event, effects)),
            "auto_retry_start" => with(line, |event: AutoRetryStart| {
                let AutoRetryStart { attempt, max_attempts, delay_ms, error_message } = event;
                let title =
                    format!("Asking again in {} s ({attempt} of {max_attempts})", delay_ms.div_ceil(1000));
                self.notice(id, Severity::Warning, title, Some(error_message), effects);
            }),
            "model_fallback" => with(line, |event: ModelFallback| {
                let title = format!("{}/{} answers instead", event.to.provider, event.to.id);
                self.notice(id, Severity::Warning, title, Some(event.error_message), effects);
            }),
            "budget_reached" => with(line, |event: BudgetReached| {
                if let Some(turn) = self.sessions.get_mut(id).and_then(|session| session.turn.as_mut()) {
                    turn.budget = Some(event.what);
                }
            }),
            "lagged" => self.lagged(id, effects),
            "session_closed" => self.forget(id, effects),
            _ => {}
        }
    }

    /// The text of an answer goes on as it stands in the line.
    fn answer_grew(&mut self, id: &str, line: &str, effects: &mut Effects) {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(rename = "assistantMessageEvent", borrow)]
            addition: Addition<'a>,
        }
        let Ok(Line { addition }) = serde_json::from_str::<Line<'_>>(line) else { return };
        let Some(session) = self.sessions.get(id) else { return };
        let kind = match &*addition.kind {
            "text_delta" => "agent_message_chunk",
            "thinking_delta" => "agent_thought_chunk",
            "toolcall_start" | "toolcall_delta" | "toolcall_end" => {
                return self.call_streams(id, &addition, effects);
            }
            _ => return,
        };
        if let Some(text) = addition.delta.filter(|text| text.get() != "\"\"") {
            write_chunk(id, kind, &session.message_id, text, &mut effects.to_client);
        }
    }

    /// A new message has an id of its own: chunks of one message are joined by it.
    fn message_began(&mut self, id: &str, seq: u64, line: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        with(line, |event: MessageStart| {
            if matches!(event.message.get(), Some(Message::Assistant(_))) {
                session.message_id = format!("message-{seq}");
                session.streaming_writes.clear();
            }
        });
    }

    fn message_ended(&mut self, id: &str, line: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(MessageEnd { message }) = read(line) else { return };
        let Some(Message::Assistant(answer)) = message.get() else { return };
        let AssistantMessage { stop_reason, error_message, code, usage, .. } = answer;
        session.cost += usage.cost.total;
        let has_failed = matches!(stop_reason, StopReason::Error | StopReason::Aborted);
        if usage.total_tokens > 0 && !has_failed {
            session.tell_usage(id, usage.total_tokens, effects);
        }
        if has_failed {
            session.give_up_calls_of(id, answer, effects);
        }
        let end = AnswerEnd { stop_reason: *stop_reason, error: error_message.clone(), code: *code };
        match &mut session.turn {
            Some(turn) => turn.last = Some(end),
            // The answer to a prompt of another client: nothing else tells the editor that it failed.
            None if self.options.shared && end.stop_reason == StopReason::Error => {
                let title = "The model did not answer another client".to_owned();
                self.notice(id, Severity::Warning, title, end.error, effects);
            }
            None => {}
        }
    }

    fn entry_appended(&mut self, id: &str, event: &EntryAppended, effects: &mut Effects) {
        match event.entry.get().map(|entry: &SessionEntry| &entry.body) {
            Some(EntryBody::ModelChange { provider, model_id }) => {
                self.model_changed(id, provider, model_id, effects);
            }
            Some(EntryBody::Custom { custom_type, data: Some(data) }) if custom_type == TODO_ENTRY => {
                if let Some(phases) = phases_of(data) {
                    tell(id, &plan(&phases), effects);
                }
            }
            _ => {}
        }
    }

    fn compaction_began(&mut self, id: &str, seq: u64, effects: &mut Effects) {
        let knows = self.client.session.compaction.is_some();
        let Some(session) = self.sessions.get_mut(id).filter(|_| knows) else { return };
        let compaction_id = format!("compaction-{seq}");
        session.compaction = Some(compaction_id.clone());
        let status = CompactionStatus::InProgress;
        tell(id, &Update::CompactionUpdate { compaction_id, status, summary: None, error: None }, effects);
    }

    fn compaction_ended(&mut self, id: &str, event: CompactionEnd, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(compaction_id) = session.compaction.take() else { return };
        let CompactionEnd { result, aborted, error_message, .. } = event;
        let (status, summary, error) = match (result, aborted) {
            (Some(result), _) => {
                (CompactionStatus::Completed, Some(vec![Content::text(result.summary)]), None)
            }
            (None, true) => (CompactionStatus::Cancelled, None, None),
            (None, false) => (CompactionStatus::Failed, None, error_message),
        };
        tell(id, &Update::CompactionUpdate { compaction_id, status, summary, error }, effects);
    }

    /// Tells the user something, where the client shows that. False where it does not.
    pub(super) fn notice(
        &mut self,
        id: &str,
        severity: Severity,
        title: String,
        description: Option<String>,
        effects: &mut Effects,
    ) -> bool {
        let knows = self.client.session.notices.is_some() && !title.is_empty();
        if knows {
            tell(id, &Update::Notice { severity, title, description }, effects);
        }
        knows
    }

    /// The remarks about a session as notices, where the client shows those.
    pub(super) fn tell_remarks_as_notices(&mut self, id: &str, effects: &mut Effects) {
        if self.client.session.notices.is_none() {
            return;
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        for remark in std::mem::take(&mut session.remarks) {
            self.notice(id, Severity::Warning, remark, None, effects);
        }
    }

    /// The remarks about a session at the beginning of a turn, as a message of their own.
    pub(super) fn tell_remarks_as_text(&mut self, id: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for (place, remark) in std::mem::take(&mut session.remarks).into_iter().enumerate() {
            let content = Content::text(format!("{remark}\n\n"));
            let message_id = Some(format!("remark-{}-{place}", self.daemon_calls.last()));
            tell(id, &Update::AgentMessageChunk { content, message_id }, effects);
        }
    }

    /// Events were not sent, since this client did not take them fast enough: joins the session anew.
    fn lagged(&mut self, id: &str, effects: &mut Effects) {
        let remark = "Some updates of this session are lost, since they were not taken fast enough.";
        if !self.notice(id, Severity::Warning, remark.to_owned(), None, effects)
            && let Some(session) = self.sessions.get_mut(id)
        {
            session.remarks.push(remark.to_owned());
        }
        let params = AttachSessionParams { session_id: id.to_owned(), since: None };
        let call = DaemonCall::Reattach { session: id.to_owned() };
        self.ask(call, "attach_session", None, &params, effects);
    }

    /// Joined anew: a turn that has ended meanwhile is over.
    pub(super) fn reattached(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        match data::<AttachedSession>(answer) {
            Ok(attached) if attached.state.is_streaming => {}
            Ok(_) => self.settled(id, false, effects),
            Err(_) => self.forget(id, effects),
        }
    }

    /// Asks for the levels of another model.
    pub(super) fn ask_levels(&mut self, id: &str, effects: &mut Effects) {
        let call = DaemonCall::Levels { session: id.to_owned(), then: None };
        self.ask(call, "get_available_thinking_levels", Some(id), &NoParams {}, effects);
    }
}

/// Reads an event. One of another form is of another version of the protocol, and is left out.
pub(super) fn read<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}

fn with<T: DeserializeOwned>(line: &str, take: impl FnOnce(T)) {
    if let Some(event) = read(line) {
        take(event);
    }
}
