//! The files outside of a project's own folders by which it can start or connect MCP servers, or name hosts for commands.

use std::path::{Path, PathBuf};

use agentd_files::is_file;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

use crate::{Environment, real_folders::real_path};

/// A file below the working directory, and the text that one has which starts something.
const FILES: [(&str, &str); 15] = [
    (".mcp.json", "\"mcpServers\""),
    ("mcp.json", "\"mcpServers\""),
    (".claude/.mcp.json", "\"mcpServers\""),
    (".claude/mcp.json", "\"mcpServers\""),
    (".codex/config.toml", "mcp_servers"),
    (".gemini/settings.json", "\"mcpServers\""),
    ("opencode.json", "\"mcp\""),
    ("opencode.jsonc", "\"mcp\""),
    (".opencode/opencode.json", "\"mcp\""),
    (".opencode/opencode.jsonc", "\"mcp\""),
    (".cursor/mcp.json", "\"mcpServers\""),
    (".windsurf/mcp_config.json", "\"mcpServers\""),
    (".vscode/mcp.json", "\"servers\""),
    ("ssh.json", "\"hosts\""),
    (".ssh.json", "\"hosts\""),
];

/// The longest file that is searched. A longer one counts.
const MAX_BYTES: u64 = 1 << 20;

/// All such files of a project, whether they exist or not. The home directory's are the user's.
pub(super) fn foreign_files(cwd: &Path, environment: &Environment) -> impl Iterator<Item = PathBuf> {
    let files = if is_home(cwd, environment) { &[][..] } else { &FILES };
    files.iter().map(move |(name, _)| cwd.join(name))
}

/// The files of a project that start or connect something, once it is trusted. A text that says so in another way than tools write
/// it is not found here: what it starts then waits for a trust that nobody asks for. Reads files; blocks.
pub(super) fn foreign_starting(cwd: &Path, environment: &Environment) -> Vec<PathBuf> {
    if is_home(cwd, environment) {
        return Vec::new();
    }
    let files = FILES.iter().map(|(name, text)| (cwd.join(name), *text));
    let files = files.filter(|(path, text)| is_file(path) && says(path, text)).map(|(path, _)| path);
    files.collect()
}

fn says(path: &Path, text: &str) -> bool {
    let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_BYTES);
    match rules.read(path) {
        Ok(Some(bytes)) => String::from_utf8_lossy(&bytes).contains(text),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Whether a folder is the home directory, whose files are the user's.
pub(super) fn is_home(cwd: &Path, environment: &Environment) -> bool {
    environment.non_empty("HOME").is_some_and(|home| real_path(Path::new(home)) == real_path(cwd))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_files_that_start_something_need_trust() {
        let root = tempfile::tempdir().unwrap();
        let cwd = root.path().canonicalize().unwrap();
        let environment = Environment::default();
        for (name, text) in [
            (".mcp.json", "{\"mcpServers\": {}}"),
            (".gemini/settings.json", "{\"theme\": \"x\"}"),
            (".codex/config.toml", "[mcp_servers.a]\ncommand = \"x\""),
        ] {
            fs::create_dir_all(cwd.join(name).parent().unwrap()).unwrap();
            fs::write(cwd.join(name), text).unwrap();
        }
        let found = foreign_starting(&cwd, &environment);
        let expected = [".mcp.json", ".codex/config.toml"].map(|name| cwd.join(name));
        assert_eq!(found, expected);
        assert_eq!(foreign_files(&cwd, &environment).count(), FILES.len());
        let at_home: Environment = [("HOME", cwd.as_os_str())].into_iter().collect();
        assert!(
            foreign_starting(&cwd, &at_home).is_empty() && foreign_files(&cwd, &at_home).next().is_none()
        );
    }
}
