//! The files of this machine, with texts below the folders of the session's workspace read and written through an editor: what is typed there and not
//! saved counts, and a change can be undone in the editor.

use std::{
    io::{self, Cursor, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use super::{
    FileFacts, FileHost, FileKind, FileSnapshot, FileSystem, FolderEntry, OpenFile, TakeFile, WriteError,
};

/// The longest text that is read through the editor, in bytes: it comes in one message.
const MAX_TEXT: u64 = 1 << 20;

/// An editor's files. The methods block, and end soon after `cancel` fires.
pub trait EditorFiles: Send + Sync {
    /// Whether the editor gives its texts.
    fn reads(&self) -> bool;

    /// Whether the editor takes texts.
    fn writes(&self) -> bool;

    /// The editor's text of a file; `None` where it gives none, for any reason: then that on disk counts.
    fn read(&self, session: &str, path: &Path, cancel: &CancellationToken) -> Option<String>;

    /// Has the editor write a text.
    ///
    /// # Errors
    /// The editor's reason against it.
    fn write(&self, session: &str, path: &Path, text: &str, cancel: &CancellationToken)
    -> Result<(), String>;
}

/// This machine, and an editor in front of it.
pub struct EditorHost {
    inner: Arc<dyn FileHost>,
    editor: Arc<dyn EditorFiles>,
    session: Arc<str>,
    folders: Arc<[PathBuf]>,
}

impl EditorHost {
    /// The files of `inner`; those below `folders` through the editor, for a session.
    #[must_use]
    pub fn new(
        inner: Arc<dyn FileHost>,
        editor: Arc<dyn EditorFiles>,
        session: &str,
        folders: Vec<PathBuf>,
    ) -> Self {
        Self { inner, editor, session: session.into(), folders: folders.into() }
    }
}

impl FileHost for EditorHost {
    fn files(&self, cancel: &CancellationToken) -> Box<dyn FileSystem> {
        let inner = self.inner.files(cancel);
        if !self.editor.reads() && !self.editor.writes() {
            return inner;
        }
        Box::new(EditorFileSystem {
            inner,
            editor: Arc::clone(&self.editor),
            session: Arc::clone(&self.session),
            folders: Arc::clone(&self.folders),
            cancel: cancel.clone(),
        })
    }

    fn home(&self) -> Option<PathBuf> {
        self.inner.home()
    }
}

struct EditorFileSystem {
    inner: Box<dyn FileSystem>,
    editor: Arc<dyn EditorFiles>,
    session: Arc<str>,
    folders: Arc<[PathBuf]>,
    cancel: CancellationToken,
}

impl EditorFileSystem {
    /// Whether a path lies below a folder of the workspace, as it is written and where it leads.
    fn is_below(&self, path: &Path) -> bool {
        if !self.folders.iter().any(|folder| path.starts_with(folder)) {
            return false;
        }
        let Ok(real) = self.inner.real_path(path) else { return false };
        let leads_below =
            |folder: &PathBuf| self.inner.real_path(folder).is_ok_and(|folder| real.starts_with(folder));
        self.folders.iter().any(leads_below)
    }
}

impl FileSystem for EditorFileSystem {
    /// The text on disk says whether the file is one that an editor has: no image, and not too long.
    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        let mut file = self.inner.open(path)?;
        // Where changes are not taken, an edit of what is not on disk could not be written.
        let is_asked = self.editor.reads() && self.editor.writes();
        if !is_asked
            || file.about.kind != FileKind::File
            || file.about.length > MAX_TEXT
            || !self.is_below(path)
        {
            return Ok(file);
        }
        let mut on_disk = Vec::new();
        file.content.by_ref().take(MAX_TEXT + 1).read_to_end(&mut on_disk)?;
        if on_disk.len() as u64 > MAX_TEXT {
            file.content = Box::new(Cursor::new(on_disk).chain(file.content));
            return Ok(file);
        }
        let is_text = !on_disk.contains(&0) && std::str::from_utf8(&on_disk).is_ok();
        let text = is_text.then(|| self.editor.read(&self.session, path, &self.cancel)).flatten();
        let content = text.map_or(on_disk, String::into_bytes);
        file.about.length = content.len() as u64;
        file.limit = file.limit.max(file.about.length);
        file.content = Box::new(Cursor::new(content));
        Ok(file)
    }

    fn replace(
        &self,
        path: &Path,
        content: &[u8],
        before: Option<&FileSnapshot<'_>>,
    ) -> Result<(), WriteError> {
        let text = std::str::from_utf8(content).ok().filter(|text| text.len() as u64 <= MAX_TEXT);
        let Some(text) = text.filter(|_| self.editor.writes() && self.is_below(path)) else {
            return self.inner.replace(path, content, before);
        };
        self.inner.may_write(path)?;
        if let Some(before) = before
            && let Some(now) = self.editor.read(&self.session, path, &self.cancel)
            && now.as_bytes() != before.content
        {
            return Err(WriteError::Changed(path.to_owned()));
        }
        let written = self.editor.write(&self.session, path, text, &self.cancel);
        written.map_err(|reason| WriteError::Editor { path: path.to_owned(), reason })
    }

    fn move_file(&self, from: &Path, to: &Path) -> Result<(), WriteError> {
        self.inner.move_file(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<(), WriteError> {
        self.inner.remove_file(path)
    }

    fn about(&self, path: &Path) -> io::Result<FileFacts> {
        self.inner.about(path)
    }

    fn check_change(&self, path: &Path) -> io::Result<()> {
        self.inner.check_change(path)
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.inner.real_path(path)
    }

    fn root_of_walk(&self, folder: &Path) -> PathBuf {
        self.inner.root_of_walk(folder)
    }

    fn may_write(&self, path: &Path) -> Result<(), WriteError> {
        self.inner.may_write(path)
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        self.inner.create_folders(path)
    }

    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>> {
        self.inner.list(folders)
    }

    fn read_each(&self, files: &[PathBuf], take: TakeFile<'_>) -> io::Result<()> {
        self.inner.read_each(files, take)
    }

    fn batch(&self) -> usize {
        self.inner.batch()
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::operations::LocalHost;

    /// An editor with one text for every file.
    #[derive(Default)]
    struct Buffer {
        text: Option<String>,
        refuses: bool,
        written: Mutex<Vec<(PathBuf, String)>>,
    }

    impl EditorFiles for Buffer {
        fn reads(&self) -> bool {
            true
        }

        fn writes(&self) -> bool {
            true
        }

        fn read(&self, _: &str, _: &Path, _: &CancellationToken) -> Option<String> {
            self.text.clone()
        }

        fn write(&self, _: &str, path: &Path, text: &str, _: &CancellationToken) -> Result<(), String> {
            if self.refuses {
                return Err("read only".into());
            }
            self.written.lock().unwrap().push((path.to_owned(), text.to_owned()));
            Ok(())
        }
    }

    fn read(editor: Buffer, folder: &Path, path: &Path) -> (Vec<u8>, u64) {
        let host = EditorHost::new(Arc::new(LocalHost), Arc::new(editor), "s", vec![folder.to_owned()]);
        let mut file = host.files(&CancellationToken::new()).open(path).unwrap();
        let mut content = Vec::new();
        file.content.read_to_end(&mut content).unwrap();
        (content, file.about.length)
    }

    fn buffer(text: &str) -> Buffer {
        Buffer { text: Some(text.into()), ..Buffer::default() }
    }

    #[test]
    fn texts_of_the_project_are_those_of_the_editor() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("p");
        std::fs::create_dir(&project).unwrap();
        let write = |path: &Path, content: &[u8]| std::fs::write(path, content).unwrap();
        let (text, bytes, other) = (project.join("a"), project.join("b"), folder.path().join("c"));
        write(&text, b"disk");
        write(&bytes, b"\0disk");
        write(&other, b"disk");
        std::os::unix::fs::symlink(&other, project.join("link")).unwrap();
        assert_eq!(read(buffer("typed"), &project, &text), (b"typed".to_vec(), 5));
        assert_eq!(read(Buffer::default(), &project, &text), (b"disk".to_vec(), 4));
        assert_eq!(read(buffer("typed"), &project, &bytes), (b"\0disk".to_vec(), 5));
        assert_eq!(read(buffer("typed"), &project, &other), (b"disk".to_vec(), 4));
        assert_eq!(read(buffer("typed"), &project, &project.join("link")), (b"disk".to_vec(), 4));
        let long = vec![b'a'; (1 << 20) + 1];
        write(&text, &long);
        assert_eq!(read(buffer("typed"), &project, &text).0, long);
    }

    #[test]
    fn changes_go_through_the_editor_and_its_refusal_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "disk").unwrap();
        let replace = |editor: &Arc<Buffer>| {
            let host = EditorHost::new(
                Arc::new(LocalHost),
                Arc::clone(editor) as _,
                "s",
                vec![folder.path().to_owned()],
            );
            host.files(&CancellationToken::new()).replace(&path, b"new", None)
        };
        let editor = Arc::new(Buffer::default());
        replace(&editor).unwrap();
        assert_eq!(*editor.written.lock().unwrap(), [(path.clone(), "new".to_owned())]);
        assert_eq!(std::fs::read(&path).unwrap(), b"disk", "the editor writes it");
        let error = replace(&Arc::new(Buffer { refuses: true, ..Buffer::default() })).unwrap_err();
        assert!(error.to_string().contains("read only"), "{error}");
    }
}
