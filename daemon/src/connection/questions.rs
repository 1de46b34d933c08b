//! Answers to questions that sessions ask their users, and who is there to give them.

use std::sync::Arc;

use agentd_protocol::{
    error::{ErrorCode, Failure},
    frame::Head,
    ui::UiResponse,
};
use agentd_session::UiAbilities;

use super::reader::Reader;
use crate::hub::SessionSlot;

impl Reader {
    /// Takes an answer to the session that asked, from a client that follows it and said that it answers. Most have no response, as
    /// in the reference: clients may answer at any time, also what nobody asked. Only a client that may not answer at all is told so,
    /// and one that said hello and names a session that it does not follow.
    pub(super) async fn answer_question(&mut self, head: Head, line: &str) {
        if let Some(failure) = self.refusal_to_answer() {
            return self.fail(head.id, Some(UiResponse::TYPE), failure).await;
        }
        if !self.client.may_answer() {
            let text = "The role \"observe\" does not allow answers to questions.";
            let failure = Failure::new(ErrorCode::Forbidden, text);
            let failure = failure.hint("Connect anew, and say hello with the role \"control\".");
            return self.fail(head.id, Some(UiResponse::TYPE), failure).await;
        }
        let Some(abilities) = self.client.abilities() else {
            if self.client.is_introduced() {
                let text = "This client did not say that it answers questions to the user.";
                let failure = Failure::new(ErrorCode::Forbidden, text);
                let failure = failure.hint("Say hello with the capability \"ui\".");
                self.fail(head.id, Some(UiResponse::TYPE), failure).await;
            }
            return;
        };
        let Ok(response) = agentd_protocol::parse_json::<UiResponse>(line) else { return };
        let mut asking = self.sessions.all();
        if let Some(id) = &response.session_id {
            asking.retain(|session| **session.id() == **id);
            if asking.is_empty() && self.client.is_introduced() {
                let text = format!(
                    "This client does not follow the session {id}, and answers none of its questions."
                );
                let failure = Failure::new(ErrorCode::Forbidden, text).hint("attach_session follows it.");
                return self.fail(head.id, Some(UiResponse::TYPE), failure).await;
            }
        }
        for session in asking {
            // One that asks is in memory.
            if let Some(awake) = session.loaded_guard().await {
                awake.handle.answer_ui(response.clone(), self.client.name(), abilities).await;
            }
        }
    }

    /// The client can answer from here on what the sessions ask that it follows.
    pub(super) async fn begin_answering(&mut self) {
        let abilities = self.client.abilities();
        self.sessions.answer(abilities);
        for session in self.sessions.all() {
            self.ask_trust(&session).await;
        }
    }

    /// A session is followed: what is open about it can be asked.
    pub(super) async fn ask_trust(&self, session: &Arc<SessionSlot>) {
        if self.client.abilities() == Some(UiAbilities::All)
            && let Some(awake) = session.loaded_guard().await
        {
            awake.handle.ask_trust().await;
        }
    }
}
