//! `session/new`, `session/load`, `session/resume`, `session/fork`: from the request to the session that is ready.

use agentd_protocol::{
    command::{Entries, GetEntriesParams, Levels, Models, NoParams},
    daemon::{OpenSessionParams, OpenedSession},
    mcp::McpServersChange,
    resources::SlashCommands,
    tool_list::ToolList,
};
use serde::Serialize;

use super::{
    calls::{Answer, data, done, failed, tell, unknown_session},
    handshake::not_logged_in,
    state::{Agent, DaemonCall, Effects, OpenRequest, Opening, Purpose, Session},
};
use crate::{
    history, mcp_servers,
    options::ModelChoice,
    plan::plan,
    requests::OpenParams,
    rpc::{RequestId, RpcError},
    server_tools::ServerTools,
    tool_calls::Folders,
    updates::{AvailableCommand, CommandInput, ConfigOption, ModeState, Update},
};

/// The answer to a request that opens a session.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Opened<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    modes: ModeState,
    config_options: Vec<ConfigOption>,
}

impl Agent {
    pub(super) fn new_session(
        &mut self,
        id: &RequestId,
        given: OpenParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        self.open(id, Purpose::New, OpenParams { session_id: None, ..given }, effects)
    }

    pub(super) fn load_session(
        &mut self,
        id: &RequestId,
        given: OpenParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        self.open(id, Purpose::Load, given, effects)
    }

    pub(super) fn resume_session(
        &mut self,
        id: &RequestId,
        given: OpenParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        self.open(id, Purpose::Resume, given, effects)
    }

    pub(super) fn fork_session(
        &mut self,
        id: &RequestId,
        given: OpenParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        self.open(id, Purpose::Fork, given, effects)
    }

    fn open(
        &mut self,
        id: &RequestId,
        purpose: Purpose,
        given: OpenParams,
        effects: &mut Effects,
    ) -> Result<(), RpcError> {
        given.check()?;
        let OpenParams { session_id, cwd, mcp_servers, additional_directories } = given;
        let mcp_servers = mcp_servers::given(mcp_servers.as_deref().unwrap_or_default())?;
        let mut args = self.options.session_args.clone();
        match (purpose, &session_id) {
            (Purpose::New, _) => {}
            (_, None) => return Err(RpcError::invalid_params("Invalid params: missing field `sessionId`")),
            // A beginning of an id, or a path, would mean a session, too.
            (_, Some(asked)) if asked.is_empty() || asked.contains(['/', '\\']) => {
                return Err(unknown_session(asked));
            }
            (Purpose::Fork, Some(asked)) => args.extend(["--fork".to_owned(), asked.clone()]),
            (Purpose::Load | Purpose::Resume, Some(asked)) => {
                if let Some(session) = self.sessions.get_mut(asked) {
                    if session.opening.is_some() {
                        let text = "Invalid request: the session is being opened already";
                        return Err(RpcError::new(crate::rpc::INVALID_REQUEST, text));
                    }
                    let has = &session.additional_directories;
                    if additional_directories.as_ref().is_some_and(|folders| folders != has) {
                        let remark =
                            "The session is open already, and keeps the additional folders that it has.";
                        session.remarks.push(remark.to_owned());
                    }
                    let opening = Opening { request: id.clone(), purpose, missing: 0, entries: None };
                    session.opening = Some(opening);
                    let asked = asked.clone();
                    self.gather(&asked, effects);
                    return Ok(());
                }
                args.extend(["--session".to_owned(), asked.clone()]);
            }
        }
        let params = OpenSessionParams {
            cwd,
            args,
            env: self.options.env.clone(),
            mcp_servers,
            additional_directories: additional_directories.clone().filter(|folders| !folders.is_empty()),
            ..OpenSessionParams::default()
        };
        let open = OpenRequest {
            request: id.clone(),
            purpose,
            additional_directories: additional_directories.unwrap_or_default(),
            asked: session_id.filter(|_| purpose != Purpose::Fork),
        };
        self.ask(DaemonCall::Open(Box::new(open)), "open_session", None, &params, effects);
        Ok(())
    }

    /// The daemon has opened a session, or not.
    pub(super) fn opened(&mut self, open: OpenRequest, answer: Answer<'_>, effects: &mut Effects) {
        let OpenRequest { request, purpose, asked, additional_directories } = open;
        let opened: OpenedSession = match data(answer) {
            Ok(opened) => opened,
            Err(error) => return failed(&request, &error, effects),
        };
        let id = opened.state.session_id.clone();
        if asked.as_ref().is_some_and(|asked| *asked != id) {
            // The beginning of an id has led to another session.
            let error = unknown_session(&asked.unwrap_or_default());
            return self.refuse_opened(&id, request, error, effects);
        }
        let cwd = opened.state.cwd.as_deref().unwrap_or_default().into();
        let folders = Folders { cwd, home: self.options.home.clone() };
        let mut session = Session::new(&opened.state, folders);
        if !session.options.has_model() {
            return self.refuse_opened(&id, request, not_logged_in(), effects);
        }
        session.held = opened.pending_ui;
        session.remarks = opened.warnings;
        session.additional_directories = additional_directories;
        session.opening = Some(Opening { request, purpose, missing: 0, entries: None });
        self.sessions.insert(id.clone(), session);
        self.gather(&id, effects);
    }

    /// Asks for everything that the answer to the request has, but for the history.
    fn gather(&mut self, id: &str, effects: &mut Effects) {
        let Some(opening) = self.sessions.get_mut(id).and_then(|session| session.opening.as_mut()) else {
            return;
        };
        opening.missing = 3;
        let session = || id.to_owned();
        let models = DaemonCall::Models { session: session() };
        self.ask(models, "get_available_models", Some(id), &NoParams {}, effects);
        let levels = DaemonCall::Levels { session: session(), then: None };
        self.ask(levels, "get_available_thinking_levels", Some(id), &NoParams {}, effects);
        self.ask(DaemonCall::Tools { session: session() }, "get_tools", Some(id), &NoParams {}, effects);
    }

    pub(super) fn models_known(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        let models = data::<Models>(answer);
        let Some(session) = self.sessions.get_mut(id) else { return };
        match models {
            Ok(Models { models }) => {
                session.options.models = models.iter().map(ModelChoice::of).collect();
                self.one_more_known(id, effects);
            }
            Err(error) => self.not_opened(id, error, effects),
        }
    }

    pub(super) fn tools_known(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        let tools = data::<ToolList>(answer);
        let Some(session) = self.sessions.get_mut(id) else { return };
        match tools {
            Ok(ToolList { tools }) => {
                session.server_tools = ServerTools::of_list(tools);
                self.one_more_known(id, effects);
            }
            Err(error) => self.not_opened(id, error, effects),
        }
    }

    pub(super) fn levels_known(
        &mut self,
        id: &str,
        then: Option<RequestId>,
        answer: Answer<'_>,
        effects: &mut Effects,
    ) {
        let levels = data::<Levels>(answer);
        let Some(session) = self.sessions.get_mut(id) else { return };
        match (levels, then) {
            (Ok(Levels { levels }), then) => {
                session.options.levels = levels;
                match then {
                    Some(request) => self.options_changed(id, &request, effects),
                    None if session.opening.is_some() => self.one_more_known(id, effects),
                    None => self.tell_options(id, effects),
                }
            }
            (Err(error), Some(request)) => {
                session.is_changing = false;
                failed(&request, &error, effects);
            }
            (Err(error), None) => self.not_opened(id, error, effects),
        }
    }

    pub(super) fn entries_known(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        match data::<Entries>(answer) {
            Ok(entries) => {
                if let Some(opening) = self.sessions.get_mut(id).and_then(|it| it.opening.as_mut()) {
                    opening.entries = Some(entries);
                }
                self.one_more_known(id, effects);
            }
            Err(error) => self.not_opened(id, error, effects),
        }
    }

    /// Answers the request with an error, and leaves the session.
    fn not_opened(&mut self, id: &str, error: RpcError, effects: &mut Effects) {
        if let Some(opening) = self.sessions.get_mut(id).and_then(|session| session.opening.take()) {
            self.sessions.remove(id);
            self.refuse_opened(id, opening.request, error, effects);
        }
    }

    /// Answers the request when nothing is missing any more: first the history, then the answer, then what clients expect after it.
    fn one_more_known(&mut self, id: &str, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(opening) = &mut session.opening else { return };
        opening.missing = opening.missing.saturating_sub(1);
        if opening.missing > 0 {
            return;
        }
        if opening.purpose == Purpose::Load && opening.entries.is_none() {
            // The last of all: what others do in the session is told by events from there on.
            opening.missing = 1;
            let entries = DaemonCall::Entries { session: id.to_owned() };
            return self.ask(entries, "get_entries", Some(id), &GetEntriesParams::default(), effects);
        }
        let Some(Opening { request, purpose, entries, .. }) = session.opening.take() else { return };
        if let Some(entries) = &entries {
            let compactions = self.client.session.compaction.is_some();
            for update in history::updates(entries, &session.folders, &session.server_tools, compactions) {
                tell(id, &update, effects);
            }
        }
        let todos = std::mem::take(&mut session.todos);
        let names_session = matches!(purpose, Purpose::New | Purpose::Fork);
        let opened = Opened {
            session_id: names_session.then_some(id),
            modes: session.options.modes(),
            config_options: session.options.all(),
        };
        done(&request, &opened, effects);
        if !todos.is_empty() {
            tell(id, &plan(&todos), effects);
        }
        self.join_run(id, purpose == Purpose::Load, effects);
        self.ask_for_commands(id, effects);
        if purpose != Purpose::New {
            let stats = DaemonCall::Stats { session: id.to_owned(), ends_turn: false };
            self.ask(stats, "get_session_stats", Some(id), &NoParams {}, effects);
        }
        self.tell_remarks_as_notices(id, effects);
    }

    fn ask_for_commands(&mut self, id: &str, effects: &mut Effects) {
        let commands = DaemonCall::Commands { session: id.to_owned() };
        self.ask(commands, "get_commands", Some(id), &NoParams {}, effects);
    }

    /// MCP servers have changed. Those that are connected after a session was opened bring further commands.
    pub(super) fn servers_changed(&mut self, id: &str, event: &McpServersChange, effects: &mut Effects) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let with_prompts = event.servers.iter().filter(|server| !server.prompts.is_empty());
        let prompts = with_prompts.map(|server| (server.name.clone(), server.prompts.clone())).collect();
        let before = std::mem::replace(&mut session.server_prompts, prompts);
        if session.server_prompts != before && session.opening.is_none() {
            self.ask_for_commands(id, effects);
        }
    }

    pub(super) fn commands_known(&mut self, id: &str, answer: Answer<'_>, effects: &mut Effects) {
        // Without the list there is nothing to complete; prompts with commands work all the same.
        let Ok(SlashCommands { commands }) = data(answer) else { return };
        let available_commands = commands.into_iter().map(|command| AvailableCommand {
            description: command.description.unwrap_or_default(),
            input: command.argument_hint.map(|hint| CommandInput { hint }),
            name: command.name,
        });
        let update = Update::AvailableCommandsUpdate { available_commands: available_commands.collect() };
        tell(id, &update, effects);
    }
}
