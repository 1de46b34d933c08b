//! The commands about a session's tools.

use std::sync::Arc;

use agentd_protocol::{
    client_tools::{ClientTool, RegisteredTools, UnregisteredTools},
    error::{ErrorCode, Failure},
    event::Event,
    tool_list::{ActiveTools, SetActiveToolsParams, ToolList, ToolsChanged},
};

use super::session_actor::Actor;
use crate::{
    client_tools::{CallLimits, MAX_TOOLS, ProvidedTool, ProvidingClient},
    event_log::Audience,
    messages::ToolsMessage,
    reply::{Reply, encode},
    session_tools::{choice_entry, chosen_on, named},
    tool_registry::ToolOwner,
};

impl Actor {
    pub(super) fn get_tools(&self, reply: Reply) {
        reply.data(&self.feed, ToolList { tools: self.tools.list(&self.context.tools) });
    }

    /// On record first: a choice outlasts the daemon. Where it changes nothing, nothing is written.
    pub(super) async fn set_active_tools(&mut self, params: SetActiveToolsParams, reply: Reply) {
        let own = &self.context.tools;
        let names = match self.tools.check(own, &params.tools) {
            Ok(names) => names,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        let used = self.use_tools(names.clone()).await;
        reply.result(&self.feed, used.map(|()| ActiveTools { tools: names }));
    }

    /// Makes exactly these tools active, which the session has.
    pub(super) async fn use_tools(&mut self, names: Vec<String>) -> Result<(), Failure> {
        if names != self.tools.active(&self.context.tools) {
            self.journal.append(&choice_entry(Some(&names))).await?;
            if let Some(mcp) = &self.context.mcp {
                mcp.keep_loaded(&names);
            }
            self.tools.choose(names);
            self.tell_tools();
        }
        Ok(())
    }

    pub(super) fn on_tools(&mut self, message: ToolsMessage) {
        match message {
            ToolsMessage::Register { provider, tools, reply, done } => {
                let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
                let outcome = self.register(&provider, tools);
                if let Some(reply) = reply {
                    let session_id = Some(self.context.session_id.clone());
                    let answer = outcome.clone().map(|()| RegisteredTools { tools: names, session_id });
                    reply.result(&self.feed, answer);
                }
                // The provider may have left; then its tools are gone again.
                let _ = done.send(outcome);
            }
            ToolsMessage::Left { tools, reply } => {
                self.tell_tools();
                if let Some(reply) = reply {
                    reply.data(&self.feed, UnregisteredTools { tools });
                }
            }
        }
    }

    fn register(&mut self, provider: &Arc<ProvidingClient>, tools: Vec<ClientTool>) -> Result<(), Failure> {
        let (_, registered) = self.tools.registry().registered();
        let own = &self.context.tools;
        let mut count = registered.iter().filter(|registered| registered.owner.is_client()).count();
        for tool in &tools {
            let name = &tool.name;
            let taken = |by: &str| {
                let text = format!("The name \"{name}\" is taken by {by}.");
                Failure::new(ErrorCode::InvalidField, text).hint("Give the tool another name.")
            };
            if own.is_built_in(name) {
                return Err(taken("a built-in tool"));
            }
            if !own.permits_of_others(name) {
                let has =
                    named(&self.tools.states(own).into_iter().map(|tool| tool.name).collect::<Vec<_>>());
                let text = format!("This session may not have the tool \"{name}\"; it has {has}.");
                let hint = "It was opened with --tools, --exclude-tools or --no-tools, or the setting excludeTools says so.";
                return Err(Failure::new(ErrorCode::Forbidden, text).hint(hint));
            }
            let namesake = registered.iter().find(|registered| registered.name() == name);
            match namesake.map(|registered| &registered.owner) {
                Some(ToolOwner::Client { provider: id, .. }) if *id == provider.id() => {}
                Some(ToolOwner::Client { client, .. }) => {
                    return Err(taken(&format!("a tool of another client ({client})")));
                }
                Some(ToolOwner::Mcp { server: Some(server), .. }) => {
                    return Err(taken(&format!("a tool of the MCP server {server}")));
                }
                Some(ToolOwner::Mcp { server: None, .. }) => {
                    return Err(taken("the search among the tools of MCP servers"));
                }
                Some(ToolOwner::Extension) => return Err(taken("a tool of an extension")),
                Some(ToolOwner::File { .. }) => return Err(taken("a tool that a file names")),
                Some(ToolOwner::Builtin) => return Err(taken("a built-in tool")),
                None => count += 1,
            }
        }
        if count > MAX_TOOLS {
            let text =
                format!("The clients of a session can provide {MAX_TOOLS} tools; these would make {count}.");
            return Err(Failure::new(ErrorCode::TooLarge, text));
        }
        let limits = CallLimits::of(&self.context.settings);
        self.tools
            .registry()
            .register(tools.into_iter().map(|tool| ProvidedTool::registered(provider, tool, limits)));
        self.tell_tools();
        Ok(())
    }

    /// Tells the subscribers of the tools, unless they know.
    pub(super) fn tell_tools(&self) {
        let tools = self.tools.states(&self.context.tools);
        if !self.tools.registry().tell(&tools) {
            return;
        }
        match encode(&Event::from(ToolsChanged { tools })) {
            Ok(line) => self.feed.publish_for(Audience::Counting, line),
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }

    /// Puts the choice of tools on record, where the branch that the session goes on with says something else.
    pub(super) async fn record_tools(&mut self) {
        if *self.tools.chosen() == chosen_on(self.journal.tree()) {
            return;
        }
        let entry = choice_entry(self.tools.chosen().as_deref());
        if let Err(error) = self.journal.append(&entry).await {
            // The run's first message meets the same trouble, and its client is told then.
            tracing::error!(%error, "the tools of a branch could not be recorded");
        }
    }
}
