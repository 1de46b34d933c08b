//! Commands about tools that the client provides for sessions: registering them, and answering calls of them.

use std::sync::Arc;

use agentd_protocol::{
    client_tools::{
        ClientTool, RegisterToolsParams, RegisteredTools, UnregisterToolsParams, UnregisteredTools,
    },
    command::ClientToolCommand,
    error::{ErrorCode, Failure},
    frame::{Head, Response},
};
use agentd_session::{RegisterOutcome, Reply, ToolProvider, check_client_tools};
use serde_json::Value;

use super::{
    dispatcher::{Dispatcher, ended},
    feeds::OwedReplies,
};
use crate::hub::SessionSlot;

const REGISTER: &str = "register_tools";
const UNREGISTER: &str = "unregister_tools";
/// The command that answers a call.
pub(super) const RESPONSE: &str = "tool_response";

impl Dispatcher {
    /// Executes a command about the client's tools. `bytes` is the length of its line.
    pub(super) async fn execute_client_tool(&mut self, command: ClientToolCommand, head: Head, bytes: usize) {
        let (name, id) = (command.name(), head.id);
        // omp's clients do not say hello; the command itself says that they know the calls.
        let is_of_host = matches!(
            command,
            ClientToolCommand::SetHostTools(_)
                | ClientToolCommand::SetHostUriSchemes(_)
                | ClientToolCommand::SetEvalExecutor(_)
        );
        if !is_of_host && !self.client.is_introduced() {
            let text = format!("{name} is for clients that have said hello.");
            let failure = Failure::new(ErrorCode::Unsupported, text)
                .hint("Send {\"type\":\"hello\",\"protocol\":1} first.");
            return self.fail(id, Some(name), failure).await;
        }
        let calls = &self.provided_tools.calls;
        let outcome = match command {
            ClientToolCommand::SetHostTools(params) => return self.set_host_tools(params, id).await,
            ClientToolCommand::SetHostUriSchemes(params) => {
                return self.set_host_uri_schemes(params, id).await;
            }
            ClientToolCommand::SetEvalExecutor(params) => return self.set_eval_executor(params, id).await,
            ClientToolCommand::RegisterTools(params) => return self.register_tools(params, id).await,
            ClientToolCommand::UnregisterTools(params) => return self.unregister_tools(params, id).await,
            ClientToolCommand::ToolResponse(params) => calls.respond(params, bytes),
            ClientToolCommand::ToolProgress(params) => calls.progress(params, bytes),
        };
        match outcome {
            Ok(()) => self.answer(&Response::<()>::done(id, name, None)).await,
            Err(failure) => self.fail(id, Some(name), failure).await,
        }
    }

    async fn register_tools(&mut self, params: RegisterToolsParams, id: Option<Value>) {
        let RegisterToolsParams { tools, session_id } = params;
        // Compiling the schemas takes a moment.
        let checked = tokio::task::spawn_blocking(move || check_client_tools(&tools).map(|()| tools)).await;
        let checked =
            checked.unwrap_or_else(|error| Err(Failure::new(ErrorCode::Internal, error.to_string())));
        let session = match (&session_id, &self.sessions.current) {
            (Some(named), _) => self.find_session(named).await.map(Some),
            (None, current) => Ok(current.clone()),
        };
        let (tools, session) = match (checked, session) {
            (Ok(tools), Ok(session)) => (tools, session),
            (Err(failure), _) | (_, Err(failure)) => return self.fail(id, Some(REGISTER), failure).await,
        };
        let is_kept = session_id.is_none();
        let Some(session) = session else {
            let names = tools.iter().map(|tool| tool.name.clone()).collect();
            self.provided_tools.keep(tools);
            let data = RegisteredTools { tools: names, session_id: None };
            return self.answer(&Response::done(id, REGISTER, Some(data))).await;
        };
        let Some(owed) = self.owed_by(&session) else {
            let failure = not_followed(&session).hint("Calls come among its events: attach_session first.");
            return self.fail(id, Some(REGISTER), failure).await;
        };
        match self.register_in(&session, tools.clone(), Some((id.clone(), REGISTER))).await {
            Ok(RegisterOutcome::Done) if is_kept => self.provided_tools.keep(tools),
            Ok(RegisterOutcome::Done | RegisterOutcome::Refused(_)) => {}
            Ok(RegisterOutcome::Ended) => {
                owed.take_back();
                self.fail(id, Some(REGISTER), ended()).await;
            }
            Err(failure) => {
                owed.take_back();
                self.fail(id, Some(REGISTER), failure).await;
            }
        }
    }

    /// Registers the tools for every session in a session that is followed from here on, unless it has tools of this client.
    pub(super) async fn register_kept_tools(&mut self, session: &Arc<SessionSlot>) {
        let has_tools = |tools: &ToolProvider| !tools.names().is_empty();
        let followed = self.sessions.get(session);
        let has_them = followed.is_none_or(|followed| followed.tools.as_ref().is_some_and(has_tools));
        let tools = self.provided_tools.for_every_session.clone();
        if has_them || tools.is_empty() || !self.may_provide_for(session) {
            return;
        }
        let failure = match self.register_in(session, tools, None).await {
            Ok(RegisterOutcome::Done) => return,
            Ok(RegisterOutcome::Refused(failure)) | Err(failure) => failure,
            Ok(RegisterOutcome::Ended) => ended(),
        };
        let error = format!("The session \"{}\" does not get your tools: {}", session.id(), failure.error);
        self.fail(None, Some(REGISTER), Failure { error, ..failure }).await;
    }

    /// Registers tools in a session that is followed; the session answers `command`, if given. An unloaded session is loaded first.
    pub(super) async fn register_in(
        &mut self,
        session: &Arc<SessionSlot>,
        tools: Vec<ClientTool>,
        command: Option<(Option<Value>, &'static str)>,
    ) -> Result<RegisterOutcome, Failure> {
        let guard = self.registry.ensure_loaded(session).await?;
        let (client, calls) = (self.client.name(), &self.provided_tools.calls);
        let followed = self.sessions.get_mut(session).ok_or_else(|| not_followed(session))?;
        let subscriber = followed.subscriber;
        let provider = followed.tools.get_or_insert_with(|| {
            session.session_clients().provide_tools(session.id(), subscriber, client, calls)
        });
        let reply = command.map(|(id, command)| Reply::plain(subscriber, id, command));
        Ok(guard.handle.register_tools(provider, tools, reply).await)
    }

    async fn unregister_tools(&mut self, params: UnregisterToolsParams, id: Option<Value>) {
        let UnregisterToolsParams { tools: names, session_id } = params;
        if let Err(failure) = self.has_registered(names.as_deref(), session_id.as_deref()) {
            return self.fail(id, Some(UNREGISTER), failure).await;
        }
        let sessions = match &session_id {
            Some(session_id) => self.find_session(session_id).await.map(|session| vec![session]),
            None => Ok(self.sessions.all()),
        };
        let sessions = match sessions {
            Ok(sessions) => sessions,
            Err(failure) => return self.fail(id, Some(UNREGISTER), failure).await,
        };
        let is_one_of = |tool: &ClientTool| names.as_ref().is_none_or(|names| names.contains(&tool.name));
        let mut gone: Vec<String> = Vec::new();
        if session_id.is_none() {
            let (leaving, staying): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.provided_tools.for_every_session).into_iter().partition(is_one_of);
            self.provided_tools.for_every_session = staying;
            gone.extend(leaving.into_iter().map(|tool| tool.name));
        }
        let mut left = Vec::new();
        for session in sessions {
            let provider = self.sessions.get(&session).and_then(|followed| followed.tools.as_ref());
            let taken = provider.map(|provider| provider.unregister(names.as_deref())).unwrap_or_default();
            if !taken.is_empty() {
                left.push(session);
            }
            gone.extend(taken);
        }
        gone.sort();
        gone.dedup();
        let last = left.pop();
        // One at a time: holding the guard of one session while waiting for another could deadlock. An unloaded session tells its
        // subscribers when it is loaded.
        for session in left {
            if let Some(guard) = session.loaded_guard().await {
                guard.handle.tools_left(Vec::new(), None).await;
            }
        }
        // The last session answers, after the event for its subscribers.
        if let Some(session) = last
            && let Some(guard) = session.loaded_guard().await
            && let Some(owed) = self.owed_by(&session)
            && let Some(subscriber) = self.sessions.get(&session).map(|followed| followed.subscriber)
        {
            let reply = Reply::plain(subscriber, id.clone(), UNREGISTER);
            if guard.handle.tools_left(gone.clone(), Some(reply)).await {
                return;
            }
            owed.take_back();
        }
        self.answer(&Response::done(id, UNREGISTER, Some(UnregisteredTools { tools: gone }))).await;
    }

    /// Whether these tools were registered: in that session, or in any.
    fn has_registered(&self, names: Option<&[String]>, session_id: Option<&str>) -> Result<(), Failure> {
        let tool_providers = self.sessions.tool_providers(session_id);
        let mut registered: Vec<String> = tool_providers.flat_map(ToolProvider::names).collect();
        if session_id.is_none() {
            registered.extend(self.provided_tools.for_every_session.iter().map(|tool| tool.name.clone()));
        }
        match names.into_iter().flatten().find(|name| !registered.contains(name)) {
            None => Ok(()),
            Some(name) => {
                let text = format!("This connection has registered no tool \"{name}\" there.");
                Err(Failure::new(ErrorCode::NotFound, text)
                    .hint("get_tools lists tools and who provides them."))
            }
        }
    }

    /// Counts an answer that a session is about to owe; `None` when the connection does not follow it.
    fn owed_by(&self, session: &SessionSlot) -> Option<OwedReplies> {
        let followed = self.sessions.get(session)?;
        followed.owed.add();
        Some(followed.owed.clone())
    }
}

pub(super) fn not_followed(session: &SessionSlot) -> Failure {
    let text = format!("This connection does not follow the session \"{}\".", session.id());
    Failure::new(ErrorCode::Unsupported, text)
}
