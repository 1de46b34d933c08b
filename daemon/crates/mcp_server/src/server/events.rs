//! Events of sessions that work on a prompt: what becomes of the result, and of progress.

use agentd_protocol::{
    event::{
        AgentSettled, AutoRetryStart, MessageEnd, ModelFallback, PermissionDecision, PermissionVerdict,
        ToolExecutionStart,
    },
    message::{AssistantMessage, ContentBlock, Message},
    ui::{ExtensionUiRequest, UiRequestResolved},
};
use agentd_translator::shortened;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    callers::tell_progress,
    state::{Effects, Server, Work},
};
use crate::results::{Denied, Outcome};

/// The most denied calls, and warnings, of a result.
const MAX_LISTED: usize = 16;

impl Server {
    /// Takes an event of a session. Most of them are of no interest to a caller.
    pub(super) fn event(&mut self, id: &str, kind: &str, line: &str, effects: &mut Effects) {
        let Some(work) = self.working.get_mut(id) else { return };
        match kind {
            "message_end" => with(line, |event: MessageEnd| work.message_ended(&event)),
            "tool_execution_start" => with(line, |event: ToolExecutionStart| {
                work.tells(title(&event), effects);
            }),
            "permission_decision" => with(line, |event: PermissionDecision| work.decided(event)),
            "auto_retry_start" => with(line, |event: AutoRetryStart| {
                let AutoRetryStart { attempt, max_attempts, delay_ms, error_message } = event;
                let pause = delay_ms.div_ceil(1000);
                let why = shortened(&error_message);
                work.tells(
                    format!("The model is asked again in {pause} s ({attempt} of {max_attempts}): {why}"),
                    effects,
                );
            }),
            "model_fallback" => with(line, |event: ModelFallback| {
                let ModelFallback { to, error_message, .. } = event;
                let why = shortened(&error_message);
                let text =
                    format!("{}/{} answers in the place of a model that failed: {why}", to.provider, to.id);
                work.outcome.warn(text.clone());
                work.tells(text, effects);
            }),
            "compaction_start" => work.tells("The context is summarised".to_owned(), effects),
            "extension_ui_request" => {
                with(line, |event: ExtensionUiRequest| self.asked_by_daemon(id, event, effects));
            }
            "ui_request_resolved" => {
                with(line, |event: UiRequestResolved| self.resolved(id, &event.id, effects));
            }
            "agent_settled" => with(line, |event: AgentSettled| self.settled(id, event.aborted, effects)),
            "lagged" => self.lagged(id, effects),
            "session_closed" => self.lost(id, "The session was closed while it worked.", effects),
            _ => {}
        }
    }

    /// Whether a caller waits to hear of progress.
    #[must_use]
    pub fn wants_heartbeat(&self) -> bool {
        let wants = |work: &Work| work.caller.as_ref().is_some_and(|caller| caller.progress_token.is_some());
        self.working.values().any(wants)
    }

    /// Tells all callers that their work goes on: clients give up on a call of which they hear nothing.
    pub fn heartbeat(&mut self, effects: &mut Effects) {
        for work in self.working.values_mut() {
            tell_progress(work, effects);
        }
    }
}

impl Work {
    /// Something new is done.
    fn tells(&mut self, activity: String, effects: &mut Effects) {
        self.activity = activity;
        tell_progress(self, effects);
    }

    fn message_ended(&mut self, event: &MessageEnd) {
        match event.message.get() {
            Some(Message::Assistant(answer)) => self.outcome.answered(answer),
            Some(Message::ToolResult(result)) => {
                if let Some(usage) = &result.usage {
                    self.outcome.usage.add(usage);
                }
                self.activity = "The model is asked".to_owned();
            }
            _ => {}
        }
    }

    fn decided(&mut self, event: PermissionDecision) {
        let denied = &mut self.outcome.denied;
        if event.decision == PermissionVerdict::Denied && denied.len() < MAX_LISTED {
            denied.push(Denied { tool: event.tool, reason: event.reason });
        }
    }
}

impl Outcome {
    /// Takes an answer of the model; the last one counts.
    fn answered(&mut self, answer: &AssistantMessage) {
        let texts = answer.content.iter().filter_map(ContentBlock::as_text);
        self.answer = texts.collect::<Vec<_>>().join("\n\n");
        self.stop_reason = Some(answer.stop_reason);
        self.error = answer.error_message.clone();
        self.code = answer.code;
        let model = answer.response_model.as_ref().filter(|model| !model.is_empty()).unwrap_or(&answer.model);
        self.model = (!model.is_empty()).then(|| format!("{}/{model}", answer.provider));
        self.usage.add(&answer.usage);
        self.turns += 1;
        let calls = answer.content.iter().filter(|block| matches!(block, ContentBlock::ToolCall(_)));
        self.tool_calls += calls.count() as u64;
    }

    /// Adds what the user should know.
    pub(super) fn warn(&mut self, text: String) {
        if self.warnings.len() < MAX_LISTED {
            self.warnings.push(text);
        }
    }
}

/// What a call does, for people.
fn title(event: &ToolExecutionStart) -> String {
    let arguments = event.args.get();
    let text = |name: &str| arguments.and_then(|it| it.get(name)).and_then(Value::as_str);
    let about = ["command", "path", "pattern"].into_iter().find_map(text).unwrap_or_default();
    shortened(&format!("{}: {about}", event.tool_name)).trim_end_matches([' ', ':']).to_owned()
}

/// Reads an event. One of another form is of another version of the protocol, and is left out.
fn with<T: DeserializeOwned>(line: &str, take: impl FnOnce(T)) {
    if let Ok(event) = serde_json::from_str(line) {
        take(event);
    }
}
