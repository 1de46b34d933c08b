//! Finds the copies that killed daemons left behind, and clears them away without losing what a child had done there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use agentd_protocol::isolation::IsolationMode;

use crate::{
    capture::{self, CaptureOptions},
    changes::UnitChange,
    error::{IsolationError, blocking},
    git::Git,
    record::CopyFolder,
    removal::remove,
};

/// A copy of a daemon that was killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The id of its task.
    pub id: String,
    /// The folder of the copy.
    pub copy: PathBuf,
    /// What became of it.
    pub fate: LeftoverFate,
}

/// What became of a copy that was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftoverFate {
    /// Nothing was changed in it: it is removed.
    Removed,
    /// Its changes are in these patch files, and it is removed.
    Rescued {
        /// The patches, one for each repository with changes.
        patches: Vec<PathBuf>,
    },
    /// Its changes could not be captured: it stays.
    Kept {
        /// Why not.
        reason: String,
    },
}

/// Clears away copies in `base` whose owner is gone. Changes in them are written to `<base>/rescued` first.
///
/// # Errors
/// Those of reading `base`; what concerns one copy is its fate.
pub(crate) async fn clear(git: &Git, base: &Path) -> Result<Vec<Leftover>, IsolationError> {
    let place = base.to_owned();
    let orphans = blocking(move || CopyFolder::orphans(&place)).await?;
    let mut found = Vec::new();
    for folder in orphans {
        let Some(record) = folder.read() else {
            // Without a record nothing was copied yet.
            blocking(move || folder.remove()).await?;
            continue;
        };
        let (id, copy) = (record.id.clone(), folder.path.clone());
        let rescued = if record.units.is_empty() {
            // It was never complete, so that nobody has worked in it.
            Ok(Vec::new())
        } else {
            rescue(git, base, &folder).await
        };
        let fate = match rescued {
            Err(error) => LeftoverFate::Kept { reason: error.to_string() },
            Ok(patches) => match blocking(move || remove(&folder, &record)).await {
                Err(error) => LeftoverFate::Kept { reason: error.to_string() },
                Ok(()) if patches.is_empty() => LeftoverFate::Removed,
                Ok(()) => LeftoverFate::Rescued { patches },
            },
        };
        tracing::warn!(copy = %copy.display(), ?fate, "found an isolated copy of a daemon that was killed");
        found.push(Leftover { id, copy, fate });
    }
    Ok(found)
}

/// Writes the changes of a copy to patch files. Returns them.
async fn rescue(git: &Git, base: &Path, folder: &CopyFolder) -> Result<Vec<PathBuf>, IsolationError> {
    let Some(record) = folder.read() else { return Ok(Vec::new()) };
    let place = base.join("rescued");
    let made = place.clone();
    blocking(move || fs::create_dir_all(&made).map_err(IsolationError::io(&made))).await?;
    let mut name = folder.path.file_name().unwrap_or_default().to_owned();
    name.push(".patch");
    let patch_path = free_name(&place.join(name));
    let options =
        CaptureOptions { mode: IsolationMode::Patch, patch_path, message: String::new(), writer: None };
    let captured = capture::capture(git, &record, folder, &options).await?;
    if captured.is_empty() {
        // It stays if patches of others are in it.
        let _ = fs::remove_dir(&place);
    }
    let patches = captured.units.into_iter().filter_map(|unit| match unit.change {
        UnitChange::Patch { path } => Some(path),
        UnitChange::Branch { .. } => None,
    });
    Ok(patches.chain(captured.kept).collect())
}

/// Numbers of copies are used again: a patch of an earlier one is not written over.
fn free_name(wanted: &Path) -> PathBuf {
    let stem = wanted.file_stem().unwrap_or_default().to_owned();
    let numbered = (1_u64..).map(|number| {
        let mut name = stem.clone();
        name.push(format!("-{number}.patch"));
        wanted.with_file_name(name)
    });
    std::iter::once(wanted.to_owned())
        .chain(numbered)
        .find(|path| !path.exists())
        .unwrap_or_else(|| wanted.to_owned())
}
