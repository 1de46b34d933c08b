//! What `trust.json` says of a folder. The form of the file is the reference's: folders, and true or false.

use std::path::{Path, PathBuf};

use agentd_protocol::resources::{Diagnostic, DiagnosticLevel};
use serde_json::Value;

use super::KIND;
use crate::{json_file::read_json, paths::canonical};

/// The decision for a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Saved {
    /// There is none.
    Nothing,
    /// The entry of this folder says yes.
    Yes(PathBuf),
    /// The entry of this folder says no.
    No(PathBuf),
}

/// The entry for the nearest ancestor of `cwd`, itself included. A yes does not reach into a repository below its folder, such as
/// a clone, a submodule or another worktree: somebody else may have made that. A no reaches everything below.
pub(super) fn saved(file: &Path, cwd: &Path) -> Result<Saved, Diagnostic> {
    let Some(document) = read_json(file).map_err(|error| error.diagnostic(KIND))? else {
        return Ok(Saved::Nothing);
    };
    let Value::Object(decisions) = document.value else {
        let problem = Diagnostic::warning(KIND, "expected an object of directories and true or false");
        return Err(problem.level(DiagnosticLevel::Error).at(file));
    };
    let mut is_in_repository = false;
    for folder in canonical(cwd).ancestors() {
        let decision = folder.to_str().and_then(|text| decisions.get(text)?.as_bool());
        match decision {
            Some(true) if is_in_repository => return Ok(Saved::Nothing),
            Some(true) => return Ok(Saved::Yes(folder.to_path_buf())),
            Some(false) => return Ok(Saved::No(folder.to_path_buf())),
            None => is_in_repository |= folder.join(".git").symlink_metadata().is_ok(),
        }
    }
    Ok(Saved::Nothing)
}
