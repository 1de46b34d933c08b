//! Trees and failing disks for tests.

pub(crate) mod nth_call;

use std::{
    collections::VecDeque,
    io::{self, Read},
    path::Path,
    sync::{Arc, Mutex, MutexGuard},
};

use crate::{
    Entry, Header, SessionTree,
    io::{Disk, FileIo, FileState, Io},
};

/// A header of a session in `/w`.
pub(crate) fn header() -> Header {
    Header::new("session".into(), "2026-01-01T00:00:00.000Z".into(), "/w".into(), None).unwrap()
}

/// A tree of entries: a line of JSON as it is, or `id parent` (`-` for none) for a user message that says its id.
pub(crate) fn tree(entries: &[&str]) -> SessionTree {
    let mut tree = SessionTree::new(header());
    for (at, text) in entries.iter().enumerate() {
        tree.push(entry(text, at));
    }
    tree
}

/// One entry of [`tree`], made in second `at`.
pub(crate) fn entry(text: &str, at: usize) -> Entry {
    let line = match text.split_once(' ') {
        _ if text.starts_with('{') => text.to_owned(),
        Some((id, parent)) => {
            let parent = if parent == "-" { "null".into() } else { format!("\"{parent}\"") };
            format!(
                r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"{}","message":{{"role":"user","content":"{id}","timestamp":{at}}}}}"#,
                crate::iso_timestamp(at as i64 * 1000)
            )
        }
        None => panic!("neither JSON nor `id parent`: {text}"),
    };
    Entry::parse(&line).unwrap()
}

/// The ids of some entries.
pub(crate) fn ids<'a>(entries: &[&'a Entry]) -> Vec<&'a str> {
    entries.iter().map(|entry| entry.id()).collect()
}

/// A disk on which appends and repairs fail as planned.
#[derive(Clone, Default)]
pub(crate) struct FaultyDisk(Arc<Mutex<Plan>>);

/// The faults to come.
#[derive(Default)]
pub(crate) struct Plan {
    /// For each append to come: what it does instead of its work. None left: it works.
    pub(crate) appends: VecDeque<Fault>,
    /// The number of cuts that fail.
    pub(crate) failing_cuts: usize,
    /// The number of syncs that fail.
    pub(crate) failing_syncs: usize,
    /// Once set: the bytes until the process is "killed". From then on nothing reaches the disk.
    pub(crate) bytes_to_live: Option<usize>,
    /// True if files have one name alone.
    pub(crate) no_links: bool,
    /// The number of times that a file is replaced right after it was opened.
    pub(crate) replacements: usize,
    /// The number of appends.
    pub(crate) append_calls: usize,
    /// The number of syncs of content or names.
    pub(crate) syncs: usize,
}

pub(crate) enum Fault {
    /// Some bytes, and no error.
    Short(usize),
    Error(io::ErrorKind),
}

impl FaultyDisk {
    pub(crate) fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap()
    }

    fn alive(&self) -> io::Result<()> {
        if self.plan().bytes_to_live == Some(0) { Err(io::Error::other("killed")) } else { Ok(()) }
    }

    fn file(&self, file: io::Result<Box<dyn FileIo>>) -> io::Result<Box<dyn FileIo>> {
        self.alive()?;
        Ok(Box::new(FaultyFile { disk: self.clone(), file: file? }))
    }
}

impl Io for FaultyDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        let file = Disk.open(path);
        let mut plan = self.plan();
        if plan.replacements > 0 {
            plan.replacements -= 1;
            let other = path.with_extension("other");
            std::fs::copy(path, &other)?;
            std::fs::rename(other, path)?;
        }
        drop(plan);
        self.file(file)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        self.file(Disk.create_new(path))
    }

    fn open_intent_log(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        self.file(Disk.open_intent_log(path))
    }

    fn create_intent_log(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        self.file(Disk.create_intent_log(path))
    }

    fn remove_intent_log(&self, path: &Path) -> io::Result<()> {
        self.alive()?;
        Disk.remove_intent_log(path)
    }

    fn create_dirs(&self, path: &Path) -> io::Result<()> {
        Disk.create_dirs(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.alive()?;
        Disk.remove(path)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        self.alive()?;
        if self.plan().no_links {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Disk.link(file, name)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.alive()?;
        Disk.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.plan().syncs += 1;
        Disk.sync_dir(path)
    }

    fn stat(&self, path: &Path) -> io::Result<FileState> {
        Disk.stat(path)
    }
}

struct FaultyFile {
    disk: FaultyDisk,
    file: Box<dyn FileIo>,
}

impl Read for FaultyFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Small bites, so that lines straddle them.
        let size = buffer.len().min(7);
        self.file.read(&mut buffer[..size])
    }
}

impl FileIo for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.alive()?;
        let mut plan = self.disk.plan();
        plan.append_calls += 1;
        let mut count = match plan.appends.pop_front() {
            None => bytes.len(),
            Some(Fault::Short(count)) => count.min(bytes.len()),
            Some(Fault::Error(kind)) => return Err(kind.into()),
        };
        if let Some(left) = &mut plan.bytes_to_live {
            count = count.min(*left);
            *left -= count;
        }
        self.file.append(&bytes[..count])
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.disk.alive()?;
        let mut plan = self.disk.plan();
        if plan.failing_cuts > 0 {
            plan.failing_cuts -= 1;
            return Err(io::Error::other("no cutting"));
        }
        self.file.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.alive()?;
        let mut plan = self.disk.plan();
        if plan.failing_syncs > 0 {
            plan.failing_syncs -= 1;
            return Err(io::Error::other("no syncing"));
        }
        plan.syncs += 1;
        self.file.sync()
    }

    fn state(&self) -> io::Result<FileState> {
        self.file.state()
    }

    fn copy_mode(&self, of: &Path) -> io::Result<()> {
        self.file.copy_mode(of)
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
}
