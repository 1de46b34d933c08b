//! A client that runs the cells of the tool `eval` of its sessions.

use std::sync::Arc;

use agentd_protocol::{
    error::Failure,
    eval_executor::{
        EvalExecutorLanguages, EvalOutput, EvalResult, SetEvalExecutorParams, executor_languages,
    },
    frame::{Head, Response},
};
use serde_json::Value;

use super::{client_tools::not_followed, dispatcher::Dispatcher};
use crate::hub::SessionSlot;

const SET: &str = "set_eval_executor";

impl Dispatcher {
    /// Replaces the languages whose cells this client runs, in every session that it follows. When the current session refuses them, nothing
    /// has changed.
    pub(super) async fn set_eval_executor(&mut self, params: SetEvalExecutorParams, id: Option<Value>) {
        let set = match executor_languages(params.languages) {
            Ok(languages) => self.replace_languages(languages).await,
            Err(failure) => Err(failure),
        };
        match set {
            Ok(languages) => {
                self.answer(&Response::done(id, SET, Some(EvalExecutorLanguages { languages }))).await;
            }
            Err(failure) => self.fail(id, Some(SET), failure).await,
        }
    }

    async fn replace_languages(&mut self, languages: Vec<String>) -> Result<Vec<String>, Failure> {
        let current = self.sessions.current.clone();
        if let Some(current) = &current {
            if self.sessions.get(current).is_none() && !languages.is_empty() {
                return Err(not_followed(current).hint("Cells come among its events: attach_session first."));
            }
            self.execute_cells(current, &languages)?;
        }
        self.provided_tools.languages.clone_from(&languages);
        let mut others = self.sessions.all();
        others.retain(|session| current.as_ref().is_none_or(|current| current.id() != session.id()));
        for session in others {
            self.execute_kept_languages(&session).await;
        }
        Ok(languages)
    }

    /// Runs cells of exactly these languages in a session that is followed; one that is not has none of this connection.
    fn execute_cells(&mut self, session: &Arc<SessionSlot>, languages: &[String]) -> Result<(), Failure> {
        let (client, calls) = (self.client.name(), &self.provided_tools.calls);
        let Some(followed) = self.sessions.get_mut(session) else { return Ok(()) };
        if languages.is_empty() && followed.tools.is_none() {
            return Ok(());
        }
        let subscriber = followed.subscriber;
        let provider = followed.tools.get_or_insert_with(|| {
            session.session_clients().provide_tools(session.id(), subscriber, client, calls)
        });
        provider.execute_cells(languages.to_vec())
    }

    /// Runs cells of the languages of this client in a session that it follows.
    pub(super) async fn execute_kept_languages(&mut self, session: &Arc<SessionSlot>) {
        let languages = self.provided_tools.languages.clone();
        if !languages.is_empty() && !self.may_provide_for(session) {
            return;
        }
        if let Err(failure) = self.execute_cells(session, &languages) {
            let error =
                format!("The session \"{}\" does not give you its cells: {}", session.id(), failure.error);
            self.fail(None, Some(SET), Failure { error, ..failure }).await;
        }
    }

    /// Takes a piece of what a cell prints, or its end. There is no response, unless it cannot be used.
    pub(super) async fn answer_cell(&mut self, head: Head, kind: &'static str, line: &str) {
        let calls = &self.provided_tools.calls;
        let taken = if kind == EvalOutput::TYPE {
            match EvalOutput::parse(line) {
                Ok(output) => calls.cell_printed(output, line.len()),
                Err(error) => Err(error.into()),
            }
        } else {
            match EvalResult::parse(line) {
                Ok(result) => calls.respond_cell(result, line.len()),
                Err(error) => {
                    if let Some(Value::String(id)) = &head.id {
                        calls.unreadable(id, &error.to_string());
                    }
                    Err(error.into())
                }
            }
        };
        if let Err(failure) = taken {
            self.fail(head.id, Some(kind), failure).await;
        }
    }
}
