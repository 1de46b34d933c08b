//! The files of a project that can start something or say where data goes, as they were when the user trusted them.
//!
//! The reference keeps no such thing, so that it has a file of its own beside `trust.json`: for each working directory, a hash
//! of each file.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{KIND, PATIENCE};
use crate::{
    AgentDir, Environment, MemberChange, PrivateObject, PrivateObjectError, ProjectFolders,
    json_file::{read_json, read_project_json},
    paths::canonical,
    resolve_path,
};
use agentd_protocol::resources::{Diagnostic, DiagnosticLevel};

/// The files of a project folder that can start something.
const STARTING: [&str; 2] = ["settings.json", "mcp.json"];

/// How much of a program is read; its length counts, too.
const MAX_HASHED: u64 = 64 << 20;

/// The hash of what cannot be read: nobody uses it either.
const UNREADABLE: &str = "unreadable";

/// The files of a project that can start something or say where data goes: a hash of each, by its path below the project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartingFiles(BTreeMap<String, String>);

impl StartingFiles {
    /// The files as they are now. Reads them; blocks.
    #[must_use]
    pub fn of(cwd: &Path, folders: &ProjectFolders, environment: &Environment) -> Self {
        let in_folders = folders.all().flat_map(|folder| STARTING.map(|name| folder.join(name)));
        let files = in_folders.chain(shell(cwd, folders, environment));
        let named = |path: PathBuf| {
            let name = path.strip_prefix(cwd).unwrap_or(&path).display().to_string();
            Some((name, hash(&path)?))
        };
        Self(files.filter_map(named).collect())
    }

    /// The files that are not as they were then, below `cwd`: changed, added or gone.
    #[must_use]
    pub fn differing(&self, then: &Self, cwd: &Path) -> Vec<PathBuf> {
        let changed =
            self.0.iter().filter(|(name, hash)| then.0.get(*name) != Some(hash)).map(|(name, _)| name);
        let gone = then.0.keys().filter(|name| !self.0.contains_key(*name));
        changed.chain(gone).map(|name| cwd.join(name)).collect()
    }
}

/// The shell that the project's settings name, where that is a file of the project itself.
fn shell(cwd: &Path, folders: &ProjectFolders, environment: &Environment) -> Option<PathBuf> {
    let settings = read_project_json(&folders.find("settings.json")?).ok()??;
    let path = resolve_path(settings.value.get("shellPath")?.as_str()?, cwd, environment);
    canonical(&path).starts_with(canonical(cwd)).then_some(path)
}

/// `None` where there is no file.
fn hash(path: &Path) -> Option<String> {
    let read = || -> io::Result<String> {
        // Looked at before opening: opening a named pipe would wait for its writer.
        let about = path.metadata()?;
        if !about.is_file() {
            return Ok(UNREADABLE.to_owned());
        }
        let mut hasher = Sha256::new();
        let (mut file, mut buffer) = (File::open(path)?.take(MAX_HASHED), vec![0; 1 << 16]);
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                count => hasher.update(&buffer[..count]),
            }
        }
        hasher.update(about.len().to_le_bytes());
        Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    };
    match read() {
        Ok(hash) => Some(hash),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        Err(_) => Some(UNREADABLE.to_owned()),
    }
}

/// The files as they were when the user trusted this working directory; `None` where nobody noted that.
pub(super) fn noted(agent_dir: &AgentDir, cwd: &Path) -> Result<Option<StartingFiles>, Diagnostic> {
    let path = agent_dir.trusted_files_file();
    let Some(document) = read_json(&path).map_err(|error| error.diagnostic(KIND))? else { return Ok(None) };
    let wrong = || {
        let problem = Diagnostic::warning(KIND, "expected an object of directories and their files");
        problem.level(DiagnosticLevel::Error).at(&path)
    };
    let Value::Object(directories) = document.value else { return Err(wrong()) };
    let Some(files) = directories.get(&key(cwd)) else { return Ok(None) };
    let hashes = files.as_object().ok_or_else(wrong)?;
    let read = |(name, hash): (&String, &Value)| Some((name.clone(), hash.as_str()?.to_owned()));
    Ok(Some(StartingFiles(hashes.iter().map(read).collect::<Option<_>>().ok_or_else(wrong)?)))
}

/// Notes the files that the user trusts in a working directory; `None` forgets them. Blocks on the file system, and on
/// another program that changes the note.
///
/// # Errors
/// [`PrivateObjectError`]; then the note is unchanged.
pub fn note_trusted_files(
    agent_dir: &AgentDir,
    cwd: &Path,
    files: Option<&StartingFiles>,
) -> Result<(), PrivateObjectError> {
    let (path, lock) = (agent_dir.trusted_files_file(), agent_dir.run_dir().join("trust.lock"));
    let object = PrivateObject { path: &path, lock: &lock, patience: PATIENCE };
    let key = key(cwd);
    object
        .edit(|directories| {
            let change = match files {
                Some(files) => {
                    let hashes = files.0.iter().map(|(name, hash)| (name.clone(), hash.clone().into()));
                    Some(MemberChange::Set(vec![key.clone()], Value::Object(Map::from_iter(hashes))))
                }
                None => directories.contains_key(&key).then(|| MemberChange::Remove(key.clone())),
            };
            Ok::<_, PrivateObjectError>((change.into_iter().collect(), ()))
        })
        .map(|_| ())
}

fn key(cwd: &Path) -> String {
    canonical(cwd).display().to_string()
}
