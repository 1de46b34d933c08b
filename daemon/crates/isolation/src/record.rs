//! What is noted beside a copy, so that a later daemon knows what it is, and whether its owner lives.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use agentd_files::lock;
use serde::{Deserialize, Serialize};

use crate::{error::IsolationError, repository::Repository};

/// The file beside a copy that says what it is.
const RECORD: &str = "copy.json";

/// The file beside a copy that its owner has locked.
const LOCK: &str = "lock";

/// A copy.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CopyRecord {
    pub(crate) id: String,
    /// The copy of the outermost repository's folder.
    #[serde(with = "path_bytes")]
    pub(crate) work: PathBuf,
    /// The folders of all repositories that have a worktree in the copy.
    #[serde(with = "path_list")]
    pub(crate) common_dirs: Vec<PathBuf>,
    /// Outermost first. Empty until the copy is complete, which is before anybody can work in it.
    pub(crate) units: Vec<CopiedUnit>,
}

/// The copy of one repository.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CopiedUnit {
    pub(crate) repository: Repository,
    /// The copy of its working files.
    #[serde(with = "path_bytes")]
    pub(crate) work: PathBuf,
    /// The folder that git keeps about the copy, in the repository's `worktrees`.
    #[serde(with = "path_bytes")]
    pub(crate) worktree_dir: PathBuf,
    /// Its commit at the time of the copy.
    pub(crate) head: String,
    /// The tree of all its files at that time.
    pub(crate) baseline: String,
    /// Folders in it that are no files of it: nested repositories and links, below its root.
    #[serde(with = "path_list")]
    pub(crate) excluded: Vec<PathBuf>,
    /// The number of the unit, which names its scratch files.
    pub(crate) number: usize,
}

/// The folder of a copy with the files beside it, locked by this process.
#[derive(Debug)]
pub(crate) struct CopyFolder {
    pub(crate) path: PathBuf,
    _lock: File,
}

impl CopyFolder {
    /// Makes and locks a folder `<id>-<number>` in `base`. Blocks.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create(base: &Path, id: &str) -> Result<Self, IsolationError> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(base).map_err(IsolationError::io(base))?;
        // Nobody takes the new folder for a leftover before it is locked.
        let _all = lock_all(base)?;
        for number in 0_u64.. {
            let path = base.join(format!("{id}-{number}"));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    let file = open_lock(&path)?;
                    file.lock().map_err(IsolationError::io(&path))?;
                    let _ = file.write_all_at(format!("{}\n", std::process::id()).as_bytes(), 0);
                    return Ok(Self { path, _lock: file });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(IsolationError::io(&path)(error)),
            }
        }
        unreachable!("there is a free number")
    }

    /// The folders in `base` whose owner is gone, locked. Blocks.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn orphans(base: &Path) -> Result<Vec<Self>, IsolationError> {
        let entries = match fs::read_dir(base) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(IsolationError::io(base)(error)),
        };
        let _all = lock_all(base)?;
        let mut orphans = Vec::new();
        for entry in entries.flatten() {
            let path = entry.path();
            if !path.join(LOCK).exists() {
                continue;
            }
            let file = open_lock(&path)?;
            if lock::try_lock(&file).map_err(IsolationError::io(&path))? {
                orphans.push(Self { path, _lock: file });
            }
        }
        Ok(orphans)
    }

    /// # Errors
    /// The system's.
    pub(crate) fn write(&self, record: &CopyRecord) -> Result<(), IsolationError> {
        let path = self.path.join(RECORD);
        let temporary = self.path.join("copy.json.new");
        let text = serde_json::to_vec(record).map_err(|error| IsolationError::io(&path)(error.into()))?;
        fs::write(&temporary, text).map_err(IsolationError::io(&temporary))?;
        fs::rename(&temporary, &path).map_err(IsolationError::io(&path))
    }

    /// The record, unless it was never written or cannot be read.
    pub(crate) fn read(&self) -> Option<CopyRecord> {
        serde_json::from_slice(&fs::read(self.path.join(RECORD)).ok()?).ok()
    }

    /// The scratch folder of a unit.
    pub(crate) fn unit(&self, number: usize) -> PathBuf {
        self.path.join(format!("unit-{number}"))
    }

    /// Removes the folder with everything in it.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn remove(&self) -> Result<(), IsolationError> {
        // The lock goes last: a folder without it is never looked at again.
        for entry in fs::read_dir(&self.path).map_err(IsolationError::io(&self.path))?.flatten() {
            let path = entry.path();
            if entry.file_name() == LOCK {
                continue;
            }
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let removed = if is_folder { remove_folder(&path) } else { fs::remove_file(&path) };
            removed.map_err(IsolationError::io(&path))?;
        }
        fs::remove_dir_all(&self.path).map_err(IsolationError::io(&self.path))
    }
}

/// Removes a folder in which a child may have taken its own rights away.
fn remove_folder(path: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            make_writable(path);
            fs::remove_dir_all(path)
        }
        other => other,
    }
}

fn make_writable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        // What cannot be changed is in the error of the removal.
        let _ = fs::set_permissions(&folder, fs::Permissions::from_mode(0o700));
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        open.extend(folders.map(|entry| entry.path()));
    }
}

fn open_lock(folder: &Path) -> Result<File, IsolationError> {
    let path = folder.join(LOCK);
    let options =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    options.map_err(IsolationError::io(&path))
}

/// Held for moments only: while a folder is made, and while those without an owner are looked for.
fn lock_all(base: &Path) -> Result<File, IsolationError> {
    let file = open_lock(base)?;
    file.lock().map_err(IsolationError::io(base))?;
    Ok(file)
}

/// A path in JSON: its bytes, since it need not be Unicode.
pub(crate) mod path_bytes {
    use std::{
        ffi::OsString,
        os::unix::ffi::{OsStrExt as _, OsStringExt as _},
        path::{Path, PathBuf},
    };

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    #[derive(serde::Serialize, serde::Deserialize)]
    #[serde(untagged)]
    pub(super) enum Form {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn form(path: &Path) -> Form {
        match path.to_str() {
            Some(text) => Form::Text(text.to_owned()),
            None => Form::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }

    pub(super) fn path(form: Form) -> PathBuf {
        match form {
            Form::Text(text) => PathBuf::from(text),
            Form::Bytes(bytes) => PathBuf::from(OsString::from_vec(bytes)),
        }
    }

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        form(path).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
        Form::deserialize(deserializer).map(path)
    }
}

/// Paths in JSON.
pub(crate) mod path_list {
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serializer, ser::SerializeSeq as _};

    use super::path_bytes::{Form, form, path};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(paths.len()))?;
        for path in paths {
            list.serialize_element(&form(path))?;
        }
        list.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Form>::deserialize(deserializer)?.into_iter().map(path).collect())
    }
}
