//! Walks the files and folders below a folder on any host, in the order of [`super::Walk`] and by the same rules.

use std::{
    collections::VecDeque,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use agentd_ignore_files::{MAX_BYTES, RulesBudget, TooManyRules};
use ignore::overrides::Override;

use super::{
    Entry, UnusedFiles, WalkRules,
    rules::{FolderRules, is_left_out},
};
use crate::operations::{FileKind, FileSystem, FolderEntry};

/// Depth first; the entries of a folder by the bytes of their names. Folders are listed in batches, the next ones
/// first, so memory holds the names of one batch and of the folders on the way down. Ignore files of the folder and of
/// its parents count; the user's git settings do not. The walk finds out whether the folder belongs to a repository: in
/// one, `require_git` counts as set.
///
/// An error is a folder that could not be read, or the end of the walk when the host cannot be reached.
pub(crate) struct FarWalk<'a> {
    files: &'a dyn FileSystem,
    own_ignore_file: &'static str,
    require_git: bool,
    overrides: Override,
    budget: Arc<RulesBudget>,
    unused: &'a UnusedFiles,
    /// What is left, the next one last.
    left: Vec<Waiting>,
    /// Errors to return first.
    errors: VecDeque<io::Error>,
}

enum Waiting {
    Entry(Entry, Arc<FolderRules>),
    /// The entries of a folder whose own entry was returned, or why they are not known.
    Inside(io::Result<Vec<FolderEntry>>, Arc<FolderRules>, PathBuf),
}

/// The texts of a folder's ignore files, the most specific first, and whether the folder is a repository.
type Texts = ([String; 4], bool);

impl<'a> FarWalk<'a> {
    /// When the host cannot be reached.
    pub(crate) fn new(files: &'a dyn FileSystem, rules: WalkRules<'a>) -> io::Result<Self> {
        let WalkRules { root, own_ignore_file, require_git, overrides, unused } = rules;
        let mut walk = Self {
            files,
            own_ignore_file,
            require_git,
            overrides,
            budget: Arc::new(RulesBudget::default()),
            unused,
            left: Vec::new(),
            errors: VecDeque::new(),
        };
        // From the file system's root down to the folder itself.
        let mut folders: Vec<PathBuf> = root.ancestors().map(Path::to_owned).collect();
        folders.reverse();
        let mut lists = Vec::with_capacity(folders.len());
        for batch in folders.chunks(files.batch().max(1)) {
            lists.extend(files.list(batch)?);
        }
        let found: Vec<(PathBuf, &[FolderEntry])> = folders
            .iter()
            .cloned()
            .zip(lists.iter().map(|list| list.as_deref().unwrap_or_default()))
            .collect();
        let mut rules = None;
        for (folder, texts) in folders.iter().zip(walk.read_texts(&found)?) {
            rules = Some(walk.rules_of(folder, texts, rules.as_ref()));
        }
        if let (Some(list), Some(rules)) = (lists.pop(), rules) {
            walk.require_git |= rules.is_in_repository();
            walk.left.push(Waiting::Inside(list, rules, root.to_owned()));
        }
        Ok(walk)
    }

    fn rules_of(
        &self,
        folder: &Path,
        (texts, is_repository): Texts,
        above: Option<&Arc<FolderRules>>,
    ) -> Arc<FolderRules> {
        FolderRules::below(above, folder, texts, is_repository, (&self.budget, self.unused))
    }

    /// The ignore files of each folder.
    fn read_texts(&self, folders: &[(PathBuf, &[FolderEntry])]) -> io::Result<Vec<Texts>> {
        let mut wanted = Vec::new();
        for (number, (folder, list)) in folders.iter().enumerate() {
            let has = |name: &str| list.iter().any(|entry| entry.name == name);
            for (which, name) in [self.own_ignore_file, ".ignore", ".gitignore"].into_iter().enumerate() {
                if has(name) {
                    wanted.push((number, which, folder.join(name)));
                }
            }
            if has(".git") {
                wanted.push((number, 3, folder.join(".git/info/exclude")));
            }
        }
        let mut texts: Vec<[String; 4]> = (0..folders.len()).map(|_| Default::default()).collect();
        let paths: Vec<PathBuf> = wanted.iter().map(|(.., path)| path.clone()).collect();
        for (batch, names) in
            paths.chunks(self.files.batch().max(1)).zip(wanted.chunks(self.files.batch().max(1)))
        {
            self.files.read_each(batch, &mut |number, file| {
                let (folder, which, _) = names[number];
                // An unreadable ignore file has no rules, as in a walk on this machine.
                if let Ok(file) = file {
                    let mut bytes = Vec::new();
                    match file.take(MAX_BYTES + 1).read_to_end(&mut bytes) {
                        Ok(_) if bytes.len() as u64 > MAX_BYTES => {
                            self.unused.add(&folders[folder].0, &TooManyRules::Bytes.into());
                        }
                        Ok(_) => texts[folder][which] = String::from_utf8_lossy(&bytes).into_owned(),
                        Err(_) => {}
                    }
                }
                true
            })?;
        }
        let is_repository =
            |list: &[FolderEntry]| list.iter().any(|entry| entry.name == ".git" || entry.name == ".jj");
        Ok(texts.into_iter().zip(folders).map(|(texts, (_, list))| (texts, is_repository(list))).collect())
    }

    /// Lists the next folders: the last one in `left`, and others before it.
    fn look_inside(&mut self) -> io::Result<()> {
        let next: Vec<usize> = (0..self.left.len())
            .rev()
            .filter(|place| matches!(&self.left[*place], Waiting::Entry(entry, _) if entry.kind == FileKind::Folder))
            .filter(|place| !matches!(self.left.get(place.wrapping_sub(1)), Some(Waiting::Inside(_, _, of)) if self.is_of(*place, of)))
            .take(self.files.batch().max(1))
            .collect();
        let folders: Vec<PathBuf> = next.iter().filter_map(|place| self.folder_at(*place)).collect();
        let lists = self.files.list(&folders)?;
        let found: Vec<(PathBuf, &[FolderEntry])> = folders
            .iter()
            .cloned()
            .zip(lists.iter().map(|list| list.as_deref().unwrap_or_default()))
            .collect();
        let texts = self.read_texts(&found)?;
        // From the last index to the first, so that indices stay valid.
        for ((place, list), texts) in next.into_iter().zip(lists).zip(texts) {
            let Waiting::Entry(entry, above) = &self.left[place] else { continue };
            let (rules, path) = (self.rules_of(&entry.path, texts, Some(above)), entry.path.clone());
            self.left.insert(place, Waiting::Inside(list, rules, path));
        }
        Ok(())
    }

    fn folder_at(&self, place: usize) -> Option<PathBuf> {
        match self.left.get(place)? {
            Waiting::Entry(entry, _) => Some(entry.path.clone()),
            Waiting::Inside(..) => None,
        }
    }

    fn is_of(&self, place: usize, folder: &Path) -> bool {
        matches!(&self.left[place], Waiting::Entry(entry, _) if entry.path == folder)
    }

    /// Puts the entries of a folder before everything else that is left.
    fn enter(&mut self, list: io::Result<Vec<FolderEntry>>, rules: &Arc<FolderRules>, folder: &Path) {
        let mut list = match list {
            Ok(list) => list,
            Err(error) => return self.errors.push_back(error),
        };
        list.sort_unstable_by(|one, other| other.name.cmp(&one.name));
        for FolderEntry { name, kind, .. } in list {
            let path = folder.join(name);
            if !self.is_ignored(&path, kind == FileKind::Folder, rules) {
                self.left.push(Waiting::Entry(Entry { path, kind }, Arc::clone(rules)));
            }
        }
    }

    fn is_ignored(&self, path: &Path, is_folder: bool, rules: &FolderRules) -> bool {
        is_left_out(&self.overrides, (path, is_folder), || {
            rules.ignore(path, is_folder, self.require_git, None)
        })
    }
}

impl Iterator for FarWalk<'_> {
    type Item = io::Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(error) = self.errors.pop_front() {
                return Some(Err(error));
            }
            match self.left.pop()? {
                Waiting::Inside(list, rules, folder) => self.enter(list, &rules, &folder),
                Waiting::Entry(entry, rules) if entry.kind == FileKind::Folder => {
                    let is_known = matches!(self.left.last(), Some(Waiting::Inside(_, _, folder)) if *folder == entry.path);
                    if !is_known {
                        self.left.push(Waiting::Entry(entry.clone(), rules));
                        if let Err(error) = self.look_inside() {
                            self.left.clear();
                            return Some(Err(error));
                        }
                        continue;
                    }
                    return Some(Ok(entry));
                }
                Waiting::Entry(entry, _) => return Some(Ok(entry)),
            }
        }
    }
}

#[cfg(test)]
mod tests;
