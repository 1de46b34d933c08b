//! The files of a project that can start something or say where data goes, as they were when the user trusted them.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    io::{self, Read},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use agentd_safe_open::{AcceptedOwner, LinkPolicy, OpenRules};
use sha2::{Digest, Sha256};

use super::{
    command_files::running_commands,
    foreign_files::foreign_files,
    hook_files::{self, claude_hooks},
    program_files::{TOO_MANY, UNREADABLE, program_files},
};
use crate::{
    AgentDir, Environment, ProjectFolders,
    json_file::read_project_json,
    real_folders::real_path,
    resolve_path,
    resources::{Candidate, context_candidates},
};

/// The files of a project folder that can start something, or say what may be done and on which hosts.
const STARTING: [&str; 5] = ["settings.json", "mcp.json", "lsp.json", "policy.json", "ssh.json"];

/// The bytes of a program that are hashed; its length counts, too.
const MAX_HASHED: u64 = 64 << 20;

/// The files of a project that can start something or say where data goes: a hash of each, by its path below the project. Its
/// extensions, packages, hooks and tools are among them, each as one, with the programs that hooks and tools name, and slash commands with
/// shell commands in their texts. Of instructions that lead out of the project or are another user's, what they lead to. Beside that, which folder it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartingFiles {
    pub(super) files: BTreeMap<String, String>,
    /// `None` for a folder that is not there, and where an older version noted the files.
    pub(super) identity: Option<FolderIdentity>,
}

impl StartingFiles {
    /// The files as they are now. Reads them; blocks.
    #[must_use]
    pub fn of(cwd: &Path, folders: &ProjectFolders, agent_dir: &AgentDir, environment: &Environment) -> Self {
        Self::with(&context_candidates(agent_dir, cwd, environment), cwd, folders, environment)
    }

    /// [`Self::of`] with the instructions for the folder.
    pub(super) fn with(
        instructions: &[Candidate],
        cwd: &Path,
        folders: &ProjectFolders,
        environment: &Environment,
    ) -> Self {
        let in_folders = folders.each().flat_map(|folder| STARTING.map(|name| folder.join(name)));
        let commands = running_commands(cwd, environment, true);
        let files = in_folders
            .chain(foreign_files(cwd, environment))
            .chain(shell(cwd, folders, environment))
            .chain(commands);
        let hashed = files.filter_map(|path| Some((name(cwd, &path), hash(&path)?)));
        let foreign = instructions
            .iter()
            .filter(|it| it.is_foreign())
            .map(|it| (name(cwd, &it.path), leads_to(&it.real)));
        let run = program_files(cwd, folders, environment).into_iter();
        let run = run.map(|(path, hash)| (name(cwd, &path), hash));
        let of_claude = claude_hooks(cwd).into_iter();
        let of_claude = of_claude.map(|(path, hooks)| (name(cwd, &path), hook_files::hash(&hooks)));
        let files = hashed.chain(foreign).chain(run).chain(of_claude).collect();
        Self { files, identity: FolderIdentity::of(cwd) }
    }

    /// The files that are not as they were then, below `cwd`: changed, added or gone.
    #[must_use]
    pub fn differing(&self, then: &Self, cwd: &Path) -> Vec<PathBuf> {
        let changed = self
            .files
            .iter()
            .filter(|(name, hash)| *hash == TOO_MANY || then.files.get(*name) != Some(hash))
            .map(|(name, _)| name);
        let gone = then.files.keys().filter(|name| !self.files.contains_key(*name));
        changed.chain(gone).map(|name| cwd.join(name)).collect()
    }

    /// Returns whether another folder is in the place of the one that was there then.
    pub(super) fn is_elsewhere(&self, then: &Self) -> bool {
        then.identity
            .as_ref()
            .is_some_and(|then| self.identity.as_ref().is_none_or(|now| !now.is_that_of(then)))
    }

    /// Returns whether a file of a slash command with shell commands is as it was when it was trusted. Reads it; blocks.
    #[must_use]
    pub fn covers_commands(&self, cwd: &Path, path: &Path) -> bool {
        hash(path).is_some_and(|hash| hash != UNREADABLE && self.files.get(&name(cwd, path)) == Some(&hash))
    }

    /// Returns whether a file of instructions led there when it was trusted.
    pub(crate) fn covers(&self, cwd: &Path, path: &Path, real: &Path) -> bool {
        self.files.get(&name(cwd, path)) == Some(&leads_to(real))
    }
}

/// The path of a file as it is noted.
fn name(cwd: &Path, path: &Path) -> String {
    path.strip_prefix(cwd).unwrap_or(path).display().to_string()
}

fn leads_to(real: &Path) -> String {
    format!("leads to {}", real.display())
}

/// The shell that the project's settings name, where that is a file of the project itself.
fn shell(cwd: &Path, folders: &ProjectFolders, environment: &Environment) -> Option<PathBuf> {
    let settings = read_project_json(&folders.find("settings.json")?).ok()??;
    let path = resolve_path(settings.value.get("shellPath")?.as_str()?, cwd, environment);
    real_path(&path).starts_with(real_path(cwd)).then_some(path)
}

/// `None` where there is no file.
fn hash(path: &Path) -> Option<String> {
    let file = match OpenRules::new(LinkPolicy::Followed).owner(AcceptedOwner::Anybody).open(path) {
        Ok(file) => file,
        Err(error) if error.is_missing() => return None,
        Err(_) => return Some(UNREADABLE.to_owned()),
    };
    let read = || -> io::Result<String> {
        let length = file.metadata()?.len();
        let mut hasher = Sha256::new();
        let (mut file, mut buffer) = ((&file).take(MAX_HASHED), vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                count => hasher.update(&buffer[..count]),
            }
        }
        hasher.update(length.to_le_bytes());
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    };
    Some(read().unwrap_or_else(|_| UNREADABLE.to_owned()))
}

/// The folder of a project, and what makes it a repository: when they were made, or their numbers where the file system does
/// not say when.
///
/// The time alone is compared where there is one: a number is given again to the next folder, and some file systems (FAT, FUSE)
/// give others with every mount. The device is not compared: its number is another one after a restart of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FolderIdentity {
    pub(super) folder: String,
    /// Of `.git`, a folder or a file; `None` where there is none.
    pub(super) repository: Option<String>,
}

impl FolderIdentity {
    /// The identity of the folder at that path now; `None` when there is none.
    pub(super) fn of(folder: &Path) -> Option<Self> {
        let repository = folder.join(".git").symlink_metadata().ok();
        Some(Self { folder: mark(&folder.metadata().ok()?), repository: repository.as_ref().map(mark) })
    }

    /// Returns whether this is the folder that was there then. One that has become a repository since is the same.
    pub(super) fn is_that_of(&self, then: &Self) -> bool {
        self.folder == then.folder && (then.repository.is_none() || self.repository == then.repository)
    }
}

fn mark(about: &Metadata) -> String {
    match about.created() {
        Ok(made) if made > UNIX_EPOCH => {
            let since = made.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            format!("made {}.{:09}", since.as_secs(), since.subsec_nanos())
        }
        _ => format!("number {}", about.ino()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn another_folder_in_the_place_is_told_from_the_first() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("p");
        assert_eq!(FolderIdentity::of(&path), None);
        fs::create_dir(&path).unwrap();
        let first = FolderIdentity::of(&path).unwrap();
        fs::write(path.join("file"), "").unwrap();
        assert!(FolderIdentity::of(&path).unwrap().is_that_of(&first));
        fs::create_dir(path.join(".git")).unwrap();
        let repository = FolderIdentity::of(&path).unwrap();
        assert!(repository.is_that_of(&first) && !first.is_that_of(&repository));
        // Another repository in the same folder.
        fs::rename(path.join(".git"), root.path().join("git")).unwrap();
        fs::create_dir(path.join(".git")).unwrap();
        assert!(!FolderIdentity::of(&path).unwrap().is_that_of(&repository));
        // Moved away and back, it is the one that it was.
        let away = root.path().join("away");
        fs::rename(&path, &away).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(!FolderIdentity::of(&path).unwrap().is_that_of(&first));
        fs::remove_dir(&path).unwrap();
        fs::rename(&away, &path).unwrap();
        assert!(FolderIdentity::of(&path).unwrap().is_that_of(&first));
    }
}
