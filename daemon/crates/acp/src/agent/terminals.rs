//! The editor's terminals, in which commands of the model run.

use serde_json::value::RawValue;

use super::{
    calls::tell,
    files::NOT_OFFERED,
    state::{Agent, ClientCall, Effects, Session},
};
use crate::{
    rpc::write_request,
    terminals::{self, BASH, TerminalAnswer, TerminalCall, TerminalRequest},
    updates::{ToolCallFields, ToolContent, ToolStatus, Update},
};

impl Agent {
    /// Whether the editor offers terminals.
    #[must_use]
    pub fn has_terminals(&self) -> bool {
        self.client.terminal
    }

    /// Asks the editor about a terminal. The answer comes in [`Effects::terminals`] with `number`. The call of a new terminal shows it
    /// before that.
    pub fn terminal_wanted(
        &mut self,
        number: u64,
        session: &str,
        request: TerminalRequest,
        effects: &mut Effects,
    ) {
        // What the editor made it also has to give up when nothing else is asked of it any more.
        let is_release = matches!(request, TerminalRequest::Release(_));
        if !is_release && (!self.has_terminals() || !self.sessions.contains_key(session)) {
            return effects.terminals.push((number, Err(NOT_OFFERED.to_owned())));
        }
        if let TerminalRequest::Release(terminal) = &request {
            self.client_calls.retain(|_, call| !call.is_about(terminal));
        }
        let (method, params, call) = terminals::request(session, request);
        self.last_client_call += 1;
        write_request(self.last_client_call, method, &params, &mut effects.to_client);
        let call = ClientCall::Terminal { session: session.to_owned(), number, call };
        self.client_calls.insert(self.last_client_call, call);
    }

    /// The editor has answered about a terminal.
    pub(super) fn terminal_answered(
        &mut self,
        session: &str,
        number: u64,
        call: TerminalCall,
        given: &Result<&RawValue, String>,
        effects: &mut Effects,
    ) {
        let answer = terminals::answer(&call, given);
        if let (TerminalCall::Unwanted, Ok(TerminalAnswer::Created(terminal))) = (&call, &answer) {
            let release = TerminalRequest::Release(terminal.clone());
            return self.terminal_wanted(number, session, release, effects);
        }
        if let (TerminalCall::Create { call, title }, Ok(TerminalAnswer::Created(terminal))) =
            (&call, &answer)
            && let Some(open) = self.sessions.get_mut(session)
        {
            open.show_terminal(session, call, title, terminal, effects);
        }
        effects.terminals.push((number, answer));
    }

    /// A tool call has ended. A terminal that the editor makes for it from now on is given up at once.
    pub(super) fn call_needs_no_terminal(&mut self, ended: &str, effects: &mut Effects) {
        for open in self.client_calls.values_mut() {
            if let ClientCall::Terminal { number, call: open, .. } = open
                && matches!(open, TerminalCall::Create { call, .. } if call == ended)
            {
                *open = TerminalCall::Unwanted;
                effects.terminals.push((*number, Err("the call has ended".to_owned())));
            }
        }
    }
}

impl Session {
    /// Tells that a call has a terminal. The request for it may have overtaken the events that tell the call itself.
    fn show_terminal(&mut self, id: &str, call: &str, title: &str, terminal: &str, effects: &mut Effects) {
        if !self.tools.contains_key(call) {
            self.announce(id, call, BASH, title, ToolStatus::InProgress, effects);
        }
        if let Some(tool) = self.tools.get_mut(call) {
            tool.terminal = Some(terminal.to_owned());
        }
        let content = Some(vec![ToolContent::Terminal { terminal_id: terminal.to_owned() }]);
        let fields = ToolCallFields {
            tool_call_id: call.to_owned(),
            status: Some(ToolStatus::InProgress),
            content,
            ..ToolCallFields::default()
        };
        tell(id, &Update::ToolCallUpdate(fields), effects);
    }
}

#[cfg(test)]
mod tests {
    use agentd_protocol::session::SessionState;
    use serde_json::json;

    use super::*;
    use crate::{AgentOptions, TerminalCommand};

    #[test]
    fn a_terminal_that_comes_too_late_is_given_up() {
        let mut effects = Effects::default();
        let mut agent = Agent::start(AgentOptions::default(), &mut effects);
        agent.client.terminal = true;
        let folders = crate::tool_calls::Folders::default();
        let state = json!({
            "model": agentd_protocol::model::Model::placeholder(),
            "thinkingLevel": "off", "isStreaming": false, "isCompacting": false, "steeringMode": "all", "followUpMode": "all",
            "sessionId": "s", "autoCompactionEnabled": true, "messageCount": 0, "pendingMessageCount": 0,
        });
        let state: SessionState = serde_json::from_value(state).unwrap();
        agent.sessions.insert("s".into(), Session::new(&state, folders));
        let command = TerminalCommand {
            call: "c".into(),
            program: "sh".into(),
            args: vec!["-c".into(), "ls".into()],
            env: Vec::new(),
            cwd: "/p".into(),
            output_limit: 1,
        };
        for ends in [true, false] {
            agent.terminal_wanted(1, "s", TerminalRequest::Create(command.clone()), &mut effects);
            let id = agent.last_client_call;
            if ends {
                agent.call_needs_no_terminal("c", &mut effects)
            } else {
                agent.forget("s", &mut effects)
            }
            effects.to_client.clear();
            agent.client_line(
                &json!({"jsonrpc": "2.0", "id": id, "result": {"terminalId": "t"}}).to_string(),
                &mut effects,
            );
            let told = String::from_utf8(std::mem::take(&mut effects.to_client)).unwrap();
            assert!(told.contains("terminal/release") && !told.contains("session/update"), "{told}");
        }
    }
}
