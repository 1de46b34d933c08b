//! Power loss: all bytes that were not synced are gone. With `fsync`, none of them was acknowledged.
//!
//! The disk keeps a model of its durable state: the content of a file up to its last sync, and a name only when its folder was
//! synced since. It treats everything else as lost, which is the worst case.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

use proptest::prelude::*;

use crate::{
    Durability, FileCreation, NewEntry, NewSession, OpenSession, Store, StoreError, StoreOptions,
    io::{Disk, FileIo, FileState, Io},
};

/// The file or folder of a name.
type Node = (u64, u64);

#[derive(Default)]
struct Durable {
    /// The content of synced files.
    content: BTreeMap<Node, Vec<u8>>,
    /// The names in synced folders, and what they stand for.
    names: BTreeMap<Node, BTreeMap<PathBuf, Node>>,
}

#[derive(Clone, Default)]
struct PowerDisk(Arc<Mutex<Durable>>);

fn node(path: &Path) -> io::Result<Node> {
    let identity = Disk.stat(path)?.identity;
    identity.ok_or_else(|| io::Error::other("files cannot be told apart here"))
}

impl PowerDisk {
    fn durable(&self) -> MutexGuard<'_, Durable> {
        self.0.lock().unwrap()
    }

    /// The content of a file after the power loss; `None` when the file would not exist. `root` existed from the beginning.
    fn after_power_loss(&self, root: &Path, path: &Path) -> Option<Vec<u8>> {
        let durable = self.durable();
        let mut at = node(root).ok()?;
        for name in path.strip_prefix(root).ok()? {
            at = *durable.names.get(&at)?.get(Path::new(name))?;
        }
        durable.content.get(&at).cloned()
    }
}

impl Io for PowerDisk {
    fn open(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        Ok(Box::new(PowerFile {
            disk: self.clone(),
            file: Disk.open(path)?,
            path: path.to_owned(),
            node: node(path)?,
        }))
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn FileIo>> {
        let file = Disk.create_new(path)?;
        Ok(Box::new(PowerFile { disk: self.clone(), file, path: path.to_owned(), node: node(path)? }))
    }

    fn create_dirs(&self, path: &Path) -> io::Result<()> {
        Disk.create_dirs(path)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        Disk.link(file, name)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut names = BTreeMap::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            names.insert(PathBuf::from(entry.file_name()), node(&entry.path())?);
        }
        self.durable().names.insert(node(path)?, names);
        Ok(())
    }

    fn stat(&self, path: &Path) -> io::Result<FileState> {
        Disk.stat(path)
    }
}

struct PowerFile {
    disk: PowerDisk,
    file: Box<dyn FileIo>,
    /// The name that it was opened by, which another file may have by now.
    path: PathBuf,
    node: Node,
}

impl Read for PowerFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl FileIo for PowerFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Never all at once, so that a sync between two pieces would be seen.
        self.file.append(&bytes[..bytes.len().div_ceil(2)])
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.durable().content.insert(self.node, fs::read(&self.path)?);
        Ok(())
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

struct Bench {
    dir: tempfile::TempDir,
    disk: PowerDisk,
    store: Store,
}

impl Bench {
    fn new(durability: Durability) -> Self {
        let (dir, disk) = (tempfile::tempdir().unwrap(), PowerDisk::default());
        let store =
            Store::with_io(StoreOptions { durability, ..StoreOptions::default() }, Arc::new(disk.clone()));
        Self { dir, disk, store }
    }

    fn sessions(&self) -> PathBuf {
        self.dir.path().join("sessions/--w--")
    }

    fn say(session: &mut OpenSession, text: &str) -> Result<(), StoreError> {
        let message = serde_json::json!({"role": "user", "content": text}).to_string();
        let entry = session.tree.prepare(NewEntry::message(serde_json::from_str(&message).unwrap()), 0);
        session.writer.append(&entry)?;
        session.tree.push(entry);
        Ok(())
    }

    /// Returns whether all acknowledged entries of a session would survive.
    fn keeps(&self, session: &OpenSession) -> bool {
        let mut expected = Vec::new();
        session.tree.write_to(&mut expected);
        let path = session.writer.path().unwrap();
        self.disk.after_power_loss(self.dir.path(), path).is_some_and(|there| there == expected)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn with_fsync_nothing_that_was_acknowledged_is_lost(texts in proptest::collection::vec("[a-zé\\n\"]{0,40}", 1..6), reopen in 0usize..6) {
        let bench = Bench::new(Durability::Fsync);
        let mut session = bench.store.create(&bench.sessions(), NewSession::new("/w", 0)).unwrap();
        for (at, text) in texts.iter().enumerate() {
            Bench::say(&mut session, text).unwrap();
            prop_assert!(bench.keeps(&session), "entry {} would be lost", at);
            if at == reopen {
                let path = session.writer.path().unwrap().to_owned();
                drop(session);
                session = bench.store.open(&path, NewSession::new("/w", 0)).unwrap();
            }
        }
        // A copy is durable when its creation is acknowledged.
        let copy = session.tree.clone();
        let copy = bench.store.adopt(copy, Some(&bench.dir.path().join("sessions/--copy--")), FileCreation::AtOnce).unwrap();
        prop_assert!(bench.keeps(&copy));
    }
}

#[test]
fn without_fsync_the_disk_is_not_waited_for() {
    // Else the test above could not fail.
    let bench = Bench::new(Durability::Os);
    let mut session = bench.store.create(&bench.sessions(), NewSession::new("/w", 0)).unwrap();
    Bench::say(&mut session, "x").unwrap();
    assert!(!bench.keeps(&session));
}

#[test]
fn a_file_of_an_old_version_is_there_in_the_old_form_or_the_new() {
    let bench = Bench::new(Durability::Fsync);
    let old = "{\"type\":\"session\",\"id\":\"s\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"cwd\":\"/w\"}\n\
               {\"type\":\"message\",\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n";
    fs::create_dir_all(bench.sessions()).unwrap();
    let path = bench.sessions().join("s.jsonl");
    fs::write(&path, old).unwrap();
    // It was there long before.
    for folder in path.ancestors().skip(1).take(3) {
        bench.disk.sync_dir(folder).unwrap();
    }
    bench.disk.durable().content.insert(node(&path).unwrap(), old.into());
    let session = bench.store.open(&path, NewSession::new("/w", 0)).unwrap();
    assert!(bench.keeps(&session));
    let names: BTreeSet<PathBuf> =
        fs::read_dir(bench.sessions()).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The old one stays, under another name.
    let original = bench.sessions().join("s.jsonl.v1.bak");
    let kept = bench.disk.after_power_loss(bench.dir.path(), &original);
    assert_eq!(kept.as_deref(), Some(old.as_bytes()));
    assert_eq!(names, BTreeSet::from([path, original]));
}
