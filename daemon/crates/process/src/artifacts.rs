//! Stores long outputs whole: beside the session's file, where short ids find them, or in a temporary folder.

use std::{
    ffi::CStr,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use agentd_safe_open::{LinkPolicy, OpenRules};
use rustix::{
    fd::AsFd,
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat, unlinkat},
    io::Errno,
};
use uuid::Uuid;

/// How outputs are opened: only agentd makes these files, so links are refused.
pub(crate) const OUTPUT: OpenRules<'_> = OpenRules::new(LinkPolicy::Refused);

/// The name of an output's file after its id.
const BASH: &str = "bash.log";

/// The name of the folder for the session's own files.
const OWN_FILES: &str = "local";

/// Folders below it that are copied with a session.
const MAX_DEPTH: u32 = 8;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 8;

/// A new file for an output.
#[derive(Debug)]
pub(crate) struct CreatedFile {
    pub(crate) path: PathBuf,
    /// The artifact's id; files in temporary folders have none.
    pub(crate) id: Option<String>,
    pub(crate) file: File,
}

/// The artifacts of one session, in a folder named like the session's file without its ending. The folder is created
/// with the first artifact. Other files in it are left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactFolder(PathBuf);

/// One artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// The artifact's id within its session.
    pub id: String,
    /// The path of its file.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
}

/// A part of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPart {
    /// The artifact.
    pub artifact: Artifact,
    /// The text of the part; U+FFFD stands for bytes that are not UTF-8. No character is split between parts.
    pub text: String,
    /// Where the next part begins, in bytes of the file.
    pub next: u64,
}

impl ArtifactFolder {
    /// The folder that belongs to a session file.
    #[must_use]
    pub fn beside(session_file: &Path) -> Self {
        if session_file.extension().is_some_and(|extension| extension == "jsonl") {
            return Self(session_file.with_extension(""));
        }
        // The user chose this file's name, so the folder needs another one.
        let mut folder = session_file.as_os_str().to_owned();
        folder.push(".artifacts");
        Self(folder.into())
    }

    /// The folder beside the outputs for the session's own files (`local://`), which need not exist.
    #[must_use]
    pub fn own_files(&self) -> PathBuf {
        self.0.join(OWN_FILES)
    }

    fn make(&self) -> io::Result<()> {
        if !self.is_ours() {
            let text = format!("{} is a symbolic link: move it away", self.0.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    /// Creates the file of a new output. Blocks.
    pub(crate) fn create(&self) -> io::Result<CreatedFile> {
        self.make()?;
        loop {
            let id = format!("{:0ID_DIGITS$x}", random() >> (64 - 4 * ID_DIGITS));
            let path = self.0.join(format!("{id}.{BASH}"));
            match new_file(&path) {
                Ok(file) => return Ok(CreatedFile { path, id: Some(id), file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The artifacts, sorted by id. Blocks.
    ///
    /// # Errors
    /// When the folder exists and cannot be read.
    pub fn list(&self) -> io::Result<Vec<Artifact>> {
        if !self.is_ours() {
            return Ok(Vec::new());
        }
        let entries = match fs::read_dir(&self.0) {
            Ok(entries) => entries,
            Err(error) if is_missing(&error) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(id_of) else { continue };
            match entry.metadata() {
                Ok(meta) if meta.is_file() => {
                    found.push(Artifact { id: id.to_owned(), path: entry.path(), bytes: meta.len() });
                }
                // Not an artifact, or removed meanwhile.
                Ok(_) => {}
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        found.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(found)
    }

    /// The artifact `id`; `None` when there is none, whatever the text is. Blocks.
    ///
    /// # Errors
    /// The file system's.
    pub fn find(&self, id: &str) -> io::Result<Option<Artifact>> {
        // An id has only digits, so it cannot lead to another folder.
        if !is_id(id) || !self.is_ours() {
            return Ok(None);
        }
        let path = self.0.join(format!("{id}.{BASH}"));
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_file() => Ok(Some(Artifact { id: id.to_owned(), path, bytes: meta.len() })),
            Ok(_) => Ok(None),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// At most `limit` bytes of the artifact `id` from `offset` on, at least one whole character; `None` when there is
    /// no such artifact. Blocks.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self, id: &str, offset: u64, limit: usize) -> io::Result<Option<ArtifactPart>> {
        let Some(artifact) = self.find(id)? else { return Ok(None) };
        let mut file = OUTPUT.open(&artifact.path)?;
        file.seek(SeekFrom::Start(offset))?;
        let limit = limit.max(char::MAX.len_utf8());
        let mut bytes = Vec::new();
        file.take(limit as u64).read_to_end(&mut bytes)?;
        // A character that the limit cuts off goes to the next part; one that the file's end cuts off is invalid UTF-8.
        if bytes.len() == limit
            && let Some(cut) = cut_character(&bytes)
        {
            bytes.truncate(cut);
        }
        let next = offset + bytes.len() as u64;
        Ok(Some(ArtifactPart { artifact, text: String::from_utf8_lossy(&bytes).into_owned(), next }))
    }

    /// Gives another session the artifacts of this one, under the same ids: as hard links, or as copies where the file
    /// system has no hard links; and copies of the session's own files, links left out. Blocks.
    ///
    /// # Errors
    /// At the first artifact that cannot be linked or copied.
    pub fn share_with(&self, other: &Self) -> io::Result<()> {
        let artifacts = self.list()?;
        // Both sessions may change theirs.
        if self.is_ours() && is_folder(&self.own_files()) {
            other.make()?;
            copy_files(&self.own_files(), &other.own_files(), MAX_DEPTH)?;
        }
        if artifacts.is_empty() {
            return Ok(());
        }
        other.make()?;
        for artifact in artifacts {
            let target = other.0.join(format!("{}.{BASH}", artifact.id));
            match fs::hard_link(&artifact.path, &target) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(_) => {
                    let mut copy = new_file(&target)?;
                    io::copy(&mut OUTPUT.open(&artifact.path)?, &mut copy)?;
                }
            }
        }
        Ok(())
    }

    /// Removes the artifacts and the session's own files, and the folder if it is empty then. Where the folder is a link, removes only the
    /// link.
    /// Blocks.
    ///
    /// # Errors
    /// At the first that cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        if self.0.is_symlink() {
            return fs::remove_file(&self.0);
        }
        match remove_from(&self.0, |name| id_of(name).is_some()) {
            Err(error) if !is_missing(&error) => return Err(error),
            _ => {}
        }
        // It follows no links.
        match fs::remove_dir_all(self.own_files()) {
            Err(error) if !is_missing(&error) => return Err(error),
            _ => {}
        }
        match fs::remove_dir(&self.0) {
            Err(error) if !is_missing(&error) && error.kind() != io::ErrorKind::DirectoryNotEmpty => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Whether the path is a folder or missing: a link would lead to somebody else's files.
    fn is_ours(&self) -> bool {
        !self.0.is_symlink()
    }
}

/// Whether a folder, and no link, is at a path.
fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_dir())
}

/// Copies the regular files of a folder, and of those below it.
fn copy_files(from: &Path, to: &Path, depth: u32) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() && depth > 0 {
            copy_files(&entry.path(), &target, depth - 1)?;
        } else if kind.is_file() {
            match new_file(&target) {
                Ok(mut copy) => drop(io::copy(&mut OUTPUT.open(&entry.path())?, &mut copy)?),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Whether nothing is at a path, including when a folder on the path is a file.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

pub(crate) fn id_of(name: &str) -> Option<&str> {
    name.split_once('.').filter(|(id, rest)| is_id(id) && *rest == BASH).map(|(id, _)| id)
}

/// Where the character begins that the end of `bytes` cuts off.
fn cut_character(bytes: &[u8]) -> Option<usize> {
    (1..char::MAX.len_utf8()).find_map(|back| {
        let start = bytes.len().checked_sub(back)?;
        let error = str::from_utf8(&bytes[start..]).err()?;
        (error.valid_up_to() == 0 && error.error_len().is_none()).then_some(start)
    })
}

/// Creates an output's file and locks it for as long as it is open, so that a sweep leaves it alone.
pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    if let Err(error) = file.try_lock() {
        // The file system has no locks: only the file's age protects it.
        tracing::debug!(%error, path = %path.display(), "cannot lock an output");
    }
    Ok(file)
}

/// 64 random bits: a version 4 UUID has six fixed ones, and no bit is fixed in both halves.
pub(crate) fn random() -> u64 {
    let (one, _) = Uuid::new_v4().as_u64_pair();
    let (_, other) = Uuid::new_v4().as_u64_pair();
    one ^ other
}

#[cfg(test)]
mod tests;

/// Removes the regular files of a folder whose names are wanted. The folder must not be a link. Blocks.
///
/// # Errors
/// When the folder cannot be read, and at the first file that cannot be removed.
fn remove_from(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(CWD, folder, flags, Mode::empty())?;
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_ok_and(&is_wanted) && is_file(&folder, entry.file_name())? {
            remove(&folder, entry.file_name())?;
        }
    }
    Ok(())
}

fn is_file(folder: impl AsFd, name: &CStr) -> io::Result<bool> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(about) => Ok(FileType::from_raw_mode(about.st_mode) == FileType::RegularFile),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn remove(folder: impl AsFd, name: &CStr) -> io::Result<()> {
    match unlinkat(folder, name, AtFlags::empty()) {
        // Already removed by another process.
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
