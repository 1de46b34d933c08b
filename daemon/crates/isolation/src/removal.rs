//! Removes copies, and what git knows of them.

use std::{fs, path::Path};

use crate::{
    error::IsolationError,
    record::{CopyFolder, CopyRecord},
    tree_paths,
};

/// Removes a copy, and what git knows of it. Blocks.
pub(crate) fn remove(folder: &CopyFolder, record: &CopyRecord) -> Result<(), IsolationError> {
    for common_dir in &record.common_dirs {
        forget_worktrees(common_dir, &folder.path)?;
    }
    folder.remove()
}

/// Removes what a repository notes about worktrees below `folder`. `git worktree prune` would forget other worktrees, too, that are
/// only not mounted at the moment.
fn forget_worktrees(common_dir: &Path, folder: &Path) -> Result<(), IsolationError> {
    let worktrees = common_dir.join("worktrees");
    let Ok(entries) = fs::read_dir(&worktrees) else { return Ok(()) };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(text) = fs::read(path.join("gitdir")) else { continue };
        let place = tree_paths::path_of(text.strip_suffix(b"\n").unwrap_or(&text));
        if place.starts_with(folder) {
            fs::remove_dir_all(&path).map_err(IsolationError::io(&path))?;
        }
    }
    // It stays if other worktrees are in it.
    let _ = fs::remove_dir(&worktrees);
    Ok(())
}
