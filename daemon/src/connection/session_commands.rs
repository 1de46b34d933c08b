//! Commands for sessions, and answers to the questions that sessions ask their users.

use std::sync::Arc;

use agentd_memory::{MemoryPurpose, MemoryReservation};
use agentd_protocol::{
    command::SessionCommand,
    error::{ErrorCode, Failure},
    frame::Head,
    lines::SMALL_LINE_BYTES,
    ui::UiResponse,
};
use agentd_session::{Reply, SubscriberId};
use tokio_util::sync::CancellationToken;

use super::{
    dispatcher::{Dispatcher, ended},
    feeds::{FollowedFeed, OwedReplies},
    writer::WriterCommand,
};
use crate::hub::SessionSlot;

impl Dispatcher {
    /// Hands a command to the session that it names, or to the current one. An unloaded session is loaded first.
    /// `bytes` is the length of the command's line.
    pub(super) async fn execute_session(&mut self, mut command: SessionCommand, head: Head, bytes: usize) {
        if let SessionCommand::GetState(params) | SessionCommand::GetMessages(params) = &mut command {
            params.introduced = self.client.view.is_introduced;
            params.names_sessions = self.client.names_sessions();
        }
        match &mut command {
            SessionCommand::SetPermissions(params) => params.client = self.client.name(),
            SessionCommand::SetMode(params) => params.client = self.client.name(),
            SessionCommand::PermissionResponse(params) => {
                if !self.client.abilities().is_some_and(|abilities| abilities.permissions) {
                    let text = "This client did not say that it answers questions about calls.";
                    let failure = Failure::new(ErrorCode::Forbidden, text);
                    let failure = failure.hint("Say hello with the capability \"permissions\".");
                    return self.fail(head.id, Some(command.spec().name), failure).await;
                }
                params.client = self.client.name();
            }
            _ => {}
        }
        let spec = command.spec();
        let name = spec.name;
        let session = match self.named_or_current(head.session_id.as_deref()).await {
            Ok(session) => session,
            Err(failure) => return self.fail(head.id, Some(name), failure).await,
        };
        if spec.begins_work
            && let Err(failure) = self.registry.evict_for_memory(Some(&**session.id())).await
        {
            return self.fail(head.id, Some(name), failure).await;
        }
        let memory = match self.memory_for(bytes) {
            Ok(memory) => memory,
            Err(failure) => return self.fail(head.id, Some(name), failure).await,
        };
        let (session, guard) = match self.load(session).await {
            Ok(loaded) => loaded,
            Err(failure) => return self.fail(head.id, Some(name), failure).await,
        };
        let (subscriber, owed) = match self.sessions.get(&session) {
            Some(followed) => {
                followed.owed.add();
                (followed.subscriber, followed.owed.clone())
            }
            None => self.subscribe_for_one_answer(&session, spec.is_read_only()).await,
        };
        let id = head.id.clone();
        let environment = self.open_requests.environment(session.id());
        let reply = Reply {
            subscriber,
            id: head.id,
            command: name,
            environment,
            is_of_user: self.client.is_user(),
            hears_results: self.client.view.hears_prompt_results,
            memory,
        };
        if !guard.handle.send(command, reply).await {
            owed.take_back();
            self.fail(id, Some(name), ended()).await;
        }
    }

    /// Reserves memory for a command's line until its session has answered; `None` for a small one.
    fn memory_for(&self, bytes: usize) -> Result<Option<MemoryReservation>, Failure> {
        if bytes < SMALL_LINE_BYTES {
            return Ok(None);
        }
        let mut memory = self.registry.memory().open(MemoryPurpose::Commands);
        memory.grow_to(bytes as u64).map_err(|refused| {
            let text = format!("The command cannot wait for its session: {refused}.");
            Failure::new(ErrorCode::LimitReached, text).hint(refused.hint())
        })?;
        Ok(Some(memory))
    }

    /// Subscribes to a session that the connection does not follow, for one answer and nothing else. The answer is counted as owed.
    /// For a read-only command no other subscriber is cut off.
    async fn subscribe_for_one_answer(
        &self,
        session: &SessionSlot,
        is_read_only: bool,
    ) -> (SubscriberId, OwedReplies) {
        let feed = session.feed().attach_aside(is_read_only);
        let (subscriber, owed, leaving) = (feed.id(), OwedReplies::default(), CancellationToken::new());
        owed.add();
        leaving.cancel();
        let session = Arc::clone(session.id());
        let following = FollowedFeed { session, feed, owed: owed.clone(), leaving, so_far: None };
        self.tell_writer(WriterCommand::Follow(Box::new(following))).await;
        (subscriber, owed)
    }

    /// Hands a user's answer to the followed sessions that may have asked. As in pi, most answers have no response: clients may
    /// answer at any time, even questions that were not asked. Refused are a client that may not answer at all, and one that said
    /// `hello` and names a session that it does not follow.
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
            // A session that asks is loaded.
            if let Some(guard) = session.loaded_guard().await {
                guard.handle.answer_ui(response.clone(), self.client.name(), abilities).await;
            }
        }
    }

    /// From here on the client answers the questions of the sessions that it follows.
    pub(super) async fn begin_answering(&mut self) {
        let abilities = self.client.abilities();
        self.sessions.answer(abilities);
        for session in self.sessions.all() {
            self.ask_trust(&session).await;
        }
    }

    /// Asks the client whether to trust the session's project, if that is open.
    pub(super) async fn ask_trust(&self, session: &Arc<SessionSlot>) {
        if self.client.abilities().is_some_and(|abilities| abilities.daemon)
            && let Some(guard) = session.loaded_guard().await
        {
            guard.handle.ask_trust().await;
        }
    }
}
