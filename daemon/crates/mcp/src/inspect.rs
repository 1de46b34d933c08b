//! What keeps a server from being connected, as far as it can be seen without connecting it.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use agentd_config::{Environment, expand_tilde, resolve_path};

use crate::{
    config::{Endpoint, ServerConfig},
    values::{command_of, unset_variables},
};

/// The obstacles to connecting a server in a session with this working directory and environment: a program that is not there, a variable
/// that is not set. Looks at files; blocks. Runs nothing.
#[must_use]
pub fn obstacles(config: &ServerConfig, cwd: &Path, variables: &Environment) -> Vec<String> {
    let (values, key) = match &config.endpoint {
        Endpoint::Stdio { env, .. } => (env, "env"),
        Endpoint::Http { headers, .. } => (headers, "headers"),
    };
    let unset = values.iter().flat_map(|(name, value)| {
        let unset = unset_variables(value, variables);
        unset.into_iter().map(move |variable| format!("\"{key}.{name}\": the variable {variable} is not set"))
    });
    let mut found: Vec<String> = unset.collect();
    if let Endpoint::Stdio { command, env, cwd: folder, .. } = &config.endpoint {
        // A PATH of the entry counts where it is a plain text.
        let path = env.get("PATH").filter(|path| !path.contains("${") && command_of(path).is_none());
        let path = path.map_or_else(|| variables.get("PATH").unwrap_or_default(), String::as_str);
        if !program_exists(&expand_tilde(command, variables), cwd, path) {
            found.push(format!("the program {command} is not there"));
        }
        let folder = folder.as_ref().map(|folder| resolve_path(folder, cwd, variables));
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            found.push(format!("its working directory {} is no folder", folder.display()));
        }
    }
    found
}

/// Whether a program can be started: by its path, or by its name on a `PATH`.
fn program_exists(program: &Path, cwd: &Path, path: &str) -> bool {
    let is_executable = |file: PathBuf| {
        file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if program.components().count() > 1 {
        return is_executable(cwd.join(program));
    }
    std::env::split_paths(path).any(|folder| is_executable(cwd.join(folder).join(program)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use agentd_protocol::resources::Diagnostic;
    use serde_json::{Value, json};

    use super::*;
    use crate::config::McpConfig;

    #[test]
    fn programs_and_variables_that_are_missing_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (cwd, bin) = (folder.path().join("cwd"), folder.path().join("bin"));
        fs::create_dir_all(&cwd).unwrap();
        fs::create_dir_all(&bin).unwrap();
        for (path, mode) in [(bin.join("server"), 0o755), (bin.join("text"), 0o644), (cwd.join("own"), 0o755)]
        {
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let variables: Environment = [("PATH", bin.to_str().unwrap()), ("K", "v")].into_iter().collect();
        let check = |entry: Value, expected: &[&str]| {
            let agent_dir = tempfile::tempdir().unwrap();
            let file = json!({"mcpServers": {"s": entry}}).to_string();
            fs::write(agent_dir.path().join("mcp.json"), file).unwrap();
            let mut diagnostics: Vec<Diagnostic> = Vec::new();
            let config =
                McpConfig::load(&agentd_config::AgentDir::at(agent_dir.path()), None, &mut diagnostics);
            assert!(diagnostics.is_empty(), "{diagnostics:?}");
            let found = obstacles(&config.servers[0], &cwd, &variables);
            assert_eq!(found.len(), expected.len(), "{found:?}");
            assert!(found.iter().zip(expected).all(|(found, says)| found.contains(says)), "{found:?}");
        };
        check(json!({"command": "server", "env": {"A": "${K}", "B": "!echo ${NOT}"}}), &[]);
        check(json!({"command": "./own"}), &[]);
        check(json!({"command": "text"}), &["program text is not there"]);
        check(json!({"command": "own", "cwd": "nowhere"}), &["program own", "nowhere is no folder"]);
        check(json!({"command": "server", "env": {"PATH": "/nowhere"}}), &["program server"]);
        check(
            json!({"url": "https://x.example", "headers": {"Authorization": "Bearer ${NOT}"}}),
            &["\"headers.Authorization\": the variable NOT"],
        );
    }
}
