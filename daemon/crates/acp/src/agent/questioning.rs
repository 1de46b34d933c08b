//! Questions of the daemon, asked through the editor, and its answers.

use agentd_protocol::{
    permissions::{PermissionAnswer, PermissionResponseParams},
    ui::{ExtensionUiRequest, NotifyType, UiMethod, UiResponse},
};
use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::{
    calls::tell,
    files::text,
    state::{Agent, ClientCall, DaemonCall, Effects},
};
use crate::{
    questions::{Dialog, about_call, answer, decision, dialog},
    rpc::{write_notification, write_request},
    updates::{Content, Severity, Update},
};

/// How many questions wait for a turn in a session: as many as the daemon has open.
const HELD: usize = 32;

impl Agent {
    /// Takes a question or a notice. A question outside of a turn waits for one: editors show them in the answer to a prompt.
    pub(super) fn asked_by_daemon(&mut self, id: &str, question: ExtensionUiRequest, effects: &mut Effects) {
        if !question.method.is_dialog() {
            return self.notified(id, question.method, effects);
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.turn.is_some() {
            self.ask_client(id, question, effects);
        } else if session.held.len() < HELD {
            session.held.push(question);
        }
    }

    /// Asks what has waited for the turn.
    pub(super) fn ask_held(&mut self, id: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for question in std::mem::take(&mut session.held) {
            self.ask_client(id, question, effects);
        }
    }

    fn ask_client(&mut self, id: &str, question: ExtensionUiRequest, effects: &mut Effects) {
        let Some(session) = self.sessions.get(id) else { return };
        let ExtensionUiRequest { id: question, method } = question;
        let forms = self.client.elicitation.form.is_some();
        let number = self.last_client_call + 1;
        let out = &mut effects.to_client;
        let call = match method {
            UiMethod::Permission(asked) => {
                let tool = asked.tool_call_id.as_ref().and_then(|call| session.tools.get(call));
                let arguments = tool.and_then(|tool| tool.arguments.as_ref());
                let request = about_call(id, &question, &asked, arguments, &session.folders);
                write_request(number, "session/request_permission", &request, out);
                ClientCall::Permission { session: id.to_owned(), question, options: asked.options }
            }
            method => {
                let as_form = match dialog(id, &question, &method, forms) {
                    Dialog::Form(form) => {
                        write_request(number, "elicitation/create", &form, out);
                        true
                    }
                    Dialog::Choice(request) => {
                        write_request(number, "session/request_permission", &request, out);
                        false
                    }
                    Dialog::Impossible => {
                        let none = answer(id, &question, &method, forms, &Err(String::new()));
                        return answer_dialog(&none, effects);
                    }
                };
                ClientCall::Dialog { session: id.to_owned(), question, method, as_form }
            }
        };
        self.last_client_call = number;
        self.client_calls.insert(number, call);
    }

    /// The editor has answered a question.
    pub(super) fn answered(
        &mut self,
        call: ClientCall,
        given: &Result<&RawValue, String>,
        effects: &mut Effects,
    ) {
        match call {
            ClientCall::Permission { session, question, options } => {
                let decision = decision(given, &options);
                // The reason of an editor that could not ask.
                let message = given.as_ref().err().map(|error| format!("The editor could not ask: {error}"));
                let params = PermissionResponseParams {
                    request_id: question,
                    decision,
                    message: message.filter(|_| decision == PermissionAnswer::Deny),
                    client: String::new(),
                };
                // Somebody else may have answered first.
                self.ask(DaemonCall::Quiet, "permission_response", Some(&session), &params, effects);
            }
            ClientCall::Dialog { session, question, method, as_form } => {
                answer_dialog(&answer(&session, &question, &method, as_form, given), effects);
            }
            ClientCall::Text { number, is_read, .. } => effects.texts.push((number, text(is_read, given))),
            ClientCall::Terminal { session, number, call } => {
                self.terminal_answered(&session, number, call, given, effects);
            }
        }
    }

    /// A question is over: the editor need not ask it any more.
    pub(super) fn resolved(&mut self, id: &str, question: &str, effects: &mut Effects) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.held.retain(|held| held.id != question);
        }
        let open = self.client_calls.iter().find(|(_, call)| call.question() == Some(question));
        if let Some(number) = open.map(|(number, _)| *number) {
            self.client_calls.remove(&number);
            write_notification("$/cancel_request", &json!({"requestId": number}), &mut effects.to_client);
        }
    }

    /// Shows a notice. Where the client knows none, what the user should know becomes text of the turn.
    fn notified(&mut self, id: &str, method: UiMethod, effects: &mut Effects) {
        match method {
            UiMethod::Notify { message, notify_type } => {
                let severity = match notify_type {
                    Some(NotifyType::Error) => Severity::Error,
                    Some(NotifyType::Warning) => Severity::Warning,
                    Some(NotifyType::Info) | None => Severity::Info,
                };
                if self.notice(id, severity, message.clone(), None, effects) || severity == Severity::Info {
                    return;
                }
                let Some(session) = self.sessions.get_mut(id) else { return };
                if session.turn.is_some() {
                    let message_id = Some(format!("notice-{}", self.daemon_calls.last()));
                    let content = Content::text(format!("{message}\n\n"));
                    tell(id, &Update::AgentMessageChunk { content, message_id }, effects);
                } else {
                    session.remarks.push(message);
                }
            }
            UiMethod::SetTitle { title } => {
                tell(id, &Update::SessionInfoUpdate { title: Some(title), updated_at: None }, effects);
            }
            // Parts of a terminal's screen, which editors do not have.
            _ => {}
        }
    }
}

/// Sends the answer to a dialog, which has no response.
fn answer_dialog(response: &UiResponse, effects: &mut Effects) {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(rename = "type")]
        kind: &'static str,
        #[serde(flatten)]
        response: &'a UiResponse,
    }
    // The response is our own type, which JSON can represent.
    if let Ok(line) = serde_json::to_string(&Line { kind: UiResponse::TYPE, response }) {
        effects.to_daemon.push_back(line);
    }
}
