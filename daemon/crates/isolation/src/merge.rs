//! Merges what a task changed into the user's repositories, or throws it away.

use std::{fs, io};

use agentd_protocol::isolation::{IsolationConflict, IsolationMerge, IsolationMode, NestedMerge};

use crate::{
    changes::{Captured, CapturedUnit, UnitChange},
    commits::Conflict,
    error::{IsolationError, blocking},
    git::Git,
    merge_branch::{self, TaskBranch},
    merge_lock,
    merge_patch::{self, Merged},
};

/// Merges the changes of a task, in each repository whole or not at all: the outermost first, and those inside it only when it went
/// well. Merges in one repository run one after the other, also those of other processes.
///
/// A patch goes into the working files; the index stays. The commits of a branch go onto the user's branch, its index and its
/// working files; what is uncommitted there stays uncommitted. A conflict leaves everything as it was.
///
/// # Errors
/// [`IsolationError`]; the repository that failed is as it was.
///
/// Cancel safety: if dropped, the merge continues to its end.
pub async fn merge(git: &Git, captured: &Captured) -> Result<IsolationMerge, IsolationError> {
    let (git, captured) = (git.clone(), captured.clone());
    tokio::spawn(async move { merge_all(&git, &captured).await })
        .await
        .map_err(|_| IsolationError::Panicked)?
}

async fn merge_all(git: &Git, captured: &Captured) -> Result<IsolationMerge, IsolationError> {
    let mut outcome = IsolationMerge {
        id: captured.id.clone(),
        mode: captured.mode,
        applied: true,
        changed: !captured.is_empty(),
        patch_path: None,
        branch: None,
        conflict: None,
        nested: Vec::new(),
        notices: captured.notices.clone(),
    };
    for unit in &captured.units {
        let conflict = if outcome.applied { merge_unit(git, unit).await? } else { None };
        let tried = outcome.applied;
        let applied = tried && conflict.is_none();
        let (mode, patch_path, branch) = match &unit.change {
            UnitChange::Patch { path } => (IsolationMode::Patch, Some(path.display().to_string()), None),
            UnitChange::Branch { name, .. } => (IsolationMode::Branch, None, Some(name.clone())),
        };
        outcome.applied = applied;
        if unit.below().as_os_str().is_empty() {
            (outcome.mode, outcome.patch_path, outcome.branch, outcome.conflict) =
                (mode, patch_path, branch, conflict);
        } else {
            let path = unit.below().display().to_string();
            outcome.nested.push(NestedMerge { path, mode, applied, patch_path, branch, conflict });
        }
    }
    Ok(outcome)
}

async fn merge_unit(git: &Git, unit: &CapturedUnit) -> Result<Option<IsolationConflict>, IsolationError> {
    let repository = &unit.repository;
    let _lock = merge_lock::take(repository).await?;
    merge_lock::recover_locked(git, repository).await?;
    let place = repository.place(git);
    let merged = match &unit.change {
        UnitChange::Patch { path } => merge_patch::merge(&place, repository, path).await?,
        UnitChange::Branch { name, base, tip, .. } => {
            merge_branch::merge(&place, repository, TaskBranch { name, base, tip }).await?
        }
    };
    Ok(match merged {
        Merged::Applied | Merged::AlreadyThere => None,
        Merged::Conflict(Conflict { files, said }) => Some(IsolationConflict {
            files: files.iter().map(|file| file.display().to_string()).collect(),
            reason: agentd_protocol::text_bounds::tail(said.trim(), 2000).to_owned(),
        }),
    })
}

/// Throws the changes of a task away: patch files and branches. What is gone already is no error.
///
/// # Errors
/// [`IsolationError`].
pub async fn discard(git: &Git, captured: &Captured) -> Result<(), IsolationError> {
    for unit in &captured.units {
        match &unit.change {
            UnitChange::Patch { path } => {
                let path = path.clone();
                blocking(move || match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        Err(IsolationError::io(&path)(error))
                    }
                    _ => Ok(()),
                })
                .await?;
            }
            UnitChange::Branch { name, base, tip, .. } => {
                let place = unit.repository.place(git);
                merge_branch::delete(&place, TaskBranch { name, base, tip }).await?;
            }
        }
    }
    Ok(())
}
