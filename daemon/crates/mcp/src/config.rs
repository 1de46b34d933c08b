//! `mcp.json`: which servers there are.
//!
//! The user's file stands in the agent directory, the project's in `.agentd` or `.pi` of the working directory, and counts only in a trusted
//! project. An entry that is wrong is reported with its file and left out; the others count.

mod edit;
mod entry;
mod oauth_config;
mod server_config;
mod sign_in;

use std::{collections::BTreeMap, path::Path};

use agentd_config::{AgentDir, Environment, ProjectFolders, read_json, read_project_json};
use agentd_protocol::{
    mcp::GivenMcpServers,
    resources::{Diagnostic, DiagnosticKind},
};
use serde_json::{Map, Value};

pub use self::{
    edit::{EditedConfig, McpEditError, edit_mcp_config},
    oauth_config::{ClientRegistration, Grant, IdentityProvider, OAuthConfig, SignIn},
    server_config::{Endpoint, MCP_FILE, RevisionChoice, ServerConfig},
};
use self::{
    entry::{Entry, TRUST_HINTS, parse},
    server_config::is_namesake,
};
use crate::values::filled_in_place;

/// The servers of a session, as the files have them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpConfig {
    /// By name.
    pub servers: Vec<ServerConfig>,
}

impl McpConfig {
    /// Reads the user's file and, where `project` is given, that of a trusted project. Blocks.
    #[must_use]
    pub fn load(agent_dir: &AgentDir, project: Option<&ProjectFolders>, found: &mut Vec<Diagnostic>) -> Self {
        let mut layers = Vec::new();
        let user = agent_dir.path().join(MCP_FILE);
        layers.extend(entries_of(read_json(&user).map(|file| file.map(|file| file.value)), &user, found));
        let of_project = project.and_then(|folders| folders.find(MCP_FILE));
        let project = of_project.map(|path| {
            let file = read_project_json(&path).map(|file| file.map(|file| file.value));
            entries_of(file, &path, found).unwrap_or_default()
        });
        Self::merged(layers.into_iter().flatten().collect(), project.unwrap_or_default(), found)
    }

    /// These, with servers of other tools' files: name, file, and the entry as in `mcp.json`, whose variables are filled in everywhere. One
    /// counts where no server has its name, tool names like its own, or the same program or address. One that cannot be used is reported.
    #[must_use]
    pub fn with_discovered<'a>(
        mut self,
        servers: impl Iterator<Item = (&'a str, &'a Path, Map<String, Value>)>,
        environment: &Environment,
        found: &mut Vec<Diagnostic>,
    ) -> Self {
        for (name, path, entry) in servers {
            let is_known = |known: &ServerConfig| known.name == name || is_namesake(&known.name, name);
            if self.servers.iter().any(is_known) {
                continue;
            }
            let filled = with_filled_endpoint(entry, environment);
            let parsed = filled.and_then(|entry| parse(name, &Value::Object(entry), path));
            match parsed {
                Ok((Entry::Server(server), _)) => {
                    if self.servers.iter().all(|known| known.endpoint != server.endpoint) {
                        self.servers.push(*server);
                    }
                }
                Ok((Entry::Override(_), _)) => {}
                Err(problem) => {
                    let text = format!("server \"{name}\" is left out: {problem}");
                    found.push(Diagnostic::warning(DiagnosticKind::Mcp, text).at(path));
                }
            }
        }
        self.servers.sort_by(|one, other| one.name.cmp(&other.name));
        self
    }

    /// These, with servers that a client gives. Of two servers whose tools would have the same names the client's counts.
    #[must_use]
    pub fn with_given(mut self, given: &[ServerConfig]) -> Self {
        let is_free = |server: &ServerConfig| {
            !given.iter().any(|given| given.name == server.name || is_namesake(&given.name, &server.name))
        };
        self.servers.retain(is_free);
        self.servers.extend(given.iter().cloned());
        self.servers.sort_by(|one, other| one.name.cmp(&other.name));
        self
    }

    /// The entries of the project replace those of the user, or change some of their fields.
    fn merged(user: Vec<Entry>, project: Vec<Entry>, found: &mut Vec<Diagnostic>) -> Self {
        let mut servers: BTreeMap<String, ServerConfig> = BTreeMap::new();
        let user = user.into_iter().map(|entry| (entry, true));
        for (entry, is_of_user) in user.chain(project.into_iter().map(|entry| (entry, false))) {
            let problem = match entry {
                // The token of an account of the user: no project may say where it goes.
                Entry::Server(config) if !is_of_user && config.uses_login() => Some((
                    config.path,
                    format!(
                        "the server \"{}\" is left out: \"auth\" counts in the user's mcp.json only",
                        config.name
                    ),
                )),
                Entry::Server(mut config) => {
                    match servers.keys().find(|name| is_namesake(name, &config.name)) {
                        Some(other) => Some((
                            config.path,
                            format!(
                                "the server \"{}\" has the same tool names as \"{other}\": rename one",
                                config.name
                            ),
                        )),
                        None => {
                            // It would loosen the permissions of the user.
                            let is_distrusted = !is_of_user && std::mem::take(&mut config.trusts_hints);
                            let problem = is_distrusted.then(|| {
                                let text = format!(
                                    "server \"{}\": \"{TRUST_HINTS}\" counts in the user's mcp.json only",
                                    config.name
                                );
                                (config.path.clone(), text)
                            });
                            servers.insert(config.name.clone(), *config);
                            problem
                        }
                    }
                }
                Entry::Override(change) => match servers.get_mut(&change.name) {
                    Some(server) => {
                        server.enabled = change.enabled.unwrap_or(server.enabled);
                        server.exposure = change.exposure.unwrap_or(server.exposure);
                        server.tool_exposure =
                            change.tool_exposure.unwrap_or_else(|| server.tool_exposure.clone());
                        None
                    }
                    None => Some((
                        change.path,
                        format!(
                            "the server \"{}\" has neither \"command\" nor \"url\", and the user's mcp.json has no server of \
                             that name to change",
                            change.name
                        ),
                    )),
                },
            };
            if let Some((path, problem)) = problem {
                found.push(Diagnostic::warning(DiagnosticKind::Mcp, problem).at(path));
            }
        }
        Self { servers: servers.into_values().collect() }
    }
}

/// The servers that a client gives: entries as in `mcp.json`, whose values are taken as they are.
///
/// # Errors
/// The first entry that cannot be used, and why. The text quotes no value that could be a secret.
pub fn given_servers(servers: &GivenMcpServers) -> Result<Vec<ServerConfig>, String> {
    let mut given: Vec<ServerConfig> = Vec::new();
    for (name, entry) in &servers.0 {
        let parsed =
            parse(name, entry, Path::new("")).map_err(|problem| format!("server \"{name}\": {problem}"))?;
        let (Entry::Server(mut server), _) = parsed else {
            return Err(format!("server \"{name}\": it has neither \"command\" nor \"url\""));
        };
        if let Some(other) = given.iter().find(|other| is_namesake(name, &other.name)) {
            return Err(format!(
                "server \"{name}\": it has the same tool names as \"{}\": rename one",
                other.name
            ));
        }
        if server.uses_login() {
            return Err(format!("server \"{name}\": \"auth\" counts in the user's mcp.json only"));
        }
        if server.trusts_hints {
            return Err(format!("server \"{name}\": \"{TRUST_HINTS}\" counts in the user's mcp.json only"));
        }
        server.is_literal = true;
        // Its values are those of one session.
        server.shared = false;
        given.push(*server);
    }
    Ok(given)
}

/// The entries of a file. What is wrong with it goes to `found`.
fn entries_of(
    file: Result<Option<Value>, agentd_config::JsonFileError>,
    path: &Path,
    found: &mut Vec<Diagnostic>,
) -> Option<Vec<Entry>> {
    let value = match file {
        Ok(value) => value?,
        Err(error) => {
            found.push(error.diagnostic(DiagnosticKind::Mcp));
            return None;
        }
    };
    let servers = match value.get("mcpServers") {
        None => return None,
        Some(Value::Object(servers)) => servers,
        Some(_) => {
            let text = "\"mcpServers\" must be an object of servers by their names";
            found.push(Diagnostic::warning(DiagnosticKind::Mcp, text).at(path));
            return None;
        }
    };
    let entries = servers.iter().filter_map(|(name, entry)| match parse(name, entry, path) {
        Ok((entry, warnings)) => {
            let warnings = warnings.into_iter().map(|text| {
                Diagnostic::warning(DiagnosticKind::Mcp, format!("server \"{name}\": {text}")).at(path)
            });
            found.extend(warnings);
            Some(entry)
        }
        Err(problem) => {
            let text = format!("server \"{name}\" is left out: {problem}");
            found.push(Diagnostic::warning(DiagnosticKind::Mcp, text).at(path));
            None
        }
    });
    Some(entries.collect())
}

/// The entry with the variables of its command, arguments, folder and address filled in; those of `env` and `headers` are when it is
/// connected.
///
/// # Errors
/// A variable is not set.
fn with_filled_endpoint(
    mut entry: Map<String, Value>,
    environment: &Environment,
) -> Result<Map<String, Value>, String> {
    for key in ["command", "url", "cwd"] {
        if let Some(Value::String(text)) = entry.get_mut(key) {
            *text = filled_in_place(key, text, environment)?;
        }
    }
    if let Some(Value::Array(args)) = entry.get_mut("args") {
        for arg in args {
            if let Value::String(text) = arg {
                *text = filled_in_place("args", text, environment)?;
            }
        }
    }
    Ok(entry)
}

/// Reads an entry, for the laws.
///
/// # Errors
/// Why it cannot be used.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz_entry(name: &str, entry: &Value, path: &Path) -> Result<(), String> {
    parse(name, entry, path).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use agentd_protocol::mcp::McpExposure;
    use serde_json::json;

    use super::*;

    fn of(user: &Value, project: &Value) -> (McpConfig, Vec<String>) {
        let mut found = Vec::new();
        let mut entries = |file: &Value, path: &str| {
            let file = json!({"mcpServers": file, "autoEnableCodemode": true});
            entries_of(Ok(Some(file)), Path::new(path), &mut found).unwrap_or_default()
        };
        let (user, project) = (entries(user, "/u/mcp.json"), entries(project, "/p/mcp.json"));
        let config = McpConfig::merged(user, project, &mut found);
        (config, found.iter().map(ToString::to_string).collect())
    }

    fn names(config: &McpConfig) -> Vec<(&str, &Path)> {
        config.servers.iter().map(|server| (server.name.as_str(), server.path.as_path())).collect()
    }

    #[test]
    fn a_project_replaces_servers_or_changes_their_exposure() {
        let user = json!({
            "b": {"command": "b", "toolExposure": {"*": "hidden"}},
            "a": {"command": "a"},
            "c": {"url": "https://c.example/mcp"}
        });
        let project = json!({
            "a": {"command": "other", "timeout": 5},
            "b": {"enabled": false, "exposure": "direct"},
            "d": {"exposure": "direct"}
        });
        let (config, found) = of(&user, &project);
        let (u, p) = (Path::new("/u/mcp.json"), Path::new("/p/mcp.json"));
        assert_eq!(names(&config), [("a", p), ("b", u), ("c", u)]);
        assert_eq!(config.servers[0].timeout, Duration::from_secs(5));
        assert_eq!((config.servers[1].enabled, config.servers[1].exposure), (false, McpExposure::Direct));
        assert_eq!(config.servers[1].exposure_of("x"), McpExposure::Hidden, "kept");
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("/p/mcp.json") && found[0].contains("\"d\""), "{found:?}");
    }

    #[test]
    fn servers_of_a_client_count_before_those_of_the_files() {
        let given = |servers: Value| given_servers(&serde_json::from_value(servers).unwrap());
        let servers = given(
            json!({"b": {"url": "https://b.example"}, "a_c": {"command": "!x", "env": {"K": "!${K}"}}}),
        );
        let servers = servers.unwrap();
        assert!(servers.iter().all(|server| server.is_literal && !server.shared));
        let (config, _) =
            of(&json!({"b": {"command": "b"}, "a-c": {"command": "c"}, "d": {"command": "d"}}), &json!({}));
        let config = config.with_given(&servers);
        let (none, u) = (Path::new(""), Path::new("/u/mcp.json"));
        assert_eq!(names(&config), [("a_c", none), ("b", none), ("d", u)]);
        for (servers, says) in [
            (json!({"a b": {"command": "hush"}}), "letters"),
            (json!({"a": {}}), "neither"),
            (json!({"a": {"url": "https://hush", "auth": {"provider": "p"}}}), "user's mcp.json only"),
            (json!({"a": {"command": "hush", "trustHints": true}}), "user's mcp.json only"),
            (json!({"a": {"url": "https://hush", "type": "sse"}}), "/mcp"),
            (json!({"a-b": {"command": "x"}, "a_b": {"command": "y"}}), "rename one"),
        ] {
            let problem = given(servers).unwrap_err();
            assert!(problem.contains(says) && !problem.contains("hush"), "{problem}");
        }
    }

    #[test]
    fn servers_of_other_tools_come_last_and_their_variables_are_filled_in() {
        let (config, _) =
            of(&json!({"a-b": {"command": "mine"}, "c": {"command": "x", "args": ["1"]}}), &json!({}));
        let environment: Environment = [("DB", "hush-0123456789")].into_iter().collect();
        let path = Path::new("/p/.mcp.json");
        let entries = [
            ("a_b", json!({"command": "theirs"})),
            ("c", json!({"command": "theirs"})),
            ("same", json!({"command": "x", "args": ["1"]})),
            ("db", json!({"command": "run", "args": ["--db", "${DB}"], "env": {"K": "${NOT_SET}"}})),
            ("unset", json!({"url": "https://${HOST_NOT_SET}/mcp"})),
        ];
        let entries = entries.iter().map(|(name, entry)| (*name, path, entry.as_object().unwrap().clone()));
        let mut found = Vec::new();
        let config = config.with_discovered(entries, &environment, &mut found);
        let u = Path::new("/u/mcp.json");
        assert_eq!(names(&config), [("a-b", u), ("c", u), ("db", path)]);
        let Endpoint::Stdio { args, env, .. } = &config.servers[2].endpoint else { panic!("a program") };
        assert_eq!(args, &["--db", "hush-0123456789"]);
        assert_eq!(env["K"], "${NOT_SET}", "filled in when it is started");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0]
                .to_string()
                .contains("\"unset\" is left out: \"url\": the variable HOST_NOT_SET is not set")
        );
        assert!(
            !agentd_http::scrub("--db hush-0123456789").contains("hush"),
            "what comes from a variable is a secret"
        );
    }

    #[test]
    fn a_project_cannot_send_the_tokens_of_logins() {
        let entry = json!({"a": {"url": "https://a.example/mcp", "auth": {"provider": "p"}}});
        let (config, found) = of(&entry, &json!({}));
        assert!(config.servers[0].uses_login() && found.is_empty());
        let (config, found) = of(&json!({}), &entry);
        assert!(config.servers.is_empty());
        assert!(found[0].contains("/p/mcp.json") && found[0].contains("user's mcp.json only"), "{found:?}");
    }

    #[test]
    fn a_project_cannot_have_hints_believed() {
        let entry = json!({"a": {"command": "a", "trustHints": true}});
        let (config, found) = of(&entry, &json!({"a": {"exposure": "direct"}}));
        assert!(config.servers[0].trusts_hints && found.is_empty(), "{found:?}");
        for user in [json!({}), entry.clone()] {
            let (config, found) = of(&user, &entry);
            assert!(!config.servers[0].trusts_hints);
            assert!(
                found[0].contains("/p/mcp.json") && found[0].contains("\"trustHints\" counts in the user's"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn names_that_give_the_same_tools_are_refused() {
        let (config, found) = of(&json!({"a-b": {"command": "x"}, "a_b": {"command": "y"}}), &json!({}));
        assert_eq!(config.servers.len(), 1);
        assert!(found[0].contains("\"a_b\"") && found[0].contains("rename one"), "{found:?}");
    }

    #[test]
    fn exact_names_come_before_patterns() {
        let exposure = json!({"get_*": "hidden", "*": "deferred", "get_time": "direct"});
        let (config, _) = of(&json!({"a": {"command": "x", "toolExposure": exposure}}), &json!({}));
        let of = |tool: &str| config.servers[0].exposure_of(tool);
        assert_eq!(of("get_time"), McpExposure::Direct);
        assert_eq!(of("get_place"), McpExposure::Hidden);
        assert_eq!(of("other"), McpExposure::Deferred);
        assert!(config.servers[0].is_direct() && !config.servers[0].is_hidden());
    }

    #[test]
    fn a_file_that_cannot_be_used_is_said_so() {
        for (file, says) in [(json!({"mcpServers": []}), "must be an object"), (json!({}), "")] {
            let mut found = Vec::new();
            assert!(entries_of(Ok(Some(file)), Path::new("/f"), &mut found).is_none());
            assert_eq!(found.is_empty(), says.is_empty());
            assert!(found.iter().all(|it| it.to_string().contains(says)));
        }
    }
}
