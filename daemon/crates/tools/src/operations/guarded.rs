//! The files of this machine, with the agent directory protected from writing.
//!
//! Writing the agent directory has effects beyond its files: models.json and auth.json hold commands that print keys,
//! settings.json says what runs, and trust.json which folders the user trusts. So `write` and `edit` leave it alone,
//! except for paths that the user lists in the setting `agentDirWritable`.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
};

use agentd_protocol::settings::matches_pattern;
use tokio_util::sync::CancellationToken;

use super::{
    FileFacts, FileHost, FileSnapshot, FileSystem, FolderEntry, LocalFiles, OpenFile, TakeFile, WriteError,
};
use crate::real_path::real_path;

/// Files of the agent directory that are recognised under any name: as hard links, and as targets of links in the
/// directory.
const BY_ANY_NAME: [&str; 8] = [
    "auth.json",
    "models.json",
    "settings.json",
    "trust.json",
    "trusted-files.json",
    "mcp.json",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// This machine, with one folder protected from writing.
#[derive(Debug, Clone)]
pub struct GuardedHost {
    files: GuardedFiles,
}

#[derive(Debug, Clone)]
struct GuardedFiles {
    local: LocalFiles,
    folder: PathBuf,
    /// Writable paths below the folder: relative patterns, with `*` for any part.
    writable: Vec<String>,
}

impl GuardedHost {
    /// This machine with `folder`, an absolute path, protected except for the patterns of relative paths in `writable`.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>, writable: Vec<String>) -> Self {
        Self { files: GuardedFiles { local: LocalFiles, folder: folder.into(), writable } }
    }
}

impl FileHost for GuardedHost {
    fn files(&self, _: &CancellationToken) -> Box<dyn FileSystem> {
        Box::new(self.files.clone())
    }
}

impl GuardedFiles {
    /// Whether a path below the folder, given relative to it, may be written.
    fn is_writable(&self, relative: &Path) -> bool {
        // A path that leads out again is judged by its real path.
        let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        is_plain
            && relative
                .to_str()
                .is_some_and(|text| self.writable.iter().any(|pattern| matches_pattern(pattern, text)))
    }

    /// Whether a path may be written: as spelt, by its real path, and by the identity of the existing file.
    fn permits(&self, path: &Path) -> io::Result<bool> {
        let (folder, real) = (real_path(&self.folder)?, real_path(path)?);
        let below = [path.strip_prefix(&self.folder), path.strip_prefix(&folder), real.strip_prefix(&folder)];
        if below.into_iter().flatten().any(|relative| !self.is_writable(relative)) {
            return Ok(false);
        }
        let file = match fs::metadata(&real) {
            Ok(metadata) => (metadata.dev(), metadata.ino()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        let is_it = |name: &&str| {
            fs::metadata(folder.join(name)).is_ok_and(|known| (known.dev(), known.ino()) == file)
        };
        Ok(!BY_ANY_NAME.into_iter().filter(is_it).any(|name| !self.is_writable(Path::new(name))))
    }
}

impl FileSystem for GuardedFiles {
    fn may_write(&self, path: &Path) -> Result<(), WriteError> {
        match self.permits(path) {
            Ok(true) => Ok(()),
            Ok(false) => Err(WriteError::Guarded { path: path.to_owned(), folder: self.folder.clone() }),
            Err(source) => Err(WriteError::System { call: "open", path: path.to_owned(), source }),
        }
    }

    fn replace(
        &self,
        path: &Path,
        content: &[u8],
        before: Option<&FileSnapshot<'_>>,
    ) -> Result<(), WriteError> {
        self.may_write(path)?;
        self.local.replace(path, content, before)
    }

    fn move_file(&self, from: &Path, to: &Path) -> Result<(), WriteError> {
        self.may_write(from)?;
        self.may_write(to)?;
        self.local.move_file(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<(), WriteError> {
        self.may_write(path)?;
        self.local.remove_file(path)
    }

    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        self.local.open(path)
    }

    fn about(&self, path: &Path) -> io::Result<FileFacts> {
        self.local.about(path)
    }

    fn check_change(&self, path: &Path) -> io::Result<()> {
        self.local.check_change(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.local.real_path(path)
    }

    fn root_of_walk(&self, folder: &Path) -> PathBuf {
        self.local.root_of_walk(folder)
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        self.local.create_folders(path)
    }

    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>> {
        self.local.list(folders)
    }

    fn read_each(&self, files: &[PathBuf], take: TakeFile<'_>) -> io::Result<()> {
        self.local.read_each(files, take)
    }

    fn batch(&self) -> usize {
        self.local.batch()
    }

    fn is_local(&self) -> bool {
        self.local.is_local()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct TestFolders {
        _folder: tempfile::TempDir,
        root: PathBuf,
    }

    impl TestFolders {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path().canonicalize().unwrap();
            for name in ["agent/skills", "project", "dotfiles"] {
                fs::create_dir_all(root.join(name)).unwrap();
            }
            fs::write(root.join("agent/models.json"), "{}").unwrap();
            fs::write(root.join("dotfiles/settings.json"), "{}").unwrap();
            symlink(root.join("dotfiles/settings.json"), root.join("agent/settings.json")).unwrap();
            symlink(root.join("agent"), root.join("project/link")).unwrap();
            symlink(root.join("agent/auth.json"), root.join("project/auth")).unwrap();
            fs::hard_link(root.join("agent/models.json"), root.join("project/hard")).unwrap();
            symlink(root.join("project/plain"), root.join("agent/skills/out")).unwrap();
            symlink(root.join("agent"), root.join("home")).unwrap();
            Self { _folder: folder, root }
        }

        fn check(&self, folder: &str, writable: &[&str], path: &str, expected: bool) {
            let writable = writable.iter().map(|text| (*text).to_owned()).collect();
            let host = GuardedHost::new(self.root.join(folder), writable);
            let permits = host.files.permits(&self.root.join(path)).unwrap();
            assert_eq!(permits, expected, "{folder} {path}");
        }
    }

    #[test]
    fn no_name_leads_in() {
        let place = TestFolders::new();
        let all = [
            "agent/models.json",
            "agent/new/file",
            "agent",
            "home/models.json",
            "project/link/auth.json",
            "project/link/new/file",
            "project/auth",
            "project/hard",
            "dotfiles/settings.json",
            "agent/settings.json",
            "agent/skills/out",
        ];
        for path in all {
            place.check("agent", &[], path, false);
            place.check("home", &[], path, false);
        }
        for path in ["project/plain", "project/new/file", "dotfiles/other", "agents/x"] {
            place.check("agent", &[], path, true);
            place.check("home", &[], path, true);
        }
    }

    #[test]
    fn the_user_lets_some_of_it_be_written() {
        let place = TestFolders::new();
        let writable = ["skills/*", "AGENTS.md"];
        for path in ["agent/skills/a/SKILL.md", "agent/AGENTS.md", "project/link/skills/b", "home/skills/c"] {
            place.check("agent", &writable, path, true);
        }
        // The setting names a path, not any file that is linked there.
        symlink(place.root.join("agent/auth.json"), place.root.join("agent/skills/key")).unwrap();
        fs::hard_link(place.root.join("agent/models.json"), place.root.join("agent/skills/hard")).unwrap();
        for path in
            ["agent/models.json", "agent/skills/key", "agent/skills/hard", "agent/skills", "agent/prompts/p"]
        {
            place.check("agent", &writable, path, false);
        }
        place.check("agent", &["settings.json"], "dotfiles/settings.json", true);
        place.check("agent", &["*"], "agent/models.json", true);
    }
}
