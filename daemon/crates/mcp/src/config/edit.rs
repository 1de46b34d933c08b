//! Changes one entry of a `mcp.json`, and nothing else of the file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_config::{
    AgentDir, JsonFileError, MemberChange, PrivateObject, PrivateObjectError, ProjectFolders, read_json,
    read_project_json,
};
use agentd_http::Redactor;
use agentd_protocol::mcp_edit::{McpChange, McpEditRequest};
use serde_json::{Map, Value};

use super::{
    entry::{Entry, TRUST_HINTS, parse},
    server_config::{MCP_FILE, is_namesake},
};

/// How long another writer of the file is waited for.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// The member with the servers.
const SERVERS: &str = "mcpServers";

/// Why nothing was changed. The file is as it was; no message quotes a value that could be a secret.
#[derive(Debug, thiserror::Error)]
pub enum McpEditError {
    /// The file cannot be read or written.
    #[error("{MCP_FILE} was not changed: {0}")]
    File(#[from] PrivateObjectError),
    /// A project's file that is not to be used.
    #[error("{MCP_FILE} was not changed: {0}")]
    Project(#[from] JsonFileError),
    /// The working directory holds the agent directory.
    #[error(
        "a project in this folder has no {MCP_FILE} of its own, since its .agentd is the agent directory: leave out --local"
    )]
    NoProject,
    /// `mcpServers` is no object.
    #[error("{} was not changed: \"{SERVERS}\" must be an object of servers by their names", path.display())]
    NoServers {
        /// The file.
        path: PathBuf,
    },
    /// The entry could not be used.
    #[error("the server \"{name}\" was not added: {problem}")]
    Entry {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
    /// The name is taken.
    #[error("{} has a server \"{name}\" already: --force replaces it, or take another name", path.display())]
    Taken {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// Tools of both would have the same names.
    #[error("the server \"{name}\" would have the same tool names as \"{other}\" of {}: take another name", path.display())]
    Namesake {
        /// The name.
        name: String,
        /// The other.
        other: String,
        /// The file of the other.
        path: PathBuf,
    },
    /// There is no such server.
    #[error("{} has no server \"{name}\"{hint}", path.display())]
    Missing {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
        /// What there is instead.
        hint: String,
    },
}

/// A changed file.
#[derive(Debug, PartialEq, Eq)]
pub struct EditedConfig {
    /// The file.
    pub path: PathBuf,
    /// Whether it was written.
    pub changed: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Changes an entry of the user's `mcp.json`, or of the project's, under the lock of its writers. All else in the file stays as it is, with
/// comments, order and indentation; a new file is private. Blocks.
///
/// # Errors
/// [`McpEditError`]; the file is unchanged.
pub fn edit_mcp_config(
    agent_dir: &AgentDir,
    folders: &ProjectFolders,
    request: &McpEditRequest,
) -> Result<EditedConfig, McpEditError> {
    let user = agent_dir.path().join(MCP_FILE);
    let of_project = folders.place_of(MCP_FILE);
    let (path, other) = if request.project {
        let path = of_project.ok_or(McpEditError::NoProject)?;
        // No link of the project may lead the change into a file elsewhere.
        read_project_json(&path)?;
        (path, Some(user))
    } else {
        (user, of_project)
    };
    let other = OtherFile { names: other.as_deref().map(names_in).unwrap_or_default(), path: other };
    let lock = agent_dir.run_dir().join("mcp.lock");
    let object = PrivateObject { path: &path, lock: &lock, timeout: LOCK_TIMEOUT };
    let (changed, warnings) = object.edit_shared(|file| {
        let none = Map::new();
        let servers = match file.get(SERVERS) {
            None => &none,
            Some(Value::Object(servers)) => servers,
            Some(_) => return Err(McpEditError::NoServers { path: path.clone() }),
        };
        plan(request, servers, &path, &other)
    })?;
    Ok(EditedConfig { path, changed, warnings })
}

/// The file that counts beside the one that is changed.
struct OtherFile {
    path: Option<PathBuf>,
    names: Vec<String>,
}

/// The names of servers in a file. One that cannot be read has none: that is reported where it is used.
fn names_in(path: &Path) -> Vec<String> {
    let document = read_json(path).ok().flatten();
    let servers = document.as_ref().and_then(|document| document.value.get(SERVERS)?.as_object());
    servers.map(|servers| servers.keys().cloned().collect()).unwrap_or_default()
}

/// The changes, with warnings.
fn plan(
    request: &McpEditRequest,
    servers: &Map<String, Value>,
    path: &Path,
    other: &OtherFile,
) -> Result<(Vec<MemberChange>, Vec<String>), McpEditError> {
    let McpEditRequest { project, name, change } = request;
    let at = |below: &[&str]| -> Vec<String> {
        [SERVERS, name].iter().chain(below).map(|key| (*key).to_owned()).collect()
    };
    let in_other = other.path.as_deref().filter(|_| other.names.contains(name));
    match change {
        McpChange::Add { entry, force } => {
            let entry = Value::Object(entry.clone());
            let mut warnings = check(name, &entry, path)?;
            if servers.contains_key(name) && !force {
                return Err(McpEditError::Taken { name: name.clone(), path: path.to_owned() });
            }
            let here = servers.keys().map(|other| (other, path));
            let there =
                other.path.iter().flat_map(|path| other.names.iter().map(|name| (name, path.as_path())));
            if let Some((other, path)) = here.chain(there).find(|(other, _)| is_namesake(name, other)) {
                let (name, other) = (name.clone(), other.clone());
                return Err(McpEditError::Namesake { name, other, path: path.to_owned() });
            }
            if *project && entry.get(TRUST_HINTS).is_some_and(|value| *value == true) {
                warnings.push(format!("\"{TRUST_HINTS}\" counts in the user's mcp.json only"));
            }
            warnings.extend(in_other.map(|path| {
                let effect = if *project { "does not count here any more" } else { "counts here instead" };
                format!("the server \"{name}\" of {} {effect}", path.display())
            }));
            Ok((vec![MemberChange::Set(at(&[]), entry)], warnings))
        }
        McpChange::Remove if servers.contains_key(name) => {
            let warnings =
                in_other.map(|path| format!("the server \"{name}\" of {} counts now", path.display()));
            Ok((vec![MemberChange::RemoveAt(at(&[]))], warnings.into_iter().collect()))
        }
        // An entry of the project may change one of the user's.
        McpChange::SetEnabled(enabled) if servers.contains_key(name) || (*project && in_other.is_some()) => {
            Ok((vec![MemberChange::Set(at(&["enabled"]), Value::Bool(*enabled))], Vec::new()))
        }
        McpChange::Remove | McpChange::SetEnabled(_) => {
            let hint = match (in_other, project) {
                (Some(path), false) => format!("; {} has one: add --local", path.display()),
                (Some(path), true) => format!("; {} has one: leave out --local", path.display()),
                (None, _) if servers.is_empty() => String::new(),
                (None, _) => {
                    let names: Vec<&str> = servers.keys().map(String::as_str).collect();
                    format!("; there are {}", names.join(", "))
                }
            };
            Err(McpEditError::Missing { name: name.clone(), path: path.to_owned(), hint })
        }
    }
}

/// Warnings about a new entry.
fn check(name: &str, entry: &Value, path: &Path) -> Result<Vec<String>, McpEditError> {
    let fault = |problem: String| McpEditError::Entry { name: name.to_owned(), problem };
    let (parsed, mut warnings) = parse(name, entry, path).map_err(fault)?;
    if matches!(parsed, Entry::Override(_)) {
        return Err(fault("it has neither \"command\" nor \"url\"".to_owned()));
    }
    for key in ["env", "headers"] {
        for (name, value) in entry.get(key).and_then(Value::as_object).into_iter().flatten() {
            let is_literal =
                value.as_str().is_some_and(|text| !text.contains("${") && !text.starts_with('!'));
            if is_literal && Redactor::hides(name) {
                warnings.push(format!(
                    "\"{key}.{name}\" stands in the file as it is; \"${{NAME}}\" would take it from the environment"
                ));
            }
        }
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use serde_json::json;

    use super::*;

    struct TestFolder(tempfile::TempDir);

    impl TestFolder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().unwrap());
            fs::create_dir(folder.path("agent")).unwrap();
            fs::create_dir(folder.path("project")).unwrap();
            folder
        }

        fn path(&self, below: &str) -> PathBuf {
            self.0.path().join(below)
        }

        fn edit(&self, project: bool, name: &str, change: McpChange) -> Result<EditedConfig, McpEditError> {
            let agent_dir = AgentDir::at(self.path("agent"));
            let folders = ProjectFolders::of(&self.path("project"), &agent_dir);
            let request = McpEditRequest { project, name: name.to_owned(), change };
            edit_mcp_config(&agent_dir, &folders, &request)
        }

        fn user(&self) -> String {
            fs::read_to_string(self.path("agent/mcp.json")).unwrap()
        }
    }

    fn add(entry: &Value, force: bool) -> McpChange {
        McpChange::Add { entry: entry.as_object().unwrap().clone(), force }
    }

    fn problem(outcome: Result<EditedConfig, McpEditError>) -> String {
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn entries_are_added_and_taken_out_and_all_else_stays() {
        let folder = TestFolder::new();
        let before = "// mine\n{\n\t\"mcpServers\": {\n\t\t\"b\": { \"command\": \"x\", \"timeout\": 1.0 }\n\t},\n\t\"other\": 1.50\n}\n";
        fs::write(folder.path("agent/mcp.json"), before).unwrap();
        let edited = folder.edit(false, "a", add(&json!({"command": "y", "args": ["-z"]}), false)).unwrap();
        assert_eq!(
            edited,
            EditedConfig { path: folder.path("agent/mcp.json"), changed: true, warnings: vec![] }
        );
        let added =
            ",\n\t\t\"a\": {\n\t\t\t\"command\": \"y\",\n\t\t\t\"args\": [\n\t\t\t\t\"-z\"\n\t\t\t]\n\t\t}";
        assert_eq!(folder.user(), before.replace("1.0 }", &format!("1.0 }}{added}")));
        assert!(folder.edit(false, "b", McpChange::SetEnabled(false)).unwrap().changed);
        assert!(!folder.edit(false, "b", McpChange::SetEnabled(false)).unwrap().changed);
        let disabled = before.replace("1.0 }", "1.0, \"enabled\": false }");
        assert_eq!(folder.user(), disabled.replace("false }", &format!("false }}{added}")));
        assert!(folder.edit(false, "a", McpChange::Remove).unwrap().changed);
        assert_eq!(folder.user(), disabled);
    }

    #[test]
    fn a_new_file_is_private_and_a_shared_one_stays_so() {
        let folder = TestFolder::new();
        let mode = |path: &str| fs::metadata(folder.path(path)).unwrap().permissions().mode() & 0o777;
        folder.edit(true, "a", add(&json!({"command": "y"}), false)).unwrap();
        assert_eq!(mode("project/.agentd/mcp.json"), 0o600);
        let path = folder.path("project/.agentd/mcp.json");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        folder.edit(true, "b", add(&json!({"url": "https://b.example"}), false)).unwrap();
        assert_eq!(mode("project/.agentd/mcp.json"), 0o644);
        assert_eq!(
            fs::read_to_string(path).unwrap(),
            "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"y\"\n    },\n    \"b\": {\n      \"url\": \"https://b.example\"\n    }\n  }\n}\n"
        );
    }

    #[test]
    fn what_cannot_be_added_says_what_to_do() {
        let folder = TestFolder::new();
        let entry = json!({"command": "y", "env": {"K": "hush"}});
        folder.edit(false, "a-b", add(&entry, false)).unwrap();
        for (name, entry, says) in [
            ("a b", &entry, "letters, digits, _ and -"),
            ("a-b", &entry, "--force replaces it"),
            ("a_b", &entry, "same tool names as \"a-b\""),
            ("c", &json!({"command": "x", "url": "https://hush"}), "keep one"),
            ("c", &json!({"exposure": "direct"}), "neither \"command\" nor \"url\""),
            ("c", &json!({"command": "x", "exposure": "hush"}), "\"exposure\" must be"),
        ] {
            let text = problem(folder.edit(false, name, add(entry, false)));
            assert!(text.contains(says) && !text.contains("hush"), "{text}");
        }
        // Both files count in the project.
        let text = problem(folder.edit(true, "a_b", add(&entry, false)));
        assert!(text.contains("same tool names") && text.contains("agent/mcp.json"), "{text}");
        assert!(folder.edit(false, "a-b", add(&json!({"command": "z"}), true)).unwrap().changed);
        assert!(folder.user().contains("\"z\"") && !folder.user().contains("hush"));
    }

    #[test]
    fn secrets_and_entries_elsewhere_are_told() {
        let folder = TestFolder::new();
        let entry = json!({"url": "https://x.example", "headers": {"Authorization": "Bearer hush", "X-Api-Key": "${K}", "A": "b"}});
        let warnings = folder.edit(false, "a", add(&entry, false)).unwrap().warnings;
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(
            warnings[0].contains("\"headers.Authorization\"") && !warnings[0].contains("hush"),
            "{warnings:?}"
        );
        let warnings = folder.edit(true, "a", add(&json!({"command": "x"}), false)).unwrap().warnings;
        assert!(warnings[0].contains("does not count here"), "{warnings:?}");
        let warnings = folder.edit(true, "a", McpChange::Remove).unwrap().warnings;
        assert!(warnings[0].contains("counts now"), "{warnings:?}");
    }

    #[test]
    fn the_project_switches_a_server_of_the_user() {
        let folder = TestFolder::new();
        folder.edit(false, "a", add(&json!({"command": "x"}), false)).unwrap();
        folder.edit(true, "a", McpChange::SetEnabled(false)).unwrap();
        let text = fs::read_to_string(folder.path("project/.agentd/mcp.json")).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({"mcpServers": {"a": {"enabled": false}}})
        );
        let text = problem(folder.edit(true, "b", McpChange::SetEnabled(false)));
        assert!(text.contains("no server \"b\"; there are a"), "{text}");
        folder.edit(true, "c", add(&json!({"command": "x"}), false)).unwrap();
        let text = problem(folder.edit(false, "c", McpChange::Remove));
        assert!(text.contains("add --local"), "{text}");
    }

    #[test]
    fn no_link_of_a_project_leads_elsewhere() {
        let folder = TestFolder::new();
        fs::write(folder.path("agent/mcp.json"), "{}").unwrap();
        fs::create_dir(folder.path("project/.agentd")).unwrap();
        std::os::unix::fs::symlink(folder.path("agent/mcp.json"), folder.path("project/.agentd/mcp.json"))
            .unwrap();
        let outcome = folder.edit(true, "a", add(&json!({"command": "x"}), false));
        assert!(matches!(outcome, Err(McpEditError::Project(_))), "{outcome:?}");
        assert_eq!(folder.user(), "{}");
    }
}
