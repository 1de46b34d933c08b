//! One merge at a time in a repository, also between processes; and the end of a merge that was killed.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    error::{IsolationError, blocking},
    git::{Git, args},
    repository::Repository,
    working_files::{KeptFile, Replacements, Stamp},
};

/// The file in the repository's folder that the merging process has locked.
const LOCK: &str = "agentd-merge.lock";

/// The scratch folder of a merge.
const SCRATCH: &str = "agentd-merge";

/// Held while a merge works in a repository.
#[derive(Debug)]
pub(crate) struct MergeLock {
    _file: File,
}

/// Waits for the lock of a repository, which all its worktrees share.
///
/// # Errors
/// The system's. Cancel safety: if dropped, the lock is given back as soon as it is gotten.
pub(crate) async fn take(repository: &Repository) -> Result<MergeLock, IsolationError> {
    let path = repository.common_dir.join(LOCK);
    blocking(move || {
        let options = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = options.map_err(IsolationError::io(&path))?;
        file.lock().map_err(IsolationError::io(&path))?;
        Ok(MergeLock { _file: file })
    })
    .await
}

/// The scratch folder of a repository's merges: on the file system of its working files, since files are exchanged.
///
/// # Errors
/// The system's.
pub(crate) fn scratch(repository: &Repository) -> Result<PathBuf, IsolationError> {
    let device = |path: &Path| fs::metadata(path).map(|about| about.dev()).map_err(IsolationError::io(path));
    let in_git_dir = repository.git_dir.join(SCRATCH);
    let is_same = device(&repository.git_dir)? == device(&repository.root)?;
    Ok(if is_same { in_git_dir } else { repository.root.join(format!(".{SCRATCH}")) })
}

/// Ends a merge in this repository that was killed, if there is one: it is undone, or completed if its commits were there
/// already. Takes the lock only when there is something to do.
///
/// # Errors
/// [`IsolationError`]; what is left is looked at again the next time.
pub(crate) async fn recover(git: &Git, repository: &Repository) -> Result<(), IsolationError> {
    if scratch(repository)?.exists() {
        let _lock = take(repository).await?;
        recover_locked(git, repository).await?;
    }
    Ok(())
}

/// [`recover`] for the holder of the lock.
///
/// # Errors
/// As [`recover`].
pub(crate) async fn recover_locked(git: &Git, repository: &Repository) -> Result<(), IsolationError> {
    let scratch = scratch(repository)?;
    let Some(left) = Replacements::read_journal(&scratch) else { return remove(scratch).await };
    let head = repository.place(git).object(args!["rev-parse", "--verify", "HEAD"]).await?;
    let index = repository.index();
    blocking(move || finish(&left, &head, &index)).await
}

async fn remove(scratch: PathBuf) -> Result<(), IsolationError> {
    blocking(move || match fs::remove_dir_all(&scratch) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(IsolationError::io(&scratch)(error)),
        _ => Ok(()),
    })
    .await
}

/// Completes or undoes a merge.
fn finish(left: &Replacements, head: &str, index: &Path) -> Result<(), IsolationError> {
    let lock = index_lock(index);
    let is_ours = |branch: &crate::working_files::BranchMove| {
        Stamp::of(&lock).is_ok_and(|stamp| stamp == Some(branch.index_lock))
    };
    let mut kept = Vec::new();
    match &left.branch {
        Some(branch) if branch.new_head == head => {
            if is_ours(branch) {
                fs::rename(&lock, index).map_err(IsolationError::io(index))?;
            }
            tracing::warn!(repository = %left.root().display(), "completed a merge that was killed");
        }
        branch => {
            let has_lock = branch.as_ref().is_some_and(is_ours);
            // All files are replaced, and the user may have gone on from there: only a branch that is about to be moved is undone.
            if left.is_done()? && !has_lock {
                return discard_scratch(left.scratch(), &kept);
            }
            kept = left.undo()?;
            if has_lock {
                fs::remove_file(&lock).map_err(IsolationError::io(&lock))?;
            }
            tracing::warn!(repository = %left.root().display(), "undid a merge that was killed");
        }
    }
    discard_scratch(left.scratch(), &kept)
}

/// Git's own lock of an index.
pub(crate) fn index_lock(index: &Path) -> PathBuf {
    index.with_file_name("index.lock")
}

/// Removes a scratch folder, or moves it aside if it has old contents of files that could not be put back.
///
/// # Errors
/// The system's.
pub(crate) fn discard_scratch(scratch: &Path, kept: &[KeptFile]) -> Result<(), IsolationError> {
    if kept.is_empty() {
        return match fs::remove_dir_all(scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(IsolationError::io(scratch)(error)),
            _ => Ok(()),
        };
    }
    let aside = aside(scratch);
    fs::rename(scratch, &aside).map_err(IsolationError::io(scratch))?;
    for file in kept {
        let content = file
            .old_content
            .strip_prefix(scratch)
            .map_or_else(|_| file.old_content.clone(), |it| aside.join(it));
        tracing::warn!(
            file = %file.path.display(),
            old_content = %content.display(),
            "a file changed while a merge was undone: it was left as it is, and what it was before the merge is kept"
        );
    }
    Ok(())
}

fn aside(scratch: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut name = scratch.file_name().unwrap_or_default().to_owned();
    name.push(format!("-kept-{now}"));
    scratch.with_file_name(name)
}
