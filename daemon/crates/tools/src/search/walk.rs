//! Walks the files and folders below a folder of this machine by the rules of ignore files: in a fixed order, or with
//! several threads.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    vec,
};

use super::{
    local_rules::{LocalRules, Names},
    rules::{FolderRules, WalkRules},
};
use crate::operations::FileKind;

/// An entry below the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    /// Its own kind: links are not followed.
    pub(crate) kind: FileKind,
}

/// A folder that could not be read completely.
#[derive(Debug)]
pub(crate) struct Unread {
    pub(crate) path: PathBuf,
    pub(crate) error: io::Error,
}

/// An entry, or an unreadable folder.
pub(crate) type Walked = Result<Entry, Unread>;

/// Depth first; the entries of a folder by the bytes of their names. Hidden files are included, symbolic links are not
/// followed, and the root itself is not an entry. Memory holds the names in the folders on the way down.
pub(crate) struct Walk<'a> {
    rules: LocalRules<'a>,
    /// What is left of the folders on the way down, the innermost last.
    open: Vec<(vec::IntoIter<Walked>, Arc<FolderRules>)>,
    /// A folder that was returned, and is entered next.
    next: Option<(PathBuf, Option<Arc<FolderRules>>)>,
}

impl<'a> Walk<'a> {
    /// The root of the rules must be a path without links.
    pub(crate) fn new(rules: WalkRules<'a>) -> Self {
        let rules = LocalRules::new(rules);
        let next = Some((rules.root.to_owned(), rules.above_root()));
        Self { rules, open: Vec::new(), next }
    }
}

impl Iterator for Walk<'_> {
    type Item = Walked;

    fn next(&mut self) -> Option<Walked> {
        if let Some((folder, above)) = self.next.take() {
            let (mut entries, rules) = read(&self.rules, &folder, above.as_ref());
            entries.sort_unstable_by(|one, other| name_of(one).cmp(name_of(other)));
            self.open.push((entries.into_iter(), rules));
        }
        loop {
            let (entries, rules) = self.open.last_mut()?;
            match entries.next() {
                Some(Ok(entry)) => {
                    if entry.kind == FileKind::Folder {
                        self.next = Some((entry.path.clone(), Some(Arc::clone(rules))));
                    }
                    return Some(Ok(entry));
                }
                Some(error) => return Some(error),
                None => drop(self.open.pop()),
            }
        }
    }
}

/// Sorts by the bytes of names; errors come first.
fn name_of(entry: &Walked) -> &[u8] {
    entry.as_ref().map_or(&[], |entry| entry.path.as_os_str().as_encoded_bytes())
}

/// The entries of a folder that are not left out, in any order, and its rules.
fn read(
    rules: &LocalRules<'_>,
    folder: &Path,
    above: Option<&Arc<FolderRules>>,
) -> (Vec<Walked>, Arc<FolderRules>) {
    let failed = |error| Unread { path: folder.to_owned(), error };
    let mut names = Names::default();
    let mut entries = Vec::new();
    match fs::read_dir(folder) {
        Err(error) => entries.push(Err(failed(error))),
        Ok(listed) => {
            for entry in listed {
                let found = entry.and_then(|entry| {
                    rules.note(&mut names, &entry.file_name());
                    Ok(Entry { kind: entry.file_type()?.into(), path: entry.path() })
                });
                entries.push(found.map_err(failed));
            }
        }
    }
    let here = rules.enter(folder, names, above);
    entries.retain(|entry| {
        let Ok(Entry { path, kind }) = entry else { return true };
        !rules.leaves_out(path, *kind == FileKind::Folder, &here)
    });
    (entries, here)
}

/// What a visitor of entries wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// To continue.
    GoOn,
    /// To skip the contents of this folder.
    PassOver,
    /// To stop.
    Stop,
}

/// Walks with `threads` threads, including the caller's. They visit entries in any order, folders before their
/// contents. Blocks.
pub(crate) fn walk_parallel(rules: WalkRules<'_>, threads: usize, visit: impl Fn(Walked) -> Next + Sync) {
    let rules = LocalRules::new(rules);
    let first = (rules.root.to_owned(), rules.above_root());
    let shared = Shared {
        rules,
        work: Mutex::new(Work { folders: vec![first], busy: 0, is_over: false }),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // With fewer threads the walk only takes longer.
            let builder = std::thread::Builder::new().name("find".into());
            if builder.spawn_scoped(scope, || shared.work(&visit)).is_err() {
                break;
            }
        }
        shared.work(&visit);
    });
}

struct Shared<'a> {
    rules: LocalRules<'a>,
    work: Mutex<Work>,
    /// Signals new folders, or the end.
    changed: Condvar,
}

/// The work that is left.
struct Work {
    /// Folders that no thread has entered. The last one is the next, which keeps the list short.
    folders: Vec<(PathBuf, Option<Arc<FolderRules>>)>,
    /// Threads in a folder, which may add others.
    busy: usize,
    is_over: bool,
}

/// Tells the other threads that one has left its folder, even by a panic.
struct Busy<'a, 'b>(&'a Shared<'b>);

impl Drop for Busy<'_, '_> {
    fn drop(&mut self) {
        let mut work = self.0.lock();
        work.busy -= 1;
        work.is_over |= std::thread::panicking();
        drop(work);
        self.0.changed.notify_all();
    }
}

impl Shared<'_> {
    fn work(&self, visit: &(impl Fn(Walked) -> Next + Sync)) {
        while let Some((folder, above)) = self.take() {
            let _busy = Busy(self);
            let (entries, rules) = read(&self.rules, &folder, above.as_ref());
            let mut inside = Vec::new();
            for entry in entries {
                let folder = match &entry {
                    Ok(entry) if entry.kind == FileKind::Folder => Some(entry.path.clone()),
                    _ => None,
                };
                match visit(entry) {
                    Next::GoOn => inside.extend(folder.map(|folder| (folder, Some(Arc::clone(&rules))))),
                    Next::PassOver => {}
                    Next::Stop => {
                        self.lock().is_over = true;
                        return;
                    }
                }
            }
            self.lock().folders.append(&mut inside);
        }
    }

    /// A folder to enter; `None` when no more will come.
    fn take(&self) -> Option<(PathBuf, Option<Arc<FolderRules>>)> {
        let waits = |work: &mut Work| work.folders.is_empty() && work.busy > 0 && !work.is_over;
        let mut work = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        if work.is_over {
            return None;
        }
        let folder = work.folders.pop()?;
        work.busy += 1;
        Some(folder)
    }

    /// No holder of this lock leaves a half-made change.
    fn lock(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
