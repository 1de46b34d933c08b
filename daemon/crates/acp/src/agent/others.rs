//! Runs of other clients in sessions of a shared daemon, told while they happen.

use std::collections::HashMap;

use agentd_protocol::{
    daemon::{AttachSessionParams, AttachedSession, InFlight, RunningTool},
    event::{MessageEnd, QueueUpdate},
    message::Message,
};

use super::{
    calls::{Answer, data, tell},
    events::read,
    state::{Agent, DaemonCall, Effects, Session},
};
use crate::{
    history,
    updates::{ToolStatus, Update},
};

impl Agent {
    /// Whether what streams in a session is told: during a prompt of the editor, and in sessions that others have, too.
    pub(super) fn follows_stream(&self, id: &str) -> bool {
        let shared = self.options.shared;
        self.sessions.get(id).is_some_and(|session| {
            session.turn.is_some() || (shared && session.opening.is_none() && !session.is_joining)
        })
    }

    /// Tells a message that another client sent, or an answer for it whose beginning was not told.
    pub(super) fn others_message(&mut self, id: &str, seq: u64, line: &str, effects: &mut Effects) {
        let is_open = |session: &&mut Session| self.options.shared && session.opening.is_none();
        let Some(session) = self.sessions.get_mut(id).filter(is_open) else { return };
        let Some(MessageEnd { message }) = read(line) else { return };
        let message_id = format!("message-{seq}");
        let mut updates = Vec::new();
        match message.get() {
            Some(Message::User(user)) => {
                let own = session.turn.as_mut().map(|turn| &mut turn.own);
                if !own.is_some_and(|own| own.is_it(&user.content)) {
                    history::of_user(&user.content, &message_id, &mut updates);
                }
            }
            Some(Message::Assistant(answer)) if session.is_joining => {
                let named = (&session.folders, &session.server_tools);
                history::of_answer(answer, &message_id, &HashMap::new(), named, &mut updates);
            }
            _ => {}
        }
        for update in &updates {
            tell(id, update, effects);
        }
    }

    /// Keeps what was queued last: if the editor's prompt is to wait, that is it.
    pub(super) fn queue_changed(&mut self, id: &str, event: QueueUpdate) {
        if let Some(session) = self.sessions.get_mut(id).filter(|_| self.options.shared) {
            session.last_queued = event.follow_up.into_iter().next_back();
        }
    }

    /// Asks what is in progress in a session that was opened in the middle of a run. `has_history`: its calls are told already.
    pub(super) fn join_run(&mut self, id: &str, has_history: bool, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_joining) else { return };
        if !self.options.shared {
            session.is_joining = false;
            return;
        }
        let params = AttachSessionParams { session_id: id.to_owned(), since: None };
        let call = DaemonCall::Join { session: id.to_owned(), has_history };
        self.ask(call, "attach_session", None, &params, effects);
    }

    /// Tells the answer and the tool calls in progress.
    pub(super) fn joined(&mut self, id: &str, has_history: bool, answer: Answer<'_>, effects: &mut Effects) {
        let attached = data::<AttachedSession>(answer);
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.is_joining = false;
        match attached {
            Ok(AttachedSession { in_flight: Some(InFlight { message, tools, .. }), seq, .. }) => {
                session.message_id = format!("message-{seq}");
                if let Some(Message::Assistant(so_far)) = message.as_ref().and_then(|message| message.get()) {
                    let mut updates = Vec::new();
                    let of_text = |update: &Update| {
                        matches!(update, Update::AgentMessageChunk { .. } | Update::AgentThoughtChunk { .. })
                    };
                    history::of_answer(
                        so_far,
                        &session.message_id,
                        &HashMap::new(),
                        (&session.folders, &session.server_tools),
                        &mut updates,
                    );
                    for update in updates.iter().filter(|update| of_text(update)) {
                        tell(id, update, effects);
                    }
                }
                session.tell_running(id, tools, has_history, effects);
            }
            Ok(_) => {}
            Err(_) => self.forget(id, effects),
        }
    }
}

impl Session {
    /// Tells calls that run already. A history has told them as calls without a result.
    fn tell_running(
        &mut self,
        id: &str,
        running: Vec<RunningTool>,
        has_history: bool,
        effects: &mut Effects,
    ) {
        for RunningTool { tool_call_id: call, tool_name, args, .. } in running {
            let arguments = args.as_object().cloned().unwrap_or_default();
            if has_history {
                self.tools.entry(call.clone()).or_default();
            }
            self.arguments_known(id, &call, &tool_name, arguments, ToolStatus::InProgress, effects);
            if let Some(tool) = self.tools.get_mut(&call) {
                tool.is_running = true;
            }
        }
    }
}
