//! Tools that the client provides for sessions: registering them, and answers to calls of them.

use std::sync::Arc;

use agentd_protocol::{
    client_tools::{
        ClientTool, RegisterToolsParams, RegisteredTools, UnregisterToolsParams, UnregisteredTools,
    },
    command::ClientToolCommand,
    error::{ErrorCode, Failure},
    frame::{FieldError, Head, Response},
};
use agentd_session::{ClientCalls, RegisterOutcome, Reply, ToolProvider, check_client_tools};
use serde::Deserialize;
use serde_json::Value;

use super::{
    following::Pending,
    reader::{Reader, ended},
};
use crate::hub::SessionSlot;

const REGISTER: &str = "register_tools";
const UNREGISTER: &str = "unregister_tools";
/// The command that answers a call.
pub(super) const RESPONSE: &str = "tool_response";

/// What a connection provides.
#[derive(Default)]
pub(super) struct Providing {
    /// The calls that the client works on, in all its sessions.
    calls: ClientCalls,
    /// The tools that go along wherever the connection goes.
    everywhere: Vec<ClientTool>,
}

impl Providing {
    /// A `tool_response` could not be read: if at least its request is clear, nobody waits for another one.
    pub(super) fn unreadable(&self, line: &str, error: &FieldError) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Request {
            request_id: String,
        }
        if let Ok(Request { request_id }) = agentd_protocol::parse_json(line) {
            self.calls.unreadable(&request_id, &error.to_string());
        }
    }

    /// From here on these go along, in the place of others of the same names.
    fn take_along(&mut self, tools: Vec<ClientTool>) {
        for tool in tools {
            match self.everywhere.iter_mut().find(|other| other.name == tool.name) {
                Some(other) => *other = tool,
                None => self.everywhere.push(tool),
            }
        }
    }
}

impl Reader {
    /// Does a command about the client's tools. `bytes` is the length of its line.
    pub(super) async fn provide(&mut self, command: ClientToolCommand, head: Head, bytes: usize) {
        let (name, id) = (command.name(), head.id);
        if !self.client.is_introduced() {
            let text = format!("{name} is for clients that have said hello.");
            let failure = Failure::new(ErrorCode::Unsupported, text)
                .hint("Send {\"type\":\"hello\",\"protocol\":1} first.");
            return self.fail(id, Some(name), failure).await;
        }
        let calls = &self.providing.calls;
        let outcome = match command {
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
        // Schemas are compiled, which takes a moment.
        let checked = tokio::task::spawn_blocking(move || check_client_tools(&tools).map(|()| tools)).await;
        let checked =
            checked.unwrap_or_else(|error| Err(Failure::new(ErrorCode::Internal, error.to_string())));
        let session = match (&session_id, &self.sessions.current) {
            (Some(named), _) => self.known(named).await.map(Some),
            (None, current) => Ok(current.clone()),
        };
        let (tools, session) = match (checked, session) {
            (Ok(tools), Ok(session)) => (tools, session),
            (Err(failure), _) | (_, Err(failure)) => return self.fail(id, Some(REGISTER), failure).await,
        };
        let goes_along = session_id.is_none();
        let Some(session) = session else {
            let names = tools.iter().map(|tool| tool.name.clone()).collect();
            self.providing.take_along(tools);
            let data = RegisteredTools { tools: names, session_id: None };
            return self.answer(&Response::done(id, REGISTER, Some(data))).await;
        };
        let Some(pending) = self.owed_by(&session) else {
            let failure = not_followed(&session).hint("Calls come among its events: attach_session first.");
            return self.fail(id, Some(REGISTER), failure).await;
        };
        match self.register_in(&session, tools.clone(), Some((id.clone(), REGISTER))).await {
            Ok(RegisterOutcome::Done) if goes_along => self.providing.take_along(tools),
            Ok(RegisterOutcome::Done | RegisterOutcome::Refused(_)) => {}
            Ok(RegisterOutcome::Ended) => {
                pending.take_back();
                self.fail(id, Some(REGISTER), ended()).await;
            }
            Err(failure) => {
                pending.take_back();
                self.fail(id, Some(REGISTER), failure).await;
            }
        }
    }

    /// The session is followed from here on: it gets the tools that go along, if it does not have them.
    pub(super) async fn bring_tools(&mut self, session: &Arc<SessionSlot>) {
        let has_some = |tools: &ToolProvider| !tools.names().is_empty();
        let followed = self.sessions.get(session);
        let has_them = followed.is_none_or(|followed| followed.tools.as_ref().is_some_and(has_some));
        let tools = self.providing.everywhere.clone();
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

    /// Registers tools in a session that is followed, which answers the command, if there is one. One that left memory is
    /// loaded first.
    async fn register_in(
        &mut self,
        session: &Arc<SessionSlot>,
        tools: Vec<ClientTool>,
        command: Option<(Option<Value>, &'static str)>,
    ) -> Result<RegisterOutcome, Failure> {
        let awake = self.registry.ensure_loaded(session).await?;
        let (client, calls) = (self.client.name(), &self.providing.calls);
        let followed = self.sessions.get_mut(session).ok_or_else(|| not_followed(session))?;
        let reader = followed.reader;
        let seat = followed.tools.get_or_insert_with(|| {
            session.session_clients().provide_tools(session.id(), reader, client, calls)
        });
        let reply = command.map(|(id, command)| Reply {
            subscriber: reader,
            id,
            command,
            environment: None,
            memory: None,
        });
        Ok(awake.handle.register_tools(seat, tools, reply).await)
    }

    async fn unregister_tools(&mut self, params: UnregisterToolsParams, id: Option<Value>) {
        let UnregisterToolsParams { tools: names, session_id } = params;
        if let Err(failure) = self.has_registered(names.as_deref(), session_id.as_deref()) {
            return self.fail(id, Some(UNREGISTER), failure).await;
        }
        let sessions = match &session_id {
            Some(session_id) => self.known(session_id).await.map(|session| vec![session]),
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
                std::mem::take(&mut self.providing.everywhere).into_iter().partition(is_one_of);
            self.providing.everywhere = staying;
            gone.extend(leaving.into_iter().map(|tool| tool.name));
        }
        let mut left = Vec::new();
        for session in sessions {
            let seat = self.sessions.get(&session).and_then(|followed| followed.tools.as_ref());
            let taken = seat.map(|seat| seat.unregister(names.as_deref())).unwrap_or_default();
            if !taken.is_empty() {
                left.push(session);
            }
            gone.extend(taken);
        }
        gone.sort();
        gone.dedup();
        let last = left.pop();
        // One at a time: who holds one back and waits for another may wait for ever. One that is not in memory tells its
        // listeners when it comes back.
        for session in left {
            if let Some(awake) = session.loaded_guard().await {
                awake.handle.tools_left(Vec::new(), None).await;
            }
        }
        // The last of them answers, after the event that tells its listeners.
        if let Some(session) = last
            && let Some(awake) = session.loaded_guard().await
            && let Some(pending) = self.owed_by(&session)
            && let Some(reader) = self.sessions.get(&session).map(|followed| followed.reader)
        {
            let reply = Reply {
                subscriber: reader,
                id: id.clone(),
                command: UNREGISTER,
                environment: None,
                memory: None,
            };
            if awake.handle.tools_left(gone.clone(), Some(reply)).await {
                return;
            }
            pending.take_back();
        }
        self.answer(&Response::done(id, UNREGISTER, Some(UnregisteredTools { tools: gone }))).await;
    }

    /// Whether these tools were registered, there or anywhere.
    fn has_registered(&self, names: Option<&[String]>, session_id: Option<&str>) -> Result<(), Failure> {
        let seats = self.sessions.seats(session_id);
        let mut known: Vec<String> = seats.flat_map(ToolProvider::names).collect();
        if session_id.is_none() {
            known.extend(self.providing.everywhere.iter().map(|tool| tool.name.clone()));
        }
        match names.into_iter().flatten().find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => {
                let text = format!("This connection has registered no tool \"{name}\" there.");
                Err(Failure::new(ErrorCode::NotFound, text)
                    .hint("get_tools lists tools and who provides them."))
            }
        }
    }

    /// Counts an answer that a session is about to owe us; `None` where we do not follow it.
    fn owed_by(&self, session: &SessionSlot) -> Option<Pending> {
        let followed = self.sessions.get(session)?;
        followed.pending.add();
        Some(followed.pending.clone())
    }
}

fn not_followed(session: &SessionSlot) -> Failure {
    let text = format!("This connection does not follow the session \"{}\".", session.id());
    Failure::new(ErrorCode::Unsupported, text)
}
