//! Detects that `models.json` may have changed, without reading it.

use std::os::unix::fs::MetadataExt;

use crate::AgentDir;

/// Identity, length and time of the file. Empty for a file that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelsStamp(Option<(u64, u64, u64, i64, i64)>);

impl ModelsStamp {
    /// Looks at the file; blocks.
    #[must_use]
    pub fn of(agent_dir: &AgentDir) -> Self {
        let file = agent_dir.models_file().metadata().ok();
        Self(file.map(|file| (file.dev(), file.ino(), file.len(), file.mtime(), file.mtime_nsec())))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn another_file_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let agent_dir = AgentDir::at(dir.path());
        let none = ModelsStamp::of(&agent_dir);
        assert_eq!(none, ModelsStamp::default());
        fs::write(agent_dir.models_file(), "{}").unwrap();
        let one = ModelsStamp::of(&agent_dir);
        assert_eq!((one, one == none), (ModelsStamp::of(&agent_dir), false));
        // Editors replace a file by another one of the same length.
        fs::write(dir.path().join("new"), "[]").unwrap();
        fs::rename(dir.path().join("new"), agent_dir.models_file()).unwrap();
        assert_ne!(ModelsStamp::of(&agent_dir), one);
    }
}
