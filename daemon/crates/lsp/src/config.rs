//! Which servers there are: those of the table, and `lsp.json`.
//!
//! The user's file stands in the agent directory, the project's in `.agentd` or `.pi` of the working directory, and counts only in a trusted
//! project: it starts programs. An entry of the name of a server that is known changes what it says; a field that is wrong is reported with
//! its file, and its entry left out.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_config::{AgentDir, JsonFileError, ProjectFolders, read_json, read_project_json};
use agentd_protocol::resources::{Diagnostic, DiagnosticKind};
use serde_json::{Map, Value};

use crate::table::{KnownServer, SERVERS};

/// The name of the file.
pub const LSP_FILE: &str = "lsp.json";

/// Time without use after which a server ends: 10 minutes.
const IDLE: Duration = Duration::from_secs(600);

/// The shortest such time.
const MIN_IDLE: Duration = Duration::from_secs(1);

/// A server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ServerConfig {
    pub(crate) name: String,
    /// What it is for, among those of the table; its own name for others.
    pub(crate) group: String,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) file_types: Vec<String>,
    pub(crate) root_markers: Vec<String>,
    pub(crate) needs_marker: bool,
    pub(crate) runs_code: bool,
    pub(crate) is_linter: bool,
    pub(crate) checks_project: bool,
    pub(crate) tells_status: bool,
    pub(crate) log_when_read: &'static str,
    pub(crate) init_options: Value,
    pub(crate) settings: Value,
    pub(crate) disabled: bool,
    /// The file whose entry it is, or was changed by.
    pub(crate) path: Option<PathBuf>,
}

impl ServerConfig {
    fn known(server: &KnownServer) -> Self {
        let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        // A test reads them all.
        let json = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::Object(Map::new()));
        Self {
            name: server.name.to_owned(),
            group: server.group.to_owned(),
            command: server.command.to_owned(),
            args: list(server.args),
            file_types: list(server.file_types),
            root_markers: list(server.root_markers),
            needs_marker: server.needs_marker,
            runs_code: server.runs_code,
            is_linter: server.is_linter,
            checks_project: server.checks_project,
            tells_status: server.tells_status,
            log_when_read: server.log_when_read,
            init_options: json(server.init_options),
            settings: json(server.settings),
            disabled: false,
            path: None,
        }
    }

    /// A server that the table does not have. Nobody knows what it runs.
    fn unknown(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: name.to_owned(),
            command: String::new(),
            args: Vec::new(),
            file_types: Vec::new(),
            root_markers: Vec::new(),
            needs_marker: false,
            runs_code: true,
            is_linter: false,
            checks_project: false,
            tells_status: false,
            log_when_read: "",
            init_options: Value::Object(Map::new()),
            settings: Value::Object(Map::new()),
            disabled: false,
            path: None,
        }
    }

    /// Takes what an entry says.
    ///
    /// # Errors
    /// The field that is wrong.
    fn change(&mut self, entry: &Map<String, Value>) -> Result<(), String> {
        let list = |name: &str, value: &Value| -> Result<Vec<String>, String> {
            let wrong = || format!("\"{name}\" must be a list of texts");
            let items = value.as_array().ok_or_else(wrong)?;
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        };
        let truth = |name: &str, value: &Value| {
            value.as_bool().ok_or_else(|| format!("\"{name}\" must be true or false"))
        };
        for (name, value) in entry {
            match name.as_str() {
                "command" => {
                    let text = value.as_str().filter(|text| !text.trim().is_empty());
                    self.command =
                        text.ok_or("\"command\" must be the name or path of a program")?.to_owned();
                }
                "args" => self.args = list(name, value)?,
                "fileTypes" => self.file_types = list(name, value)?,
                "rootMarkers" => self.root_markers = list(name, value)?,
                "initOptions" => self.init_options = value.clone(),
                "settings" if value.is_object() => self.settings = value.clone(),
                "settings" => return Err("\"settings\" must be an object".to_owned()),
                "disabled" => self.disabled = truth(name, value)?,
                "isLinter" => self.is_linter = truth(name, value)?,
                other => {
                    return Err(format!(
                        "\"{other}\" is unknown; there are command, args, fileTypes, rootMarkers, initOptions, settings, \
                         disabled and isLinter"
                    ));
                }
            }
        }
        if self.command.is_empty() {
            return Err("it has no \"command\", and agentd knows no server of that name".to_owned());
        }
        if self.file_types.is_empty() {
            return Err("it has no \"fileTypes\", such as [\".py\"]".to_owned());
        }
        Ok(())
    }
}

/// The servers of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct LspConfig {
    /// In the order in which they are preferred: those of the files first.
    pub(crate) servers: Vec<ServerConfig>,
    /// Time without use after which a server ends.
    pub(crate) idle: Duration,
}

impl LspConfig {
    /// The table, the user's file and, where `project` is given, that of a trusted project. Blocks.
    #[must_use]
    pub fn load(agent_dir: &AgentDir, project: Option<&ProjectFolders>, found: &mut Vec<Diagnostic>) -> Self {
        let user = agent_dir.path().join(LSP_FILE);
        let read = read_json(&user).map(|file| file.map(|file| file.value));
        let mut layers = vec![(user, read)];
        if let Some(path) = project.and_then(|folders| folders.find(LSP_FILE)) {
            let read = read_project_json(&path).map(|file| file.map(|file| file.value));
            layers.push((path, read));
        }
        let mut config = Self { servers: SERVERS.iter().map(ServerConfig::known).collect(), idle: IDLE };
        for (path, read) in layers {
            config.take(&path, read, found);
        }
        // What the user or the project has named comes before what agentd would choose.
        config.servers.sort_by_key(|server| server.path.is_none());
        config
    }

    fn take(&mut self, path: &Path, read: Result<Option<Value>, JsonFileError>, found: &mut Vec<Diagnostic>) {
        let file = match read {
            Ok(None) => return,
            Ok(Some(file)) => file,
            Err(error) => return found.push(error.diagnostic(DiagnosticKind::Tools)),
        };
        let mut complain =
            |text: String| found.push(Diagnostic::warning(DiagnosticKind::Tools, text).at(path));
        match file.get("idleTimeoutMs") {
            None => {}
            Some(value) => match value.as_u64() {
                Some(ms) => self.idle = Duration::from_millis(ms).max(MIN_IDLE),
                None => complain("\"idleTimeoutMs\" must be a whole number of milliseconds".to_owned()),
            },
        }
        let entries = match file.get("servers") {
            None => return,
            Some(Value::Object(entries)) => entries,
            Some(_) => return complain("\"servers\" must be an object of servers by their names".to_owned()),
        };
        for (name, entry) in entries {
            let known = self.servers.iter().position(|server| server.name == *name);
            let mut server = match known {
                Some(at) => self.servers[at].clone(),
                None => ServerConfig::unknown(name),
            };
            let changed = match entry.as_object() {
                Some(entry) => server.change(entry),
                None => Err("it must be an object".to_owned()),
            };
            if let Err(problem) = changed {
                complain(format!("language server \"{name}\" is left out: {problem}"));
                continue;
            }
            server.path = Some(path.to_owned());
            match known {
                Some(at) => self.servers[at] = server,
                None => self.servers.push(server),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn loaded(files: &[Value]) -> (LspConfig, Vec<String>) {
        let mut config = LspConfig { servers: SERVERS.iter().map(ServerConfig::known).collect(), idle: IDLE };
        let mut found = Vec::new();
        for file in files {
            config.take(Path::new("/l.json"), Ok(Some(file.clone())), &mut found);
        }
        (config, found.iter().map(|it| it.message.clone()).collect())
    }

    fn server<'a>(config: &'a LspConfig, name: &str) -> Option<&'a ServerConfig> {
        config.servers.iter().find(|server| server.name == name)
    }

    #[test]
    fn entries_change_known_servers_and_add_others() {
        let (config, found) = loaded(&[
            json!({"idleTimeoutMs": 5000, "servers": {
                "pyright": {"disabled": true},
                "mine": {"command": "x", "args": ["-a"], "fileTypes": [".mine"], "rootMarkers": ["m"],
                         "initOptions": 3, "settings": {"a": 1}, "isLinter": true},
            }}),
            json!({"servers": {"mine": {"args": []}}}),
        ]);
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(config.idle, Duration::from_secs(5));
        let pyright = server(&config, "pyright").unwrap();
        assert!(pyright.disabled && pyright.command == "pyright-langserver");
        let mine = server(&config, "mine").unwrap();
        assert!(mine.args.is_empty() && mine.is_linter && mine.runs_code);
        assert_eq!((&mine.init_options, &mine.settings), (&json!(3), &json!({"a": 1})));
    }

    #[test]
    fn what_is_wrong_is_reported_and_left_out() {
        let check = |entry: Value, why: &str| {
            let (config, found) = loaded(&[json!({"servers": {"mine": entry}})]);
            assert!(server(&config, "mine").is_none());
            assert_eq!(found.len(), 1);
            assert!(found[0].contains("\"mine\" is left out") && found[0].contains(why), "{found:?}");
        };
        check(json!(3), "must be an object");
        check(json!({"fileTypes": [".a"]}), "no \"command\"");
        check(json!({"command": "x"}), "no \"fileTypes\"");
        check(json!({"command": "", "fileTypes": [".a"]}), "name or path of a program");
        check(json!({"command": "x", "fileTypes": ".a"}), "\"fileTypes\" must be a list");
        check(json!({"command": "x", "fileTypes": [".a"], "root": []}), "\"root\" is unknown");
        check(json!({"command": "x", "fileTypes": [".a"], "disabled": 1}), "\"disabled\" must be true");
        let (_, found) = loaded(&[json!({"servers": [], "idleTimeoutMs": "x"})]);
        assert_eq!(found.len(), 2);
    }
}
