//! Putting a file of the current version in the place of an old one, which stays under another name.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use agentd_files::replace::{ReplaceCalls, Replacement};
use agentd_protocol::entry::SESSION_VERSION;

use crate::{
    SessionTree, StoreError,
    io::{FileIo, Io, open_named},
};

/// The number of originals of one session that are kept: each is an attempt that a later program undid.
const ORIGINALS: u32 = 100;

const ACTION: &str = "rewrite in the current format the session file";

/// Replaces the file at `path` by one with the whole tree, in one step: a crash leaves the old file or the new one. The old
/// file keeps its content as `<path>.v<version>.bak`, which is the second value returned.
///
/// The new file is locked before it gets its name, so the session is never unlocked.
///
/// # Errors
/// [`StoreError::Io`]; the session file is then as it was.
pub(crate) fn replace(
    io: &dyn Io,
    path: &Path,
    tree: &SessionTree,
    version: u32,
) -> Result<(Box<dyn FileIo>, PathBuf), StoreError> {
    let real = fs::canonicalize(path).map_err(StoreError::io(ACTION, path))?;
    // The name is no `.jsonl`, so that no program takes it for a session. A leftover of a crash is made anew: the lock on the
    // session is ours.
    let temporary = with_end(&real, ".migrating");
    if temporary.exists() {
        io.remove(&temporary).map_err(StoreError::io(ACTION, path))?;
    }
    let mut original = None;
    let replaced = (|| {
        let mut new = Replacement::create_at(ThroughIo(io), temporary)?;
        let file = new.file_mut();
        if !file.try_lock()? {
            return Err(io::Error::other("its replacement is locked"));
        }
        file.copy_mode(&real)?;
        let mut text = Vec::new();
        tree.write_to(&mut text);
        crate::append::write_all(&mut **file, &text, &mut 0)?;
        file.sync()?;
        let kept = original.insert(keep(io, &real, version)?).clone();
        Ok((new.commit(&real)?, kept))
    })();
    let replaced = replaced.map_err(|source| {
        // A second name of a file that is there is of no use.
        if let Some(original) = original.filter(|original| original.exists()) {
            ThroughIo(io).remove(&original);
        }
        StoreError::Io { action: ACTION, path: path.to_owned(), source }
    })?;
    if let Some(dir) = real.parent() {
        io.sync_dir(dir).map_err(StoreError::io("sync the folder", dir))?;
    }
    Ok(replaced)
}

/// The calls of a replacement, through the layer that tests make fail.
struct ThroughIo<'a>(&'a dyn Io);

impl ReplaceCalls for ThroughIo<'_> {
    type File = Box<dyn FileIo>;

    fn create_new(&self, path: &Path) -> io::Result<Self::File> {
        self.0.create_new(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, path: &Path) {
        if let Err(error) = self.0.remove(path) {
            tracing::warn!(%error, path = %path.display(), "cannot remove a temporary file");
        }
    }
}

/// Gives the file a second name, that of an original; where the file system has no such thing, it is copied.
fn keep(io: &dyn Io, real: &Path, version: u32) -> io::Result<PathBuf> {
    for attempt in 1..=ORIGINALS {
        let name = with_end(real, &end_of_original(version, attempt));
        if is_same(io, real, &name) {
            // A crash came between this step and the next one.
            return Ok(name);
        }
        match io.link(real, &name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                tracing::debug!(%error, "the file system has no second names: the original is copied");
                match copy(io, real, &name) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    copied => return copied.map(|()| name),
                }
            }
        }
    }
    Err(io::Error::other("too many originals of it are there (.bak)"))
}

/// The originals of a session file that was brought to the current version.
#[must_use]
pub fn kept_originals(path: &Path) -> Vec<PathBuf> {
    let named = |version: u32| {
        (1..=ORIGINALS)
            .map(move |attempt| with_end(path, &end_of_original(version, attempt)))
            .take_while(|name| name.symlink_metadata().is_ok())
    };
    (1..SESSION_VERSION).flat_map(named).collect()
}

fn end_of_original(version: u32, attempt: u32) -> String {
    if attempt == 1 { format!(".v{version}.bak") } else { format!(".v{version}.{attempt}.bak") }
}

fn is_same(io: &dyn Io, one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| io.stat(path).ok().and_then(|state| state.identity);
    identity(other).is_some_and(|it| Some(it) == identity(one))
}

fn copy(io: &dyn Io, from: &Path, to: &Path) -> io::Result<()> {
    let mut source = open_named(from)?;
    let mut target = io.create_new(to)?;
    let copied = (|| {
        target.copy_mode(from)?;
        let mut chunk = vec![0; 256 << 10];
        loop {
            match io::Read::read(&mut source, &mut chunk)? {
                0 => return target.sync(),
                count => crate::append::write_all(&mut *target, &chunk[..count], &mut 0)?,
            }
        }
    })();
    copied.or_else(|error| io.remove(to).and(Err(error)))
}

/// The path with something behind its name.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(end);
    PathBuf::from(name)
}
