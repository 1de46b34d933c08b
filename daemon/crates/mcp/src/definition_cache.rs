//! What servers said when they were last connected, kept in files, so that a session can begin without waiting for them.
//!
//! A file for each configuration of a server, private to the user, in the folder `mcp-cache` of the agent directory. It holds the server's
//! lists of tools and prompts in MCP's own form, and is read with the checks that lists of servers get. It holds nothing that agentd knows to
//! be a secret: where a list quotes one, nothing is kept.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use agentd_files::replace::Replacement;
use agentd_http::{Redactor, scrub};
use agentd_safe_open::{LinkPolicy, OpenRules};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{
    config::{Endpoint, ServerConfig, SignIn},
    definition::ToolDefinition,
    launch::ServerContext,
    prompt::PromptDefinition,
};

/// The folder in the agent directory.
pub const MCP_CACHE: &str = "mcp-cache";

/// Counted up when older files mean something else.
const VERSION: u32 = 1;

/// The longest file, in bytes. A server with more is asked each time.
const MAX_BYTES: usize = 4 << 20;

/// Files in the folder; the oldest make room.
const MAX_FILES: usize = 100;

/// From this age on definitions are asked for again as soon as a session begins.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// What a server said when it was last connected.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct KnownDefinitions {
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) prompts: Vec<PromptDefinition>,
    pub(crate) has_resources: bool,
    /// Its advice for the model.
    pub(crate) instructions: Option<String>,
}

/// The kept definitions of a server.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) definitions: KnownDefinitions,
    /// Whether they are young enough not to be asked for at once.
    pub(crate) is_fresh: bool,
}

/// A file, as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredDefinitions {
    /// What it is for, as `key_of` has it: a file of another configuration counts as none.
    key: String,
    /// Milliseconds since 1970.
    saved_at: u64,
    tools: Vec<Value>,
    prompts: Vec<Value>,
    has_resources: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

/// The place of one server's definitions.
#[derive(Debug, Clone)]
pub(crate) struct DefinitionCache {
    folder: PathBuf,
    key: String,
}

impl DefinitionCache {
    /// The place for a server; `None` for one that a client gives, of which nothing is stored.
    pub(crate) fn of(config: &ServerConfig, context: &ServerContext) -> Option<Self> {
        let folder = context.agent_dir.path().join(MCP_CACHE);
        (!config.is_literal).then(|| Self { folder, key: key_of(config, &context.cwd) })
    }

    /// The definitions, if there are some. Reads a file; blocks. One that cannot be used is as good as none.
    pub(crate) fn load(&self) -> Option<Kept> {
        let rules = OpenRules::new(LinkPolicy::Refused).max_bytes(MAX_BYTES as u64);
        let bytes = match rules.read(&self.path()) {
            Ok(bytes) => bytes?,
            Err(error) => {
                tracing::warn!(%error, "kept definitions of an MCP server cannot be read");
                return None;
            }
        };
        let stored: StoredDefinitions = match serde_json::from_slice(&bytes) {
            Ok(stored) => stored,
            Err(error) => {
                tracing::warn!(path = %self.path().display(), %error, "kept definitions of an MCP server are damaged");
                return None;
            }
        };
        if stored.key != self.key {
            return None;
        }
        let tools: Result<Vec<_>, _> =
            stored.tools.iter().map(|tool| ToolDefinition::read(tool, false)).collect();
        let prompts: Result<Vec<_>, _> = stored.prompts.iter().map(PromptDefinition::read).collect();
        let (tools, prompts) = match (tools, prompts) {
            (Ok(tools), Ok(prompts)) => (tools, prompts),
            (Err(why), _) | (_, Err(why)) => {
                tracing::warn!(path = %self.path().display(), why, "kept definitions of an MCP server are damaged");
                return None;
            }
        };
        let StoredDefinitions { saved_at, has_resources, instructions, .. } = stored;
        let definitions = KnownDefinitions { tools, prompts, has_resources, instructions };
        // A clock that was set back makes them old.
        let age = now_ms().checked_sub(saved_at);
        let is_fresh = age.is_some_and(|age| u128::from(age) < FRESH.as_millis());
        Some(Kept { definitions, is_fresh })
    }

    /// Keeps definitions. Blocks.
    ///
    /// # Errors
    /// The system's. What was kept before may still be there then.
    pub(crate) fn save(&self, definitions: &KnownDefinitions) -> io::Result<()> {
        let KnownDefinitions { tools, prompts, has_resources, instructions } = definitions;
        let stored = StoredDefinitions {
            key: self.key.clone(),
            saved_at: now_ms(),
            tools: tools.iter().map(ToolDefinition::to_json).collect(),
            prompts: prompts.iter().map(PromptDefinition::to_json).collect(),
            has_resources: *has_resources,
            instructions: instructions.clone(),
        };
        let text = serde_json::to_string(&stored)?;
        if text.len() > MAX_BYTES || scrub(&text) != text {
            return self.forget();
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        self.make_room()?;
        let mut new = Replacement::create(&self.folder, ".tmp-", "", 0o600)?;
        new.file_mut().write_all(text.as_bytes())?;
        // Lost in a power failure, it is asked for again.
        new.commit(&self.path()).map(|_: File| ())
    }

    /// Keeps nothing any more. Blocks.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn forget(&self) -> io::Result<()> {
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.json", &self.key[..32]))
    }

    /// Removes the oldest files where there would be too many: those that a killed daemon left half written are among them.
    fn make_room(&self) -> io::Result<()> {
        let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // Another daemon may have removed it.
            let Ok(modified) = entry.metadata().and_then(|about| about.modified()) else { continue };
            if entry.path() != self.path() {
                files.push((modified, entry.path()));
            }
        }
        files.sort_unstable();
        let too_many = (files.len() + 1).saturating_sub(MAX_FILES);
        for (_, path) in files.drain(..too_many) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Names a configuration, in hexadecimal digits. Values that are secrets by their name say nothing about the tools, and are not part of it.
fn key_of(config: &ServerConfig, cwd: &Path) -> String {
    let plain = |values: &std::collections::BTreeMap<String, String>| -> Vec<(String, Option<String>)> {
        let value = |(name, value): (&String, &String)| {
            (name.clone(), (!Redactor::hides(name)).then(|| value.clone()))
        };
        values.iter().map(value).collect()
    };
    let endpoint = match &config.endpoint {
        // A program may have other tools elsewhere.
        Endpoint::Stdio { command, args, env, cwd: folder } => {
            json!([command, args, plain(env), folder, cwd.as_os_str().as_encoded_bytes()])
        }
        Endpoint::Http { url, headers, sign_in } => {
            let account = match sign_in {
                SignIn::Header => json!("header"),
                SignIn::OAuth(_) => json!("oauth"),
                SignIn::Login(provider) => json!({"login": provider}),
            };
            json!([url, plain(headers), account])
        }
    };
    let described =
        json!([VERSION, env!("CARGO_PKG_VERSION"), config.name, endpoint, format!("{:?}", config.revision)]);
    let digest = Sha256::digest(described.to_string().as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn cache(folder: &Path) -> DefinitionCache {
        DefinitionCache { folder: folder.join(MCP_CACHE), key: "a".repeat(64) }
    }

    fn definitions() -> KnownDefinitions {
        let tool = json!({"name": "find", "title": "Find", "description": "Finds.", "annotations": {"readOnlyHint": true},
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}, "$anchor": "x"}});
        let prompt = json!({"name": "review", "description": "Reviews.",
            "arguments": [{"name": "file", "required": true}, {"name": "focus"}]});
        KnownDefinitions {
            tools: vec![ToolDefinition::read(&tool, false).unwrap()],
            prompts: vec![PromptDefinition::read(&prompt).unwrap()],
            has_resources: true,
            instructions: Some("Use it.".into()),
        }
    }

    #[test]
    fn what_is_kept_is_read_again_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        assert!(cache.load().is_none());
        cache.save(&definitions()).unwrap();
        let kept = cache.load().unwrap();
        assert_eq!((kept.definitions, kept.is_fresh), (definitions(), true));
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&cache.path()), mode(&cache.folder)), (0o600, 0o700));
        let other = DefinitionCache { key: format!("{}b", "a".repeat(63)), ..cache.clone() };
        assert!(other.load().is_none(), "the file of another configuration");
        cache.forget().unwrap();
        cache.forget().unwrap();
        assert!(cache.load().is_none());
    }

    #[test]
    fn old_and_damaged_files_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        cache.save(&definitions()).unwrap();
        let text = fs::read_to_string(cache.path()).unwrap();
        let mut stored: Value = serde_json::from_str(&text).unwrap();
        for saved_at in [now_ms() - 86_400_001, now_ms() + 1_000_000] {
            stored["savedAt"] = json!(saved_at);
            fs::write(cache.path(), stored.to_string()).unwrap();
            assert!(!cache.load().unwrap().is_fresh);
        }
        stored["tools"] = json!([{"name": ""}]);
        for damaged in [&text[..text.len() / 2], "", "[]", &stored.to_string()] {
            fs::write(cache.path(), damaged).unwrap();
            assert!(cache.load().is_none(), "{damaged}");
        }
    }

    #[test]
    fn what_quotes_a_secret_or_is_too_long_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = cache(folder.path());
        let secret = "cached-secret-0123456789";
        agentd_http::register_secret(secret);
        let quoting = KnownDefinitions { instructions: Some(format!("Token: {secret}")), ..definitions() };
        let long = KnownDefinitions { instructions: Some("x".repeat(MAX_BYTES)), ..definitions() };
        for refused in [quoting, long] {
            cache.save(&definitions()).unwrap();
            cache.save(&refused).unwrap();
            assert!(cache.load().is_none(), "what was kept before is of another time");
        }
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..MAX_FILES + 5 {
            let cache = DefinitionCache {
                key: format!("{number:064}").chars().rev().collect(),
                ..cache(folder.path())
            };
            cache.save(&KnownDefinitions::default()).unwrap();
            assert!(cache.load().is_some());
        }
        assert_eq!(fs::read_dir(folder.path().join(MCP_CACHE)).unwrap().count(), MAX_FILES);
    }

    #[test]
    fn the_key_is_that_of_a_configuration_without_its_secrets() {
        let config = |entry: Value| {
            let folder = tempfile::tempdir().unwrap();
            let file = json!({"mcpServers": {"s": entry}}).to_string();
            fs::write(folder.path().join("mcp.json"), file).unwrap();
            let config =
                crate::McpConfig::load(&agentd_config::AgentDir::at(folder.path()), None, &mut Vec::new());
            config.servers[0].clone()
        };
        let key = |entry: Value, cwd: &str| key_of(&config(entry), Path::new(cwd));
        let plain = key(json!({"command": "x", "env": {"API_TOKEN": "one", "MODE": "a"}}), "/w");
        let same = json!({"command": "x", "env": {"API_TOKEN": "two", "MODE": "a"}, "exposure": "direct", "timeout": 3});
        assert_eq!(key(same, "/w"), plain);
        for (other, cwd) in [
            (json!({"command": "y", "env": {"API_TOKEN": "one", "MODE": "a"}}), "/w"),
            (json!({"command": "x", "env": {"API_TOKEN": "one", "MODE": "b"}}), "/w"),
            (json!({"command": "x", "env": {"MODE": "a"}}), "/w"),
            (json!({"command": "x", "env": {"API_TOKEN": "one", "MODE": "a"}, "protocol": "auto"}), "/w"),
            (json!({"command": "x", "env": {"API_TOKEN": "one", "MODE": "a"}}), "/v"),
        ] {
            assert_ne!(key(other, cwd), plain);
        }
        let url = json!({"url": "https://x.example/mcp"});
        assert_eq!(key(url.clone(), "/w"), key(url, "/v"), "a service is the same from every folder");
    }
}
