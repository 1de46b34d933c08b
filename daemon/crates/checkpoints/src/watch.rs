//! Watches the folders of a tree by inotify.

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    fs,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
};

use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    io::Errno,
};

/// Paths that may have changed, relative to the root. `true`: the folder there is new, or another one.
pub(crate) type Dirty = BTreeMap<PathBuf, bool>;

/// The watches of a tree.
pub(crate) struct Watch {
    queue: OwnedFd,
    by_number: HashMap<i32, PathBuf>,
    by_path: BTreeMap<PathBuf, i32>,
    /// The most watches.
    most: usize,
}

/// Where the system says how many watches a user may have.
const LIMIT_FILE: &str = "/proc/sys/fs/inotify/max_user_watches";

impl Watch {
    /// No folders yet; `None` where the system has no inotify or no room for another queue.
    pub(crate) fn new() -> Option<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let limit = fs::read_to_string(LIMIT_FILE).ok().and_then(|text| text.trim().parse::<usize>().ok());
        // Other programs of the user, editors above all, need watches, too.
        Some(Self {
            queue,
            by_number: HashMap::new(),
            by_path: BTreeMap::new(),
            most: limit.unwrap_or(0) / 2,
        })
    }

    /// Watches a folder, `relative` to the root. Returns false when half of what the system allows is in use.
    pub(crate) fn add(&mut self, path: &Path, relative: &Path) -> bool {
        if self.by_number.len() >= self.most {
            return false;
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(&self.queue, path, flags) {
            Ok(number) => {
                // A folder that was renamed keeps its number.
                if let Some(old) = self.by_number.insert(number, relative.to_owned())
                    && self.by_path.get(&old) == Some(&number)
                {
                    self.by_path.remove(&old);
                }
                if let Some(other) = self.by_path.insert(relative.to_owned(), number)
                    && other != number
                {
                    self.by_number.remove(&other);
                    // The system has removed the watch where the folder is gone.
                    let _ = inotify::remove_watch(&self.queue, other);
                }
                true
            }
            // Gone again, or not to be read: the walk says so.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => true,
            Err(_) => false,
        }
    }

    /// Forgets all watches below and of a folder that is gone or ignored.
    pub(crate) fn remove_below(&mut self, relative: &Path) {
        let from = self.by_path.range(relative.to_owned()..);
        let gone: Vec<PathBuf> =
            from.map(|(path, _)| path).take_while(|path| path.starts_with(relative)).cloned().collect();
        for path in gone {
            if let Some(number) = self.by_path.remove(&path) {
                self.by_number.remove(&number);
                // The system has removed the watch with the folder.
                let _ = inotify::remove_watch(&self.queue, number);
            }
        }
    }

    /// The paths of all events since the last time; `None` when events were lost, so that anything may have changed.
    pub(crate) fn drain(&mut self) -> Option<Dirty> {
        let mut dirty = Dirty::new();
        let mut is_complete = true;
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(_) => return None,
            };
            let about = event.events();
            if about.contains(ReadFlags::QUEUE_OVERFLOW) {
                is_complete = false;
                continue;
            }
            if about.contains(ReadFlags::IGNORED) {
                if let Some(path) = self.by_number.remove(&event.wd())
                    && self.by_path.get(&path) == Some(&event.wd())
                {
                    self.by_path.remove(&path);
                }
                continue;
            }
            let Some(folder) = self.by_number.get(&event.wd()) else { continue };
            if about.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF) {
                // The folder's own parent tells of all but the root.
                is_complete &= !folder.as_os_str().is_empty();
                continue;
            }
            let path = match event.file_name() {
                Some(name) => folder.join(OsStr::from_bytes(name.to_bytes())),
                None => folder.clone(),
            };
            let is_new = about.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
            *dirty.entry(path).or_default() |= is_new;
        }
        is_complete.then_some(dirty)
    }
}
