//! Codex: `.codex` and `~/.codex`.

use std::path::Path;

use agentd_protocol::capabilities::{
    CapabilityKind,
    CapabilityLevel::{self, Project, User},
};
use serde_json::Value;

use crate::{
    scan::Scan,
    servers::{Dialect, add},
    texts::{CommandNames, commands, context, listed, prompts, skills},
};

pub(super) fn read(scan: &mut Scan<'_>) {
    let project = scan.place.in_cwd(".codex").filter(|_| scan.reads(Project));
    let user = scan.place.named_or_in_home("CODEX_HOME", ".codex").filter(|_| scan.reads(User));
    for (folder, level) in [(project, Project), (user, User)] {
        let Some(folder) = folder.filter(|folder| scan.is_folder(folder)) else { continue };
        if level == User {
            context(scan, &folder.join("AGENTS.md"), None, User);
        }
        servers(scan, &folder.join("config.toml"), level);
        skills(scan, &folder.join("skills"), level);
        commands(scan, &folder.join("commands"), level, CommandNames::OfFile);
        prompts(scan, &folder.join("prompts"), level, ".md");
        listed(scan, &folder.join("tools"), level, CapabilityKind::Tools, &[".ts", ".js"]);
        listed(scan, &folder.join("extensions"), level, CapabilityKind::ExtensionModules, &[".ts", ".js"]);
    }
}

/// The tables `mcp_servers` of the configuration.
fn servers(scan: &mut Scan<'_>, path: &Path, level: CapabilityLevel) {
    if !scan.is_file(path) {
        return;
    }
    let Some(text) = scan.text(path, level) else { return };
    match toml::from_str::<Value>(&text) {
        Ok(config) => {
            if let Some(servers) = config.get("mcp_servers") {
                add(scan, path, level, servers, Dialect::Codex);
            }
        }
        Err(error) => {
            // The message itself quotes the file.
            let before = error.span().and_then(|span| text.get(..span.start));
            let place = before.map(|before| format!(" at line {}", before.matches('\n').count() + 1));
            let place = place.unwrap_or_default();
            scan.warn(path, format!("the file is not TOML{place}; its servers are not used"));
        }
    }
}
