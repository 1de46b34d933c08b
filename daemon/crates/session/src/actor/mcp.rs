//! The session's MCP servers: their tools go to the registry, their states to the clients.

use std::sync::Arc;

use agentd_ai::system_state;
use agentd_extensions::EventKind;
use agentd_mcp::{McpSession, ServerTool};
use agentd_protocol::{
    error::{ErrorCode, Failure},
    event::Event,
    mcp::{McpServers, McpServersChange, ReconnectMcpServerParams, SetMcpServerParams},
    tool::ToolSpec,
    tool_list::ToolSource,
};

use super::{mcp_user::McpUser, session_actor::Actor};
use crate::{
    reply::Reply,
    tool_registry::{RegisteredTool, ToolOwner, ToolRegistry},
    ui::Ui,
};

/// A tool as the registry holds it.
fn registered(tool: ServerTool) -> RegisteredTool {
    let ServerTool { tool, server, timeout, is_direct, is_loaded } = tool;
    RegisteredTool { tool, owner: ToolOwner::Mcp { server, timeout, is_loaded }, active: is_direct }
}

/// Connects the servers; their tools go to `registry`, their questions to the user. Tools of `loaded` stay declared to the model.
fn start(mcp: &McpSession, loaded: Vec<Arc<ToolSpec>>, registry: &ToolRegistry, ui: Ui) {
    let registry = registry.clone();
    let sink = move |tools: Vec<ServerTool>| {
        registry.replace(ToolSource::Mcp, tools.into_iter().map(registered));
    };
    let user = Arc::new(McpUser::new(ui));
    mcp.start(loaded.iter().map(|tool| tool.name.clone()), Some(user), Box::new(sink));
}

/// Waits for a change of a server; for ever where there are none.
pub(super) async fn changed(mcp: Option<&Arc<McpSession>>) {
    match mcp {
        Some(mcp) => mcp.changed().await,
        None => std::future::pending().await,
    }
}

impl Actor {
    /// Connects the servers of the session's context, if it has some. Those of before end.
    pub(super) fn start_mcp(&mut self, before: Option<&Arc<McpSession>>) {
        let now = self.context.mcp.as_ref();
        if let (Some(before), Some(now)) = (before, now)
            && Arc::ptr_eq(before, now)
        {
            return;
        }
        match now {
            Some(mcp) => {
                // What the branch declares was loaded before.
                let declared = system_state(self.journal.messages()).tools;
                start(mcp, declared, self.tools.registry(), self.ui());
            }
            // The registry outlives a session's stay in memory, and so would their tools.
            None if self.tools.registry().has(ToolSource::Mcp) => {
                self.tools.registry().replace(ToolSource::Mcp, []);
            }
            None => {}
        }
    }

    pub(super) fn get_mcp_servers(&self, reply: Reply) {
        reply.data(&self.feed, self.mcp_servers());
    }

    pub(super) fn set_mcp_server(&mut self, params: SetMcpServerParams, reply: Reply) {
        let mcp = match self.changeable_mcp() {
            Ok(mcp) => mcp,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        let SetMcpServerParams { name, enabled, exposure } = params;
        let changed = async move {
            let outcome = mcp.set(&name, enabled, exposure).await;
            outcome.map(|()| McpServers { servers: mcp.list() })
        };
        self.answer_later(changed, reply);
    }

    pub(super) fn reconnect_mcp_server(&mut self, params: ReconnectMcpServerParams, reply: Reply) {
        let mcp = match self.changeable_mcp() {
            Ok(mcp) => mcp,
            Err(failure) => return reply.fail(&self.feed, failure),
        };
        let changed = async move {
            let outcome = mcp.reconnect(&params.name).await;
            outcome.map(|()| McpServers { servers: mcp.list() })
        };
        self.answer_later(changed, reply);
    }

    pub(super) fn changeable_mcp(&self) -> Result<Arc<McpSession>, Failure> {
        self.context.mcp.clone().ok_or_else(|| {
            Failure::new(ErrorCode::NotFound, "This session has no MCP servers.")
                .hint("mcp.json of the agent directory or of a trusted project names them.")
        })
    }

    /// Answers from a task: a server takes its time to end or to be there.
    fn answer_later(
        &mut self,
        changed: impl Future<Output = Result<McpServers, String>> + Send + 'static,
        reply: Reply,
    ) {
        let feed = self.feed.clone();
        self.tasks.spawn(async move {
            let answer = changed.await.map_err(|error| Failure::new(ErrorCode::NotFound, error));
            reply.result(&feed, answer);
        });
    }

    /// Tells the subscribers of the servers.
    pub(super) fn tell_mcp_servers(&mut self) {
        let McpServers { servers } = self.mcp_servers();
        let event = serde_json::json!({"type": "mcp_servers_change", "servers": servers});
        self.notify_extensions(EventKind::McpServersChange, event);
        self.publish_to_introduced(&Event::from(McpServersChange { servers }));
    }

    fn mcp_servers(&self) -> McpServers {
        McpServers { servers: self.context.mcp.as_ref().map(|mcp| mcp.list()).unwrap_or_default() }
    }
}
