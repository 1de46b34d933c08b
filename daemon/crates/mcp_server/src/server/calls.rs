//! Lines in, and lines to both sides: who gets a request, an answer or an event.

use std::collections::{HashMap, VecDeque};

use agentd_protocol::error::Failure;
use agentd_translator::{
    Answer, DaemonCalls, DaemonLine,
    rpc::{
        INTERNAL_ERROR, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, RequestId, RpcError, params, parse,
        quoted, write, write_error,
    },
    with_hint,
};
use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::{
    callers::refuse,
    state::{Caller, DaemonCall, Effects, Introduced, Server, ServerOptions},
};
use crate::{
    arguments::{ToolCall, read},
    requests::{CallParams, CancelledParams, ListParams, Meta, meta},
    results::cacheable,
    tools::TOOLS,
    versions::{Era, MODERN},
};

/// The client asked for a revision that is not spoken.
const UNSUPPORTED_VERSION: i32 = -32022;

impl Server {
    /// A server that begins to speak to the daemon.
    #[must_use]
    pub fn start(options: ServerOptions, effects: &mut Effects) -> Self {
        let mut server = Self {
            options,
            handshake: None,
            introduced: Introduced::default(),
            working: HashMap::new(),
            unclaimed: VecDeque::new(),
            daemon_calls: DaemonCalls::default(),
            asked: HashMap::new(),
            places: HashMap::new(),
            listening: Vec::new(),
            last_question: 0,
            last_work: 0,
            is_leaving: false,
        };
        server.say_hello(effects);
        server
    }

    /// Takes a line of the client.
    pub fn client_line(&mut self, line: &str, effects: &mut Effects) {
        match parse(line) {
            Ok(Incoming::Request { id, method, params }) => {
                if is_no_id(&id) {
                    let text = "Invalid request: \"id\" has to be a string or a whole number";
                    return write_fault(&RpcError::new(INVALID_REQUEST, text), effects);
                }
                if let Err(error) = self.request(&id, &method, params, effects) {
                    write_error(Some(&id), &error, &mut effects.to_client);
                }
            }
            Ok(Incoming::Notification { method, params: given }) => {
                if method == "notifications/cancelled"
                    && let Ok(params) = params::<CancelledParams>(given)
                {
                    self.cancel(params.request_id.get(), effects);
                }
            }
            Ok(Incoming::Response { id, result }) => self.answered(id, &result, effects),
            Ok(Incoming::Stray) => {}
            Err((id, error)) => match id.filter(|id| !is_no_id(id)) {
                Some(id) => write_error(Some(&id), &error, &mut effects.to_client),
                None => write_fault(&error, effects),
            },
        }
    }

    /// Takes the news that the client's line was not kept: it was longer than `limit` bytes.
    pub fn line_too_long(&mut self, limit: usize, effects: &mut Effects) {
        let text = format!("Invalid request: the line is longer than the limit of {limit} bytes");
        write_fault(&RpcError::new(INVALID_REQUEST, text), effects);
    }

    /// Takes the news that the client's line was not kept, and why.
    pub fn line_refused(&mut self, failure: &Failure, effects: &mut Effects) {
        write_fault(&RpcError::new(INVALID_REQUEST, with_hint(failure)), effects);
    }

    /// Begins a request; what is answered later is kept with its caller.
    fn request(
        &mut self,
        id: &RequestId,
        method: &str,
        given: Option<&RawValue>,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        let meta = meta(given);
        let is_modern = meta.version.is_some()
            || meta.capabilities.is_some()
            || matches!(method, "server/discover" | "subscriptions/listen");
        let caller =
            if is_modern { self.modern_caller(id, meta)? } else { self.legacy_caller(id, method, meta)? };
        match (caller.era, method) {
            (Era::Legacy, "initialize") => self.initialize(&caller, params(given)?, effects),
            (Era::Legacy, "ping") => self.done(&caller, json!({}), effects),
            (Era::Modern, "server/discover") => self.discover(&caller, effects),
            (Era::Modern, "subscriptions/listen") => self.listen(&caller, &params(given)?, effects)?,
            (_, "tools/list") => self.list_tools(&caller, &params(given)?, effects)?,
            (_, "tools/call") => self.call_tool(caller, given, effects)?,
            (_, other) => {
                let text = format!("Method not found: {}", quoted(other));
                return Err(RpcError::new(METHOD_NOT_FOUND, text));
            }
        }
        Ok(())
    }

    /// The caller of a request that says all by itself.
    fn modern_caller(&mut self, id: &RequestId, meta: Meta) -> Result<Caller, RpcError> {
        let missing = |name: &str| {
            let text = format!("Invalid params: _meta: missing field `io.modelcontextprotocol/{name}`");
            RpcError::invalid_params(text)
        };
        let version = meta.version.ok_or_else(|| missing("protocolVersion"))?;
        if version != MODERN {
            let text = format!(
                "Unsupported protocol version \"{}\": this server speaks {MODERN} without a handshake, and older revisions after \
                 `initialize`",
                quoted(&version)
            );
            let data = json!({"supported": [MODERN], "requested": quoted(&version)});
            return Err(RpcError::new(UNSUPPORTED_VERSION, text).data(data));
        }
        let capabilities = meta.capabilities.ok_or_else(|| missing("clientCapabilities"))?;
        if self.introduced.client.is_none() {
            self.introduced.client = meta.client_info;
        }
        Ok(Caller {
            request: id.clone(),
            era: Era::Modern,
            version: MODERN,
            progress_token: meta.progress_token,
            shows_forms: capabilities.shows_forms(),
        })
    }

    /// The caller of a request of a client that has introduced itself.
    fn legacy_caller(&self, id: &RequestId, method: &str, meta: Meta) -> Result<Caller, RpcError> {
        let known = self.handshake;
        if known.is_none() && method.starts_with("tools/") {
            let text = format!(
                "Invalid request: `initialize` comes first, or each request says in `_meta` that it is of revision {MODERN}"
            );
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        Ok(Caller {
            request: id.clone(),
            era: Era::Legacy,
            version: known.map_or(crate::versions::NEWEST_LEGACY, |handshake| handshake.version),
            progress_token: meta.progress_token,
            shows_forms: known.is_some_and(|handshake| handshake.shows_forms),
        })
    }

    fn list_tools(&self, caller: &Caller, given: &ListParams, effects: &mut Effects) -> Result<(), RpcError> {
        if given.cursor.is_some() {
            return Err(RpcError::invalid_params("Invalid params: cursor: the list has one page"));
        }
        self.done(caller, cacheable(caller.era, json!({"tools": *TOOLS})), effects);
        Ok(())
    }

    fn call_tool(
        &mut self,
        caller: Caller,
        given: Option<&RawValue>,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        let call: CallParams = params(given)?;
        if call.arguments.as_ref().is_some_and(|arguments| !arguments.get().starts_with(['{', 'n'])) {
            return Err(RpcError::invalid_params("Invalid params: arguments: expected an object"));
        }
        if let Some(state) = call.request_state {
            return self.come_back(caller, &call.name, &state, call.input_responses.as_ref(), effects);
        }
        if call.input_responses.is_some() {
            // A prompt that runs again would do its work twice.
            let text = "Invalid params: inputResponses: they belong to a requestState, and there is none";
            return Err(RpcError::invalid_params(text));
        }
        let Some(tool) = read(&call.name, call.arguments.as_deref()) else {
            return Err(RpcError::invalid_params(format!("Unknown tool: {}", quoted(&call.name))));
        };
        match tool {
            Ok(ToolCall::Prompt(arguments)) => self.prompt(caller, *arguments, effects),
            Ok(ToolCall::Steer(arguments)) => self.steer(caller, arguments, effects),
            Ok(ToolCall::Abort(arguments)) => self.abort(caller, arguments, effects),
            Ok(ToolCall::ReadSession(arguments)) => self.read_session(caller, arguments, effects),
            Ok(ToolCall::ListSessions(arguments)) => self.list_sessions(caller, arguments, effects),
            Err(text) => self.tool_failed(&caller, &text, effects),
        }
        Ok(())
    }

    /// Takes a line of the daemon.
    pub fn daemon_line(&mut self, line: &str, effects: &mut Effects) {
        match self.daemon_calls.read(line) {
            DaemonLine::Event { session, kind, .. } => self.event(&session, kind, line, effects),
            DaemonLine::Answer(call, answer) => self.replied(call, answer, effects),
            DaemonLine::Unusable(reason) => effects.unusable = Some(reason),
            DaemonLine::Other => {}
        }
    }

    fn replied(&mut self, call: DaemonCall, answer: Answer<'_>, effects: &mut Effects) {
        match call {
            DaemonCall::Hello => {
                if let Err(failure) = answer {
                    effects.unusable = Some(with_hint(&failure));
                }
            }
            DaemonCall::Quiet => {}
            DaemonCall::Find { session, errand } => self.found(session, errand, answer, effects),
            DaemonCall::Open(opening) => self.opened(*opening, answer, effects),
            DaemonCall::Prompt { session } => self.prompt_taken(&session, answer, effects),
            DaemonCall::AtWork { session } => self.work_known(&session, answer, effects),
            DaemonCall::Attach { session } => self.attached(&session, answer, effects),
            DaemonCall::SteerLook { caller, session, message } => {
                self.steer_looked(caller, session, message, answer, effects);
            }
            DaemonCall::Steer { caller, session } => self.steered(&caller, &session, answer, effects),
            DaemonCall::Abort { caller, session } => self.aborted(&caller, &session, answer, effects),
            DaemonCall::Entries { caller, session, wanted, may_open } => {
                self.entries_known(caller, session, wanted, may_open, answer, effects);
            }
            DaemonCall::OpenToRead { caller, session, wanted } => {
                self.opened_to_read(caller, session, wanted, answer, effects);
            }
            DaemonCall::List { caller } => self.listed(&caller, answer, effects),
        }
    }

    /// Sends a command to the daemon.
    pub(super) fn ask(
        &mut self,
        call: DaemonCall,
        command: &str,
        session: Option<&str>,
        params: &impl Serialize,
        effects: &mut Effects,
    ) {
        self.daemon_calls.ask(call, command, session, params, &mut effects.to_daemon);
    }

    /// The client has left. Work ends, but for that of a shared daemon, whose sessions go on.
    pub fn client_gone(&mut self, effects: &mut Effects) {
        self.is_leaving = true;
        self.end_subscriptions(effects);
        if !self.options.shared {
            let sessions: Vec<String> = self.working.keys().cloned().collect();
            for session in sessions {
                self.stop(&session, effects);
            }
        }
    }

    /// Whether the daemon has answered everything, and nothing is worked on that ends with the client.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.daemon_calls.is_empty() && (self.options.shared || self.working.is_empty())
    }

    /// Ends everything that the client waits for: the daemon is gone.
    pub fn daemon_gone(&mut self, effects: &mut Effects) {
        let error = RpcError::new(INTERNAL_ERROR, "The connection to agentd is lost");
        let working = self.working.drain().filter_map(|(_, work)| work.caller);
        let calls = self.daemon_calls.drain().filter_map(|call| call.caller().cloned());
        for caller in working.chain(calls) {
            refuse(&caller, &error, effects);
        }
        self.asked.clear();
    }
}

/// Ids are texts and whole numbers here; JSON-RPC has others.
fn is_no_id(id: &RequestId) -> bool {
    id.text() == "null" || (!id.text().starts_with('"') && id.text().contains(['.', 'e', 'E']))
}

/// Appends the error of a line whose id could not be read. It has none: the protocol's ids are never `null`.
fn write_fault(error: &RpcError, effects: &mut Effects) {
    #[derive(Serialize)]
    struct Fault<'a> {
        jsonrpc: &'static str,
        error: &'a RpcError,
    }
    write(&Fault { jsonrpc: "2.0", error }, &mut effects.to_client);
}
