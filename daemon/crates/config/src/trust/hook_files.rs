//! The shell hooks and tool files of a project, which are run in the user's name once it is trusted, and the programs that they name.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use agentd_files::exists;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{ProjectFolders, json_file::read_project_json, real_folders::real_path};

/// The folders of a project folder whose files are run at an event.
pub(super) const HOOK_FOLDERS: [&str; 2] = ["hooks/pre", "hooks/post"];

/// The folder of a project folder whose files name programs that models can call.
pub(super) const TOOLS: &str = "tools";

/// The files of Claude Code that can name hooks.
const CLAUDE_FILES: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

/// Where projects for Claude Code usually keep the programs of their hooks.
const CLAUDE_PROGRAMS: &str = ".claude/hooks";

/// Variables for the project's folder in the commands of hooks.
const PROJECT: [&str; 4] =
    ["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR", "${AGENTD_PROJECT_DIR}", "$AGENTD_PROJECT_DIR"];

/// Endings of programs that need not be executable themselves.
const ENDINGS: [&str; 12] = ["sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php"];

/// The most words of commands that are looked at.
const MAX_WORDS: usize = 2000;

/// The files of Claude Code in a project that name hooks, and the hooks. Blocks.
///
/// The rest of these files does not count: Claude Code writes to them with every permission that its user gives.
pub(super) fn claude_hooks(cwd: &Path) -> Vec<(PathBuf, Value)> {
    let files = CLAUDE_FILES.iter().map(|file| cwd.join(file)).filter(|path| exists(path));
    let named = files.filter_map(|path| {
        let document = read_project_json(&path).ok()??;
        let hooks = document.value.get("hooks").filter(|hooks| !is_empty(hooks))?;
        Some((path, hooks.clone()))
    });
    named.collect()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// The hash of what a file says of hooks.
pub(super) fn hash(hooks: &Value) -> String {
    Sha256::digest(hooks.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The entries of the folders of hooks and tools that need trust. Blocks.
pub(super) fn hook_and_tool_folders(folders: &ProjectFolders) -> impl Iterator<Item = PathBuf> + '_ {
    let hooks = folders.each().flat_map(|folder| HOOK_FOLDERS.map(|below| folder.join(below)));
    let tools = folders.each().map(|folder| folder.join(TOOLS));
    hooks
        .filter(|folder| has_entry(folder, |_| true))
        .chain(tools.filter(|folder| has_entry(folder, is_json)))
}

fn has_entry(folder: &Path, is_one: impl Fn(&Path) -> bool) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| is_one(&entry.path()))
}

fn is_json(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
}

/// The programs of the project that hooks and tools name, as far as that can be seen: the words of their commands that are files of the
/// project and look like programs, and all that is in `.claude/hooks` where that is used. Blocks.
pub(super) fn named_programs(cwd: &Path, folders: &ProjectFolders) -> Vec<PathBuf> {
    let (mut commands, mut programs) = (Vec::new(), Vec::new());
    let of_claude = claude_hooks(cwd);
    of_claude.iter().for_each(|(_, hooks)| collect(hooks, &mut commands));
    if let Some(settings) = folders.find("settings.json")
        && let Ok(Some(document)) = read_project_json(&settings)
        && let Some(hooks) = document.value.get("hooks")
    {
        collect(hooks, &mut commands);
    }
    for folder in folders.each().map(|folder| folder.join(TOOLS)) {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for path in entries.filter(|path| is_json(path)) {
            if let Ok(Some(document)) = read_project_json(&path) {
                let mut words = Vec::new();
                collect(&document.value, &mut words);
                // Some count from the folder of the file, the others from that of the session.
                programs.extend(words.iter().flat_map(|word| [folder.join(word), cwd.join(word)]));
            }
        }
    }
    let project = real_path(cwd);
    let is_program = |path: &PathBuf| {
        let Ok(about) = path.metadata() else { return false };
        let has_ending =
            path.extension().is_some_and(|ending| ENDINGS.iter().any(|program| ending == *program));
        about.is_file()
            && (has_ending || about.permissions().mode() & 0o111 != 0)
            && real_path(path).starts_with(&project)
    };
    let words = commands.iter().flat_map(|command| words(command));
    programs.extend(words.map(|word| resolved(&word, cwd)).take(MAX_WORDS));
    programs.truncate(MAX_WORDS);
    programs.retain(is_program);
    let folder = cwd.join(CLAUDE_PROGRAMS);
    if !of_claude.is_empty() && folder.is_dir() {
        programs.push(folder);
    }
    programs
}

/// The values of all members `command`.
fn collect(value: &Value, commands: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(command) if key == "command" => commands.push(command.clone()),
                    Value::Array(words) if key == "command" => {
                        commands.extend(words.iter().filter_map(Value::as_str).map(str::to_owned));
                    }
                    value => collect(value, commands),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, commands)),
        _ => {}
    }
}

/// The words of a command, without quotes.
fn words(command: &str) -> Vec<String> {
    let plain = command.replace(['"', '\''], "");
    let is_between = |letter: char| letter.is_whitespace() || ";|&<>()=`".contains(letter);
    plain.split(is_between).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn resolved(word: &str, cwd: &Path) -> PathBuf {
    for variable in PROJECT {
        if let Some(below) = word.strip_prefix(variable) {
            return cwd.join(below.trim_start_matches('/'));
        }
    }
    cwd.join(word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::AgentDir;

    fn write(root: &Path, below: &str, text: &str) {
        let path = root.join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn programs_that_commands_name_are_found() {
        let root = tempfile::tempdir().unwrap();
        let cwd = root.path().canonicalize().unwrap().join("p");
        for file in
            ["a.sh", "d.sh", "tools/b.py", ".claude/hooks/c.sh", "notes.txt", "tool.rb", "../outside.sh"]
        {
            write(&cwd, file, "x");
        }
        let hooks = json!({"hooks": {"Stop": [{"hooks": [
            {"command": "\"$CLAUDE_PROJECT_DIR\"/a.sh && python3 'tools/b.py' notes.txt; ../outside.sh /bin/sh"},
        ]}]}});
        write(&cwd, ".claude/settings.json", &hooks.to_string());
        write(
            &cwd,
            ".agentd/tools/t.json",
            &json!({"command": ["ruby", "tool.rb", "../../d.sh"]}).to_string(),
        );
        let folders = ProjectFolders::of(&cwd, &AgentDir::at("/nowhere"));
        let found: Vec<String> = named_programs(&cwd, &folders)
            .iter()
            .map(|path| path.strip_prefix(&cwd).unwrap().display().to_string())
            .collect();
        assert_eq!(found, ["tool.rb", ".agentd/tools/../../d.sh", "a.sh", "tools/b.py", ".claude/hooks"]);
    }

    #[test]
    fn files_of_claude_code_without_hooks_need_no_trust() {
        let root = tempfile::tempdir().unwrap();
        let hooks = || claude_hooks(root.path()).len();
        assert_eq!(hooks(), 0);
        for none in [r#"{"permissions":{}}"#, r#"{"hooks":{}}"#, r#"{"hooks":null}"#, "{x"] {
            write(root.path(), ".claude/settings.json", none);
            assert_eq!(hooks(), 0, "{none}");
        }
        write(root.path(), ".claude/settings.local.json", r#"{"hooks":{"Stop":[]}}"#);
        assert_eq!(hooks(), 1);
    }
}
