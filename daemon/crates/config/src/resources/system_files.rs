//! `SYSTEM.md` and `APPEND_SYSTEM.md`, and flags that take a text or a file.

use std::path::{Path, PathBuf};

use agentd_files::is_absent;
use agentd_protocol::resources::{Diagnostic, DiagnosticKind};

use super::resource_file;
use crate::{
    AgentDir, Environment, ProjectFolders,
    paths::resolve_path,
    text_file::{TextFileError, read_text},
};

/// A file that belongs to the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptFile {
    /// Its path.
    pub path: PathBuf,
    /// The content without a byte order mark.
    pub content: String,
}

/// The file in the place of the built-in prompt: `SYSTEM.md` of the project if it is trusted, else of the agent directory.
/// One that is there and cannot be read is reported, and none takes its place.
#[must_use]
pub fn system_prompt_file(
    agent_dir: &AgentDir,
    folders: &ProjectFolders,
    trusted: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<PromptFile> {
    find(agent_dir, folders, trusted, "SYSTEM.md", diagnostics)
}

/// The file that is appended to the prompt: `APPEND_SYSTEM.md`, found as [`system_prompt_file`].
#[must_use]
pub fn appended_prompt_file(
    agent_dir: &AgentDir,
    folders: &ProjectFolders,
    trusted: bool,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<PromptFile> {
    find(agent_dir, folders, trusted, "APPEND_SYSTEM.md", diagnostics)
}

fn find(
    agent_dir: &AgentDir,
    folders: &ProjectFolders,
    trusted: bool,
    name: &str,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<PromptFile> {
    let of_project = trusted.then(|| folders.find(name)).flatten();
    let path = of_project.unwrap_or_else(|| agent_dir.path().join(name));
    if is_absent(&path) {
        return None;
    }
    let content = resource_file::read(&path, DiagnosticKind::SystemPrompt, diagnostics)?;
    Some(PromptFile { path, content })
}

/// The value of `--system-prompt` and `--append-system-prompt`: the content of the file that it names, if that exists, else the
/// value itself.
///
/// # Errors
/// [`TextFileError`] when the file exists and cannot be read.
pub fn text_or_file(value: &str, cwd: &Path, environment: &Environment) -> Result<String, TextFileError> {
    let path = resolve_path(value, cwd, environment);
    // Also false for texts that no path can be: with line breaks, too long, empty.
    if value.trim().is_empty() || !path.is_file() {
        return Ok(value.to_owned());
    }
    Ok(read_text(&path)?.unwrap_or_else(|| value.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_project_comes_first_when_trusted() {
        let place = tempfile::tempdir().unwrap();
        let path = |below: &str| place.path().join(below);
        for folder in ["agent", "p/.agentd", "p/.pi"] {
            fs::create_dir_all(path(folder)).unwrap();
        }
        let agent_dir = AgentDir::at(path("agent"));
        let folders = ProjectFolders::of(&path("p"), &agent_dir);
        let mut said = Vec::new();
        let mut content =
            |trusted| system_prompt_file(&agent_dir, &folders, trusted, &mut said).map(|file| file.content);
        assert_eq!(content(true), None);
        fs::write(path("agent/SYSTEM.md"), "\u{FEFF}user").unwrap();
        assert_eq!(content(true).as_deref(), Some("user"));
        fs::write(path("p/.pi/SYSTEM.md"), "theirs").unwrap();
        assert_eq!(content(true).as_deref(), Some("theirs"));
        fs::write(path("p/.agentd/SYSTEM.md"), "ours").unwrap();
        assert_eq!(content(true).as_deref(), Some("ours"));
        assert_eq!(content(false).as_deref(), Some("user"));
        assert_eq!(appended_prompt_file(&agent_dir, &folders, true, &mut said), None);
        assert!(said.is_empty());
        fs::create_dir(path("p/.agentd/APPEND_SYSTEM.md")).unwrap();
        fs::write(path("agent/APPEND_SYSTEM.md"), "not looked at").unwrap();
        assert_eq!(appended_prompt_file(&agent_dir, &folders, true, &mut said), None);
        assert!(said[0].to_string().contains("APPEND_SYSTEM.md: this is no regular file"), "{said:?}");
    }

    #[test]
    fn a_value_is_a_file_or_a_text() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("prompt.md"), "from file").unwrap();
        fs::create_dir(place.path().join("folder")).unwrap();
        let environment: Environment = [("HOME", place.path())].into_iter().collect();
        let check = |value: &str, expected: &str| {
            assert_eq!(text_or_file(value, place.path(), &environment).unwrap(), expected);
        };
        check("prompt.md", "from file");
        check("~/prompt.md", "from file");
        check("folder", "folder");
        check("You are\na poet.", "You are\na poet.");
        check("", "");
        check(&"long ".repeat(5000), &"long ".repeat(5000));
    }
}
