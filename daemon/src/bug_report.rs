//! `agentd --bug-report`: copies a report from stdin to stdout without the user's secrets. `agentctl bug-report` gathers the report.

use std::{
    io::{self, BufRead, BufWriter, Write},
    path::{Path, PathBuf},
};

use agentd_auth::UserSecrets;
use agentd_config::{
    AgentDir, Environment, JsonDocument, JsonFileError, NoAgentDir, ProjectFolders, read_json,
    read_project_json,
};
use agentd_mcp::stored_secrets;
use serde::Serialize;
use serde_json::Value;

/// Why the report is incomplete.
#[derive(Debug, thiserror::Error)]
pub enum BugReportError {
    /// The place of the user's secrets is unknown.
    #[error(transparent)]
    NoAgentDir(#[from] NoAgentDir),
    /// Stdin or stdout failed.
    #[error("the report cannot be passed on: {0}")]
    Io(#[from] io::Error),
}

/// The line of a file that configures sessions.
#[derive(Serialize)]
#[serde(tag = "type", rename = "settings")]
struct SettingsLine<'a> {
    path: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Copies stdin to stdout, line by line and without secrets. The settings and models of `cwd` follow the first line.
///
/// # Errors
/// [`BugReportError`].
pub fn run(environment: &Environment, compat: bool, cwd: &Path) -> Result<(), BugReportError> {
    let agent_dir = AgentDir::find(environment, compat, cwd)?;
    let mut files = vec![agent_dir.settings_file(), agent_dir.models_file()];
    let project = ProjectFolders::of(cwd, &agent_dir).find("settings.json");
    files.extend(project.clone());
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let known =
        UserSecrets::gather(&agent_dir.auth_file(), &paths, environment).and(stored_secrets(&agent_dir));
    let out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    // A project's link to a file elsewhere is not copied. The secrets of all copied files were gathered above.
    let read = |path: &Path| match &project {
        Some(project) if project == path => read_project_json(path).and_then(|_| read_json(path)),
        _ => read_json(path),
    };
    Ok(pass(&known, &paths, read, &mut io::stdin().lock(), out)?)
}

fn pass(
    known: &UserSecrets,
    files: &[&Path],
    read: impl Fn(&Path) -> Result<Option<JsonDocument>, JsonFileError>,
    input: &mut impl BufRead,
    mut out: impl Write,
) -> io::Result<()> {
    let mut line = Vec::new();
    let mut is_first = true;
    while input.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        writeln!(out, "{}", known.redact(text.trim_end_matches('\n')))?;
        line.clear();
        if std::mem::take(&mut is_first) {
            for path in files {
                let shown = match read(path) {
                    Ok(None) => continue,
                    Ok(Some(document)) => {
                        SettingsLine { path, value: Some(known.settings(&document.value)), error: None }
                    }
                    Err(error) => SettingsLine { path, value: None, error: Some(error.to_string()) },
                };
                writeln!(out, "{}", known.redact(&serde_json::to_string(&shown)?))?;
            }
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_follow_the_first_line_and_no_secret_passes() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let settings =
            write("settings.json", r#"{"theme": "dark", "x": {"apiToken": "hush-hush-1"}} // note"#);
        let (broken, missing) =
            (write("models.json", "{\"k\": broken-secret-22"), folder.path().join("none"));
        let known = UserSecrets::gather(&missing, &[&settings, &broken], &Environment::default());
        let mut out = Vec::new();
        let mut input =
            &b"{\"type\":\"bug_report\"}\n{\"a\":\"hush-hush-1 broken-secret-22\"}\nno end \xff"[..];
        pass(&known, &[&settings, &broken, &missing], read_json, &mut input, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(lines[0], "{\"type\":\"bug_report\"}");
        assert!(lines[1].starts_with("{\"type\":\"settings\",\"path\":"), "{out}");
        assert!(lines[1].ends_with(r#""value":{"theme":"dark","x":{"apiToken":"[redacted]"}}}"#), "{out}");
        assert!(lines[2].contains("\"error\":") && lines[2].contains("line 1"), "{out}");
        assert_eq!(lines[3..], ["{\"a\":\"[redacted] [redacted]\"}", "no end \u{fffd}"]);
    }
}
