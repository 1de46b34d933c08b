//! MCP servers: whether their entries can be used, and what they need is there. None is connected.

use agentd_config::TrustBasis;
use agentd_discovery::Switches;
use agentd_mcp::{McpConfig, ServerConfig, obstacles};
use agentd_protocol::{
    doctor::Check,
    mcp::{McpExposure, McpTransport},
    resources::Diagnostic,
};

use super::{
    check::{CheckName, LoadedSetup},
    config_files::discovered,
};
use crate::admin::Context;

const MCP_SERVERS: CheckName = CheckName("mcp_servers", "MCP servers");

/// A check for each server of a session in this folder, and one for each mistake in the files; nothing where there are none of both.
pub(super) fn check(context: &Context, found: &LoadedSetup) -> Vec<Check> {
    let trust = &found.settings.trust;
    let is_trusted = trust.trusted && trust.basis != TrustBasis::NothingToTrust;
    let mut diagnostics = Vec::new();
    let folders = is_trusted.then_some(&found.settings.folders);
    let capabilities = discovered(context, found);
    let mut config = McpConfig::load(&found.agent_dir, folders, &mut diagnostics);
    let switches = Switches::of(found.settings.settings.discovery.as_ref());
    config.servers.retain(|server| !switches.disables(&format!("mcp:{}", server.name)));
    let servers = capabilities.servers(&context.environment);
    let config = config.with_discovered(servers, &context.environment, &mut diagnostics);
    let mistakes = diagnostics.into_iter().map(|it| {
        let advice = it.hint.clone().unwrap_or_else(|| "Correct the entry, or remove it.".into());
        MCP_SERVERS.warning(Diagnostic { hint: None, ..it }.to_string(), advice)
    });
    config.servers.iter().map(|server| of_server(context, server)).chain(mistakes).collect()
}

fn of_server(context: &Context, server: &ServerConfig) -> Check {
    let name = &server.name;
    if !server.enabled {
        return MCP_SERVERS.ok(format!("{name}: switched off"));
    }
    let obstacles = obstacles(server, &context.cwd, &context.environment);
    if !obstacles.is_empty() {
        let detail = format!("{name} ({}): {}", server.path.display(), obstacles.join("; "));
        return MCP_SERVERS.warning(
            detail,
            format!("Sessions work without its tools. `agentctl mcp disable {name}` switches it off."),
        );
    }
    let transport = match server.transport() {
        McpTransport::Stdio => "a program",
        McpTransport::Http => "HTTP",
    };
    let exposure = match server.exposure {
        McpExposure::Direct => "direct",
        McpExposure::Deferred => "deferred",
        McpExposure::Hidden => "hidden",
    };
    MCP_SERVERS.ok(format!("{name}: {transport}, {exposure}; `agentctl mcp test {name}` connects it"))
}
