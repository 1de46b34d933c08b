//! Reads the files of tools.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_config::{AgentDir, ProjectFolders, read_json, read_project_json};
use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel};

use super::{
    definition::{ToolApproval, ToolDefinition},
    tool::{FileTool, FileToolHost},
};

/// The folder of these files.
const FOLDER: &str = "tools";

/// The most files of a folder.
const MAX_FILES: usize = 200;

/// Where the tools of a session are looked for.
pub(crate) struct ToolFilePlace<'a> {
    pub(crate) agent_dir: &'a AgentDir,
    /// The project's folders, where it is trusted.
    pub(crate) project: Option<&'a ProjectFolders>,
    /// Whether a built-in tool has that name.
    pub(crate) is_built_in: &'a dyn Fn(&str) -> bool,
    pub(crate) host: &'a FileToolHost,
}

/// Reads the tools of the user and of a trusted project. What cannot be used is told in `found`. Blocks.
pub(crate) fn load_tool_files(place: &ToolFilePlace<'_>, found: &mut Vec<Diagnostic>) -> Vec<Arc<FileTool>> {
    let mut tools: Vec<(ToolDefinition, PathBuf)> = Vec::new();
    for path in files(&place.agent_dir.path().join(FOLDER), found) {
        let value = read_json(&path).map(|document| document.map(|document| document.value));
        add(place, &mut tools, path, value, false, found);
    }
    for folder in place.project.into_iter().flat_map(ProjectFolders::each) {
        for path in files(&folder.join(FOLDER), found) {
            let value = read_project_json(&path).map(|document| document.map(|document| document.value));
            add(place, &mut tools, path, value, true, found);
        }
    }
    tools.into_iter().map(|(definition, _)| Arc::new(FileTool::new(definition, place.host.clone()))).collect()
}

fn files(folder: &Path, found: &mut Vec<Diagnostic>) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        !is_hidden && path.extension().is_some_and(|ending| ending == "json")
    };
    let mut files: Vec<PathBuf> = entries.filter(is_one).take(MAX_FILES + 1).collect();
    if files.len() > MAX_FILES {
        let message = format!("none of its tools is used: a folder can have {MAX_FILES}");
        found.push(Diagnostic::warning(DiagnosticKind::Tools, message).at(folder));
        return Vec::new();
    }
    files.sort();
    files
}

fn add(
    place: &ToolFilePlace<'_>,
    tools: &mut Vec<(ToolDefinition, PathBuf)>,
    path: PathBuf,
    value: Result<Option<serde_json::Value>, agentd_config::JsonFileError>,
    is_of_project: bool,
    found: &mut Vec<Diagnostic>,
) {
    let value = match value {
        Ok(Some(value)) => value,
        Ok(None) => return,
        Err(error) => {
            return found.push(error.diagnostic(DiagnosticKind::Tools).hint("its tool is not used"));
        }
    };
    let mut wrong = |text: String| {
        let problem = Diagnostic::warning(DiagnosticKind::Tools, text).level(DiagnosticLevel::Error);
        found.push(problem.at(&path));
    };
    let mut definition = match ToolDefinition::of(value, path.parent().unwrap_or(&path)) {
        Ok(definition) => definition,
        Err(error) => return wrong(format!("the tool is not used: {error}")),
    };
    let name = &definition.spec.name;
    if (place.is_built_in)(name) {
        return wrong(format!(
            "the tool \"{name}\" is not used: a built-in tool is called \"{name}\", too; rename it"
        ));
    }
    if let Some((_, other)) = tools.iter().find(|(other, _)| other.spec.name == *name) {
        return wrong(format!(
            "the tool \"{name}\" is not used: {} names one of that name, too",
            other.display()
        ));
    }
    if is_of_project && definition.approval == ToolApproval::Read {
        // It would loosen the permissions of the user.
        let text = format!("the tool \"{name}\": \"approval\": \"read\" counts in the user's own files only");
        found.push(Diagnostic::warning(DiagnosticKind::Tools, text).at(&path));
        definition.approval = ToolApproval::Exec;
    }
    tools.push((definition, path));
}
