//! Opens sessions: the tree and the writer together.

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_protocol::TextStore;

use crate::{
    Durability, Header, LoadReport, NewSession, SessionTree, SessionWriter, StoreError,
    file_texts::FileTexts,
    io::{Disk, FileIo, Io, open_to_read},
    load::{LONG_FILE_BYTES, Loaded, Session, load, load_file},
    lock::{Notes, StoreContext, open_locked},
    replace::replace,
    session_file_name,
};

/// The options of a store.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The moment at which an entry counts as saved.
    pub durability: Durability,
    /// The folder for notes on who has a session open (`<agent dir>/run`); `None`: no notes.
    pub run_dir: Option<PathBuf>,
    /// The run of the daemon, for the notes.
    pub epoch: String,
    /// Longer lines are skipped when reading and refused when writing; 256 MiB.
    pub max_line_bytes: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { durability: Durability::Os, run_dir: None, epoch: String::new(), max_line_bytes: 256 << 20 }
    }
}

/// An open session.
#[derive(Debug)]
pub struct OpenSession {
    /// Its tree.
    pub tree: SessionTree,
    /// The writer of further entries.
    pub writer: SessionWriter,
    /// The oddities of its file.
    pub report: LoadReport,
}

/// Opens and creates sessions. Every method blocks on the disk.
#[derive(Clone)]
pub struct Store(StoreContext);

impl Store {
    /// A store on the real file system.
    #[must_use]
    pub fn new(options: StoreOptions) -> Self {
        Self::with_io(options, Arc::new(Disk))
    }

    pub(crate) fn with_io(options: StoreOptions, io: Arc<dyn Io>) -> Self {
        let StoreOptions { durability, run_dir, epoch, max_line_bytes } = options;
        Self(StoreContext { io, notes: Notes { dir: run_dir, epoch }, durability, max_line_bytes })
    }

    pub(crate) fn context(&self) -> &StoreContext {
        &self.0
    }

    /// A new session with a file in `dir`, which is created if it does not exist. The file itself is created with the first
    /// message of the user or of the model.
    ///
    /// # Errors
    /// [`StoreError::InvalidSessionId`]; [`StoreError::Io`] when the folder cannot be created.
    pub fn create(&self, dir: &Path, new: NewSession) -> Result<OpenSession, StoreError> {
        let header = new.header()?;
        self.0.io.create_dirs(dir).map_err(StoreError::io("create the folder", dir))?;
        let path = dir.join(session_file_name(&header.typed().timestamp, header.id()));
        Ok(self.deferred(path, header))
    }

    /// A session that is never written.
    ///
    /// # Errors
    /// [`StoreError::InvalidSessionId`].
    pub fn in_memory(&self, new: NewSession) -> Result<OpenSession, StoreError> {
        let tree = SessionTree::new(new.header()?);
        Ok(OpenSession { tree, writer: SessionWriter::memory(self.0.clone()), report: LoadReport::default() })
    }

    /// The session of a file, which is locked from here on. Its leaf is the last entry.
    ///
    /// A file that is not there yet is made with the first message, at exactly this path; an empty one becomes a new
    /// session at once. A file of an old version is replaced by one of the current version, in one step; the old one stays
    /// beside it under another name. One that this user may only read is left as it is: its writer refuses every entry.
    ///
    /// # Errors
    /// [`StoreError::NotASession`], [`StoreError::NotAFile`], [`StoreError::TooNew`], [`StoreError::Locked`],
    /// [`StoreError::Io`]; [`StoreError::InvalidSessionId`] when a new session is needed.
    pub fn open(&self, path: &Path, new: NewSession) -> Result<OpenSession, StoreError> {
        // A link that leads nowhere counts as a free name, and is refused when the file is created.
        if !path.try_exists().map_err(StoreError::io("open the session file", path))? {
            return Ok(self.deferred(path.to_owned(), new.header()?));
        }
        self.open_there(path, Some(new))
    }

    /// [`Self::open`] for a session that was in this file before: an empty file is no session then.
    ///
    /// # Errors
    /// Those of [`Self::open`]; a missing file is [`StoreError::Io`].
    pub fn reopen(&self, path: &Path) -> Result<OpenSession, StoreError> {
        self.open_there(path, None)
    }

    /// Opens an existing file. An empty one becomes the session `new`.
    fn open_there(&self, path: &Path, new: Option<NewSession>) -> Result<OpenSession, StoreError> {
        let mut file = open_locked(&*self.0.io, &self.0.notes, path)?;
        let len = file.state().map_err(StoreError::io("read the state of", path))?.len;
        let texts = if len < LONG_FILE_BYTES { None } else { file.reader() };
        let texts = texts.map(|reader| -> Arc<Box<dyn TextStore>> {
            Arc::new(Box::new(FileTexts::new(reader, path.to_owned())))
        });
        let loaded = load_file(&mut *file, len, self.0.max_line_bytes, texts);
        match (loaded.map_err(StoreError::io("read the session file", path))?, new) {
            (Loaded::Empty, Some(new)) => self.begin(path, new.header()?, file),
            (Loaded::Empty | Loaded::Invalid, _) => Err(StoreError::NotASession { path: path.to_owned() }),
            (Loaded::TooNew(found), _) => Err(StoreError::TooNew { path: path.to_owned(), found }),
            (Loaded::Session(session), _) => {
                let Session { tree, mut report, mut lacks_newline } = *session;
                if let Some(version) = report.migrated_from.filter(|_| file.is_writable()) {
                    let original;
                    (file, original) = replace(&*self.0.io, path, &tree, version)?;
                    report.original = Some(original);
                    lacks_newline = false;
                }
                let writer = SessionWriter::open(self.0.clone(), path.to_owned(), file, lacks_newline);
                Ok(OpenSession { tree, writer, report })
            }
        }
    }

    /// Reads a session without locking or changing its file; an old version is converted in memory alone.
    ///
    /// # Errors
    /// Those of [`Self::open`] but [`StoreError::Locked`]; an empty or missing file is no session.
    pub fn read(&self, path: &Path) -> Result<(SessionTree, LoadReport), StoreError> {
        let mut file = open_to_read(path)?;
        let len = file.metadata().map_err(StoreError::io("read the state of", path))?.len();
        // All of it in memory: without the lock, nothing keeps another program from writing over the file.
        read_session(path, load_file(&mut file, len, self.0.max_line_bytes, None))
    }

    /// Reads the text of a session file from any reader; errors name it `name`.
    ///
    /// # Errors
    /// Those of [`Self::read`].
    pub fn read_from(
        &self,
        name: &Path,
        reader: &mut dyn Read,
    ) -> Result<(SessionTree, LoadReport), StoreError> {
        read_session(name, load(reader, self.0.max_line_bytes))
    }

    /// A session that was put together elsewhere, such as a copied branch, to be kept in `dir`; in memory without one.
    ///
    /// Its file is made at once if it holds a message of the user or of the model or if `at_once` says so, else with
    /// the first one.
    ///
    /// # Errors
    /// [`StoreError`] of making and writing the file.
    pub fn adopt(
        &self,
        tree: SessionTree,
        dir: Option<&Path>,
        creation: FileCreation,
    ) -> Result<OpenSession, StoreError> {
        let mut writer = match dir {
            None => SessionWriter::memory(self.0.clone()),
            Some(dir) => {
                self.0.io.create_dirs(dir).map_err(StoreError::io("create the folder", dir))?;
                let path = dir.join(session_file_name(&tree.info().timestamp, tree.header().id()));
                SessionWriter::deferred(self.0.clone(), path, tree.header())
            }
        };
        writer.append_all(tree.entries())?;
        if creation == FileCreation::AtOnce {
            writer.create_now()?;
        }
        Ok(OpenSession { tree, writer, report: LoadReport::default() })
    }

    /// A session without a file, from the [`unsaved`](SessionWriter::unsaved) lines of its writer.
    ///
    /// # Errors
    /// [`StoreError::NotASession`] for lines of another origin.
    pub fn resume(&self, path: &Path, unsaved: &[u8]) -> Result<OpenSession, StoreError> {
        let loaded = load(&mut &*unsaved, self.0.max_line_bytes);
        match loaded.map_err(StoreError::io("read the unsaved lines of", path))? {
            Loaded::Session(session) => {
                let writer = SessionWriter::resumed(self.0.clone(), path.to_owned(), unsaved);
                Ok(OpenSession { tree: session.tree, writer, report: session.report })
            }
            Loaded::Empty | Loaded::Invalid | Loaded::TooNew(_) => {
                Err(StoreError::NotASession { path: path.to_owned() })
            }
        }
    }

    fn deferred(&self, path: PathBuf, header: Header) -> OpenSession {
        let writer = SessionWriter::deferred(self.0.clone(), path, &header);
        OpenSession { tree: SessionTree::new(header), writer, report: LoadReport::default() }
    }

    /// Begins a session in an empty file.
    fn begin(&self, path: &Path, header: Header, file: Box<dyn FileIo>) -> Result<OpenSession, StoreError> {
        let mut writer = SessionWriter::open(self.0.clone(), path.to_owned(), file, false);
        writer.write_header(&header)?;
        Ok(OpenSession { tree: SessionTree::new(header), writer, report: LoadReport::default() })
    }
}

/// What was read, if it is a session.
fn read_session(name: &Path, loaded: io::Result<Loaded>) -> Result<(SessionTree, LoadReport), StoreError> {
    match loaded.map_err(StoreError::io("read the session file", name))? {
        Loaded::Empty | Loaded::Invalid => Err(StoreError::NotASession { path: name.to_owned() }),
        Loaded::TooNew(found) => Err(StoreError::TooNew { path: name.to_owned(), found }),
        Loaded::Session(session) => Ok((session.tree, session.report)),
    }
}

/// The moment at which an adopted session gets its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileCreation {
    /// With the first message of the user or of the model.
    WithMessage,
    /// Now.
    AtOnce,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("durability", &self.0.durability).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod long_files;
#[cfg(test)]
mod tests;

#[cfg(test)]
mod power_loss;
