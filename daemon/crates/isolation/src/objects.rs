//! An object store of our own, in which a repository's objects can be seen: what is only compared leaves no trace in the user's
//! repository. What is to stay there is moved as a pack.

use std::{
    fs,
    io::Write as _,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::{Path, PathBuf},
};

use crate::{
    error::{IsolationError, blocking},
    git::{GitPlace, args},
};

/// Makes the folder of an object store that sees the objects of `common_dir`, a repository's folder.
///
/// # Errors
/// The system's.
pub(crate) fn create(objects: &Path, common_dir: &Path) -> Result<(), IsolationError> {
    let info = objects.join("info");
    for folder in [&info, &objects.join("pack")] {
        fs::create_dir_all(folder).map_err(IsolationError::io(folder))?;
    }
    let path = info.join("alternates");
    let line = alternate_line(common_dir.join("objects").as_os_str().as_bytes());
    fs::write(&path, line).map_err(IsolationError::io(&path))
}

/// A path as a line of `info/alternates`: one with a line end has to be quoted.
fn alternate_line(path: &[u8]) -> Vec<u8> {
    if !path.contains(&b'\n') {
        return [path, b"\n"].concat();
    }
    let mut line = vec![b'"'];
    for byte in path {
        match byte {
            b'\n' => line.extend_from_slice(b"\\n"),
            b'"' | b'\\' => line.extend_from_slice(&[b'\\', *byte]),
            other => line.push(*other),
        }
    }
    line.extend_from_slice(b"\"\n");
    line
}

/// Moves everything that `wanted` needs and `known` does not into the repository. `place` sees all of it.
///
/// # Errors
/// [`IsolationError`]. Cancel safety: if dropped, the repository has the pack or has not; an unused pack is removed by `git gc`.
pub(crate) async fn publish(
    place: &GitPlace,
    (wanted, known): (&[&str], &str),
    scratch: &Path,
    common_dir: &Path,
) -> Result<(), IsolationError> {
    let mut revisions = String::new();
    wanted.iter().for_each(|object| revisions.extend([object, "\n"]));
    revisions.extend(["^", known, "\n"]);
    let base = scratch.join("publish");
    let hash = place.run_with(args!["pack-objects", "-q", "--revs", base], revisions.into_bytes()).await?;
    let hash = String::from_utf8_lossy(&hash).trim().to_owned();
    let (scratch, packs) = (scratch.to_owned(), common_dir.join("objects/pack"));
    blocking(move || move_pack(&scratch, &hash, &packs)).await
}

/// The pack goes before its index: git looks for packs by their indexes.
fn move_pack(scratch: &Path, hash: &str, packs: &Path) -> Result<(), IsolationError> {
    fs::create_dir_all(packs).map_err(IsolationError::io(packs))?;
    for ending in ["pack", "idx"] {
        let from = scratch.join(format!("publish-{hash}.{ending}"));
        let to = packs.join(format!("pack-{hash}.{ending}"));
        if to.exists() {
            continue;
        }
        let temporary = packs.join(format!("tmp_agentd_{hash}.{ending}"));
        copy_durably(&from, &temporary)?;
        fs::rename(&temporary, &to).map_err(IsolationError::io(&to))?;
    }
    Ok(())
}

fn copy_durably(from: &Path, to: &Path) -> Result<(), IsolationError> {
    let content = fs::File::open(from).map_err(IsolationError::io(from))?;
    let write = || {
        let mut new = fs::File::create(to)?;
        std::io::copy(&mut &content, &mut new)?;
        new.flush()?;
        new.set_permissions(fs::Permissions::from_mode(0o444))?;
        new.sync_all()
    };
    write().map_err(IsolationError::io(to))
}

/// The file in a scratch folder that says that files of the user's may be there.
pub(crate) const JOURNAL: &str = "journal.json";

/// A folder of scratch files with an object store. When this is dropped it is removed, unless there is a journal in it.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Empties the folder, and makes an object store in it.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create(path: PathBuf, common_dir: &Path) -> Result<Self, IsolationError> {
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(IsolationError::io(&path)(error));
            }
            _ => {}
        }
        create(&path.join("objects"), common_dir)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.0.join("objects")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.0.join(JOURNAL).exists() {
            return;
        }
        if let Err(error) = fs::remove_dir_all(&self.0)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, folder = %self.0.display(), "scratch files of a merge could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternates_with_line_ends_are_quoted() {
        assert_eq!(alternate_line(b"/a b/objects"), b"/a b/objects\n");
        assert_eq!(alternate_line(b"/a\n\"\\b"), b"\"/a\\n\\\"\\\\b\"\n");
    }
}
