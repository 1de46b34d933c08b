//! The hosts that the tool `ssh` may run commands on: those of `ssh.json`, and the names in the user's own ssh configuration.
//!
//! Of two hosts of one name the first counts: the user's `ssh.json`, then the project's, then the user's configuration. A project can
//! therefore add hosts, and give none of the user's names to another host.

mod aliases;
mod word;

use std::path::{Path, PathBuf};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind};
use serde::Deserialize;
use serde_json::{Map, Value};

use self::word::check_word;
use crate::{
    AgentDir, Environment, JsonDocument, JsonFileError, ProjectFolders, json_file::read_json_of,
    json_file::without_value, read_json,
};

/// The most hosts of all sources; further ones are left out with a warning.
const MAX_HOSTS: usize = 200;

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshHostConfig {
    /// The name that models use.
    pub name: String,
    /// The address, or a name that `ssh` knows.
    pub host: String,
    /// The user there; `None` leaves that to ssh.
    pub username: Option<String>,
    /// The port; `None` leaves that to ssh.
    pub port: Option<u16>,
    /// The file of the private key, absolute; `None` leaves that to ssh.
    pub key: Option<PathBuf>,
    /// What the host is, for the model.
    pub description: Option<String>,
}

/// Where the hosts of a session stand.
#[derive(Debug, Clone, Copy)]
pub struct SshHostSources<'a> {
    /// Holds the user's `ssh.json`.
    pub agent_dir: &'a AgentDir,
    /// The project, where it is trusted: its folders, and the working directory itself.
    pub project: Option<(&'a ProjectFolders, &'a Path)>,
    /// Names the home directory.
    pub environment: &'a Environment,
}

/// The hosts of a session, and what could not be used. Reads files; blocks.
#[must_use]
pub fn ssh_hosts(sources: SshHostSources<'_>) -> (Vec<SshHostConfig>, Vec<Diagnostic>) {
    let SshHostSources { agent_dir, project, environment } = sources;
    let mut found = Found::default();
    let own = agent_dir.path().join("ssh.json");
    found.file(&own, read_json(&own), environment);
    if let Some((folders, cwd)) = project {
        let own = folders.find("ssh.json").into_iter();
        for path in own.chain(["ssh.json", ".ssh.json"].map(|name| cwd.join(name))) {
            found.file(&path, read_json_of(cwd, &path), environment);
        }
    }
    if let Some(home) = environment.non_empty("HOME") {
        for name in aliases::aliases(Path::new(home)) {
            found.add(SshHostConfig {
                host: name.clone(),
                name,
                username: None,
                port: None,
                key: None,
                description: None,
            });
        }
    }
    if found.left_out > 0 {
        let text = format!("{} hosts are left out: the tool ssh takes {MAX_HOSTS} at most", found.left_out);
        found.problems.push(Diagnostic::warning(DiagnosticKind::Tools, text));
    }
    (found.hosts, found.problems)
}

#[derive(Default)]
struct Found {
    hosts: Vec<SshHostConfig>,
    problems: Vec<Diagnostic>,
    left_out: usize,
}

/// A host of `ssh.json`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HostEntry {
    host: String,
    username: Option<String>,
    port: Option<u16>,
    #[serde(alias = "keyPath")]
    key: Option<String>,
    description: Option<String>,
    /// A member of other tools, for hosts without a POSIX shell. Nothing here depends on it.
    #[serde(rename = "compat")]
    _compat: Option<Value>,
}

impl Found {
    fn add(&mut self, host: SshHostConfig) {
        if self.hosts.iter().any(|known| known.name == host.name) {
            return;
        }
        if self.hosts.len() == MAX_HOSTS {
            self.left_out += 1;
            return;
        }
        self.hosts.push(host);
    }

    fn file(
        &mut self,
        path: &Path,
        read: Result<Option<JsonDocument>, JsonFileError>,
        environment: &Environment,
    ) {
        let document = match read {
            Ok(Some(document)) => document,
            Ok(None) => return,
            Err(error) => return self.problems.push(error.diagnostic(DiagnosticKind::Tools)),
        };
        let mut problem = |text: String| {
            self.problems.push(Diagnostic::warning(DiagnosticKind::Tools, text).at(path));
        };
        let Value::Object(mut document) = document.value else {
            return problem("expected {\"hosts\": {NAME: {\"host\": …}}}".to_owned());
        };
        let hosts = match document.remove("hosts") {
            Some(Value::Object(hosts)) => hosts,
            None if document.is_empty() => Map::new(),
            _ => return problem("hosts must be an object: {NAME: {\"host\": …}}".to_owned()),
        };
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut usable = Vec::new();
        for (name, entry) in hosts {
            match host_of(&name, entry, folder, environment) {
                Ok(host) => usable.push(host),
                Err(why) => problem(format!("the host {name:?} is not used: {why}")),
            }
        }
        usable.into_iter().for_each(|host| self.add(host));
    }
}

/// A host of `ssh.json`.
///
/// # Errors
/// What is wrong with it.
fn host_of(
    name: &str,
    entry: Value,
    folder: &Path,
    environment: &Environment,
) -> Result<SshHostConfig, String> {
    check_word("its name", name)?;
    if name.contains(['/', ':']) {
        return Err("its name has a slash or a colon".to_owned());
    }
    let entry: HostEntry =
        serde_json::from_value(entry).map_err(|error| without_value(&error.to_string()))?;
    check_word("host", &entry.host)?;
    if let Some(username) = &entry.username {
        check_word("username", username)?;
    }
    if entry.port == Some(0) {
        return Err("port must be from 1 to 65535".to_owned());
    }
    let key = entry.key.map(|key| crate::resolve_path(&key, folder, environment));
    let description = entry.description.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    Ok(SshHostConfig {
        name: name.to_owned(),
        host: entry.host,
        username: entry.username,
        port: entry.port,
        key,
        description,
    })
}

#[cfg(test)]
mod tests;
