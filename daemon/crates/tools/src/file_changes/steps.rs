//! Makes the steps of a change, all or none.

use std::{fmt::Display, path::Path};

use agentd_agent::ToolError;
use agentd_files::fail_point::{self, Point};

use super::change::FileChange;
use crate::operations::{FileSystem, WriteError};

/// Checks, before anything is changed, that all files may be changed and are as they were read.
pub(super) fn check_all(files: &dyn FileSystem, changes: &[FileChange]) -> Result<(), ToolError> {
    let nothing = |why: &dyn Display| ToolError(format!("{why}. Nothing was changed."));
    for path in changes.iter().flat_map(FileChange::paths) {
        files.may_write(path).map_err(|error| ToolError(error.to_string()))?;
    }
    for change in changes {
        let (FileChange::Write { path, before: Some(before), .. } | FileChange::Remove { path, before }) =
            change
        else {
            continue;
        };
        match before.is_still(files, path) {
            Ok(true) => {}
            Ok(false) => return Err(nothing(&WriteError::Changed(path.clone()))),
            Err(source) => {
                return Err(nothing(&WriteError::System { call: "open", path: path.clone(), source }));
            }
        }
    }
    Ok(())
}

/// Makes all changes, or none.
pub(super) fn apply(files: &dyn FileSystem, changes: &[FileChange]) -> Result<(), ToolError> {
    for (done, change) in changes.iter().enumerate() {
        if let Err(error) = apply_one(files, change) {
            let mut text = format!("{error}. Nothing was changed.");
            let back: Vec<String> = changes[..done]
                .iter()
                .rev()
                .filter_map(|change| take_back(files, change).err())
                .map(|error| error.to_string())
                .collect();
            if !back.is_empty() {
                text = format!(
                    "{error}. Some files are changed, and could not be taken back: {}",
                    back.join("; ")
                );
            }
            return Err(ToolError(text));
        }
        fail_point::hit(Point::ChangeStep);
    }
    Ok(())
}

/// Makes one step.
pub(super) fn apply_one(files: &dyn FileSystem, change: &FileChange) -> Result<(), WriteError> {
    let folder_of = |path: &Path| match path.parent() {
        Some(folder) => files.create_folders(folder).map_err(|source| WriteError::System {
            call: "mkdir",
            path: folder.to_owned(),
            source,
        }),
        None => Ok(()),
    };
    match change {
        FileChange::Write { path, content, before: Some(before) } => {
            files.check_change(path).map_err(|source| WriteError::System {
                call: "open",
                path: path.clone(),
                source,
            })?;
            files.replace(path, content, Some(&before.snapshot()))
        }
        FileChange::Write { path, content, before: None } => {
            if files.about(path).is_ok() {
                return Err(WriteError::Changed(path.clone()));
            }
            folder_of(path)?;
            files.replace(path, content, None)
        }
        FileChange::Move { from, to } => {
            folder_of(to)?;
            files.move_file(from, to)
        }
        FileChange::Remove { path, .. } => files.remove_file(path),
    }
}

fn take_back(files: &dyn FileSystem, change: &FileChange) -> Result<(), WriteError> {
    match change {
        FileChange::Write { path, before: Some(before), .. } | FileChange::Remove { path, before } => {
            files.replace(path, &before.content, None)
        }
        FileChange::Write { path, before: None, .. } => files.remove_file(path),
        FileChange::Move { from, to } => files.move_file(to, from),
    }
}
