//! Tools that a host provides in the words of omp's clients: the whole set at a time, and answers that are no commands.

use agentd_protocol::{
    client_tools::{CallForm, ClientTool},
    error::{ErrorCode, Failure},
    frame::{Head, Response},
    host_tools::{HostToolResult, HostToolUpdate, HostTools, SetHostToolsParams},
};
use agentd_session::{RegisterOutcome, check_client_tools};
use serde_json::Value;

use super::{
    client_tools::not_followed,
    dispatcher::{Dispatcher, ended},
};

const SET: &str = "set_host_tools";

impl Dispatcher {
    /// Replaces the tools of this host, in every session that it follows. When the current session refuses them, nothing has changed.
    pub(super) async fn set_host_tools(&mut self, params: SetHostToolsParams, id: Option<Value>) {
        let tools: Vec<ClientTool> = params.tools.into_iter().map(Into::into).collect();
        let tool_names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        match self.replace_host_tools(tools).await {
            Ok(()) => self.answer(&Response::done(id, SET, Some(HostTools { tool_names }))).await,
            Err(failure) => self.fail(id, Some(SET), failure).await,
        }
    }

    async fn replace_host_tools(&mut self, tools: Vec<ClientTool>) -> Result<(), Failure> {
        if !tools.is_empty() {
            let checked = tools.clone();
            // Compiling the schemas takes a moment.
            let checked = tokio::task::spawn_blocking(move || check_client_tools(&checked)).await;
            checked.map_err(|error| Failure::new(ErrorCode::Internal, error.to_string()))??;
        }
        let current = self.sessions.current.clone();
        if let Some(current) = &current
            && !tools.is_empty()
        {
            if self.sessions.get(current).is_none() {
                return Err(not_followed(current).hint("Calls come among its events: attach_session first."));
            }
            self.register_now(current, tools.clone()).await?;
        }
        let mut others = self.sessions.all();
        others.retain(|session| {
            !tools.is_empty() && current.as_ref().is_none_or(|current| current.id() != session.id())
        });
        for session in others {
            if let Err(failure) = self.register_now(&session, tools.clone()).await {
                let error =
                    format!("The session \"{}\" does not get your tools: {}", session.id(), failure.error);
                self.fail(None, Some(SET), Failure { error, ..failure }).await;
            }
        }
        let left_out = |tool: &ClientTool| {
            tool.calls == CallForm::HostToolCall && !tools.iter().any(|other| other.name == tool.name)
        };
        let kept = &mut self.provided_tools.for_every_session;
        let gone: Vec<String> =
            kept.iter().filter(|tool| left_out(tool)).map(|tool| tool.name.clone()).collect();
        kept.retain(|tool| !left_out(tool));
        self.provided_tools.keep(tools);
        if !gone.is_empty() {
            self.take_back_tools(&gone).await;
        }
        Ok(())
    }

    /// Registers tools in a session that is followed, without an answer of its own.
    async fn register_now(
        &mut self,
        session: &std::sync::Arc<crate::hub::SessionSlot>,
        tools: Vec<ClientTool>,
    ) -> Result<(), Failure> {
        match self.register_in(session, tools, None).await? {
            RegisterOutcome::Done => Ok(()),
            RegisterOutcome::Refused(failure) => Err(failure),
            RegisterOutcome::Ended => Err(ended()),
        }
    }

    /// Takes tools of this connection from every session that it follows.
    async fn take_back_tools(&mut self, names: &[String]) {
        for session in self.sessions.all() {
            let provider = self.sessions.get(&session).and_then(|followed| followed.tools.as_ref());
            let taken = provider.map(|provider| provider.unregister(Some(names))).unwrap_or_default();
            // An unloaded session tells its subscribers when it is loaded.
            if !taken.is_empty()
                && let Some(guard) = session.loaded_guard().await
            {
                guard.handle.tools_left(taken, None).await;
            }
        }
    }

    /// Takes the result of a call, or the result so far. As in omp, there is no response, unless it cannot be used.
    pub(super) async fn answer_host_tool(&mut self, head: Head, kind: &'static str, line: &str) {
        let calls = &self.provided_tools.calls;
        let taken = if kind == HostToolUpdate::TYPE {
            match HostToolUpdate::parse(line) {
                Ok(update) => calls.progress(update.into(), line.len()),
                Err(error) => Err(error.into()),
            }
        } else {
            match HostToolResult::parse(line) {
                Ok(result) => calls.respond(result.into(), line.len()),
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
