//! The providers: one for each tool whose files are read.

mod agents;
mod claude;
mod cline;
mod codex;
mod cursor;
mod gemini;
mod github;
mod mcp_json;
mod native;
mod opencode;
mod ssh_json;
mod vscode;
mod windsurf;

use crate::{
    provider::{AGENTS, AGENTS_MD, CLAUDE_MD, NATIVE, PACKAGES, Provider},
    scan::Scan,
};

/// Reads a tool's files into the scan.
type Reader = fn(&mut Scan<'_>);

/// All providers, the strongest first. `AGENTS.md` and `CLAUDE.md` of folders are read by `agentd-config`, as pi does.
pub(crate) const PROVIDERS: [(Provider, Reader); 13] = [
    (NATIVE, native::read),
    (Provider::new("claude", "Claude Code", 80, true), claude::read),
    (AGENTS, agents::read),
    (Provider::new("codex", "Codex", 70, true), codex::read),
    (Provider::new("gemini", "Gemini CLI", 60, true), gemini::read),
    (Provider::new("opencode", "opencode", 55, true), opencode::read),
    (Provider::new("cursor", "Cursor", 50, true), cursor::read),
    (Provider::new("windsurf", "Windsurf", 50, true), windsurf::read),
    (Provider::new("cline", "Cline", 40, true), cline::read),
    (Provider::new("github", "GitHub Copilot", 30, true), github::read),
    (Provider::new("vscode", "VS Code", 20, true), vscode::read),
    (Provider::new("mcp-json", "mcp.json", 5, true), mcp_json::read),
    (Provider::new("ssh-json", "ssh.json", 5, true), ssh_json::read),
];

/// The ids of all providers, those included whose files other crates read.
pub fn provider_ids() -> impl Iterator<Item = &'static str> {
    let of_others = [PACKAGES, AGENTS_MD, CLAUDE_MD].into_iter();
    PROVIDERS.iter().map(|(provider, _)| *provider).chain(of_others).map(|provider| provider.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_stand_by_their_priorities() {
        assert!(PROVIDERS.windows(2).all(|pair| pair[0].0.priority >= pair[1].0.priority));
        let mut ids: Vec<&str> = provider_ids().collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), PROVIDERS.len() + 3);
    }
}
