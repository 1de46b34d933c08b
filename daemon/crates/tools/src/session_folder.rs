//! The session's own folder, whose files tools name `local://NAME`: drafts and plans that belong to no project.
//!
//! It lies beside the session's long outputs, or, for a session without a file, in a temporary folder that goes with the session. Links that
//! lead out of it are not followed.

use std::{
    fs::{self, DirBuilder},
    io::{self, Read as _},
    os::unix::fs::DirBuilderExt as _,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use agentd_agent::ToolError;
use agentd_protocol::agent_mode::LOCAL_URL;
use tempfile::TempDir;

use crate::{
    blocking, errno,
    operations::{FileKind, FileSystem as _, LocalFiles, OpenFile},
    real_path::real_path,
};

/// Names of files that an error lists.
const MAX_LISTED: usize = 20;

/// Folders that are looked into for these names.
const MAX_DEPTH: usize = 4;

/// The folder of a session's own files. Cheap to clone; all clones are the same folder, which is made with its first file.
#[derive(Debug, Clone)]
pub struct SessionFolder(Arc<Place>);

#[derive(Debug)]
enum Place {
    /// A folder that stays when the session leaves memory.
    Kept(PathBuf),
    /// A folder in this one, which is removed with the last clone.
    Temporary { parent: PathBuf, made: Mutex<Option<TempDir>> },
}

impl SessionFolder {
    /// The folder at this path, which need not exist.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Place::Kept(path.into())))
    }

    /// A folder in `parent` for as long as the session is in memory.
    #[must_use]
    pub fn temporary(parent: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Place::Temporary { parent: parent.into(), made: Mutex::default() }))
    }

    /// The path of a file that exists; `name` is what follows `local://`. Blocks.
    ///
    /// # Errors
    /// For the model: the file is missing, with the names of those that there are, or is not in the folder.
    pub fn find(&self, name: &str) -> Result<PathBuf, ToolError> {
        let folder = match &*self.0 {
            Place::Kept(path) => Some(path.clone()),
            Place::Temporary { made, .. } => {
                let made = made.lock().unwrap_or_else(PoisonError::into_inner);
                made.as_ref().map(|folder| folder.path().to_owned())
            }
        };
        let missing = |names: &[String]| {
            let there = match names {
                [] => "This session has no such files yet.".to_owned(),
                names => format!("There are: {}.", names.join(", ")),
            };
            ToolError(format!("Not found: {LOCAL_URL}{name}. {there}"))
        };
        let Some(folder) = folder else {
            relative(name)?;
            return Err(missing(&[]));
        };
        let path = inside(&folder, name)?;
        if path.symlink_metadata().is_ok() { Ok(path) } else { Err(missing(&names(&folder))) }
    }

    /// The path for a file that may not exist yet. Makes the folder. Blocks.
    ///
    /// # Errors
    /// For the model: the name leads out of the folder, or the folder cannot be made.
    pub fn place(&self, name: &str) -> Result<PathBuf, ToolError> {
        relative(name)?;
        let folder = self.make().map_err(|error| {
            ToolError(format!("The folder of {LOCAL_URL} cannot be made: {}", errno::sentence(&error)))
        })?;
        inside(&folder, name)
    }

    /// The text of a file, as far as `limit` bytes go; whether there is more. Blocks.
    ///
    /// # Errors
    /// As of [`Self::find`]; or the file cannot be read, or is no text.
    pub fn read(&self, name: &str, limit: u64) -> Result<(String, bool), ToolError> {
        let path = self.find(name)?;
        let failed = |error: &io::Error| {
            ToolError(format!("{LOCAL_URL}{name} cannot be read: {}", errno::sentence(error)))
        };
        let OpenFile { about, content: file, .. } = LocalFiles.open(&path).map_err(|error| failed(&error))?;
        if about.kind != FileKind::File {
            return Err(ToolError(format!("{LOCAL_URL}{name} is no file")));
        }
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(&error))?;
        let is_cut = bytes.len() as u64 > limit;
        if is_cut {
            bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok((text, is_cut)),
            // The limit may cut a character.
            Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
                let end = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(end);
                Ok((String::from_utf8_lossy(&bytes).into_owned(), true))
            }
            Err(_) => Err(ToolError(format!("{LOCAL_URL}{name} is no text"))),
        }
    }

    /// Writes a file, with the folders that it needs. Blocks.
    ///
    /// # Errors
    /// As of [`Self::place`]; or the file cannot be written.
    pub fn write(&self, name: &str, text: &str) -> Result<(), ToolError> {
        let path = self.place(name)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .map_err(|error| ToolError(errno::describe(&error, "mkdir", folder)))?;
        }
        crate::atomic::replace(&path, text.as_bytes(), None).map_err(|error| ToolError(error.to_string()))
    }

    fn make(&self) -> io::Result<PathBuf> {
        match &*self.0 {
            Place::Kept(path) => {
                DirBuilder::new().recursive(true).mode(0o700).create(path)?;
                Ok(path.clone())
            }
            Place::Temporary { parent, made } => {
                let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                let folder = match made.take() {
                    Some(folder) => folder,
                    None => tempfile::Builder::new().prefix("agentd-session-").tempdir_in(parent)?,
                };
                Ok(made.insert(folder).path().to_owned())
            }
        }
    }
}

/// URLs that can be read alone.
const READ_ONLY: [&str; 4] = ["artifact://", "mcp://", "rule://", "skill://"];

/// What a tool wants of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// It has to be there.
    Existing,
    /// It is written.
    Written,
    /// It has to be there, and is written.
    Changed,
}

/// The path of the session's own file that an argument names; `None` for an argument that is no `local://` URL.
///
/// # Errors
/// As of [`SessionFolder::find`] and [`SessionFolder::place`]; or the session has no folder.
pub(crate) async fn own_file(
    folder: Option<&SessionFolder>,
    argument: &str,
    wanted: Use,
) -> Result<Option<PathBuf>, ToolError> {
    let Some(name) = argument.strip_prefix(LOCAL_URL) else {
        let is_read_only = READ_ONLY.iter().any(|start| argument.starts_with(start));
        return match wanted {
            Use::Written | Use::Changed if is_read_only => {
                Err(ToolError(format!("{argument} cannot be written: of URLs, only {LOCAL_URL} can.")))
            }
            _ => Ok(None),
        };
    };
    let Some(folder) = folder.cloned() else {
        return Err(ToolError(format!("{LOCAL_URL} is not available in this session.")));
    };
    let name = name.to_owned();
    let found = blocking::run(move || match wanted {
        Use::Existing | Use::Changed => folder.find(&name),
        Use::Written => folder.place(&name),
    });
    found.await.map(Some)
}

/// The path below the folder that a name means.
fn relative(name: &str) -> Result<PathBuf, ToolError> {
    // Models write `local:///name`, too.
    let path = Path::new(name.trim_start_matches('/'));
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if name.contains('\0') || !is_plain {
        return Err(leads_out(name));
    }
    if path.as_os_str().is_empty() {
        return Err(ToolError(format!("{LOCAL_URL} names a file: {LOCAL_URL}NAME")));
    }
    Ok(path.to_owned())
}

/// The real path of the file of that name, which is in the folder.
fn inside(folder: &Path, name: &str) -> Result<PathBuf, ToolError> {
    let path = folder.join(relative(name)?);
    let real =
        |path: &Path| real_path(path).map_err(|error| ToolError(errno::describe(&error, "open", path)));
    // Somebody may have put a link in the place of the folder itself.
    let is_own = !folder.is_symlink() && !folder.parent().is_some_and(Path::is_symlink);
    let (root, path) = (real(folder)?, real(&path)?);
    if is_own && path.starts_with(&root) && path != root { Ok(path) } else { Err(leads_out(name)) }
}

fn leads_out(name: &str) -> ToolError {
    ToolError(format!("{LOCAL_URL}{name} leads out of the session's own folder"))
}

/// URLs of files of the folder, sorted, as many as an error lists.
fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    let mut left = vec![(folder.to_owned(), 0)];
    while let Some((next, depth)) = left.pop() {
        // A folder that cannot be listed has no names to show.
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => left.push((entry.path(), depth + 1)),
                Ok(kind) if kind.is_file() => {
                    let path = entry.path();
                    let below = path.strip_prefix(folder).unwrap_or(&path);
                    names.push(format!("{LOCAL_URL}{}", below.display()));
                }
                _ => {}
            }
            if names.len() == MAX_LISTED {
                break;
            }
        }
    }
    names.sort();
    names.truncate(MAX_LISTED);
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_their_names() {
        let dir = tempfile::tempdir().unwrap();
        let folder = SessionFolder::at(dir.path().join("s/local"));
        let missing = folder.find("a-plan.md").unwrap_err().0;
        assert_eq!(missing, "Not found: local://a-plan.md. This session has no such files yet.");
        folder.write("a-plan.md", "one").unwrap();
        folder.write("/notes/b.md", "two").unwrap();
        assert_eq!(folder.read("a-plan.md", 10).unwrap(), ("one".to_owned(), false));
        assert_eq!(folder.read("notes/b.md", 2).unwrap(), ("tw".to_owned(), true));
        let missing = folder.find("c").unwrap_err().0;
        assert_eq!(missing, "Not found: local://c. There are: local://a-plan.md, local://notes/b.md.");
        let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(dir.path().join("s/local")).unwrap());
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn no_name_leads_out() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("secret"), "x").unwrap();
        let folder = SessionFolder::at(dir.path().join("local"));
        folder.write("here", "x").unwrap();
        std::os::unix::fs::symlink("../secret", dir.path().join("local/link")).unwrap();
        std::os::unix::fs::symlink("..", dir.path().join("local/up")).unwrap();
        std::os::unix::fs::symlink("here", dir.path().join("local/alias")).unwrap();
        for name in ["../secret", "a/../../secret", "link", "up/secret", "up/new", ".", "a\0b"] {
            let expected = format!("local://{name} leads out of the session's own folder");
            assert_eq!(folder.find(name).unwrap_err().0, expected);
            assert_eq!(folder.place(name).unwrap_err().0, expected);
        }
        assert_eq!(folder.find("").unwrap_err().0, "local:// names a file: local://NAME");
        assert_eq!(folder.find("alias").unwrap(), fs::canonicalize(dir.path().join("local/here")).unwrap());
        let linked = dir.path().join("linked");
        std::os::unix::fs::symlink("local", &linked).unwrap();
        assert!(SessionFolder::at(&linked).find("here").is_err());
    }

    #[test]
    fn a_temporary_folder_goes_with_its_session() {
        let parent = tempfile::tempdir().unwrap();
        let folder = SessionFolder::temporary(parent.path());
        assert!(folder.find("x").is_err());
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0, "nothing is made before it is needed");
        let other = folder.clone();
        folder.write("x", "ä").unwrap();
        drop(folder);
        assert_eq!(other.read("x", 1).unwrap(), (String::new(), true));
        drop(other);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
