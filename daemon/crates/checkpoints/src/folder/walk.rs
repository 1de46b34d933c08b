//! Looks at paths of a folder, and notes what is not as the index has it.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use super::{Entry, Index, Look};
use crate::{capture::Stat, state::FileState, watch::Watch};

impl Index {
    /// Looks at the folder itself. Returns whether another one has its place.
    pub(super) fn visit_top(&mut self, look: &mut Look) -> bool {
        let Ok(stat) = Stat::at(&self.root) else { return false };
        // A link or a file in its place counts as nothing: neither is followed or replaced.
        let stat = stat.filter(Stat::is_folder);
        let now = stat.map_or(FileState::Absent, |stat| FileState::Folder { mode: stat.mode & 0o7777 });
        let ino = stat.map_or(0, |stat| stat.ino);
        let is_another = ino != self.top.1;
        if let Some(stat) = stat.filter(|_| is_another) {
            self.device = stat.dev;
        }
        let before = std::mem::replace(&mut self.top, (now, ino)).0;
        look.top = (before != self.top.0).then_some(before);
        is_another
    }

    /// The folder itself is gone.
    pub(super) fn remove_all(&mut self, look: &mut Look) {
        self.watch = Watch::new();
        self.opaque.clear();
        self.linked.clear();
        look.repositories.extend(std::mem::take(&mut self.repositories));
        let gone = std::mem::take(&mut self.entries).into_iter();
        look.changed.extend(gone.map(|(path, entry)| (path, Some(entry), None)));
    }

    /// Looks at one path, and with `deep` at everything below it. Returns whether that was done.
    pub(super) fn visit(&mut self, relative: &Path, deep: bool, look: &mut Look) -> bool {
        if relative.as_os_str().is_empty() {
            if deep {
                self.visit_folder(relative, look);
            }
            return deep;
        }
        let path = self.root.join(relative);
        let Ok(stat) = Stat::at(&path) else { return false };
        let Some(stat) = stat else {
            self.remove(relative, look, true);
            return false;
        };
        if relative.file_name().is_some_and(|name| name == ".git") {
            self.repositories.insert(relative.to_owned());
        }
        if stat.dev != self.device || self.rules.leave_out(relative, stat.is_folder()) {
            self.remove(relative, look, false);
            return false;
        }
        look.seen += 1;
        let known = self.entries.get(relative);
        if known.is_some_and(|known| known.stat.is_folder() && !stat.is_folder()) {
            self.remove_below(relative, look, true);
        }
        let known = self.entries.get(relative);
        if !stat.is_folder() {
            let is_unchanged = known.is_some_and(|known| !known.is_racy && known.stat == stat);
            if !is_unchanged {
                if stat.len <= self.limits.max_file_bytes {
                    look.bytes += stat.len;
                }
                look.read.push((relative.to_owned(), stat));
            }
            return false;
        }
        let is_known = known.is_some_and(|known| known.stat.is_folder());
        let state = FileState::Folder { mode: stat.mode & 0o7777 };
        if known.is_none_or(|known| !known.state.is_same(&state)) {
            let before = known.cloned();
            let entry = Entry { state, stat, is_racy: false };
            self.entries.insert(relative.to_owned(), entry.clone());
            look.changed.push((relative.to_owned(), before, Some(entry)));
        }
        if deep || !is_known || self.opaque.contains(relative) {
            self.visit_folder(relative, look);
            return true;
        }
        false
    }

    /// Looks at everything in a folder, which is watched from here on.
    pub(super) fn visit_folder(&mut self, relative: &Path, look: &mut Look) {
        if look.seen > self.limits.max_files {
            return;
        }
        let path = self.root.join(relative);
        if let Some(watch) = &mut self.watch
            && !watch.add(&path, relative)
        {
            self.watch = None;
        }
        let Ok(listing) = fs::read_dir(&path) else {
            self.opaque.insert(relative.to_owned());
            return;
        };
        self.rules.load(relative);
        let mut names = HashSet::new();
        for entry in listing.flatten() {
            let name = entry.file_name();
            self.visit(&relative.join(&name), true, look);
            names.insert(name);
        }
        let gone: Vec<PathBuf> = self
            .below(relative)
            .filter(|path| path.parent() == Some(relative))
            .filter(|path| path.file_name().is_some_and(|name| !names.contains(name)))
            .cloned()
            .collect();
        for path in gone {
            self.remove(&path, look, true);
        }
        let repository = relative.join(".git");
        if self.repositories.contains(&repository) && !names.contains(OsStr::new(".git")) {
            self.remove(&repository, look, true);
        }
    }

    /// The known paths below a folder.
    fn below(&self, relative: &Path) -> impl Iterator<Item = &PathBuf> {
        let relative = relative.to_owned();
        let from = self.entries.range(relative.clone()..);
        from.map(|(path, _)| path)
            .take_while({
                let relative = relative.clone();
                move |path| path.starts_with(&relative)
            })
            .filter(move |path| **path != relative)
    }

    /// A path is not there any more (`is_gone`), or is left out from now on.
    fn remove(&mut self, relative: &Path, look: &mut Look, is_gone: bool) {
        self.remove_below(relative, look, is_gone);
        self.linked.remove(relative);
        if is_gone && self.repositories.remove(relative) {
            look.repositories.push(relative.to_owned());
        }
        if let Some(entry) = self.entries.remove(relative)
            && is_gone
        {
            look.changed.push((relative.to_owned(), Some(entry), None));
        }
    }

    fn remove_below(&mut self, relative: &Path, look: &mut Look, is_gone: bool) {
        if !self.entries.get(relative).is_some_and(|entry| entry.stat.is_folder()) {
            return;
        }
        if let Some(watch) = &mut self.watch {
            watch.remove_below(relative);
        }
        self.opaque.retain(|folder| !folder.starts_with(relative));
        let below: Vec<PathBuf> = self.below(relative).cloned().collect();
        for path in below {
            self.linked.remove(&path);
            if let Some(entry) = self.entries.remove(&path)
                && is_gone
            {
                look.changed.push((path, Some(entry), None));
            }
        }
        let from = self.repositories.range(relative.to_owned()..);
        let repositories: Vec<PathBuf> =
            from.take_while(|path| path.starts_with(relative)).cloned().collect();
        for path in repositories {
            self.repositories.remove(&path);
            if is_gone {
                look.repositories.push(path);
            }
        }
    }
}
