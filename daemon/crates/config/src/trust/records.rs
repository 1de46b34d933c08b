//! The trust that the user gave, on the disk: `trust.json` with a decision for each folder, in pi's format, and
//! `trusted-files.json` with the folders and files as they were then.
//!
//! pi has no record of the files, so it is a file of its own: for each folder, what tells it from another folder in its place, and
//! a hash of each file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use agentd_protocol::resources::{Diagnostic, DiagnosticKind, DiagnosticLevel};
use serde_json::{Map, Value};

use super::starting::{FolderIdentity, StartingFiles};
use crate::{
    AgentDir, MemberChange, PrivateObject, PrivateObjectError, json_file::read_json, real_folders::real_path,
};

pub(super) const KIND: DiagnosticKind = DiagnosticKind::Trust;

/// The timeout of saving while another program changes `trust.json`.
pub(super) const SAVE_TIMEOUT: Duration = Duration::from_secs(5);

/// The members that say which folder it is. No file that starts something has such a name.
const FOLDER: &str = ".";
const REPOSITORY: &str = ".git";

/// The recorded files of all folders.
pub(super) struct TrustedFiles {
    path: PathBuf,
    folders: Map<String, Value>,
}

impl TrustedFiles {
    /// Reads the file; there need not be one. Blocks.
    pub(super) fn read(agent_dir: &AgentDir) -> Result<Self, Diagnostic> {
        let path = agent_dir.trusted_files_file();
        let document = read_json(&path).map_err(|error| error.diagnostic(KIND))?;
        let mut notes = Self { path, folders: Map::new() };
        match document.map(|document| document.value) {
            None => {}
            Some(Value::Object(folders)) => notes.folders = folders,
            Some(_) => return Err(notes.wrong()),
        }
        Ok(notes)
    }

    /// The files as they were when the user trusted this folder; `None` without a record.
    pub(super) fn of(&self, folder: &Path) -> Result<Option<StartingFiles>, Diagnostic> {
        let Some(noted) = self.folders.get(&key(folder)) else { return Ok(None) };
        let mut texts = noted.as_object().ok_or_else(|| self.wrong())?.clone();
        let identity = match texts.remove(FOLDER) {
            Some(Value::String(folder)) => {
                let repository = texts.remove(REPOSITORY);
                Some(FolderIdentity {
                    folder,
                    repository: repository.and_then(|it| it.as_str().map(str::to_owned)),
                })
            }
            _ => None,
        };
        let read = |(name, hash): (String, Value)| Some((name, hash.as_str()?.to_owned()));
        let files = texts.into_iter().map(read).collect::<Option<_>>().ok_or_else(|| self.wrong())?;
        Ok(Some(StartingFiles { files, identity }))
    }

    fn wrong(&self) -> Diagnostic {
        let problem = Diagnostic::warning(KIND, "expected an object of directories and their files");
        problem.level(DiagnosticLevel::Error).at(&self.path)
    }
}

/// Notes the files that the user trusts in folders; `None` forgets them. Blocks on the file system, and on another program
/// that changes the note.
///
/// # Errors
/// [`PrivateObjectError`]; then the note is unchanged.
pub fn note_trusted_files<'a>(
    agent_dir: &AgentDir,
    folders: impl IntoIterator<Item = (&'a Path, Option<&'a StartingFiles>)>,
) -> Result<(), PrivateObjectError> {
    let (path, lock) = (agent_dir.trusted_files_file(), agent_dir.run_dir().join("trust.lock"));
    let object = PrivateObject { path: &path, lock: &lock, timeout: SAVE_TIMEOUT };
    let folders: Vec<_> = folders.into_iter().map(|(folder, files)| (key(folder), files)).collect();
    object
        .edit(|noted| {
            let change = |(key, files): &(String, Option<&StartingFiles>)| match files {
                Some(files) => Some(MemberChange::Set(vec![key.clone()], Value::Object(members(files)))),
                None => noted.contains_key(key).then(|| MemberChange::Remove(key.clone())),
            };
            Ok::<_, PrivateObjectError>((folders.iter().filter_map(change).collect(), ()))
        })
        .map(|_| ())
}

fn members(noted: &StartingFiles) -> Map<String, Value> {
    let identity = noted.identity.iter().flat_map(|identity| {
        let repository = identity.repository.clone().map(|mark| (REPOSITORY, mark));
        [(FOLDER, identity.folder.clone())].into_iter().chain(repository)
    });
    let identity = identity.map(|(name, mark)| (name.to_owned(), mark.into()));
    let files = noted.files.iter().map(|(name, hash)| (name.clone(), hash.clone().into()));
    files.chain(identity).collect()
}

fn key(folder: &Path) -> String {
    real_path(folder).display().to_string()
}

/// The decision for a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SavedDecision {
    /// There is none.
    Nothing,
    /// The entry of this folder says yes.
    Yes(PathBuf),
    /// The entry of this folder says no.
    No(PathBuf),
}

/// The entry for the nearest ancestor of `cwd`, itself included. A yes does not reach into a repository below its folder, such
/// as a clone, a submodule or another worktree: another user may have made that. A no reaches everything below.
pub(super) fn saved_decision(file: &Path, cwd: &Path) -> Result<SavedDecision, Diagnostic> {
    let Some(document) = read_json(file).map_err(|error| error.diagnostic(KIND))? else {
        return Ok(SavedDecision::Nothing);
    };
    let Value::Object(decisions) = document.value else {
        let problem = Diagnostic::warning(KIND, "expected an object of directories and true or false");
        return Err(problem.level(DiagnosticLevel::Error).at(file));
    };
    let mut is_in_repository = false;
    for folder in real_path(cwd).ancestors() {
        let decision = folder.to_str().and_then(|text| decisions.get(text)?.as_bool());
        match decision {
            Some(true) if is_in_repository => return Ok(SavedDecision::Nothing),
            Some(true) => return Ok(SavedDecision::Yes(folder.to_path_buf())),
            Some(false) => return Ok(SavedDecision::No(folder.to_path_buf())),
            None => is_in_repository |= folder.join(".git").symlink_metadata().is_ok(),
        }
    }
    Ok(SavedDecision::Nothing)
}
