//! The slash commands of a project whose texts have shell commands, which are run once the project is trusted.

use std::path::{Path, PathBuf};

use agentd_files::is_folder;
use agentd_protocol::resources::DiagnosticKind;
use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};

use super::foreign_files::is_home;
use crate::{
    Environment,
    resources::{FolderLayout, FolderWalk},
};

/// The folders of agentd's own commands, below the working directory.
const OWN: [&str; 2] = [".agentd/commands", ".omp/commands"];

/// Those of other tools.
const FOREIGN: [&str; 7] = [
    ".claude/commands",
    ".codex/commands",
    ".cursor/commands",
    ".opencode/command",
    ".opencode/commands",
    ".agents/commands",
    ".agent/commands",
];

/// What a text has that runs a command.
const COMMANDS: [&str; 2] = ["!`", "```!"];

/// The longest file that is searched. A longer one is not used at all.
const MAX_BYTES: u64 = 1 << 20;

/// The files of commands of a project that run something, with `foreign` those of other tools, too. The home directory's are the user's.
/// Reads files; blocks.
pub(super) fn running_commands(cwd: &Path, environment: &Environment, foreign: bool) -> Vec<PathBuf> {
    if is_home(cwd, environment) {
        return Vec::new();
    }
    let folders = OWN.iter().chain(FOREIGN.iter().filter(|_| foreign)).map(|folder| cwd.join(folder));
    let mut walk = FolderWalk::new(DiagnosticKind::Prompt);
    let files = folders.filter(|folder| is_folder(folder)).flat_map(|folder| {
        // What is wrong with them is said by those who read them.
        walk.files(&folder, FolderLayout::PromptsBelow)
    });
    files.filter(|file| runs_something(file)).collect()
}

fn runs_something(file: &Path) -> bool {
    let rules = OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).max_bytes(MAX_BYTES);
    match rules.read(file) {
        Ok(Some(bytes)) => {
            let text = String::from_utf8_lossy(&bytes);
            COMMANDS.iter().any(|command| text.contains(command))
        }
        Ok(None) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_files_with_commands_need_trust() {
        let root = tempfile::tempdir().unwrap();
        let cwd = root.path().canonicalize().unwrap();
        let environment = Environment::default();
        assert!(running_commands(&cwd, &environment, true).is_empty());
        for (name, text) in [
            (".claude/commands/git/status.md", "Now: !`git status`"),
            (".claude/commands/plain.md", "Say `hello`!"),
            (".agentd/commands/block.md", "```!\nls\n```"),
            (".opencode/command/x.md", "!`ls`"),
            ("commands/no.md", "!`ls`"),
        ] {
            fs::create_dir_all(cwd.join(name).parent().unwrap()).unwrap();
            fs::write(cwd.join(name), text).unwrap();
        }
        let found = |foreign| -> Vec<String> {
            let files = running_commands(&cwd, &environment, foreign);
            files.iter().map(|file| file.strip_prefix(&cwd).unwrap().display().to_string()).collect()
        };
        assert_eq!(
            found(true),
            [".agentd/commands/block.md", ".claude/commands/git/status.md", ".opencode/command/x.md"]
        );
        assert_eq!(found(false), [".agentd/commands/block.md"]);
        let at_home: Environment = [("HOME", cwd.as_os_str())].into_iter().collect();
        assert!(running_commands(&cwd, &at_home, true).is_empty());
    }
}
