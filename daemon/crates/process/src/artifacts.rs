//! Where the whole of long outputs is kept: beside the session's file, found again by short ids, or in a temporary folder.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use agentd_files::fail_point::{self, Point};
use agentd_safe_open::{LinkPolicy, OpenRules};
use uuid::Uuid;

use crate::output_meter::OutputMeter;

mod folder;
mod sweep;

pub use sweep::{OutputRetention, SweepMode, SweepResult, sweep_outputs};

/// What an output is accepted as: nobody but us makes these files.
const OUTPUT: OpenRules<'_> = OpenRules::new(LinkPolicy::Refused);

/// What the file of a command's output is called after its id.
const BASH: &str = "bash.log";

/// How many hexadecimal digits an id has.
const ID_DIGITS: usize = 8;

/// Where outputs go that are too long to show.
#[derive(Debug, Clone)]
pub struct OutputStorage {
    folder: Folder,
    /// How much of one output is kept, in bytes.
    limit: u64,
    meter: OutputMeter,
}

#[derive(Debug, Clone)]
enum Folder {
    /// A temporary folder, which others clean up: files `pi-bash-<16 hex digits>.log`.
    Temporary(PathBuf),
    /// The session's own folder.
    Session(ArtifactFolder),
}

impl From<&Path> for OutputStorage {
    fn from(folder: &Path) -> Self {
        Self::of(Folder::Temporary(folder.to_owned()))
    }
}

impl From<ArtifactFolder> for OutputStorage {
    fn from(folder: ArtifactFolder) -> Self {
        Self::of(Folder::Session(folder))
    }
}

/// A file that was made for an output.
#[derive(Debug)]
pub(crate) struct Created {
    pub(crate) path: PathBuf,
    /// What it is found by again; files in temporary folders are not.
    pub(crate) id: Option<String>,
    pub(crate) file: File,
}

impl OutputStorage {
    fn of(folder: Folder) -> Self {
        Self { folder, limit: u64::MAX, meter: OutputMeter::default() }
    }

    /// The same place, where at most `limit` bytes of each output are kept, and `meter` hears of what is written.
    #[must_use]
    pub fn limited(self, limit: u64, meter: OutputMeter) -> Self {
        Self { limit, meter, ..self }
    }

    /// How much of one output is kept, in bytes.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Hears of what is written here.
    pub(crate) fn meter(&self) -> &OutputMeter {
        &self.meter
    }

    /// Makes a file that did not exist before and that only its owner can read. Blocks.
    pub(crate) fn create(&self) -> io::Result<Created> {
        fail_point::call(Point::SpillCreate)?;
        match &self.folder {
            Folder::Temporary(folder) => {
                let path = folder.join(format!("pi-bash-{:016x}.log", random()));
                Ok(Created { file: new_file(&path)?, path, id: None })
            }
            Folder::Session(folder) => folder.create(),
        }
    }
}

/// The artifacts of one session: a folder that is named like the session's file, without its ending. It is there once there
/// is one. The folder may hold other files: nothing here touches those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactFolder(PathBuf);

/// One artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// What it is found by within its session.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// How long it is.
    pub bytes: u64,
}

/// A part of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPart {
    /// The artifact.
    pub artifact: Artifact,
    /// The part, as text; U+FFFD stands for what is not UTF-8. Characters are not split between parts.
    pub text: String,
    /// Where the next part begins, in bytes of the file.
    pub next: u64,
}

impl ArtifactFolder {
    /// The folder of the session that `session_file` is the file of.
    #[must_use]
    pub fn beside(session_file: &Path) -> Self {
        if session_file.extension().is_some_and(|extension| extension == "jsonl") {
            return Self(session_file.with_extension(""));
        }
        // A file of the user's own naming, which must not be taken for the folder.
        let mut folder = session_file.as_os_str().to_owned();
        folder.push(".artifacts");
        Self(folder.into())
    }

    fn make(&self) -> io::Result<()> {
        if !self.is_ours() {
            let text = format!("{} is a symbolic link: move it away", self.0.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    fn create(&self) -> io::Result<Created> {
        self.make()?;
        loop {
            let id = format!("{:0ID_DIGITS$x}", random() >> (64 - 4 * ID_DIGITS));
            let path = self.0.join(format!("{id}.{BASH}"));
            match new_file(&path) {
                Ok(file) => return Ok(Created { path, id: Some(id), file }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The artifacts, by their ids. Blocks.
    ///
    /// # Errors
    /// When the folder is there and cannot be read.
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
                // Not one of ours, or gone meanwhile.
                Ok(_) => {}
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        found.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(found)
    }

    /// The artifact `id`; `None` when there is none of that id, whatever the text is. Blocks.
    ///
    /// # Errors
    /// When it cannot be looked for.
    pub fn find(&self, id: &str) -> io::Result<Option<Artifact>> {
        // An id is nothing but digits, so it leads nowhere else.
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

    /// At most `limit` bytes of the artifact `id` from `offset` on, at least a whole character; `None` when there is no such
    /// artifact. Blocks.
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
        // A character that is cut off by the limit is left to the next part; one that the file ends in is not one.
        if bytes.len() == limit
            && let Some(cut) = cut_character(&bytes)
        {
            bytes.truncate(cut);
        }
        let next = offset + bytes.len() as u64;
        Ok(Some(ArtifactPart { artifact, text: String::from_utf8_lossy(&bytes).into_owned(), next }))
    }

    /// Gives another session the artifacts of this one, under their ids: as hard links, or as copies where the file system
    /// has none. Blocks.
    ///
    /// # Errors
    /// At the first that cannot be given on.
    pub fn share_with(&self, other: &Self) -> io::Result<()> {
        let artifacts = self.list()?;
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

    /// Removes the artifacts, and the folder if it is empty then. A link in the place of the folder goes, and nothing where it
    /// leads to. Blocks.
    ///
    /// # Errors
    /// At the first that cannot be removed.
    pub fn remove(&self) -> io::Result<()> {
        if self.0.is_symlink() {
            return fs::remove_file(&self.0);
        }
        match folder::remove_from(&self.0, |name| id_of(name).is_some()) {
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

    /// Whether it is a folder or nothing: a link in its place leads to somebody else's files.
    fn is_ours(&self) -> bool {
        !self.0.is_symlink()
    }
}

/// Whether there is nothing at a path: also when what should be a folder on the way is a file.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn is_id(text: &str) -> bool {
    text.len() == ID_DIGITS && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

fn id_of(name: &str) -> Option<&str> {
    name.split_once('.').filter(|(id, rest)| is_id(id) && *rest == BASH).map(|(id, _)| id)
}

/// Where the character begins that `bytes` end in the middle of.
fn cut_character(bytes: &[u8]) -> Option<usize> {
    (1..char::MAX.len_utf8()).find_map(|back| {
        let start = bytes.len().checked_sub(back)?;
        let error = str::from_utf8(&bytes[start..]).err()?;
        (error.valid_up_to() == 0 && error.error_len().is_none()).then_some(start)
    })
}

/// The file is locked for as long as it is open: whoever removes old outputs leaves those alone that are being written.
fn new_file(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    if let Err(error) = file.try_lock() {
        // File systems without locks; then its age alone protects it.
        tracing::debug!(%error, path = %path.display(), "cannot lock an output");
    }
    Ok(file)
}

/// 64 bits: six of each version 4 id are fixed, and two halves of two ids leave none fixed.
fn random() -> u64 {
    let (one, _) = Uuid::new_v4().as_u64_pair();
    let (_, other) = Uuid::new_v4().as_u64_pair();
    one ^ other
}

#[cfg(test)]
mod tests;
