//! A file system in memory, for tests.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Cursor},
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::io::Errno;
use tokio_util::sync::CancellationToken;

use super::{
    FileFacts, FileHost, FileKind, FileSnapshot, FileStamp, FileSystem, FolderEntry, OpenFile, WriteError,
};

/// Links followed before they count as a circle.
const MAX_LINKS: u32 = 40;

/// Files, folders and symbolic links in memory. Cheap to clone; clones share the files.
///
/// Reading or writing a file can be forbidden. There are no owners, and no other kinds of files.
#[derive(Debug, Clone, Default)]
pub struct MemoryHost {
    nodes: Arc<Mutex<Nodes>>,
    home: Option<PathBuf>,
}

#[derive(Debug)]
struct Nodes {
    by_path: BTreeMap<PathBuf, Node>,
    /// Counts all changes, to tell contents apart.
    changes: u64,
}

#[derive(Debug, Clone)]
enum Node {
    File { content: Arc<[u8]>, change: u64, may_read: bool, may_write: bool },
    Folder,
    Link(PathBuf),
}

impl Default for Nodes {
    fn default() -> Self {
        Self { by_path: BTreeMap::from([(PathBuf::from("/"), Node::Folder)]), changes: 0 }
    }
}

impl MemoryHost {
    /// An empty root folder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the folder that `~` means.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// Creates a file, with its parent folders.
    ///
    /// # Errors
    /// When the path leads through a file.
    pub fn put(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> io::Result<()> {
        self.place(path.as_ref(), |change| Node::File {
            content: content.as_ref().into(),
            change,
            may_read: true,
            may_write: true,
        })
    }

    /// Creates a symbolic link, with its parent folders.
    ///
    /// # Errors
    /// When the path leads through a file.
    pub fn link(&self, path: impl AsRef<Path>, target: impl Into<PathBuf>) -> io::Result<()> {
        self.place(path.as_ref(), |_| Node::Link(target.into()))
    }

    /// Creates a folder, with its parents.
    ///
    /// # Errors
    /// When the path leads through a file.
    pub fn folder(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.nodes().create_folders(path.as_ref())
    }

    /// Sets whether a file may be read and written.
    ///
    /// # Errors
    /// When the file does not exist.
    pub fn permit(&self, path: impl AsRef<Path>, read: bool, write: bool) -> io::Result<()> {
        match self.nodes().by_path.get_mut(path.as_ref()) {
            Some(Node::File { may_read, may_write, .. }) => (*may_read, *may_write) = (read, write),
            _ => return Err(Errno::NOENT.into()),
        }
        Ok(())
    }

    /// The content of the file at a path, links followed.
    #[must_use]
    pub fn get(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        match self.nodes().find(path.as_ref()) {
            Ok((_, Node::File { content, .. })) => Some(content.to_vec()),
            _ => None,
        }
    }

    fn place(&self, path: &Path, node: impl FnOnce(u64) -> Node) -> io::Result<()> {
        let mut nodes = self.nodes();
        if let Some(folder) = path.parent() {
            nodes.create_folders(folder)?;
        }
        nodes.changes += 1;
        let change = nodes.changes;
        nodes.by_path.insert(path.to_owned(), node(change));
        Ok(())
    }

    fn nodes(&self) -> MutexGuard<'_, Nodes> {
        // A panic under this lock leaves whole nodes.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Nodes {
    /// The real path and its node; an error when nothing is there.
    fn find(&self, path: &Path) -> io::Result<(PathBuf, &Node)> {
        let real = self.real_path(path)?;
        match self.by_path.get(&real) {
            Some(node) => Ok((real, node)),
            None => Err(Errno::NOENT.into()),
        }
    }

    /// Resolves all links; missing names are kept.
    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        let mut links_left = MAX_LINKS;
        let mut real = PathBuf::from("/");
        let mut left: Vec<OsString> = parts(path);
        while let Some(name) = left.pop() {
            if name == ".." {
                real.pop();
                continue;
            }
            if matches!(self.by_path.get(&real), Some(Node::File { .. })) {
                return Err(Errno::NOTDIR.into());
            }
            let next = real.join(&name);
            match self.by_path.get(&next) {
                Some(Node::Link(target)) => {
                    links_left = links_left.checked_sub(1).ok_or(Errno::LOOP)?;
                    if target.is_absolute() {
                        real = PathBuf::from("/");
                    }
                    left.extend(parts(target));
                }
                _ => real = next,
            }
        }
        Ok(real)
    }

    fn create_folders(&mut self, path: &Path) -> io::Result<()> {
        let real = self.real_path(path)?;
        for folder in real.ancestors().collect::<Vec<_>>().into_iter().rev() {
            match self.by_path.get(folder) {
                Some(Node::Folder) => {}
                Some(_) if folder == real => return Err(Errno::EXIST.into()),
                Some(_) => return Err(Errno::NOTDIR.into()),
                None => drop(self.by_path.insert(folder.to_owned(), Node::Folder)),
            }
        }
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<FolderEntry>> {
        let (real, node) = self.find(folder)?;
        if !matches!(node, Node::Folder) {
            return Err(Errno::NOTDIR.into());
        }
        let below = self.by_path.range(real.clone()..).take_while(|(path, _)| path.starts_with(&real));
        let children = below.filter(|(path, _)| path.parent() == Some(&real));
        let listed = children.map(|(path, node)| FolderEntry {
            name: path.file_name().unwrap_or_default().to_owned(),
            kind: node.kind(),
            target: self.find(path).ok().map(|(_, node)| node.kind()),
        });
        Ok(listed.collect())
    }
}

impl Node {
    fn kind(&self) -> FileKind {
        match self {
            Self::File { .. } => FileKind::File,
            Self::Folder => FileKind::Folder,
            Self::Link(_) => FileKind::Link,
        }
    }

    fn length(&self) -> u64 {
        if let Self::File { content, .. } = self { content.len() as u64 } else { 0 }
    }
}

/// The names in a path, in reverse.
fn parts(path: &Path) -> Vec<OsString> {
    let named = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::ParentDir);
    path.components().rev().filter(|part| named(*part)).map(|part| part.as_os_str().to_owned()).collect()
}

impl FileHost for MemoryHost {
    fn files(&self, _: &CancellationToken) -> Box<dyn FileSystem> {
        Box::new(self.clone())
    }

    fn home(&self) -> Option<PathBuf> {
        self.home.clone()
    }
}

impl FileSystem for MemoryHost {
    fn open(&self, path: &Path) -> io::Result<OpenFile> {
        let nodes = self.nodes();
        let (_, node) = nodes.find(path)?;
        let (content, change): (Arc<[u8]>, u64) = match node {
            Node::File { may_read: false, .. } => return Err(Errno::ACCESS.into()),
            Node::File { content, change, .. } => (Arc::clone(content), *change),
            _ => (Arc::default(), 0),
        };
        Ok(OpenFile {
            about: FileFacts { kind: node.kind(), length: node.length() },
            stamp: stamp(node.length(), change),
            limit: u64::MAX,
            content: Box::new(Cursor::new(content)),
        })
    }

    fn about(&self, path: &Path) -> io::Result<FileFacts> {
        let nodes = self.nodes();
        nodes.find(path).map(|(_, node)| FileFacts { kind: node.kind(), length: node.length() })
    }

    fn check_change(&self, path: &Path) -> io::Result<()> {
        match self.nodes().find(path)? {
            (_, Node::File { may_read, may_write, .. }) if !(*may_read && *may_write) => {
                Err(Errno::ACCESS.into())
            }
            _ => Ok(()),
        }
    }

    fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        self.nodes().real_path(path)
    }

    fn create_folders(&self, path: &Path) -> io::Result<()> {
        self.nodes().create_folders(path)
    }

    fn replace(&self, path: &Path, new: &[u8], before: Option<&FileSnapshot<'_>>) -> Result<(), WriteError> {
        let failed = |source: io::Error| WriteError::System { call: "open", path: path.to_owned(), source };
        let mut nodes = self.nodes();
        let real = nodes.real_path(path).map_err(failed)?;
        match real.parent().and_then(|folder| nodes.by_path.get(folder)) {
            Some(Node::Folder) => {}
            Some(_) => return Err(failed(Errno::NOTDIR.into())),
            None => return Err(failed(Errno::NOENT.into())),
        }
        nodes.changes += 1;
        let change = nodes.changes;
        match nodes.by_path.get_mut(&real) {
            Some(Node::File { content, change: last, may_write, .. }) => {
                if !*may_write {
                    return Err(failed(Errno::ACCESS.into()));
                }
                if before.is_some_and(|before| before.stamp.differs(&stamp(content.len() as u64, *last))) {
                    return Err(WriteError::Changed(path.to_owned()));
                }
                (*content, *last) = (new.into(), change);
            }
            Some(_) => return Err(failed(Errno::ISDIR.into())),
            None if before.is_some() => return Err(WriteError::Changed(path.to_owned())),
            None => {
                let node = Node::File { content: new.into(), change, may_read: true, may_write: true };
                nodes.by_path.insert(real, node);
            }
        }
        Ok(())
    }

    fn list(&self, folders: &[PathBuf]) -> io::Result<Vec<io::Result<Vec<FolderEntry>>>> {
        let nodes = self.nodes();
        Ok(folders.iter().map(|folder| nodes.list(folder)).collect())
    }

    // More than one, so that tests use batches.
    fn batch(&self) -> usize {
        3
    }
}

fn stamp(length: u64, change: u64) -> FileStamp {
    let time = i128::from(change);
    FileStamp { file: (0, 0), length, changed: (time, time), is_sure: true }
}
