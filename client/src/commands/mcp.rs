//! `agentctl mcp`: the MCP servers that a session in this folder would have, connected for a moment.

use agentd_protocol::{
    command::NoParams,
    mcp::{McpServerInfo, McpServerState, McpServers, McpTransport, ReconnectMcpServerParams},
    resources::{Diagnostic, DiagnosticKind},
    tool::ToolAnnotations,
    tool_list::{ToolInfo, ToolList},
};
use serde::Serialize;

use super::daemon_call;
use crate::{
    cli::{McpListOptions, McpTestOptions},
    exit::{Exit, Fault, conclude},
    output,
    private_daemon::StartOptions,
    render::one_line,
    rpc::{CallError, Client, GetDiagnostics, GetMcpServers, GetTools, ReconnectMcpServer},
};

/// What was found.
#[derive(Debug, Serialize)]
struct Found {
    servers: Vec<McpServerInfo>,
    /// Mistakes in the files.
    diagnostics: Vec<Diagnostic>,
    /// The tools of the session.
    #[serde(skip)]
    tools: Vec<ToolInfo>,
}

pub(crate) fn list(options: &McpListOptions) -> Exit {
    conclude(listed(options))
}

fn listed(options: &McpListOptions) -> Result<Exit, Fault> {
    let found = connected(options.approve, None)?;
    let printed = if options.json { output::print_json(&found)? } else { output::print(&report(&found))? };
    let is_there = |server: &McpServerInfo| {
        !server.enabled || server.state == McpServerState::Connected || is_hidden(server)
    };
    let is_well = found.diagnostics.is_empty() && found.servers.iter().all(is_there);
    Ok(if printed == Exit::Answered && !is_well { Exit::Failed } else { printed })
}

pub(crate) fn test(options: &McpTestOptions) -> Exit {
    conclude(tested(options))
}

fn tested(options: &McpTestOptions) -> Result<Exit, Fault> {
    let found = connected(options.approve, Some(&options.name))?;
    let server = found.servers.iter().find(|server| server.name == options.name);
    let Some(server) = server else {
        return Err(Fault::new(Exit::Failed, format!("Error: mcp.json has no server \"{}\".", options.name)));
    };
    let printed = output::print(&details(server, &found.tools))?;
    let is_there = server.state == McpServerState::Connected;
    Ok(if printed == Exit::Answered && !is_there { Exit::Failed } else { printed })
}

/// Waits for the servers, or for one of them.
fn connected(approve: bool, only: Option<&str>) -> Result<Found, Fault> {
    let flags: &[&str] = if approve { &["--no-session", "--approve"] } else { &["--no-session"] };
    let start = StartOptions { args: flags.iter().map(|flag| (*flag).to_owned()).collect(), cwd: None };
    daemon_call::with_private_quietly(start, async |client: &Client| {
        let diagnostics = client.call::<GetDiagnostics>(&NoParams {}).await?.diagnostics;
        let McpServers { mut servers } = client.call::<GetMcpServers>(&NoParams {}).await?;
        let awaited: Vec<String> = servers
            .iter()
            .filter(|server| server.enabled && only.map_or(!is_hidden(server), |only| only == server.name))
            .map(|server| server.name.clone())
            .collect();
        for name in awaited {
            // Waits for an attempt that is under way, and makes one where none is.
            let known = servers.iter().find(|server| server.name == name);
            if known.is_some_and(|server| server.state == McpServerState::Connected) {
                continue;
            }
            let params = ReconnectMcpServerParams { name };
            servers = match client.call::<ReconnectMcpServer>(&params).await {
                Ok(answer) => answer.servers,
                Err(CallError::Refused { .. }) => servers,
                Err(error) => return Err(error),
            };
        }
        let is_ours = |diagnostic: &Diagnostic| diagnostic.kind == DiagnosticKind::Mcp;
        let ToolList { tools } = client.call::<GetTools>(&NoParams {}).await?;
        Ok(Found { servers, tools, diagnostics: diagnostics.into_iter().filter(is_ours).collect() })
    })
}

/// Whether a server has nothing for the model, so that it is not connected.
fn is_hidden(server: &McpServerInfo) -> bool {
    server.state == McpServerState::Disconnected && server.error.is_none() && server.tools.is_empty()
}

fn state(server: &McpServerInfo) -> &'static str {
    match server.state {
        McpServerState::Disabled => "disabled",
        McpServerState::Idle => "idle",
        McpServerState::Connecting => "connecting",
        McpServerState::Connected => "connected",
        McpServerState::Disconnected => "disconnected",
        McpServerState::NeedsAuth => "needs-auth",
        McpServerState::Failed => "failed",
    }
}

/// A line for each server, and for each mistake.
fn report(found: &Found) -> String {
    if found.servers.is_empty() && found.diagnostics.is_empty() {
        return "No MCP servers. `agentctl mcp add` adds one to mcp.json.\n".to_owned();
    }
    let width = found.servers.iter().map(|server| server.name.len()).max().unwrap_or_default();
    let line = |server: &McpServerInfo| {
        let about = match (&server.error, server.state) {
            (Some(error), _) => one_line(error),
            (None, McpServerState::Connected) => format!("{} tools", server.tools.len()),
            (None, _) => String::new(),
        };
        let line = format!("{:<width$}  {:<12}  {about}", server.name, state(server));
        format!("{}\n", line.trim_end())
    };
    let mistakes =
        found.diagnostics.iter().map(|diagnostic| format!("{}\n", one_line(&diagnostic.to_string())));
    found.servers.iter().map(line).chain(mistakes).collect()
}

/// What a server says of a tool, in words; nothing where it says nothing.
fn hints(annotations: &ToolAnnotations) -> String {
    let ToolAnnotations { read_only_hint, destructive_hint, idempotent_hint, open_world_hint, .. } =
        annotations;
    let is_read_only = *read_only_hint == Some(true);
    let words = [
        (is_read_only, "reads only"),
        // What changes nothing cannot do it otherwise either.
        (*destructive_hint == Some(true) && !is_read_only, "may destroy"),
        (*idempotent_hint == Some(true) && !is_read_only, "repeatable"),
        (*open_world_hint == Some(true), "open world"),
    ];
    words.into_iter().filter(|(is_said, _)| *is_said).map(|(_, word)| word).collect::<Vec<_>>().join(", ")
}

/// The line of a tool: its name, and what its server calls it and says of it.
fn tool_line(name: &str, tools: &[ToolInfo]) -> String {
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else { return name.to_owned() };
    let label = Some(&tool.label).filter(|label| **label != tool.name);
    let said = tool.annotations.as_ref().map(hints).filter(|hints| !hints.is_empty());
    let label = label.map(|label| format!("  {label}")).unwrap_or_default();
    let said = said.map(|said| format!("  ({said})")).unwrap_or_default();
    format!("{name}{label}{said}")
}

fn details(server: &McpServerInfo, tools: &[ToolInfo]) -> String {
    let mut text = format!("{}: {}\n", server.name, state(server));
    let mut add = |what: &str, value: &str| text.push_str(&format!("  {what:<10}{}\n", one_line(value)));
    add("file", &server.path);
    add(
        "transport",
        match server.transport {
            McpTransport::Stdio => "a program",
            McpTransport::Http => "HTTP",
        },
    );
    if let Some(name) = &server.server_name {
        let version = server.server_version.as_deref();
        add("server", &[Some(name.as_str()), version].into_iter().flatten().collect::<Vec<_>>().join(" "));
    }
    if let Some(revision) = &server.protocol_version {
        add("revision", revision);
    }
    if let Some(error) = &server.error {
        add("error", error);
    }
    server.tools.iter().for_each(|tool| add("tool", &tool_line(tool, tools)));
    server.prompts.iter().for_each(|prompt| add("prompt", prompt));
    text
}

#[cfg(test)]
mod tests {
    use agentd_protocol::mcp::McpExposure;

    use super::*;

    fn server(name: &str, state: McpServerState, error: Option<&str>) -> McpServerInfo {
        McpServerInfo {
            name: name.into(),
            path: "/a/mcp.json".into(),
            transport: McpTransport::Stdio,
            state,
            enabled: true,
            exposure: McpExposure::Direct,
            shared: false,
            error: error.map(str::to_owned),
            tools: vec!["mcp__a__b".into()],
            prompts: vec!["p".into()],
            server_name: Some("test".into()),
            server_version: None,
            protocol_version: Some("2025-11-25".into()),
            pid: None,
        }
    }

    #[test]
    fn servers_are_lines() {
        let found = Found {
            servers: vec![
                server("a", McpServerState::Connected, None),
                server("longer", McpServerState::Failed, Some("it\nended")),
            ],
            diagnostics: Vec::new(),
            tools: Vec::new(),
        };
        assert_eq!(report(&found), "a       connected     1 tools\nlonger  failed        it ended\n");
        assert!(
            report(&Found { servers: Vec::new(), diagnostics: Vec::new(), tools: Vec::new() })
                .starts_with("No MCP servers")
        );
        assert_eq!(
            details(&found.servers[0], &[]),
            "a: connected\n  file      /a/mcp.json\n  transport a program\n  server    test\n  revision  2025-11-25\n  tool      mcp__a__b\n  prompt    p\n"
        );
    }

    #[test]
    fn what_a_server_says_of_a_tool_stands_behind_its_name() {
        let tool = |annotations: serde_json::Value| -> ToolInfo {
            let tool = serde_json::json!({"name": "n", "label": "Find", "description": "", "parameters": {}, "active": true,
                "source": "mcp", "guidelines": [], "execution": "parallel", "annotations": annotations});
            serde_json::from_value(tool).unwrap()
        };
        let line = |annotations| tool_line("n", &[tool(annotations)]);
        assert_eq!(line(serde_json::json!({})), "n  Find");
        let reads = serde_json::json!({"readOnlyHint": true, "destructiveHint": true, "openWorldHint": true});
        assert_eq!(line(reads), "n  Find  (reads only, open world)");
        let writes =
            serde_json::json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true});
        assert_eq!(line(writes), "n  Find  (may destroy, repeatable)");
        assert_eq!(tool_line("other", &[tool(serde_json::json!({}))]), "other");
    }
}
