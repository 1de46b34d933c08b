//! The file, open and locked: what was opened is still what the path names.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use agentd_files::replace::Replacement;
use rustix::fs::OFlags;

use crate::rows::{MOST_BYTES, Row, Rows, to_lines};

/// The longest file that is read: 128 MiB. A longer one was not written by this crate, which keeps it below 80 MiB.
const MOST_FILE_BYTES: u64 = 128 << 20;

/// The file, locked until this is dropped.
#[derive(Debug)]
pub(crate) struct LockedFile {
    path: PathBuf,
    file: File,
    len: u64,
}

impl LockedFile {
    /// Opens and locks the file; `None` if it is not there and is not to be made. Blocks while another process has the lock, which
    /// it has for milliseconds.
    ///
    /// # Errors
    /// The system's; a file that is a link, none, or another user's.
    pub(crate) fn open(path: &Path, creates: bool) -> io::Result<Option<Self>> {
        Self::open_locked(path, creates, |file| file.lock().map(|()| true))
    }

    /// Opens, or makes, and locks the file; `None` while another process has the lock.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub(crate) fn open_if_free(path: &Path) -> io::Result<Option<Self>> {
        Self::open_locked(path, true, |file| match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        })
    }

    fn open_locked(
        path: &Path,
        creates: bool,
        lock: impl Fn(&File) -> io::Result<bool>,
    ) -> io::Result<Option<Self>> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(creates).mode(0o600).custom_flags(flags);
        loop {
            let file = match (options.open(path), path.parent()) {
                (Err(error), _) if error.kind() == ErrorKind::NotFound && !creates => return Ok(None),
                (Err(error), Some(folder)) if error.kind() == ErrorKind::NotFound => {
                    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
                    options.open(path)?
                }
                (opened, _) => opened?,
            };
            let about = file.metadata()?;
            if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() {
                return Err(io::Error::other("it is no file of this user"));
            }
            if !lock(&file)? {
                return Ok(None);
            }
            // A process that had the lock may have put another file in its place.
            if let Ok(now) = fs::symlink_metadata(path)
                && now.ino() == about.ino()
            {
                return Ok(Some(Self { path: path.to_owned(), file, len: now.len() }));
            }
        }
    }

    /// In bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Appends rows. A line that was cut off before is ended first.
    pub(crate) fn append(&mut self, rows: &[Row]) -> io::Result<()> {
        let lines = self.lines_to_append(rows)?;
        self.append_lines(&lines)
    }

    /// As [`Self::append`], unless the file then [has passed a step](passed_a_step): false, and nothing is done.
    pub(crate) fn append_within_step(&mut self, rows: &[Row]) -> io::Result<bool> {
        let lines = self.lines_to_append(rows)?;
        let is_within = !passed_a_step(self.len, self.len + lines.len() as u64);
        if is_within {
            self.append_lines(&lines)?;
        }
        Ok(is_within)
    }

    fn lines_to_append(&self, rows: &[Row]) -> io::Result<Vec<u8>> {
        let mut lines = to_lines(rows)?;
        let mut last = [b'\n'];
        if self.len > 0 {
            self.file.read_exact_at(&mut last, self.len - 1)?;
        }
        if last != [b'\n'] {
            lines.insert(0, b'\n');
        }
        Ok(lines)
    }

    fn append_lines(&mut self, lines: &[u8]) -> io::Result<()> {
        self.file.write_all(lines)?;
        self.len += lines.len() as u64;
        Ok(())
    }

    /// All rows.
    pub(crate) fn read(&self) -> io::Result<Rows> {
        let len = self.len;
        if len > MOST_FILE_BYTES {
            return Ok(Rows { is_damaged: true, ..Rows::default() });
        }
        let mut content = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
        File::open(&self.path)?.take(MOST_FILE_BYTES).read_to_end(&mut content)?;
        Ok(Rows::parse(&content))
    }

    /// Puts a file with these rows in the place of this one. A process that waits for the lock opens the new one.
    pub(crate) fn replace(self, rows: &[Row]) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut new = Replacement::create(folder, ".prompt-history-", ".tmp", 0o600)?;
        new.file_mut().write_all(&to_lines(rows)?)?;
        // Otherwise a power failure could leave an empty file under the name.
        new.file_mut().sync_all()?;
        new.commit(&self.path).map(drop)
    }

    /// Keeps a copy of a damaged file beside it, in the place of an earlier one.
    pub(crate) fn set_aside(&self) -> io::Result<PathBuf> {
        let aside = self.path.with_extension("damaged.jsonl");
        match fs::remove_file(&aside) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::hard_link(&self.path, &aside)?;
        Ok(aside)
    }
}

/// The bytes after which the file is looked at once more: it is written anew when half of it is repetitions.
const STEP: u64 = 1 << 20;

/// Whether a file has grown past a multiple of 1 MiB. Looking at it then costs no more, in the long run, than writing it did.
pub(crate) fn passed_a_step(before: u64, after: u64) -> bool {
    before / STEP != after / STEP
}

/// Whether a file holds enough that need not be there.
pub(crate) fn needs_rewriting(rows: &Rows, file_len: u64, most_rows: usize) -> bool {
    let bytes: usize = rows.rows.iter().map(|row| row.prompt.len()).sum();
    // Escapes and what is noted beside a prompt make the file longer than the prompts are, and so do repetitions.
    let usual = 4 * bytes as u64 + 8 * STEP;
    rows.rows.len() > most_rows || rows.lines > 2 * rows.rows.len() || bytes > MOST_BYTES || file_len > usual
}
