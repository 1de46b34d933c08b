//! The store: contents by their hash.
//!
//! Contents up to 1 MiB are appended to packs, of which each process writes its own; longer ones have a file each. A content is
//! compressed where that makes it smaller. Nothing is forced to the disk: after a power failure the newest contents may be gone or
//! torn, and a content whose hash is wrong is never given out.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use agentd_files::fail_point::{self, Point};

use crate::state::ObjectId;

mod new_files;
mod pack;
mod sweep;

use new_files::Temporary;
pub(crate) use new_files::{private_file, private_folder, unique_name};

/// The longest content in a pack: 1 MiB.
pub(crate) const MAX_PACKED: u64 = 1 << 20;

/// The shortest content that is compressed.
const MIN_COMPRESSED: usize = 64;

/// The level of compression: the fastest.
const LEVEL: i32 = 1;

/// A pack that is longer gets no more contents, so that old packs hold old contents and go as a whole.
const MAX_PACK: u64 = 64 << 20;

/// Bytes before each content of a pack: the hash, whether it is compressed, the stored length.
const HEADER: usize = 32 + 1 + 4;

/// Where a content is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Packed { pack: u32, offset: u64, len: u32, compressed: bool },
    Alone { compressed: bool, len: u64 },
}

struct Pack {
    path: PathBuf,
    /// Open where this process appends to it: there may be many of others.
    file: Option<File>,
    /// Bytes whose contents are known.
    known: u64,
}

#[derive(Default)]
struct Inner {
    objects: HashMap<ObjectId, Place>,
    packs: Vec<Pack>,
    /// The pack that this process appends to.
    own: Option<usize>,
    bytes: u64,
}

/// A folder of contents. Shared by all sessions of a daemon.
pub struct Store {
    folder: PathBuf,
    max_bytes: u64,
    has_refused: AtomicBool,
    inner: Mutex<Inner>,
}

impl Store {
    /// Opens the store of a folder, which is made where it is missing, private to this user. Takes at most about `max_bytes`.
    ///
    /// # Errors
    /// The system's.
    pub fn open(folder: &Path, max_bytes: u64) -> io::Result<Self> {
        for name in ["packs", "large"] {
            private_folder(&folder.join(name))?;
        }
        let store = Self::new(folder.to_owned(), max_bytes);
        store.scan(&mut store.inner())?;
        Ok(store)
    }

    fn new(folder: PathBuf, max_bytes: u64) -> Self {
        Self { folder, max_bytes, has_refused: AtomicBool::new(false), inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // A panic under this lock leaves whole places.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes on disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.inner().bytes
    }

    /// Whether there was no room for a content since the last pruning.
    pub(crate) fn has_refused(&self) -> bool {
        self.has_refused.load(Ordering::Relaxed)
    }

    pub(crate) fn forget_refusal(&self) {
        self.has_refused.store(false, Ordering::Relaxed);
    }

    /// The bytes of a content on disk; 0 when it is not there.
    pub(crate) fn size_of(&self, id: ObjectId) -> u64 {
        match self.inner().objects.get(&id) {
            Some(Place::Packed { len, .. }) => u64::from(*len) + HEADER as u64,
            Some(Place::Alone { len, .. }) => *len,
            None => 0,
        }
    }

    /// Whether a content is there.
    #[must_use]
    pub fn has(&self, id: ObjectId) -> bool {
        self.inner().objects.contains_key(&id)
    }

    /// Learns what other processes added.
    fn scan(&self, inner: &mut Inner) -> io::Result<()> {
        for entry in fs::read_dir(self.folder.join("packs"))? {
            let path = entry?.path();
            let at = match inner.packs.iter().position(|pack| pack.path == path) {
                Some(at) => at,
                None => {
                    inner.packs.push(Pack { path, file: None, known: 0 });
                    inner.packs.len() - 1
                }
            };
            if inner.own != Some(at) {
                inner.scan_pack(at)?;
            }
        }
        for entry in fs::read_dir(self.folder.join("large"))? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let (hex, compressed) = name.strip_suffix(".zst").map_or((name, false), |hex| (hex, true));
            if let Some(id) = ObjectId::from_hex(hex) {
                let len = entry.metadata()?.len();
                if inner.objects.insert(id, Place::Alone { compressed, len }).is_none() {
                    inner.bytes += len;
                }
            }
        }
        Ok(())
    }

    /// Keeps a content of at most 1 MiB bytes.
    ///
    /// # Errors
    /// The system's; `StorageFull` when there is no room for it.
    pub fn put(&self, content: &[u8]) -> io::Result<ObjectId> {
        let id = ObjectId::of(content);
        if self.has(id) {
            return Ok(id);
        }
        let packed = compress(content);
        let (stored, compressed) = packed.as_deref().map_or((content, false), |packed| (packed, true));
        let len = u32::try_from(stored.len()).map_err(io::Error::other)?;
        let mut record = Vec::with_capacity(HEADER + stored.len());
        record.extend_from_slice(&id.0);
        record.push(compressed.into());
        record.extend_from_slice(&len.to_le_bytes());
        record.extend_from_slice(stored);
        let mut inner = self.inner();
        if inner.objects.contains_key(&id) {
            return Ok(id);
        }
        self.check_room(&inner, record.len() as u64)?;
        let at = match inner.own {
            Some(at) => at,
            None => {
                let path = self.folder.join("packs").join(unique_name());
                let file = Some(private_file(&path)?);
                inner.packs.push(Pack { path, file, known: 0 });
                inner.own = Some(inner.packs.len() - 1);
                inner.packs.len() - 1
            }
        };
        let pack = &mut inner.packs[at];
        let offset = pack.known + HEADER as u64;
        // A write that failed in the middle is overwritten by the next.
        let file = pack.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        fail_point::call(Point::UndoContent)?;
        file.write_all_at(&record, pack.known)?;
        pack.known += record.len() as u64;
        if pack.known > MAX_PACK {
            pack.file = None;
            inner.own = None;
        }
        inner.bytes += record.len() as u64;
        let pack = u32::try_from(at).map_err(io::Error::other)?;
        inner.objects.insert(id, Place::Packed { pack, offset, len, compressed });
        Ok(id)
    }

    /// Keeps the content of a file, read to its end; gives its length, too. At most one MiB of it is in memory.
    ///
    /// # Errors
    /// The system's; `StorageFull` when there is no room for it; `FileTooLarge` when it is longer than `max`.
    pub fn put_file(&self, file: &File, expected: u64, max: u64) -> io::Result<(ObjectId, u64)> {
        if expected <= MAX_PACKED {
            let mut content = Vec::with_capacity(expected as usize + 1);
            file.take(MAX_PACKED + 1).read_to_end(&mut content)?;
            if content.len() as u64 <= MAX_PACKED {
                return Ok((self.put(&content)?, content.len() as u64));
            }
            return self.put_large(&mut content.as_slice().chain(file), None, max);
        }
        self.check_room(&self.inner(), 0)?;
        self.put_large(&mut &*file, Some(file), max)
    }

    /// Keeps a content of any length.
    ///
    /// # Errors
    /// As [`Self::put_file`].
    pub(crate) fn put_stream(&self, content: &mut dyn Read) -> io::Result<ObjectId> {
        self.put_large(content, None, u64::MAX).map(|(id, _)| id)
    }

    /// Shares the blocks of the file system with `source` where it can; else compresses.
    fn put_large(
        &self,
        content: &mut dyn Read,
        source: Option<&File>,
        max: u64,
    ) -> io::Result<(ObjectId, u64)> {
        fail_point::call(Point::UndoContent)?;
        let temporary = Temporary::create(&self.folder.join("large"))?;
        let shares = source.is_some_and(|source| rustix::fs::ioctl_ficlone(&temporary.file, source).is_ok());
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 256 << 10];
        let mut len: u64 = 0;
        let mut sink =
            if shares { None } else { Some(zstd::stream::write::Encoder::new(&temporary.file, LEVEL)?) };
        let mut copy;
        let from: &mut dyn Read = if shares {
            copy = File::open(&temporary.path)?;
            &mut copy
        } else {
            content
        };
        loop {
            let count = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            len += count as u64;
            if len > max {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            hasher.update(&buffer[..count]);
            if let Some(sink) = &mut sink {
                sink.write_all(&buffer[..count])?;
            }
        }
        if let Some(sink) = sink {
            sink.finish()?;
        }
        let id = ObjectId(*hasher.finalize().as_bytes());
        let mut inner = self.inner();
        if !inner.objects.contains_key(&id) {
            let stored = temporary.file.metadata()?.len();
            self.check_room(&inner, stored)?;
            temporary.keep(&self.large(id, !shares))?;
            inner.bytes += stored;
            inner.objects.insert(id, Place::Alone { compressed: !shares, len: stored });
        }
        Ok((id, len))
    }

    fn large(&self, id: ObjectId, compressed: bool) -> PathBuf {
        self.folder.join("large").join(id.to_hex() + if compressed { ".zst" } else { "" })
    }

    fn check_room(&self, inner: &Inner, more: u64) -> io::Result<()> {
        if inner.bytes.saturating_add(more) > self.max_bytes {
            self.has_refused.store(true, Ordering::Relaxed);
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Writes a content to `to`. The hash is checked at the end: on an error, what was written is of no use.
    ///
    /// # Errors
    /// The system's; `NotFound` for a content that is not there, `InvalidData` for one that is damaged.
    pub fn read(&self, id: ObjectId, to: &mut dyn Write) -> io::Result<()> {
        let mut inner = self.inner();
        if !inner.objects.contains_key(&id) {
            self.scan(&mut inner)?;
        }
        let place = *inner.objects.get(&id).ok_or(io::ErrorKind::NotFound)?;
        let (raw, mut plain, mut coded);
        let from: &mut dyn Read = match place {
            Place::Packed { pack, offset, len, compressed } => {
                let mut stored = vec![0; len as usize];
                let pack = &inner.packs[pack as usize];
                match &pack.file {
                    Some(file) => file.read_exact_at(&mut stored, offset)?,
                    None => File::open(&pack.path)?.read_exact_at(&mut stored, offset)?,
                }
                drop(inner);
                raw = if compressed { zstd::stream::decode_all(&*stored).map_err(damage)? } else { stored };
                plain = &raw[..];
                &mut plain
            }
            Place::Alone { compressed, .. } => {
                drop(inner);
                let file = File::open(self.large(id, compressed))?;
                coded = if compressed {
                    Box::new(zstd::stream::read::Decoder::new(file)?) as Box<dyn Read>
                } else {
                    Box::new(file)
                };
                &mut coded
            }
        };
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            let count = match from.read(&mut buffer).map_err(damage)? {
                0 => break,
                count => count,
            };
            hasher.update(&buffer[..count]);
            to.write_all(&buffer[..count])?;
        }
        if *hasher.finalize().as_bytes() != id.0 {
            // The same content is kept anew when it comes again.
            self.inner().objects.remove(&id);
            return Err(damaged());
        }
        Ok(())
    }

    /// A content in memory.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn get(&self, id: ObjectId) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        self.read(id, &mut content)?;
        Ok(content)
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a content that was kept for undo is damaged")
}

/// What cannot be unpacked is damaged, unless the system says what is wrong.
fn damage(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() { error } else { damaged() }
}

/// `None` where compressing does not make a content smaller by a tenth.
fn compress(content: &[u8]) -> Option<Vec<u8>> {
    if content.len() < MIN_COMPRESSED {
        return None;
    }
    let packed = zstd::bulk::compress(content, LEVEL).ok()?;
    (packed.len() < content.len() / 10 * 9).then_some(packed)
}
