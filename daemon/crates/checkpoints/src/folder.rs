//! The index of a folder: what every file in it was when it was last looked at, with the contents in the store.
//!
//! Where inotify is allowed, only the paths that it names are looked at; else every file's size and times. A change that leaves
//! size, both times and the inode as they were is then not seen, which takes a clock that was set back.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

mod walk;

use crate::{
    capture::{Stat, capture},
    rules::Rules,
    state::{Change, FileState, StoredPath, Unkept},
    store::Store,
    watch::Watch,
};

/// The age at which a file's times tell two changes apart: more than a tick of any kernel's clock.
const SETTLED_NS: i64 = 50_000_000;

/// Files that are read on one thread; more of them are read on several.
const FEW: usize = 32;

/// The most threads that read files.
const MAX_THREADS: usize = 4;

/// The limits of an index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FolderLimits {
    /// The longest file that is kept, in bytes.
    pub(crate) max_file_bytes: u64,
    /// The most bytes that all files may have together.
    pub(crate) max_total_bytes: u64,
    /// The most files and folders.
    pub(crate) max_files: u64,
}

/// A path as it was when it was last looked at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) state: FileState,
    pub(crate) stat: Stat,
    /// Whether a later change may have the same times.
    pub(crate) is_racy: bool,
}

/// What changed since the last look.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) changes: Vec<Change>,
    /// Paths that came into sight without being new: nothing is known of what they were.
    pub(crate) adopted: Vec<PathBuf>,
    /// Git's own folders that are gone.
    pub(crate) repositories: Vec<PathBuf>,
    /// Why the folder cannot be covered any longer.
    pub(crate) uncovered: Option<String>,
}

/// The index of one folder.
pub(crate) struct Index {
    root: PathBuf,
    device: u64,
    limits: FolderLimits,
    rules: Rules,
    pub(crate) entries: BTreeMap<PathBuf, Entry>,
    /// Folders that could not be read.
    opaque: HashSet<PathBuf>,
    /// Files with other names, which may be written by those.
    linked: BTreeSet<PathBuf>,
    /// Files that were not kept for want of room, to be looked at again.
    again: Vec<PathBuf>,
    /// Git's own folders, which are left out.
    repositories: BTreeSet<PathBuf>,
    /// What the folder itself was, and its number in the file system.
    top: (FileState, u64),
    watch: Option<Watch>,
}

/// One look at some paths.
#[derive(Default)]
struct Look {
    /// Files whose content has to be read.
    read: Vec<(PathBuf, Stat)>,
    changed: Vec<(PathBuf, Option<Entry>, Option<Entry>)>,
    repositories: Vec<PathBuf>,
    /// What the folder itself was, where that is another by now.
    top: Option<FileState>,
    seen: u64,
    bytes: u64,
}

impl Index {
    /// An index without files.
    ///
    /// # Errors
    /// The system's, of the folder itself.
    pub(crate) fn new(root: &Path, rules: Rules, limits: FolderLimits) -> io::Result<Self> {
        let about = Stat::of(&fs::metadata(root)?);
        Ok(Self {
            root: root.to_owned(),
            device: about.dev,
            limits,
            rules,
            entries: BTreeMap::new(),
            opaque: HashSet::new(),
            linked: BTreeSet::new(),
            again: Vec::new(),
            repositories: BTreeSet::new(),
            top: (FileState::Folder { mode: about.mode & 0o7777 }, about.ino),
            watch: Watch::new(),
        })
    }

    /// Begins with what was known before.
    pub(crate) fn resume(&mut self, entries: BTreeMap<PathBuf, Entry>) {
        let is_linked = |entry: &Entry| !entry.stat.is_folder() && entry.stat.links > 1;
        self.linked =
            entries.iter().filter(|(_, entry)| is_linked(entry)).map(|(path, _)| path.clone()).collect();
        self.entries = entries;
    }

    /// Looks at everything for the first time. Entries of an earlier index whose times are the same are not read again.
    ///
    /// # Errors
    /// A sentence about why the folder is not covered.
    pub(crate) fn baseline(&mut self, store: &Store) -> Result<(), String> {
        let mut look = Look::default();
        self.visit_folder(Path::new(""), &mut look);
        let FolderLimits { max_files, max_total_bytes, .. } = self.limits;
        if look.seen > max_files {
            return Err(too_many(max_files));
        }
        if look.bytes > max_total_bytes {
            return Err(format!("its files have more than {max_total_bytes} bytes (undo.maxTotalBytes)"));
        }
        self.finish(look, store, None);
        Ok(())
    }

    /// Looks at what may have changed since the last time.
    pub(crate) fn sync(&mut self, store: &Store) -> Changes {
        let mut look = Look::default();
        let mut rules_before = None;
        let is_another = self.visit_top(&mut look);
        let dirty = self.watch.as_mut().and_then(Watch::drain).filter(|_| !is_another);
        match dirty {
            _ if !matches!(self.top.0, FileState::Folder { .. }) => self.remove_all(&mut look),
            Some(dirty) => {
                let mut linked: Vec<PathBuf> = self.linked.iter().cloned().collect();
                linked.append(&mut self.again);
                let rules_of: Vec<PathBuf> = dirty
                    .keys()
                    .filter(|path| self.rules.is_rules_file(path))
                    .filter_map(|path| path.parent().map(Path::to_owned))
                    .collect();
                if !rules_of.is_empty() {
                    rules_before = Some(self.rules.clone());
                }
                let mut deep: Option<PathBuf> = None;
                let mut paths = dirty;
                for path in linked {
                    paths.entry(path).or_default();
                }
                for folder in rules_of {
                    self.rules.load(&folder);
                    paths.insert(folder, true);
                }
                for (path, is_new) in paths {
                    // What is below a folder that was walked has been looked at.
                    if deep.as_ref().is_some_and(|folder| path.starts_with(folder)) {
                        continue;
                    }
                    if self.visit(&path, is_new, &mut look) && is_new {
                        deep = Some(path);
                    }
                }
            }
            None => {
                rules_before = Some(self.rules.clone());
                self.visit_folder(Path::new(""), &mut look);
            }
        }
        let max_files = self.limits.max_files;
        // A walk ends at the limit: what is behind it would be missed in silence.
        let is_over = look.seen > max_files || self.entries.len() as u64 > max_files;
        let uncovered = is_over.then(|| too_many(max_files));
        Changes { uncovered, ..self.finish(look, store, rules_before.as_ref()) }
    }

    /// The store has room again: files that it had none for are read at the next look.
    pub(crate) fn look_for_room_again(&mut self) {
        let has_none = |entry: &Entry| entry.state.unkept() == Some(Unkept::Full);
        for (path, entry) in self.entries.iter_mut().filter(|(_, entry)| has_none(entry)) {
            entry.is_racy = true;
            self.again.push(path.clone());
        }
    }

    /// Takes a path's state from a tool that changed exactly it.
    pub(crate) fn note(&mut self, path: &Path, state: &FileState) {
        let Ok(relative) = path.strip_prefix(&self.root) else { return };
        let relative = relative.to_owned();
        match Stat::at(path) {
            Ok(Some(stat)) if *state != FileState::Absent && self.covers(&relative, stat.is_folder()) => {
                if stat.is_folder()
                    && let Some(watch) = &mut self.watch
                    && !watch.add(path, &relative)
                {
                    self.watch = None;
                }
                self.entries.insert(relative, Entry { state: state.clone(), stat, is_racy: true });
            }
            _ => {}
        }
    }

    /// Whether a path is one that the index has, or would have.
    fn covers(&self, relative: &Path, is_folder: bool) -> bool {
        let parents_are_in = relative
            .ancestors()
            .skip(1)
            .all(|folder| folder.as_os_str().is_empty() || self.entries.contains_key(folder));
        parents_are_in && !self.rules.leave_out(relative, is_folder)
    }

    /// Reads the files that a look found, and says what changed.
    fn finish(&mut self, look: Look, store: &Store, rules_before: Option<&Rules>) -> Changes {
        let Look { read, mut changed, repositories, top, .. } = look;
        for (relative, stat, state) in self.read_all(read, store) {
            let known = self.entries.get(&relative);
            // The file was gone again when it was read.
            if state == FileState::Absent {
                if let Some(before) = self.entries.remove(&relative) {
                    changed.push((relative, Some(before), None));
                }
                continue;
            }
            let entry = Entry { state, stat, is_racy: now_ns() - stat.ctime.max(stat.mtime) < SETTLED_NS };
            if stat.links > 1 {
                self.linked.insert(relative.clone());
            } else {
                self.linked.remove(&relative);
            }
            // It is as it was, and there is room for it now.
            let has_room =
                known.is_some_and(|known| known.stat == stat && known.state.unkept() == Some(Unkept::Full));
            if !has_room && known.is_none_or(|known| !known.state.is_same(&entry.state)) {
                changed.push((relative.clone(), known.cloned(), Some(entry.clone())));
            }
            self.entries.insert(relative, entry);
        }
        let repositories = repositories.iter().map(|path| self.root.join(path)).collect();
        let mut found = Changes { repositories, ..Changes::default() };
        if let Some(before) = top {
            let path = StoredPath(self.root.clone());
            found.changes.push(Change { path, before, after: self.top.0.clone() });
        }
        for (relative, before, after) in changed {
            let path = self.root.join(&relative);
            if before.is_none() && self.was_out_of_sight(&relative, after.as_ref(), rules_before) {
                found.adopted.push(path);
                continue;
            }
            let state = |entry: Option<Entry>| entry.map_or(FileState::Absent, |entry| entry.state);
            found.changes.push(Change { path: StoredPath(path), before: state(before), after: state(after) });
        }
        let entries = &self.entries;
        self.opaque
            .retain(|folder| entries.contains_key(folder) && fs::read_dir(self.root.join(folder)).is_err());
        found
    }

    /// Whether a path that is new in the index may have been there before.
    fn was_out_of_sight(&self, relative: &Path, now: Option<&Entry>, before: Option<&Rules>) -> bool {
        let is_folder = now.is_some_and(|entry| entry.stat.is_folder());
        relative.ancestors().skip(1).any(|folder| self.opaque.contains(folder))
            || before.is_some_and(|rules| {
                relative
                    .ancestors()
                    .filter(|path| !path.as_os_str().is_empty())
                    .any(|path| rules.leave_out(path, is_folder || path != relative))
            })
    }

    /// Keeps the contents of files: of a few here, of many on several threads of low priority.
    fn read_all(&self, files: Vec<(PathBuf, Stat)>, store: &Store) -> Vec<(PathBuf, Stat, FileState)> {
        let max = self.limits.max_file_bytes;
        let read = |(relative, stat): &(PathBuf, Stat)| {
            let path = self.root.join(relative);
            let state = capture(&path, Some(stat), store, max);
            (relative.clone(), *stat, state)
        };
        if files.len() <= FEW {
            return files.iter().map(read).collect();
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let work = || {
                let mut done = Vec::new();
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    done.push(read(file));
                }
                done
            };
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
            let mut all = work();
            for other in others {
                match other.join() {
                    Ok(done) => all.extend(done),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        })
    }
}

fn too_many(max_files: u64) -> String {
    format!("it has more than {max_files} files and folders (undo.maxFiles)")
}

/// The entries of a stored index; `None` where it is missing or damaged.
pub(crate) fn read_index(path: &Path) -> Option<BTreeMap<PathBuf, Entry>> {
    let packed = fs::read(path).ok()?;
    let text = zstd::stream::decode_all(&*packed).ok()?;
    let entries: Vec<(StoredPath, Entry)> = serde_json::from_slice(&text).ok()?;
    Some(entries.into_iter().map(|(path, entry)| (path.0, entry)).collect())
}

fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
}
