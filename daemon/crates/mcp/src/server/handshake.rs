//! Making a connection: the transport, `initialize`, the first list of tools.

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Endpoint, ServerConfig},
    definition::ToolDefinition,
    http,
    launch::ServerContext,
    peer::{Peer, PeerHandler, RequestError, RequestTerms},
    stdio,
    transport::Transport,
};

/// The revisions of MCP that agentd speaks, the newest first.
const REVISIONS: [&str; 5] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

/// Pages of a list: a server that has more is at fault.
const MAX_PAGES: usize = 1000;

/// Tools of a server. Each costs memory, and tokens where it is declared.
const MAX_TOOLS: usize = 2000;

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerFacts {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) revision: String,
    /// Its advice for the model.
    pub(crate) instructions: Option<String>,
    /// Whether it has resources.
    pub(crate) has_resources: bool,
    /// Whether it has prompts.
    pub(crate) has_prompts: bool,
}

/// A connection that is there.
pub(crate) struct Connection {
    pub(crate) peer: Peer,
    pub(crate) facts: ServerFacts,
    pub(crate) pid: Option<i32>,
    pub(crate) over: CancellationToken,
    gone: CancellationToken,
}

impl Connection {
    /// Ends it: returns when nothing of the server is left.
    pub(crate) async fn close(&self) {
        self.over.cancel();
        self.gone.cancelled().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

/// Connects a server and lists its tools.
///
/// # Errors
/// Why it is not there.
pub(crate) async fn connect(
    config: &ServerConfig,
    context: &ServerContext,
    handler: Arc<dyn PeerHandler>,
) -> Result<(Connection, Vec<ToolDefinition>), String> {
    let transport = match &config.endpoint {
        Endpoint::Stdio { .. } => {
            let command = context.command(config).await?;
            stdio::start(command, &context.launcher, &context.tasks, handler).await?
        }
        Endpoint::Http { .. } => http::start(context.endpoint(config).await?, &context.tasks, handler),
    };
    let Transport { peer, pid, over, gone } = transport;
    // Whatever fails from here on ends the server.
    let ended = over.clone().drop_guard();
    let (facts, has_tools) = initialize(&peer, config).await?;
    let tools = if has_tools { list_tools(&peer, config.set_up_timeout()).await? } else { Vec::new() };
    let _ = ended.disarm();
    Ok((Connection { peer, facts, pid, over, gone }, tools))
}

async fn initialize(peer: &Peer, config: &ServerConfig) -> Result<(ServerFacts, bool), String> {
    let capabilities = if config.roots { json!({"roots": {}}) } else { json!({}) };
    let params = json!({
        "protocolVersion": REVISIONS[0],
        "capabilities": capabilities,
        "clientInfo": {"name": "agentd", "title": "agentd", "version": env!("CARGO_PKG_VERSION")},
    });
    let answer = ask(peer, "initialize", params, config.set_up_timeout()).await?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let revision = text(answer.get("protocolVersion")).unwrap_or_default();
    if !REVISIONS.contains(&revision.as_str()) {
        let known = REVISIONS.join(", ");
        return Err(format!("it speaks the revision \"{revision}\" of MCP; agentd speaks {known}"));
    }
    // Before anything else.
    peer.notify("notifications/initialized", None);
    let has =
        |kind: &str| answer.get("capabilities").and_then(|it| it.get(kind)).is_some_and(|it| !it.is_null());
    let info = answer.get("serverInfo");
    let facts = ServerFacts {
        name: text(info.and_then(|info| info.get("name"))),
        version: text(info.and_then(|info| info.get("version"))),
        revision,
        instructions: text(answer.get("instructions")),
        has_resources: has("resources"),
        has_prompts: has("prompts"),
    };
    Ok((facts, has("tools")))
}

/// All tools of a server, page by page. Those that cannot be used are left out.
///
/// # Errors
/// Why they could not be listed.
pub(crate) async fn list_tools(peer: &Peer, timeout: Duration) -> Result<Vec<ToolDefinition>, String> {
    let (mut tools, mut names, mut cursors) = (Vec::new(), HashSet::new(), HashSet::new());
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page = ask(peer, "tools/list", params, timeout).await?;
        for tool in page.get("tools").and_then(Value::as_array).into_iter().flatten() {
            match ToolDefinition::read(tool) {
                Ok(tool) if names.insert(tool.name.clone()) => tools.push(tool),
                Ok(tool) => tracing::warn!(tool = tool.name, "an MCP server lists a tool twice"),
                Err(why) => tracing::warn!(why, "a tool of an MCP server is left out"),
            }
            if tools.len() > MAX_TOOLS {
                return Err(format!("it lists more than {MAX_TOOLS} tools"));
            }
        }
        let Some(cursor) = page.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty())
        else {
            return Ok(tools);
        };
        if !cursors.insert(cursor.to_owned()) {
            return Err("its list of tools comes back to a page that it had before".to_owned());
        }
        params = json!({"cursor": cursor});
    }
    Err(format!("its list of tools has more than {MAX_PAGES} pages"))
}

async fn ask(peer: &Peer, method: &str, params: Value, timeout: Duration) -> Result<Value, String> {
    let terms = RequestTerms { timeout, cancel: None, progress: None };
    peer.request(method, params, terms).await.map_err(|error| match error {
        RequestError::Closed(reason) => reason.to_string(),
        error => format!("{method}: {error}"),
    })
}
