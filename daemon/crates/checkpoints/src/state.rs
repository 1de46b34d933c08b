//! States of files, and changes from one state to another.

use std::{
    ffi::OsString,
    fmt,
    os::unix::ffi::{OsStrExt as _, OsStringExt as _},
    path::{Path, PathBuf},
};

use agentd_protocol::checkpoints::ChangeKind;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Names a content by its BLAKE3 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 32]);

impl ObjectId {
    /// The id of a content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(*blake3::hash(content).as_bytes())
    }

    /// The id in hexadecimal digits.
    #[must_use]
    pub fn to_hex(self) -> String {
        blake3::Hash::from_bytes(self.0).to_hex().to_string()
    }

    /// The id of 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(|hash| Self(*hash.as_bytes()))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_hex()[..8])
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for ObjectId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| D::Error::custom("not a hash"))
    }
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileState {
    /// Nothing.
    Absent,
    /// A regular file whose content is in the store.
    File {
        /// Its content.
        id: ObjectId,
        /// Its length in bytes.
        len: u64,
        /// Its permission bits.
        mode: u32,
        /// When it was last changed, in nanoseconds since 1970.
        mtime: i64,
    },
    /// A symbolic link.
    Link(StoredPath),
    /// A folder.
    Folder {
        /// Its permission bits.
        mode: u32,
    },
    /// Something whose content is not kept.
    Unkept {
        /// Why: the end of a sentence.
        why: Unkept,
        /// Its length in bytes.
        len: u64,
        /// When it was last changed, in nanoseconds since 1970.
        mtime: i64,
    },
}

/// Why a content is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unkept {
    /// It is longer than the setting allows.
    Long,
    /// It is a pipe, a socket or a device.
    Special,
    /// It cannot be read.
    Unreadable,
    /// The store or the disk is full.
    Full,
}

impl fmt::Display for Unkept {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Long => "it is longer than undo.maxFileBytes",
            Self::Special => "it is a pipe, a socket or a device",
            Self::Unreadable => "it cannot be read",
            Self::Full => "what is kept for undo has reached undo.maxTotalBytes, or the disk is full",
        })
    }
}

impl FileState {
    /// Whether two states are the same but for the time of the last change.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { id, mode, .. }, Self::File { id: other, mode: of_other, .. }) => {
                (id, mode) == (other, of_other)
            }
            _ => self == other,
        }
    }

    /// The mode of a folder.
    pub(crate) fn folder_mode(&self) -> Option<u32> {
        if let Self::Folder { mode } = self { Some(*mode) } else { None }
    }

    /// Whether this is a folder that its owner cannot change files in.
    pub(crate) fn is_closed_folder(&self) -> bool {
        self.folder_mode().is_some_and(|mode| mode & 0o300 != 0o300)
    }

    /// Why this state could not be made again; `None` when it could.
    #[must_use]
    pub fn unkept(&self) -> Option<Unkept> {
        if let Self::Unkept { why, .. } = self { Some(*why) } else { None }
    }
}

/// One changed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path, absolute and without links above its last part.
    pub path: StoredPath,
    /// What was there.
    pub before: FileState,
    /// What is there since.
    pub after: FileState,
}

impl Change {
    /// Why one of the two states is not kept.
    pub(crate) fn unkept(&self) -> Option<Unkept> {
        self.before.unkept().or(self.after.unkept())
    }

    /// What happened to the path.
    #[must_use]
    pub fn kind(&self) -> ChangeKind {
        match (&self.before, &self.after) {
            (FileState::Absent, _) => ChangeKind::Created,
            (_, FileState::Absent) => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        }
    }
}

/// A path that keeps its bytes in JSON: a string, or where it is no UTF-8 a list of bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoredPath(pub PathBuf);

impl AsRef<Path> for StoredPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrBytes {
    Text(String),
    Bytes(Vec<u8>),
}

impl Serialize for StoredPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => self.0.as_os_str().as_bytes().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for StoredPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match TextOrBytes::deserialize(deserializer)? {
            TextOrBytes::Text(text) => text.into(),
            TextOrBytes::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }))
    }
}
